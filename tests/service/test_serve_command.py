"""``fakecri serve`` as a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from fakecri.wire import messages

START_S = 60


class Served:
    """A served process, and the line that it wrote when it listened."""

    def __init__(self, process: subprocess.Popen[str], ready: dict[str, Any]) -> None:
        self.process = process
        self.ready = ready
        self.endpoint: str = ready["endpoint"]

    def end(self, number: int = signal.SIGTERM) -> tuple[str, str]:
        """Signal it; what it wrote to standard output and standard error, once it is gone, which takes at most 3 s."""
        self.process.send_signal(number)
        return self.process.communicate(timeout=3)


@pytest.fixture
def serve(place: Path) -> Iterator[Callable[..., Served]]:
    """Starts servers, by their command line."""
    started: list[subprocess.Popen[str]] = []

    def start(*options: str, socket: str | None = "cri.sock", **environment: str) -> Served:
        reader, writer = os.pipe()
        command = [sys.executable, "-m", "fakecri", "serve", "--ready-fd", str(writer), *options]
        if socket is not None:
            command += ["--socket", str(place / socket)]
        process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            pass_fds=(writer,),
            env=os.environ | environment,
        )
        started.append(process)
        os.close(writer)
        with os.fdopen(reader) as lines:
            line = lines.readline()
        assert line, f"it did not start: {process.communicate(timeout=START_S)}"
        return Served(process, json.loads(line))

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate(timeout=START_S)


def test_ready_line_and_banner_say_how_to_reach_it(serve: Any, connect: Any, place: Path) -> None:
    served = serve("--image-socket", str(place / "images.sock"), "--seed", "7")
    socket, images = place / "cri.sock", place / "images.sock"
    assert served.ready | {"version": "", "pid": 0, "root": ""} == {
        "version": "",
        "endpoint": f"unix://{socket}",
        "image_endpoint": f"unix://{images}",
        "socket": str(socket),
        "image_socket": str(images),
        "personality": "reference",
        "api": ["v1", "v1alpha2"],
        "level": "1.37",
        "pod_cidr": ["127.88.0.0/16"],
        "clock": "real",
        "seed": 7,
        "host_files": True,
        "root": "",
        "pid": 0,
    }
    assert served.ready["pid"] == served.process.pid
    for api in ("v1", "v1alpha2"):
        assert connect(served.endpoint, api).Version(timeout=10).runtime_api_version == api
    assert connect(served.ready["image_endpoint"]).ListImages(timeout=10).images
    output, errors = served.end()
    assert f"crictl --runtime-endpoint unix://{socket} --image-endpoint unix://{images}" in output
    assert f"fakecri kubelet-config --socket {socket}" in output
    assert errors == ""
    assert served.process.returncode == 0
    assert list(place.iterdir()) == []


def test_the_banner_as_json(serve: Any) -> None:
    served = serve("--log-format", "json")
    output, _ = served.end()
    assert json.loads(output) == {"message": "serving", **served.ready}


def test_without_a_socket_it_listens_in_the_users_runtime_directory(serve: Any, connect: Any, place: Path) -> None:
    served = serve(socket=None, XDG_RUNTIME_DIR=str(place))
    assert served.endpoint == f"unix://{place}/fakecri/cri.sock"
    assert (place / "fakecri").stat().st_mode & 0o777 == 0o700
    assert connect(served.endpoint).Version(timeout=10)
    served.end()
    assert list((place / "fakecri").iterdir()) == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_though_clients_are_busy(
    serve: Any, connect: Any, listen: Any, place: Path, number: int
) -> None:
    served = serve()
    client = connect(served.endpoint)
    events = listen(client)
    container_id = client.container(client.pod(), "sleep", "1000")
    request = messages.StopContainerRequest(container_id=container_id, timeout=100)
    stopping = client.method("StopContainer").future(request)
    client.Version(timeout=10)
    served.end(number)
    assert events.code() is grpc.StatusCode.OK
    assert messages.CONTAINER_STOPPED_EVENT not in events.of(container_id)
    assert stopping.exception(10).code() in (grpc.StatusCode.CANCELLED, grpc.StatusCode.UNAVAILABLE)
    assert served.process.returncode == 0
    assert list(place.iterdir()) == []


def test_what_a_killed_server_left_is_no_obstacle(serve: Any, connect: Any, place: Path) -> None:
    first = serve()
    first.process.kill()
    first.process.wait(START_S)
    assert (place / "cri.sock").exists()
    second = serve()
    assert connect(second.endpoint).Version(timeout=10)


def test_a_line_per_call(serve: Any, connect: Any, refusal: Any) -> None:
    served = serve("-v")
    client = connect(served.endpoint)
    client.Version()
    refusal(client.ContainerStatus, container_id="nope")
    _, errors = served.end()
    first, second = errors.splitlines()
    assert " runtime.v1.RuntimeService/Version OK " in first
    assert first.endswith("ms")
    assert " runtime.v1.RuntimeService/ContainerStatus NOT_FOUND " in second
    assert "nope" in second


def test_a_line_per_call_as_json(serve: Any, connect: Any) -> None:
    served = serve("-v", "--log-format", "json")
    connect(served.endpoint).Version()
    _, errors = served.end()
    (line,) = [json.loads(line) for line in errors.splitlines()]
    assert line["method"] == "runtime.v1.RuntimeService/Version"
    assert line["outcome"] == "OK"
    assert line["duration_ms"] > 0
    assert line["level"] == "info"


def test_level_and_api_of_a_personality_and_by_flag(serve: Any, connect: Any, refusal: Any) -> None:
    served = serve("--personality", "containerd-2.1")
    assert served.ready["api"] == ["v1"]
    served.end()
    served = serve("--level", "1.19")
    assert (served.ready["api"], served.ready["level"]) == (["v1alpha2"], "1.19")
    code, text = refusal(connect(served.endpoint).Version, timeout=10)
    assert (code, text) == (grpc.StatusCode.UNIMPLEMENTED, "unknown service runtime.v1.RuntimeService")
    assert connect(served.endpoint, "v1alpha2").Version(timeout=10)


def test_time_may_run_faster(serve: Any, connect: Any, until: Any) -> None:
    client = connect(serve("--clock", "rate=1000").endpoint)
    container_id = client.container(client.pod(), "sleep", "100")

    def status() -> Any:
        return client.ContainerStatus(container_id=container_id).status

    until(lambda: status().state == messages.CONTAINER_EXITED)
    ended = status()
    assert ended.finished_at - ended.started_at == pytest.approx(100e9, rel=0.01)


def test_timestamps_are_the_machines(serve: Any, connect: Any, place: Path) -> None:
    client = connect(serve().endpoint)
    created = client.PodSandboxStatus(pod_sandbox_id=client.pod()).status.created_at
    marker = place / "marker"
    marker.touch()
    assert created == pytest.approx(marker.stat().st_mtime_ns, abs=30e9)


@pytest.mark.parametrize("options", [(), ("--no-host-files",)])
def test_a_containers_log_is_on_disk_unless_told_otherwise(
    serve: Any, connect: Any, place: Path, until: Any, options: tuple[str, ...]
) -> None:
    served = serve(*options)
    client = connect(served.endpoint)
    logs = place / "logs"
    container_id = client.container(client.pod(log_directory=str(logs)), "echo", "hello", log_path="main/0.log")
    until(lambda: client.ContainerStatus(container_id=container_id).status.state == messages.CONTAINER_EXITED)
    assert served.ready["host_files"] is not bool(options)
    if options:
        assert not logs.exists()
    else:
        assert (logs / "main" / "0.log").read_text().endswith(" stdout F hello\n")


def test_the_runtimes_own_directory(serve: Any, connect: Any, place: Path) -> None:
    served = serve("--root", str(place / "made" / "here"))
    info = connect(served.endpoint).ImageFsInfo()
    assert info.image_filesystems[0].fs_id.mountpoint == served.ready["root"] == str(place / "made" / "here")
    served.end()
    assert (place / "made" / "here").is_dir()
    served = serve()
    assert Path(served.ready["root"]).is_dir()
    served.end()
    assert not Path(served.ready["root"]).exists()


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (("--socket", "/no/such/place/cri.sock"), "make the directory /no/such/place first, or choose another path"),
        (
            ("--personality", "docker"),
            "unknown personality 'docker': it is one of reference, containerd-1.6, containerd-2.1",
        ),
        (("--level", "2.0"), "unknown level '2.0'"),
        (
            ("--level", "1.19", "--api", "v1"),
            "v1 begins with level 1.20: serve v1alpha2 alone, or choose a newer level",
        ),
        (("--api", "v2"), "unknown API version 'v2': it is v1 or v1alpha2"),
        (("--clock", "hold"), "--clock hold needs somebody to advance the time"),
        (("--clock", "fast"), "unknown clock 'fast'"),
        (("--runtime-handlers", "a,,b"), "--runtime-handlers 'a,,b' has an empty or a repeated entry"),
        (("--pod-cidr", "10.0.0.0/8,nonsense"), "nonsense"),
        (("--ready-fd", "99"), "--ready-fd 99 is not open"),
        (("--images", "/no/such.yaml"), "/no/such.yaml"),
    ],
)
def test_a_setting_that_cannot_be_met_is_one_line(place: Path, options: tuple[str, ...], line: str) -> None:
    command = [sys.executable, "-m", "fakecri", "serve", "--socket", str(place / "cri.sock"), *options]
    finished = subprocess.run(command, capture_output=True, text=True, check=False, timeout=START_S)
    assert finished.returncode == 2
    assert finished.stdout == ""
    assert finished.stderr.startswith("fakecri: ")
    assert finished.stderr.count("\n") == 1
    assert line in finished.stderr
    assert list(place.iterdir()) == []


def test_a_path_in_use_is_one_line(serve: Any, place: Path) -> None:
    served = serve()
    command = [sys.executable, "-m", "fakecri", "serve", "--socket", str(place / "cri.sock")]
    finished = subprocess.run(command, capture_output=True, text=True, check=False, timeout=START_S)
    assert finished.returncode == 2
    assert finished.stderr == (
        f"fakecri: socket {place}/cri.sock is served by another fakecri (process {served.process.pid}):"
        " stop it, or choose another path\n"
    )
