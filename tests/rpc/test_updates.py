"""UpdateContainerResources, UpdatePodSandboxResources, ReopenContainerLog: changes in place."""

from __future__ import annotations

import pytest

from fakecri.base.ports import ReopenLog
from fakecri.base.reasons import Code
from fakecri.clock import SECOND
from fakecri.core.traits import StoppedContainerCalls
from fakecri.personality.model import derive
from fakecri.personality.registry import PERSONALITIES
from fakecri.wire import messages

DIRECTORY = "/var/log/pods/p"


def resources(**limits):
    return messages.LinuxContainerResources(**limits)


def logged(client, pod, name="main", **config):
    pod_config = client.pod_config(log_directory=DIRECTORY)
    return client.run(pod, name, pod_config=pod_config, log_path=f"{name}.log", **config)


@pytest.fixture
def pod(client):
    return client.run_pod(log_directory=DIRECTORY)


def test_an_update_changes_what_it_names_and_shows_at_once(client, pod) -> None:
    linux = messages.LinuxContainerConfig(resources=resources(cpu_shares=512, memory_limit_in_bytes=1 << 27))
    container = client.run(pod, linux=linux)
    client.UpdateContainerResources(container_id=container, linux=resources(cpu_quota=50000, cpu_period=100000))
    shown = client.status(container).resources.linux
    assert (shown.cpu_shares, shown.cpu_quota, shown.cpu_period) == (512, 50000, 100000)
    assert shown.memory_limit_in_bytes == 1 << 27
    client.UpdateContainerResources(container_id=container, linux=resources(memory_limit_in_bytes=1 << 28))
    shown = client.status(container).resources.linux
    assert (shown.memory_limit_in_bytes, shown.memory_swap_limit_in_bytes) == (1 << 28, 1 << 28)
    client.UpdateContainerResources(
        container_id=container,
        linux=resources(
            unified={"memory.high": "1"},
            hugepage_limits=[messages.HugepageLimit(page_size="2MB", limit=1)],
            oom_score_adj=5,
        ),
    )
    client.UpdateContainerResources(container_id=container, linux=resources(unified={"pids.max": "9"}))
    shown = client.status(container).resources.linux
    assert dict(shown.unified) == {"memory.high": "1", "pids.max": "9"}
    assert [limit.page_size for limit in shown.hugepage_limits] == ["2MB"]
    assert shown.oom_score_adj == 5


def test_an_update_without_a_linux_part_changes_nothing(client, pod) -> None:
    container = client.run(pod)
    before = client.status(container)
    client.UpdateContainerResources(container_id=container)
    assert client.status(container) == before


def test_created_and_exited_containers_can_be_updated(client, pod) -> None:
    created, exited = client.create(pod, "created"), client.run(pod, "exited", command=["true"])
    client.engine.advance(SECOND)
    for container in (created, exited):
        client.UpdateContainerResources(container_id=container, linux=resources(cpu_shares=7))
        assert client.status(container).resources.linux.cpu_shares == 7


def test_a_stricter_runtime_refuses_to_update_what_has_exited(make_client) -> None:
    strict = derive(
        PERSONALITIES["reference"],
        name="strict",
        summary="",
        traits={"update_of_exited": StoppedContainerCalls.REFUSE},
    )
    client = make_client(personality=strict)
    pod = client.run_pod()
    exited = client.run(pod, command=["true"])
    client.engine.advance(SECOND)
    failed = client.refused("UpdateContainerResources", container_id=exited, linux=resources(cpu_shares=7))
    assert failed.text.endswith("container is in CONTAINER_EXITED state")
    created = client.create(pod, "created")
    client.UpdateContainerResources(container_id=created, linux=resources(cpu_shares=7))


def test_memory_cannot_be_limited_below_what_is_used(client, pod) -> None:
    container = client.run(pod)
    tiny = resources(memory_limit_in_bytes=1)
    failed = client.refused("UpdateContainerResources", container_id=container, linux=tiny)
    assert failed.code == Code.UNKNOWN
    assert "unable to set memory limit to 1 (current usage: " in failed.text
    assert client.status(container).resources.linux.memory_limit_in_bytes == 0
    created = client.create(pod, "created")
    client.UpdateContainerResources(container_id=created, linux=tiny)


@pytest.mark.parametrize(
    ("method", "text"),
    [
        ("UpdateContainerResources", "failed to find container: not found"),
        ("ReopenContainerLog", 'an error occurred when try to find container "x": not found'),
    ],
)
def test_unknown_and_empty_ids(client, method, text) -> None:
    failed = client.refused(method, container_id="x")
    assert (failed.code, failed.text) == (Code.NOT_FOUND, text)
    assert client.refused(method).code == Code.UNKNOWN


