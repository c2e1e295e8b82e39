"""CheckpointContainer, CheckpointPod, RestorePod: an archive that a restore reads back, or nothing at all."""

from __future__ import annotations

import io
import json
import tarfile

import pytest

from fakecri.base.reasons import Code, CriError, Reason
from fakecri.clock import MILLISECOND, SECOND
from fakecri.core import archive
from fakecri.core.node import Node, RuntimeHandler
from fakecri.kernel.curves import level
from fakecri.kernel.program import Program
from fakecri.wire import messages
from fakecri.workload.scripted import LogLine, ScriptedWorkload

DIRECTORY = "/checkpoints"
LOCATION = f"{DIRECTORY}/one.tar"


@pytest.fixture
def files(client):
    """The host's files; the directory for checkpoints exists."""
    files = client.engine.runtime.host_files
    files.make_directories(f"{DIRECTORY}/pod")
    return files


@pytest.fixture
def pod(client):
    return client.run_pod()


@pytest.fixture
def container(client, pod):
    return client.run(pod, command=["sleep", "100"])


def tar_names(content):
    with tarfile.open(fileobj=io.BytesIO(content)) as tar:
        return tar.getnames()


def state(client, container):
    return messages.ContainerState.Name(client.status(container).state)


# -- one container -----------------------------------------------------------------------------------------------------
def test_a_checkpoint_is_an_archive_and_the_container_goes_on(client, files, container) -> None:
    client.engine.advance(40 * SECOND)
    client.CheckpointContainer(container_id=container, location=LOCATION)
    content = files.read(LOCATION, 1 << 30)
    assert tar_names(content) == ["checkpoint.json", "config.pb", "status.pb", "process.json", "layer.json"]
    entries = archive.unpack(content)
    assert json.loads(entries["process.json"])["argv"] == ["sleep", "100"]
    assert messages.ContainerStatus.FromString(entries["status.pb"]) == client.status(container)
    assert state(client, container) == "CONTAINER_RUNNING"
    client.engine.advance(61 * SECOND)
    assert state(client, container) == "CONTAINER_EXITED", "it slept on"
    info = json.loads(client.ContainerStatus(container_id=container, verbose=True).info["info"])
    assert info["checkpointedAt"].startswith("2026-01-01T00:00:40.")


def test_it_takes_time_in_which_nothing_goes_on(client, files, pod) -> None:
    lines = (LogLine(0, "tick", every_ns=100 * MILLISECOND, times=None),)
    program = ScriptedWorkload(lines=lines, memory_bytes=2 << 30).program()
    client.engine.runtime.workloads.append(lambda container: program)
    config = client.pod_config(log_directory="/logs")
    container = client.run(pod, log_path="c.log", pod_config=config)
    client.engine.advance(SECOND)
    call = client.begin("CheckpointContainer", container_id=container, location=LOCATION)
    before = files.read("/logs/c.log")
    client.engine.advance(1900 * MILLISECOND)
    assert call.open
    assert files.read("/logs/c.log") == before
    client.engine.advance(200 * MILLISECOND)
    assert call.answer == messages.CheckpointContainerResponse()
    client.engine.advance(SECOND)
    assert len(files.read("/logs/c.log")) > len(before)


def test_too_slow_for_its_timeout(client, files, pod) -> None:
    program = ScriptedWorkload(memory_bytes=5 << 30).program()
    client.engine.runtime.workloads.append(lambda container: program)
    container = client.run(pod)
    began_ns = client.engine.clock.now_ns
    refusal = client.refused("CheckpointContainer", container_id=container, location=LOCATION, timeout=3)
    assert refusal.code == Code.DEADLINE_EXCEEDED
    assert client.engine.clock.now_ns - began_ns == 3 * SECOND
    assert files.stat(LOCATION) is None
    client.CheckpointContainer(container_id=container, location=LOCATION, timeout=60)


def test_only_running_containers(client, files, pod) -> None:
    created = client.create(pod, "created")
    exited = client.run(pod, "exited", command=["true"])
    client.engine.advance(SECOND)
    for container, shown in ((created, "CREATED"), (exited, "EXITED")):
        refusal = client.refused("CheckpointContainer", container_id=container, location=LOCATION)
        assert f"CONTAINER_{shown}" in refusal.text
    assert files.stat(LOCATION) is None
    assert client.refused("CheckpointContainer", container_id="f" * 64).code == Code.NOT_FOUND
    assert client.refused("CheckpointContainer").code == Code.UNKNOWN


