"""The code of the page on calls in process."""

# [engine]
import pytest

from fakecri.assembly import build_engine
from fakecri.base.reasons import Code
from fakecri.clock import SECOND
from fakecri.engine import CallFailed
from fakecri.wire import messages as cri_api


def test_a_pod_without_a_socket():
    engine = build_engine(personality="containerd-2.1", seed=7)
    config = cri_api.PodSandboxConfig(metadata={"name": "web", "namespace": "default", "uid": "1"})

    sandbox_id = engine.call("RunPodSandbox", cri_api.RunPodSandboxRequest(config=config)).pod_sandbox_id
    engine.advance(3600 * SECOND)

    listed = engine.call("ListPodSandbox", cri_api.ListPodSandboxRequest()).items
    assert [(sandbox.id, sandbox.metadata.name) for sandbox in listed] == [(sandbox_id, "web")]


# [refusal]
def test_a_refusal_is_an_exception():
    engine = build_engine()

    with pytest.raises(CallFailed) as refused:
        engine.call("StartContainer", cri_api.StartContainerRequest(container_id="nobody"))

    assert refused.value.code is Code.NOT_FOUND


# [seed]
def test_the_same_seed_gives_the_same_run():
    def ids(seed: int) -> list[str]:
        engine = build_engine(seed=seed)
        config = cri_api.PodSandboxConfig(metadata={"name": "web", "namespace": "default", "uid": "1"})
        return [engine.call("RunPodSandbox", cri_api.RunPodSandboxRequest(config=config)).pod_sandbox_id]

    assert ids(1) == ids(1)
    assert ids(1) != ids(2)


# [end]
