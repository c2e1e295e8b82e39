"""A server's life: start, stop, its sockets, several at once."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import pytest

from fakecri.assembly import build_engine
from fakecri.engine import HOLD
from fakecri.service.grpc_server import Exchange
from fakecri.service.server import Server
from fakecri.service.socket import SocketUnusableError
from fakecri.wire import messages


def test_nothing_is_left_after_a_stop_and_it_can_start_again(place: Path, connect: Callable[..., Any]) -> None:
    server = Server(build_engine(), place / "cri.sock")
    for _ in range(3):
        with server:
            assert connect(server.endpoint).Version(timeout=10).version == "0.1.0"
        assert list(place.iterdir()) == []
    server.stop()


def test_starting_twice_is_refused(place: Path) -> None:
    with Server(build_engine(), place / "cri.sock") as server, pytest.raises(RuntimeError, match="is running already"):
        server.start()


def test_a_server_is_not_stopped_from_its_own_thread(place: Path, connect: Callable[..., Any], until: Any) -> None:
    problems: list[RuntimeError] = []

    def observer(exchange: Exchange) -> None:
        try:
            server.stop()
        except RuntimeError as error:
            problems.append(error)

    server = Server(build_engine(), place / "cri.sock", observer=observer)
    with server:
        connect(server.endpoint).Version(timeout=10)
        until(lambda: problems)
    assert "from one of its own callbacks" in str(problems[0])


def test_a_second_server_on_the_same_path_is_refused_and_harms_nobody(place: Path, connect: Callable[..., Any]) -> None:
    with Server(build_engine(), place / "cri.sock") as first:
        second = Server(build_engine(), place / "other.sock", image_socket=place / "cri.sock")
        with pytest.raises(SocketUnusableError, match="served by another fakecri"):
            second.start()
        assert not second.running
        assert connect(first.endpoint).Version(timeout=10)
        assert sorted(entry.name for entry in place.iterdir()) == [".cri.sock.lock", "cri.sock"]


def test_the_first_servers_stop_leaves_the_seconds_file(place: Path, connect: Callable[..., Any]) -> None:
    """grpcio alone binds over a live socket, and its stop then removes the file of whoever came after."""
    first = Server(build_engine(), place / "cri.sock")
    first.start()
    os.rename(place / "cri.sock", place / "moved.sock")
    os.unlink(place / ".cri.sock.lock")
    with Server(build_engine(), place / "cri.sock") as second:
        first.stop()
        assert connect(second.endpoint).Version(timeout=10)
        assert (place / "cri.sock").exists()


def test_a_path_longer_than_an_address_is_served(place: Path, connect: Callable[..., Any]) -> None:
    path = place / ("long" * 30) / "cri.sock"
    path.parent.mkdir()
    with Server(build_engine(), path):
        target = os.open(path, os.O_PATH)
        try:
            assert connect(f"unix:/proc/self/fd/{target}").Version(timeout=10)
        finally:
            os.close(target)
    assert list(path.parent.iterdir()) == []


def test_images_on_a_socket_of_their_own(place: Path, connect: Callable[..., Any]) -> None:
    with Server(build_engine(), place / "cri.sock", image_socket=place / "images.sock") as server:
        images = connect(server.image_endpoint)
        images.PullImage(image={"image": "busybox"}, timeout=10)
        assert len(connect(server.endpoint).ListImages(timeout=10).images) == len(images.ListImages().images) == 2
    assert list(place.iterdir()) == []


def test_many_servers_at_once_do_not_meet(place: Path, connect: Callable[..., Any]) -> None:
    servers = [Server(build_engine(seed=number), place / f"{number}.sock") for number in range(8)]
    try:
        for server in servers:
            server.start()
        made = [connect(server.endpoint).pod() for server in servers]
        assert len(set(made)) == 8
        for server, sandbox_id in zip(servers, made, strict=True):
            assert [item.id for item in connect(server.endpoint).ListPodSandbox().items] == [sandbox_id]
    finally:
        for server in servers:
            server.stop()


def test_a_stop_ends_subscriptions_at_once_and_waits_for_other_calls(
    place: Path, connect: Callable[..., Any], listen: Any, until: Any
) -> None:
    server = Server(build_engine(), place / "cri.sock")
    server.start()
    client = connect(server.endpoint)
    events = listen(client)
    container_id = client.container(client.pod(), "sleep", "1000")
    request = messages.StopContainerRequest(container_id=container_id, timeout=1)
    stopping = client.method("StopContainer").future(request)
    stopper = threading.Thread(target=server.stop)
    until(lambda: server.engine.calls.of("StopContainer"))
    stopper.start()
    assert events.code() is grpc.StatusCode.OK
    assert not stopping.done()
    assert events.of(container_id) == [messages.CONTAINER_CREATED_EVENT, messages.CONTAINER_STARTED_EVENT]
    assert stopping.result(10) == messages.StopContainerResponse()  # it took its second of the two
    stopper.join(10)
    assert not stopper.is_alive()
    assert list(place.iterdir()) == []


def test_a_call_that_does_not_end_is_cancelled_after_the_grace(
    place: Path, connect: Callable[..., Any], until: Any
) -> None:
    server = Server(build_engine(), place / "cri.sock", clock="hold")
    server.start()
    client = connect(server.endpoint)
    container_id = client.container(client.pod(), image="registry.k8s.io/pause:3.10")
    server.engine.gate = lambda call, point: HOLD
    request = messages.StopContainerRequest(container_id=container_id, timeout=1000)
    stopping = client.method("StopContainer").future(request)
    until(lambda: server.engine.calls.of("StopContainer"))
    server.stop(0.1)
    assert stopping.exception(10) is not None
    assert server.engine.open_calls == []