@pytest.mark.parametrize(
    ("location", "reason"),
    [
        ("", "no location"),
        ("relative.tar", "not absolute"),
        ("/nowhere/one.tar", "no such file or directory"),
        (f"{DIRECTORY}/pod", "is a directory"),
        (f"{DIRECTORY}/../etc/x", "'..'"),
    ],
)
def test_locations_that_cannot_be_written(client, files, container, location, reason) -> None:
    refusal = client.refused("CheckpointContainer", container_id=container, location=location)
    assert reason in refusal.text
    assert state(client, container) == "CONTAINER_RUNNING"
    client.engine.advance(101 * SECOND)
    assert state(client, container) == "CONTAINER_EXITED", "it was not left paused"


def test_ended_while_being_taken(client, files, container) -> None:
    call = client.begin("CheckpointContainer", container_id=container, location=LOCATION)
    stop = client.begin("StopContainer", container_id=container)
    client.engine.advance(SECOND)
    assert stop.answer is not None
    assert call.reply is not None
    assert call.reply.code != Code.OK
    assert files.stat(LOCATION) is None


def test_a_client_that_goes_away_leaves_nothing_paused(client, files, container) -> None:
    call = client.begin("CheckpointContainer", container_id=container, location=LOCATION)
    call.cancel()
    client.engine.advance(101 * SECOND)
    assert files.stat(LOCATION) is None
    assert state(client, container) == "CONTAINER_EXITED"


def test_one_that_its_user_stopped_stays_stopped(client, files, container) -> None:
    process = client.engine.runtime.container(container).process
    client.engine.runtime.machine.signal(process, 19)
    client.CheckpointContainer(container_id=container, location=LOCATION)
    client.engine.advance(200 * SECOND)
    assert state(client, container) == "CONTAINER_RUNNING"


def test_a_long_archive_is_written_through_the_port(client, files, pod) -> None:
    container = client.run(pod, annotations={"long": "x" * 100_000})
    client.CheckpointContainer(container_id=container, location=LOCATION)
    assert len(files.read(LOCATION, 1 << 30)) > 100_000


# -- a pod -------------------------------------------------------------------------------------------------------------
def take(client, pod, *containers, path=f"{DIRECTORY}/pod", **more):
    return client.CheckpointPod(pod_sandbox_id=pod, output_path=path, container_ids=containers, **more)


def test_a_pods_checkpoint_fills_its_directory(client, files, pod, container) -> None:
    other = client.run(pod, "other")
    take(client, pod, container, other)
    assert files.entries(f"{DIRECTORY}/pod") == ("container-0.tar", "container-1.tar", "pod.tar")


def test_what_a_pods_checkpoint_refuses(client, files, pod, container) -> None:
    foreign = client.run(client.run_pod("two"), pod_config=client.pod_config("two"))
    created = client.create(pod, "created")

    def refused(**changes):
        fields = {"pod_sandbox_id": pod, "output_path": f"{DIRECTORY}/pod", "container_ids": [container], **changes}
        return client.refused("CheckpointPod", **fields).text

    assert "no container is named" in refused(container_ids=[])
    assert "named twice" in refused(container_ids=[container, container])
    assert "belongs to sandbox" in refused(container_ids=[container, foreign])
    assert "CONTAINER_CREATED" in refused(container_ids=[container, created])
    assert "leave-running" in refused(options={"leave-running": "1"})
    assert "no such file or directory" in refused(output_path="/nowhere")
    assert "no location" in refused(output_path="")
    assert client.refused("CheckpointPod", pod_sandbox_id="f" * 64).code == Code.NOT_FOUND
    files.write(f"{DIRECTORY}/pod/there", b"")
    assert "not empty" in refused()
    files.remove(f"{DIRECTORY}/pod/there")
    client.StopPodSandbox(pod_sandbox_id=pod)
    assert pod in refused()
    assert files.entries(f"{DIRECTORY}/pod") == ()


def test_a_failure_at_the_end_leaves_the_directory_empty_and_all_running(client, files, gate, pod, container) -> None:
    gate.fail("CheckpointPod", "before_commit", CriError(Reason.SHUTTING_DOWN))
    client.refused("CheckpointPod", pod_sandbox_id=pod, output_path=f"{DIRECTORY}/pod", container_ids=[container])
    assert files.entries(f"{DIRECTORY}/pod") == ()
    client.engine.advance(101 * SECOND)
    assert state(client, container) == "CONTAINER_EXITED"


def test_a_file_that_cannot_be_written_takes_the_others_with_it(client, files, pod, container, monkeypatch) -> None:
    write = files.write

    def full(path, content, mode=0o644):
        if path.endswith("pod.tar"):
            raise CriError(Reason.PATH_REFUSED, path=path, detail="no space left on device")
        write(path, content, mode)

    monkeypatch.setattr(files, "write", full)
    refusal = client.refused(
        "CheckpointPod", pod_sandbox_id=pod, output_path=f"{DIRECTORY}/pod", container_ids=[container]
    )
    assert "no space left on device" in refusal.text
    assert files.entries(f"{DIRECTORY}/pod") == ()


