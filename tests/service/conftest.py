"""Clients of a served runtime: plain grpcio over its socket."""

from __future__ import annotations

import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import grpc
import pytest

from fakecri.testing import FakeRuntime
from fakecri.wire import messages
from fakecri.wire.methods import METHODS

#: Neither side's grpcio is to be what limits a message.
OPTIONS = (("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1))


class Client:
    """One grpcio channel, closed with the test."""

    def __init__(self, endpoint: str, api: str = "v1") -> None:
        self.api = api
        self.channel = grpc.insecure_channel(endpoint, options=OPTIONS)

    def raw(self, path: str, body: bytes = b"", **options: Any) -> bytes:
        """One unary call of any path, bytes for bytes."""
        reply: bytes = self.channel.unary_unary(path)(body, **options)
        return reply

    def method(self, name: str) -> Any:
        """An RPC of this client's API version, as grpcio's callable."""
        for service in ("RuntimeService", "ImageService"):
            spec = METHODS.get(f"/runtime.{self.api}.{service}/{name}")
            if spec is not None:
                kind = self.channel.unary_stream if spec.server_streaming else self.channel.unary_unary
                return kind(
                    spec.path,
                    request_serializer=spec.request.SerializeToString,
                    response_deserializer=spec.response.FromString,
                )
        raise LookupError(name)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """``client.Version(version="0.1.0")``: one call, its fields as arguments; ``timeout`` in seconds."""
        method = self.method(name)
        request = getattr(messages, f"{name}Request" if name != "GetContainerEvents" else "GetEventsRequest")

        def call(timeout: float | None = None, **fields: Any) -> Any:
            return method(request(**fields), timeout=timeout)

        return call

    def pod(self, name: str = "pod", **config: Any) -> str:
        """Run a pod sandbox; its id."""
        metadata = {"name": name, "namespace": "default", "uid": f"{name}-uid"}
        sandbox_id: str = self.RunPodSandbox(config={"metadata": metadata, **config}).pod_sandbox_id
        return sandbox_id

    def container(self, sandbox_id: str, *command: str, name: str = "main", image: str = "busybox", **more: Any) -> str:
        """Create and start a container, pulling its image where it is not there; its id.

        It has a pid namespace of its own, as a kubelet's containers do: its first process ignores SIGTERM by default.
        """
        if not self.ImageStatus(image={"image": image}).HasField("image"):
            self.PullImage(image={"image": image})
        pod = self.PodSandboxStatus(pod_sandbox_id=sandbox_id).status.metadata
        created = self.CreateContainer(
            pod_sandbox_id=sandbox_id,
            config={
                "metadata": {"name": name},
                "image": {"image": image},
                "command": command,
                "linux": {"security_context": {"namespace_options": {"pid": messages.CONTAINER}}},
                **more,
            },
            sandbox_config={"metadata": pod},
        )
        self.StartContainer(container_id=created.container_id)
        container_id: str = created.container_id
        return container_id


class Listener:
    """A subscriber of events that reads in a thread of its own; made only once it is known to be subscribed."""

    def __init__(self, client: Client) -> None:
        self.stream = client.GetContainerEvents()
        self.events: list[Any] = []
        self._ended = threading.Event()
        self._came = threading.Event()
        threading.Thread(target=self._read, daemon=True).start()
        for number in range(400):
            client.RemovePodSandbox(pod_sandbox_id=client.pod(f"listening{number}"))
            if self._came.wait(0.05):
                return
        raise AssertionError("no event came in 20 s")

    def _read(self) -> None:
        try:
            for event in self.stream:
                self.events.append(event)
                self._came.set()
        except grpc.RpcError:
            pass  # its code is in the stream
        self._ended.set()

    def code(self) -> grpc.StatusCode:
        """How the stream ended."""
        assert self._ended.wait(20), "the stream did not end in 20 s"
        code: grpc.StatusCode = self.stream.code()
        return code

    def of(self, object_id: str) -> list[int]:
        """The types of the events of one object, in order."""
        return [event.container_event_type for event in self.events if event.container_id == object_id]


@pytest.fixture
def listen() -> Callable[[Client], Listener]:
    """Subscribes to events."""
    return Listener


@pytest.fixture
def connect() -> Iterator[Callable[..., Client]]:
    """Makes clients of any endpoint."""
    with ExitStack() as stack:

        def made(endpoint: str, api: str = "v1") -> Client:
            client = Client(endpoint, api)
            stack.callback(client.channel.close)
            return client

        yield made


@pytest.fixture
def client(cri: FakeRuntime, connect: Callable[..., Client]) -> Client:
    """A v1 client of the test's runtime."""
    return connect(cri.endpoint)


@pytest.fixture
def refusal() -> Callable[..., tuple[grpc.StatusCode, str]]:
    """Makes a call that is to be refused; the answer is its code and text."""

    def refused(call: Callable[..., Any], *arguments: Any, **options: Any) -> tuple[grpc.StatusCode, str]:
        def outcome() -> object:
            reply = call(*arguments, **options)
            return list(reply) if hasattr(reply, "cancel") else reply

        with pytest.raises(grpc.RpcError) as caught:
            outcome()
        return caught.value.code(), caught.value.details()

    return refused


@pytest.fixture
def until() -> Callable[[Callable[[], object]], None]:
    """Waits, without moving virtual time, for what happens in the server's thread or in another process."""
    turn = threading.Event()

    def wait(holds: Callable[[], object]) -> None:
        for _ in range(4000):
            if holds():
                return
            turn.wait(0.005)
        raise AssertionError("it did not come true in 20 s")

    return wait


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory whose path is short enough for a socket's."""
    directory = Path(tempfile.mkdtemp(prefix="cri-", dir="/tmp"))
    yield directory
    shutil.rmtree(directory)
