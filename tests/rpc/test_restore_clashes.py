"""RestorePod where names are taken: what is restored is a pod of its own, with containers of its own."""

from __future__ import annotations

from fakecri.core.traits import OnDuplicateName
from fakecri.personality.model import derive
from fakecri.personality.registry import PERSONALITIES
from fakecri.wire import messages


def test_a_restored_container_is_never_another_pods(make_client) -> None:
    sharing = derive(
        PERSONALITIES["reference"],
        name="sharing",
        summary="",
        traits={"duplicate_container_name": OnDuplicateName.RETURN_EXISTING},
    )
    client = make_client(personality=sharing)
    pod = client.run_pod()
    container = client.run(pod)
    client.engine.runtime.host_files.make_directories("/checkpoints/one")
    client.CheckpointPod(pod_sandbox_id=pod, output_path="/checkpoints/one", container_ids=[container])
    restore = {
        "checkpoint_path": "/checkpoints/one",
        "config": client.pod_config(attempt=1),  # the same pod again: its containers' names are those that exist
        "container_configs": [client.engine.runtime.container(container).config()],
    }
    failed = client.refused("RestorePod", **restore)
    assert f'reserved for "{container}"' in failed.text
    assert (client.pods(), client.containers()) == ([pod], [container])
    assert not client.engine.runtime.container(container).restored
    client.RemovePodSandbox(pod_sandbox_id=pod)
    made = client.RestorePod(**restore)
    assert client.containers(pod_sandbox_id=made.pod_sandbox_id) == [made.restored_containers[0].container_id]
    client.StartContainer(container_id=made.restored_containers[0].container_id)
    assert client.status(made.restored_containers[0].container_id).state == messages.CONTAINER_RUNNING