# -- restore -----------------------------------------------------------------------------------------------------------
@pytest.fixture
def taken(client, files, pod, container):
    """A pod taken at 40 s of its container's life, and removed."""
    client.engine.advance(40 * SECOND)
    take(client, pod, container)
    client.RemovePodSandbox(pod_sandbox_id=pod)
    return f"{DIRECTORY}/pod"


def restore_fields(client, path, **changes):
    return {
        "checkpoint_path": path,
        "config": client.pod_config("anew"),
        "container_configs": [client.container_config(command=["sleep", "100"])],
        **changes,
    }


def test_a_restored_pod_starts_where_it_was(client, taken) -> None:
    restored = client.RestorePod(**restore_fields(client, taken))
    (made,) = restored.restored_containers
    assert made.name == "main"
    assert client.pods() == [restored.pod_sandbox_id]
    assert client.containers() == [made.container_id]
    assert state(client, made.container_id) == "CONTAINER_CREATED"
    assert client.pod_status(restored.pod_sandbox_id).network.ip
    client.engine.advance(1000 * SECOND)
    client.StartContainer(container_id=made.container_id)
    client.engine.advance(59 * SECOND)
    assert state(client, made.container_id) == "CONTAINER_RUNNING"
    client.engine.advance(2 * SECOND)
    assert state(client, made.container_id) == "CONTAINER_EXITED"
    info = json.loads(client.ContainerStatus(container_id=made.container_id, verbose=True).info["info"])
    assert info["restored"] is True


def test_restore_time_settings_are_the_requests(client, taken) -> None:
    config = client.container_config(
        command=["sleep", "100"],
        labels={"a": "1"},
        annotations={"b": "2"},
        log_path="new.log",
        linux=messages.LinuxContainerConfig(resources=messages.LinuxContainerResources(cpu_shares=7)),
    )
    pod_config = client.pod_config("anew", log_directory="/logs/new")
    restored = client.RestorePod(**restore_fields(client, taken, config=pod_config, container_configs=[config]))
    status = client.status(restored.restored_containers[0].container_id)
    assert (dict(status.labels), dict(status.annotations)) == ({"a": "1"}, {"b": "2"})
    assert status.log_path == "/logs/new/new.log"
    assert status.resources.linux.cpu_shares == 7


def test_usage_and_files_come_back(client, files, pod) -> None:
    program = ScriptedWorkload(cpu=level(1000)).program()
    client.engine.runtime.workloads.append(lambda container: program)
    container = client.run(pod, command=["sleep", "100"])
    client.engine.runtime.container(container).process.spec.files.write("/state/x", b"kept")
    client.engine.advance(10 * SECOND)
    used = client.ContainerStats(container_id=container).stats.cpu.usage_core_nano_seconds.value
    take(client, pod, container)
    restored = client.RestorePod(**restore_fields(client, f"{DIRECTORY}/pod"))
    again = restored.restored_containers[0].container_id
    client.StartContainer(container_id=again)
    assert client.ContainerStats(container_id=again).stats.cpu.usage_core_nano_seconds.value >= used
    assert client.engine.runtime.container(again).process.spec.files.read("/state/x") == b"kept"


