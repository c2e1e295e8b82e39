"""The fixture ``cri``: what a test gets, what it may not overlook, and that frozen time does no harm."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import pytest
from freezegun import freeze_time

from fakecri.clock import SECOND
from fakecri.testing import FakeRuntime
from fakecri.wire import messages


def exited(client: Any, container_id: str) -> bool:
    state: int = client.ContainerStatus(container_id=container_id).status.state
    return state == messages.CONTAINER_EXITED


def test_sleep_ends_for_one_who_polls_its_status(client: Any, until: Callable[..., None]) -> None:
    container_id = client.container(client.pod(), "sleep", "1")
    assert not exited(client, container_id)
    until(lambda: exited(client, container_id))
    status = client.ContainerStatus(container_id=container_id).status
    assert (status.exit_code, status.reason) == (0, "Completed")
    assert SECOND <= status.finished_at - status.started_at < 2 * SECOND


def test_sleep_ends_for_one_who_listens_to_events(client: Any, listen: Any, until: Any) -> None:
    events = listen(client)
    container_id = client.container(client.pod(), "sleep", "1")
    until(lambda: messages.CONTAINER_STOPPED_EVENT in events.of(container_id))
    assert exited(client, container_id)


def test_a_call_that_waits_for_the_clock_makes_it_jump(cri: FakeRuntime, client: Any) -> None:
    container_id = client.container(client.pod(), "sleep", "100000")
    request = messages.StopContainerRequest(container_id=container_id, timeout=3600)
    client.method("StopContainer")(request, timeout=30)
    assert cri.clock.now > 3600
    assert cri.containers[container_id].exit_code == 137


def test_time_can_be_advanced(cri: FakeRuntime, client: Any) -> None:
    container_id = client.container(client.pod(), "sleep", "100000")
    before = cri.clock.now
    cri.clock.advance(100_001)
    assert 100_001 <= cri.clock.now - before < 100_100
    assert exited(client, container_id)
    with pytest.raises(ValueError, match="never goes back"):
        cri.clock.advance(-1)


def test_the_wall_clock_can_be_stepped(cri: FakeRuntime, client: Any) -> None:
    early = client.PodSandboxStatus(pod_sandbox_id=client.pod("one")).status.created_at
    cri.clock.step_wall(-3600)
    late = client.PodSandboxStatus(pod_sandbox_id=client.pod("two")).status.created_at
    assert early - late == pytest.approx(3600 * SECOND, abs=5 * SECOND)
    assert cri.clock.wall_ns >= late


@pytest.mark.fakecri(clock="hold")
def test_held_time_stands_still(cri: FakeRuntime, client: Any, until: Any) -> None:
    pull = client.method("PullImage").future(messages.PullImageRequest(image={"image": "busybox"}))
    until(lambda: cri.engine.open_calls)
    assert cri.clock.now_ns == 0
    assert not pull.done()
    cri.clock.advance(60)
    assert pull.result(20).image_ref in cri.images
    container_id = client.container(client.pod(), "sleep", "1")
    assert cri.clock.now == 60
    assert not exited(client, container_id)
    cri.clock.advance(1)
    assert exited(client, container_id)


def test_views_and_calls(cri: FakeRuntime, client: Any, refusal: Any) -> None:
    sandbox_id = client.pod("web")
    container_id = client.container(sandbox_id, "sleep", "100", name="app")
    refusal(client.PodSandboxStatus, pod_sandbox_id="nope")
    assert list(cri.sandboxes) == [sandbox_id]
    assert cri.sandboxes[sandbox_id].state == messages.SANDBOX_READY
    assert cri.sandboxes.named("web").id == sandbox_id
    assert cri.containers.named("app").state == messages.CONTAINER_RUNNING
    assert container_id in cri.containers
    with pytest.raises(KeyError, match=r"0 objects are named 'db'; there are \['app'\]"):
        cri.containers.named("db")
    assert any("docker.io/library/busybox:latest" in image.repo_tags for image in cri.images.values())
    assert [call.method for call in cri.calls] == [
        "RunPodSandbox",
        "ImageStatus",
        "PullImage",
        "PodSandboxStatus",
        "CreateContainer",
        "StartContainer",
        "PodSandboxStatus",
    ]
    assert [call.method for call in cri.calls.refused()] == ["PodSandboxStatus"]
    assert len(cri.calls.of("PullImage")) == 1
    assert cri.calls[0].method == "RunPodSandbox"
    cri.calls.clear()
    assert len(cri.calls) == 0


@pytest.mark.fakecri(personality="containerd-1.6", seed=5)
def test_the_mark_chooses_another_runtime(cri: FakeRuntime, client: Any) -> None:
    assert client.Version().runtime_version.startswith("1.6")
    assert cri.seed == 5
    with FakeRuntime(personality="containerd-1.6", seed=5) as twin:
        message = messages.RunPodSandboxRequest(
            config={"metadata": {"name": "pod", "namespace": "default", "uid": "u"}}
        )
        assert client.pod() == twin.engine.call("RunPodSandbox", message).pod_sandbox_id


@pytest.mark.fakecri(level="1.25", api="v1alpha2,v1")
def test_level_and_api(client: Any, refusal: Any) -> None:
    assert refusal(client.RuntimeConfig) == (
        grpc.StatusCode.UNIMPLEMENTED,
        "unknown method RuntimeConfig for service runtime.v1.RuntimeService",
    )


@pytest.mark.fakecri(host_files=True)
def test_logs_may_go_to_disk(cri: FakeRuntime, client: Any, tmp_path: Path, until: Any) -> None:
    container_id = client.container(client.pod(log_directory=str(tmp_path)), "echo", "hello", log_path="0.log")
    until(lambda: exited(client, container_id))
    assert (tmp_path / "0.log").read_text().endswith(" stdout F hello\n")


@freeze_time("2020-02-02")
def test_a_frozen_past_does_not_reach_the_runtime(cri: FakeRuntime, client: Any, until: Any) -> None:
    assert client.Version().version == "0.1.0"
    container_id = client.container(client.pod(), "sleep", "1")
    until(lambda: exited(client, container_id))
    assert client.Version(timeout=20).version == "0.1.0"
    left_ns = cri.calls[-1].time_left_ns
    assert left_ns is not None
    assert 0 < left_ns < 21 * SECOND  # gRPC rounds up on the wire


@freeze_time("2040-01-01")
def test_a_frozen_future_does_not_reach_the_runtime(connect: Any, until: Any) -> None:
    with FakeRuntime() as runtime:  # started inside the freeze
        client = connect(runtime.endpoint)
        container_id = client.container(client.pod(), "sleep", "1")
        until(lambda: exited(client, container_id))
        assert client.Version(timeout=20).version == "0.1.0"
        left_ns = runtime.calls[-1].time_left_ns
        assert left_ns is not None
        assert 0 < left_ns < 21 * SECOND  # gRPC rounds up on the wire


def run(pytester: pytest.Pytester, body: str, *options: str) -> pytest.RunResult:
    """Runs a test file with the plugin in a pytest of its own."""
    pytester.makepyfile(body)
    quick = ("--assert=plain", "-pno:cacheprovider", "-pno:hypothesispytest", "-pno:faker", "-pno:xdist")
    return pytester.runpytest_subprocess(*quick, *options)


def test_the_runtimes_own_failure_fails_the_test_and_shows_the_seed(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
        def test_it(cri):
            cri.engine.failures.append("Traceback: a bug in the runtime")
        """,
        "--fakecri-seed=4711",
    )
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(
        ["*1 unforeseen inside the simulated runtime:*", "*a bug in the runtime*", "*--fakecri-seed=4711*"]
    )


def test_a_failing_test_shows_a_seed_that_follows_from_its_name(pytester: pytest.Pytester) -> None:
    seeds = []
    for _ in range(2):
        result = run(pytester, "def test_it(cri): assert cri.seed < 0")
        result.assert_outcomes(failed=1)
        seeds += [line for line in result.outlines if "--fakecri-seed=" in line]
    assert len(seeds) == 2
    assert seeds[0] == seeds[1]


def test_a_wrong_option_is_named(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
        import pytest

        @pytest.mark.fakecri(persona="x")
        def test_it(cri):
            pass
        """,
    )
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*mark fakecri has unknown options persona: it takes api, *personality, *"])


def test_the_nearest_mark_wins_and_strictness_can_be_waived(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
        import pytest

        pytestmark = pytest.mark.fakecri(seed=1, personality="containerd-2.1")

        @pytest.mark.fakecri(seed=2, strict=False)
        def test_it(cri):
            assert cri.seed == 2
            assert cri.engine.personality.name == "containerd-2.1"
            cri.engine.failures.append("known")
        """,
    )
    result.assert_outcomes(passed=1)
