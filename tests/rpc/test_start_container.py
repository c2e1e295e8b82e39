"""StartContainer: what runs, what a failed start leaves, and what happens to a call that is held."""

from __future__ import annotations

import pytest

from fakecri.base.ports import CloseLog
from fakecri.base.reasons import Code, CriError, Reason
from fakecri.clock import MILLISECOND, SECOND
from fakecri.wire import messages

TASK = "failed to create containerd task: failed to create shim task: OCI runtime create failed: "
RUNC = f"{TASK}runc create failed: unable to start container process: "


@pytest.fixture
def pod(client):
    return client.run_pod(log_directory="/var/log/pods/p")


def assert_start_error(client, container, text) -> None:
    """What containerd leaves after a failed start."""
    status = client.status(container)
    assert (status.state, status.exit_code, status.reason) == (messages.CONTAINER_EXITED, 128, "StartError")
    assert status.message == text
    assert status.started_at == 0
    assert status.finished_at > 0


def test_a_container_runs_when_the_call_returns(client, pod) -> None:
    container = client.create(pod, log_path="main.log")
    client.StartContainer(container_id=container[:12])
    status = client.status(container)
    assert status.state == messages.CONTAINER_RUNNING
    assert status.started_at >= status.created_at
    assert status.finished_at == 0
    process = client.engine.runtime.container(container).process
    assert process.argv == ("sleep", "3600")
    assert process.pid >= 5_000_000


def test_command_and_args_stand_for_entrypoint_and_command(client, pod) -> None:
    image = "registry.k8s.io/pause:3.10"
    for name, config, argv in (
        ("image", {"command": []}, ("/pause",)),
        ("args", {"command": [], "args": ["-v"]}, ("/pause", "-v")),
        ("command", {"command": ["/pause", "x"]}, ("/pause", "x")),
        ("both", {"command": ["/pause"], "args": ["x", "y"]}, ("/pause", "x", "y")),
    ):
        container = client.run(pod, name, image=image, **config)
        assert client.engine.runtime.container(container).process.argv == argv


def test_what_it_writes_is_in_the_log_when_it_has_exited(client, pod) -> None:
    config = client.pod_config(log_directory="/var/log/pods/p")
    container = client.run(pod, command=["echo", "hello"], pod_config=config, log_path="main.log")
    client.engine.advance(SECOND)
    status = client.status(container)
    assert (status.state, status.exit_code, status.reason) == (messages.CONTAINER_EXITED, 0, "Completed")
    (line,) = client.engine.runtime.log_files.content("/var/log/pods/p/main.log").decode().splitlines()
    assert line.endswith(" stdout F hello")


def test_an_exit_code_is_an_error_unless_it_is_zero(client, pod) -> None:
    container = client.run(pod, command=["false"])
    client.engine.advance(SECOND)
    status = client.status(container)
    assert (status.state, status.exit_code, status.reason) == (messages.CONTAINER_EXITED, 1, "Error")
    assert status.finished_at >= status.started_at > 0


def test_a_container_ends_at_its_own_time(client, pod) -> None:
    container = client.run(pod, command=["sleep", "5"])
    client.engine.advance(5 * SECOND - 1)
    assert client.status(container).state == messages.CONTAINER_RUNNING
    client.engine.advance(SECOND)
    status = client.status(container)
    assert status.state == messages.CONTAINER_EXITED
    assert abs(status.finished_at - status.started_at - 5 * SECOND) < MILLISECOND


def test_a_container_starts_once(client, pod) -> None:
    container = client.run(pod)
    failed = client.refused("StartContainer", container_id=container)
    prefix = f'failed to set starting state for container "{container}": '
    assert (failed.code, failed.text) == (Code.UNKNOWN, f"{prefix}container is in CONTAINER_RUNNING state")
    client.StopContainer(container_id=container)
    failed = client.refused("StartContainer", container_id=container)
    assert failed.text == f"{prefix}container is in CONTAINER_EXITED state"


def test_unknown_and_empty_ids_are_refused(client) -> None:
    failed = client.refused("StartContainer", container_id="x")
    assert (failed.code, failed.text) == (
        Code.NOT_FOUND,
        'an error occurred when try to find container "x": not found',
    )
    failed = client.refused("StartContainer")
    assert failed.text == 'an error occurred when try to find container "": prefix can\'t be empty'


@pytest.mark.parametrize(
    ("config", "text"),
    [
        ({"command": ["/no/such"]}, f'{RUNC}exec: "/no/such": stat /no/such: no such file or directory'),
        ({"command": ["nosuch"]}, f'{RUNC}exec: "nosuch": executable file not found in $PATH'),
        ({"command": ["/etc/passwd"]}, f'{RUNC}exec: "/etc/passwd": permission denied'),
        ({"command": ["/bin"]}, f'{RUNC}exec: "/bin": is a directory'),
        ({"working_dir": "relative"}, f"{RUNC}error during container init: Cwd must be an absolute path"),
        (
            {"working_dir": "/etc/passwd/x"},
            f"{RUNC}error during container init: mkdir /etc/passwd: not a directory",
        ),
    ],
)
def test_what_cannot_be_executed_leaves_a_start_error(client, pod, config, text) -> None:
    container = client.create(pod, **config)
    failed = client.refused("StartContainer", container_id=container)
    assert (failed.code, failed.text) == (Code.UNKNOWN, text)
    assert_start_error(client, container, text)
    again = client.refused("StartContainer", container_id=container)
    assert "container is in CONTAINER_EXITED state" in again.text
    assert client.engine.runtime.container(container).process is None