def test_an_update_whose_client_goes_away_changes_nothing(client, pod, gate) -> None:
    container = client.run(pod)
    for point in ("checked", "before_commit"):
        gate.at.clear()
        gate.hold("UpdateContainerResources", point)
        call = client.begin("UpdateContainerResources", container_id=container, linux=resources(cpu_shares=7))
        call.cancel()
        assert not call.open
        assert client.status(container).resources.linux.cpu_shares == 0


def test_a_pods_resources_are_kept_and_shown_in_its_info(client, pod) -> None:
    fields = {
        "overhead": resources(cpu_shares=1),
        "resources": resources(cpu_shares=1234, memory_limit_in_bytes=1 << 27),
    }
    before = client.PodSandboxStatus(pod_sandbox_id=pod, verbose=True).info["info"]
    client.UpdatePodSandboxResources(pod_sandbox_id=pod, **fields)
    after = client.PodSandboxStatus(pod_sandbox_id=pod, verbose=True).info["info"]
    assert "1234" not in before
    assert "1234" in after
    assert str(1 << 27) in after
    client.UpdatePodSandboxResources(pod_sandbox_id=pod)
    assert client.PodSandboxStatus(pod_sandbox_id=pod, verbose=True).info["info"] == after


def test_a_pods_resources_need_a_pod(client) -> None:
    failed = client.refused("UpdatePodSandboxResources", pod_sandbox_id="x")
    assert (failed.code, failed.text) == (Code.NOT_FOUND, "failed to find sandbox: not found")
    assert client.refused("UpdatePodSandboxResources").code == Code.UNKNOWN


def test_a_pods_update_passes_its_points(client, pod, gate) -> None:
    for point in ("checked", "before_commit"):
        gate.at.clear()
        gate.hold("UpdatePodSandboxResources", point)
        call = client.begin("UpdatePodSandboxResources", pod_sandbox_id=pod, resources=resources(cpu_shares=4321))
        assert call.open
        call.cancel()
        assert "4321" not in client.PodSandboxStatus(pod_sandbox_id=pod, verbose=True).info["info"]


def test_a_reopened_log_goes_on_in_a_new_file(client, pod) -> None:
    container = logged(client, pod)
    asked = []
    logs = client.engine._ports["logs"]

    def watch(request, answer) -> None:
        asked.append(request)
        logs(request, answer)

    client.engine._ports = {"logs": watch}
    client.ReopenContainerLog(container_id=container)
    assert [type(request) for request in asked] == [ReopenLog]
    assert asked[0].path == f"{DIRECTORY}/main.log"


def test_only_a_running_containers_log_is_reopened(client, pod) -> None:
    created, exited = client.create(pod, "created"), logged(client, pod, "exited", command=["true"])
    client.engine.advance(SECOND)
    for container in (created, exited):
        failed = client.refused("ReopenContainerLog", container_id=container)
        assert (failed.code, failed.text) == (Code.UNKNOWN, "container is not running")


def test_a_container_without_a_log_has_nothing_to_reopen(client, pod) -> None:
    client.ReopenContainerLog(container_id=client.run(pod))


def test_a_log_that_cannot_be_reopened(client, pod) -> None:
    container = logged(client, pod)
    client.engine._ports = {"logs": lambda request, answer: answer("permission denied")}
    failed = client.refused("ReopenContainerLog", container_id=container)
    path = f"{DIRECTORY}/main.log"
    assert failed.text == f"failed to create and open log file: open {path}: permission denied"
    client.engine._ports = {"logs": lambda request, answer: answer(None)}
    client.RemoveContainer(container_id=container)


def test_a_container_that_exits_while_the_call_is_held_is_not_reopened(client, pod, gate) -> None:
    container = logged(client, pod)
    gate.hold("ReopenContainerLog", "checked")
    call = client.begin("ReopenContainerLog", container_id=container)
    client.StopContainer(container_id=container)
    gate.release()
    assert call.reply.text == "container is not running"


def test_a_port_may_answer_later(client, pod) -> None:
    container = logged(client, pod)
    waiting = []
    client.engine._ports = {"logs": lambda request, answer: waiting.append(answer)}
    call = client.begin("ReopenContainerLog", container_id=container)
    client.engine.advance(SECOND)
    assert call.open
    waiting.pop()(None)
    assert call.answer is not None
    client.engine._ports = {"logs": lambda request, answer: answer(None)}
    client.RemoveContainer(container_id=container)