def test_a_program_that_cannot_say_where_it_stands_starts_anew(client, files, pod) -> None:
    def body(context):
        yield from context.until_age(10 * SECOND)
        return 0

    program = Program("forgetful", body)
    client.engine.runtime.workloads.append(lambda container: program)
    container = client.run(pod, command=["sleep", "100"])
    client.engine.advance(6 * SECOND)
    take(client, pod, container)
    restored = client.RestorePod(**restore_fields(client, f"{DIRECTORY}/pod"))
    again = restored.restored_containers[0].container_id
    client.StartContainer(container_id=again)
    client.engine.advance(9 * SECOND)
    assert state(client, again) == "CONTAINER_RUNNING"
    client.engine.advance(2 * SECOND)
    assert state(client, again) == "CONTAINER_EXITED"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"options": {"tcp": "1"}}, "tcp"),
        ({"checkpoint_path": ""}, "no location"),
        ({"checkpoint_path": "/nowhere"}, "no such file or directory"),
        ({"container_configs": []}, "no container config"),
        ({"runtime_handler": "other"}, "runtime handler"),
        ({"runtime_handler": "unknown"}, "unknown"),
    ],
)
def test_what_a_restore_refuses(make_client, changes, reason) -> None:
    client = make_client(node=Node(runtime_handlers=(RuntimeHandler("runc"), RuntimeHandler("other"))))
    client.engine.runtime.host_files.make_directories(DIRECTORY)
    pod = client.run_pod()
    take(client, pod, client.run(pod, command=["sleep", "100"]), path=DIRECTORY)
    refusal = client.refused("RestorePod", **restore_fields(client, DIRECTORY, **changes))
    assert reason in refusal.text
    assert client.pods() == [pod]


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ({"command": ["sleep", "99"]}, "command"),
        ({"args": ["1"]}, "args"),
        ({"working_dir": "/tmp"}, "working_dir"),
        ({"envs": [messages.KeyValue(key="K", value=b"v")]}, "envs"),
        ({"name": "other"}, "holds main"),
        ({"image": "registry.k8s.io/pause:3.10"}, "image"),
        (
            {
                "linux": messages.LinuxContainerConfig(
                    security_context=messages.LinuxContainerSecurityContext(run_as_user=messages.Int64Value(value=7))
                )
            },
            "run_as_user",
        ),
    ],
)
def test_another_process_than_the_checkpoints_is_refused(client, taken, config, reason) -> None:
    given = client.container_config(**{"command": ["sleep", "100"], **config})
    refusal = client.refused("RestorePod", **restore_fields(client, taken, container_configs=[given]))
    assert refusal.code == Code.FAILED_PRECONDITION
    assert reason in refusal.text
    assert client.pods() == []


def test_names_must_be_unique(client, taken) -> None:
    config = client.container_config(command=["sleep", "100"])
    refusal = client.refused("RestorePod", **restore_fields(client, taken, container_configs=[config, config]))
    assert "not unique" in refusal.text


def test_a_taken_pod_name_is_refused(client, taken) -> None:
    client.run_pod("anew")
    refusal = client.refused("RestorePod", **restore_fields(client, taken))
    assert "anew" in refusal.text
    assert len(client.pods()) == 1


def test_a_failed_container_takes_the_pod_with_it(client, taken) -> None:
    mount = messages.Mount(container_path="/x")  # no host path
    config = client.container_config(command=["sleep", "100"], mounts=[mount])
    client.refused("RestorePod", **restore_fields(client, taken, container_configs=[config]))
    assert client.pods() == []
    assert client.containers() == []
    client.RestorePod(**restore_fields(client, taken))


def test_a_client_that_goes_away_leaves_no_pod(client, taken) -> None:
    call = client.begin("RestorePod", **restore_fields(client, taken))
    assert call.open
    call.cancel()
    client.engine.advance(SECOND)
    assert client.pods() == []


@pytest.mark.parametrize("damage", ["cut", "foreign", "kind", "entry", "age"])
def test_damaged_archives(client, files, taken, damage) -> None:
    path = f"{taken}/container-0.tar"
    content = files.read(path, 1 << 30)
    entries = archive.unpack(content)
    if damage == "cut":
        content = content[:700]
    elif damage == "foreign":
        content = archive.pack({"checkpoint.json": b"{}"})
    elif damage == "kind":
        content = files.read(f"{taken}/pod.tar", 1 << 30)
    elif damage == "entry":
        del entries["status.pb"]
        content = archive.pack(entries)
    else:
        process = json.loads(entries["process.json"])
        content = archive.pack({**entries, "process.json": json.dumps({**process, "age_ns": -1}).encode()})
    files.write(path, content)
    refusal = client.refused("RestorePod", **restore_fields(client, taken))
    assert refusal.text.startswith(f'failed to read checkpoint "{path}"')
    assert client.pods() == []


def test_a_restore_never_changes_the_checkpoint(client, files, taken) -> None:
    before = {name: files.read(f"{taken}/{name}", 1 << 30) for name in files.entries(taken)}
    for name in ("one", "two"):
        client.RestorePod(**restore_fields(client, taken, config=client.pod_config(name)))
    assert {name: files.read(f"{taken}/{name}", 1 << 30) for name in files.entries(taken)} == before
    assert len(client.pods()) == 2


def test_equal_states_give_equal_bytes(make_client) -> None:
    contents = []
    for _ in range(2):
        client = make_client(seed=3)
        client.engine.runtime.host_files.make_directories(DIRECTORY)
        container = client.run(client.run_pod(labels={"b": "1", "a": "2"}), labels={"d": "1", "c": "2"})
        client.CheckpointContainer(container_id=container, location=LOCATION)
        contents.append(client.engine.runtime.host_files.read(LOCATION, 1 << 30))
    assert contents[0] == contents[1]