def test_the_older_containerd_adds_its_tail(make_client) -> None:
    client = make_client(personality="containerd-1.6")
    container = client.create(client.run_pod(), command=["/no/such"])
    failed = client.refused("StartContainer", container_id=container)
    assert failed.text.endswith("stat /no/such: no such file or directory: unknown")


def test_a_start_in_a_stopped_pod_leaves_a_start_error(client, pod) -> None:
    container = client.create(pod)
    client.StopPodSandbox(pod_sandbox_id=pod)
    failed = client.refused("StartContainer", container_id=container)
    text = f'sandbox container "{pod}" is not running'
    assert failed.text == text
    assert_start_error(client, container, text)


def test_a_pod_that_stops_while_the_call_is_held_leaves_a_start_error(client, pod, gate) -> None:
    container = client.create(pod)
    gate.hold("StartContainer", "before_commit")
    call = client.begin("StartContainer", container_id=container)
    client.StopPodSandbox(pod_sandbox_id=pod)
    gate.release()
    assert call.reply.text == f'sandbox container "{pod}" is not running'
    assert_start_error(client, container, call.reply.text)


def test_only_one_start_at_a_time(client, pod, gate) -> None:
    container = client.create(pod)
    gate.hold("StartContainer", "before_commit")
    call = client.begin("StartContainer", container_id=container)
    failed = client.refused("StartContainer", container_id=container)
    assert failed.text == (
        f'failed to set starting state for container "{container}": container is already in starting state'
    )
    gate.release()
    assert call.answer is not None
    assert client.status(container).state == messages.CONTAINER_RUNNING


def test_a_container_is_not_removed_while_it_starts(client, pod, gate) -> None:
    container = client.create(pod)
    gate.hold("StartContainer", "before_commit")
    call = client.begin("StartContainer", container_id=container)
    failed = client.refused("RemoveContainer", container_id=container)
    assert failed.text == (
        f'failed to set removing state for container "{container}": container is in starting state, can\'t be removed'
    )
    gate.release()
    assert call.answer is not None
    client.RemoveContainer(container_id=container)


def test_a_pod_that_is_removed_while_the_call_is_held_takes_the_container(client, pod, gate) -> None:
    container = client.create(pod)
    gate.hold("StartContainer", "before_commit")
    call = client.begin("StartContainer", container_id=container)
    client.RemovePodSandbox(pod_sandbox_id=pod)
    gate.release()
    assert call.reply.code == Code.NOT_FOUND
    assert container in call.reply.text
    assert (client.pods(), client.containers()) == ([], [])


@pytest.mark.parametrize("point", ["checked", "before_commit"])
def test_a_client_that_goes_away_leaves_a_created_container(client, pod, gate, point) -> None:
    container = client.create(pod, pod_config=client.pod_config(log_directory="/var/log/p"), log_path="a.log")
    gate.hold("StartContainer", point)
    call = client.begin("StartContainer", container_id=container)
    call.cancel()
    assert not call.open
    assert client.status(container).state == messages.CONTAINER_CREATED
    gate.at.clear()
    client.StartContainer(container_id=container)
    assert client.status(container).state == messages.CONTAINER_RUNNING


@pytest.mark.parametrize("point", ["checked", "before_commit"])
def test_a_start_that_a_rule_fails_leaves_a_start_error(client, pod, gate, point) -> None:
    container = client.create(pod)
    gate.fail("StartContainer", point, CriError(Reason.SHUTTING_DOWN))
    failed = client.refused("StartContainer", container_id=container)
    assert failed.code == Code.UNAVAILABLE
    assert_start_error(client, container, failed.text)


def test_a_log_that_cannot_be_written_fails_the_start(make_client) -> None:
    client = make_client()
    asked = []

    def full_disk(request, answer) -> None:
        asked.append(request)
        answer(None if isinstance(request, CloseLog) else "no space left on device")

    client.engine._ports = {"logs": full_disk}
    config = client.pod_config(log_directory="/var/log/p")
    container = client.create(client.run_pod(), pod_config=config, log_path="a.log")
    failed = client.refused("StartContainer", container_id=container)
    assert failed.text == (
        "failed to create containerd task: failed to create container loggers:"
        " failed to create and open log file: open /var/log/p/a.log: no space left on device"
    )
    assert asked
    assert_start_error(client, container, failed.text)


def test_a_log_that_cannot_be_finished_keeps_no_container_alive(client, pod) -> None:
    config = client.pod_config(log_directory="/var/log/p")
    container = client.run(pod, pod_config=config, log_path="a.log")
    client.engine._ports = {"logs": lambda request, answer: answer("no space left on device")}
    client.StopContainer(container_id=container)
    assert client.status(container).state == messages.CONTAINER_EXITED
    (failure,) = client.engine.failures
    assert "container log /var/log/p/a.log: no space left on device" in failure
    client.engine.failures.clear()


def test_a_log_path_with_dots_is_refused(client, pod) -> None:
    config = client.pod_config(log_directory="/var/log/pods")
    container = client.create(pod, pod_config=config, log_path="../../etc/cron.d/x")
    failed = client.refused("StartContainer", container_id=container)
    assert "/var/log/pods/../../etc/cron.d/x" in failed.text
    assert_start_error(client, container, failed.text)
