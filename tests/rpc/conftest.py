"""Calls in process: every test's runtime is an engine of its own, in memory, whose time moves only by calls.

A runtime that met anything unforeseen fails its test at the end, whatever the test itself found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from fakecri.assembly import build_engine
from fakecri.base.reasons import CriError
from fakecri.engine import HOLD, CallFailed, Engine
from fakecri.record.call import Call, Reply
from fakecri.wire import messages
from fakecri.wire.methods import METHODS

BUSYBOX = "docker.io/library/busybox:1.36"


class OpenCall:
    """A call that was begun, and what became of it so far."""

    def __init__(self, engine: Engine, path: str, request: bytes, **how: Any) -> None:
        self.engine = engine
        self.reply: Reply | None = None
        self.bodies: list[bytes] = []
        self.call: Call = engine.submit(path, request, on_done=self._done, on_message=self._message, **how)

    def _done(self, call: Call, reply: Reply) -> None:
        assert self.reply is None, "a call is answered once"
        self.reply = reply

    def _message(self, call: Call, body: bytes) -> None:
        assert self.reply is None, "no message after the reply"
        self.bodies.append(body)

    @property
    def open(self) -> bool:
        return self.call in self.engine.open_calls

    @property
    def answer(self) -> Any:
        """The response; fails when there is none."""
        assert self.reply is not None, f"{self.call!r} has no reply"
        assert self.reply.ok, self.reply
        assert self.call.spec is not None
        return self.call.spec.response.FromString(self.reply.body)

    def taken(self) -> list[Any]:
        """The messages of a stream so far, each taken before the next one comes."""
        assert self.call.spec is not None
        read = []
        while self.bodies:
            read.append(self.call.spec.response.FromString(self.bodies.pop(0)))
            self.engine.notify(self.call)
        return read

    def cancel(self) -> None:
        self.engine.cancel(self.call)


class Gate:
    """Holds, fails or watches calls at their points; ``at[(method, point)]`` says which."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.at: dict[tuple[str, str], object] = {}
        self.passed: list[tuple[str, str]] = []
        self.held: list[Call] = []
        engine.gate = self

    def __call__(self, call: Call, point: str) -> Any:
        self.passed.append((call.method, point))
        verdict = self.at.get((call.method, point))
        if verdict is HOLD:
            self.held.append(call)
        return verdict

    def hold(self, method: str, point: str) -> None:
        self.at[method, point] = HOLD

    def fail(self, method: str, point: str, error: CriError) -> None:
        self.at[method, point] = error

    def release(self) -> None:
        """Let what is held go on, and hold nothing more."""
        self.at.clear()
        held, self.held = self.held, []
        for call in held:
            self.engine.release(call)


class Client:
    """A client of one runtime that speaks one API version; ``client.Version()`` calls an RPC."""

    def __init__(self, engine: Engine, api: str = "v1") -> None:
        self.engine = engine
        self.api = api

    def __getattr__(self, method: str) -> Callable[..., Any]:
        if method.startswith("_"):
            raise AttributeError(method)
        return lambda **fields: self.engine.call(method, self.request(method, **fields), api=self.api)

    def path(self, method: str) -> str:
        for service in ("RuntimeService", "ImageService"):
            path = f"/runtime.{self.api}.{service}/{method}"
            if path in METHODS:
                return path
        raise AssertionError(f"{self.api} has no {method}")

    def request(self, method: str, **fields: Any) -> Any:
        return METHODS[self.path(method)].request(**fields)

    def refused(self, method: str, **fields: Any) -> CallFailed:
        """The refusal of a call that must not succeed."""
        with pytest.raises(CallFailed) as caught:
            self.engine.call(method, self.request(method, **fields), api=self.api)
        return caught.value

    def begin(self, method: str, *, time_left_ns: int | None = None, **fields: Any) -> OpenCall:
        """Begin a call and leave it where it waits."""
        body = self.request(method, **fields).SerializeToString(deterministic=True)
        return OpenCall(self.engine, self.path(method), body, time_left_ns=time_left_ns)

    def raw(self, method: str, body: bytes) -> OpenCall:
        return OpenCall(self.engine, self.path(method), body)

    def streamed(self, method: str, **fields: Any) -> list[Any]:
        """All messages of a stream that ends by itself."""
        return list(self.engine.stream(method, self.request(method, **fields), api=self.api))

    # -- what most tests begin with --------------------------------------------------------------------------------
    def pod_config(self, name: str = "pod", *, attempt: int = 0, **config: Any) -> Any:
        metadata = messages.PodSandboxMetadata(
            name=name, namespace=config.pop("namespace", "default"), uid=f"uid-{name}", attempt=attempt
        )
        return messages.PodSandboxConfig(metadata=metadata, **config)

    def run_pod(self, name: str = "pod", *, handler: str = "", **config: Any) -> str:
        answer = self.RunPodSandbox(config=self.pod_config(name, **config), runtime_handler=handler)
        return str(answer.pod_sandbox_id)

    def container_config(self, name: str = "main", *, image: str = BUSYBOX, attempt: int = 0, **config: Any) -> Any:
        config.setdefault("command", ["sleep", "3600"])
        return messages.ContainerConfig(
            metadata=messages.ContainerMetadata(name=name, attempt=attempt),
            image=messages.ImageSpec(image=image),
            **config,
        )

    def creation(self, pod: str, name: str = "main", *, pod_config: Any = None, **config: Any) -> dict[str, Any]:
        """The fields of a CreateContainer request."""
        return {
            "pod_sandbox_id": pod,
            "config": self.container_config(name, **config),
            "sandbox_config": pod_config if pod_config is not None else self.pod_config(),
        }

    def create(self, pod: str, name: str = "main", **config: Any) -> str:
        return str(self.CreateContainer(**self.creation(pod, name, **config)).container_id)

    def run(self, pod: str, name: str = "main", **config: Any) -> str:
        container = self.create(pod, name, **config)
        self.StartContainer(container_id=container)
        return container

    def pull(self, *images: str) -> None:
        for image in images or (BUSYBOX,):
            self.PullImage(image=messages.ImageSpec(image=image))

    def status(self, container: str) -> Any:
        return self.ContainerStatus(container_id=container).status

    def pod_status(self, pod: str) -> Any:
        return self.PodSandboxStatus(pod_sandbox_id=pod).status

    def pods(self, **wanted: Any) -> list[str]:
        fields = {"filter": messages.PodSandboxFilter(**wanted)} if wanted else {}
        return [item.id for item in self.ListPodSandbox(**fields).items]

    def containers(self, **wanted: Any) -> list[str]:
        fields = {"filter": messages.ContainerFilter(**wanted)} if wanted else {}
        return [item.id for item in self.ListContainers(**fields).containers]

    def as_api(self, api: str) -> Client:
        """The same runtime, asked in another API version."""
        return Client(self.engine, api)


@pytest.fixture
def make_engine() -> Iterator[Callable[..., Engine]]:
    """Makes engines; each must have met nothing unforeseen by the end."""
    engines: list[Engine] = []

    def make(**settings: Any) -> Engine:
        engines.append(build_engine(**settings))
        return engines[-1]

    yield make
    for engine in engines:
        assert engine.failures == []


@pytest.fixture
def engine(make_engine: Callable[..., Engine]) -> Engine:
    """The reference runtime."""
    return make_engine()


@pytest.fixture
def make_client(make_engine: Callable[..., Engine]) -> Callable[..., Client]:
    """Makes runtimes that have busybox, each with its client."""

    def make(*, api: str = "v1", **settings: Any) -> Client:
        client = Client(make_engine(**settings), api)
        client.pull()
        return client

    return make


@pytest.fixture
def client(engine: Engine) -> Client:
    """A client of ``engine``, which has busybox."""
    client = Client(engine)
    client.pull()
    return client


@pytest.fixture
def gate(engine: Engine) -> Gate:
    """The points of ``engine``'s calls."""
    return Gate(engine)


@pytest.fixture
def make_gate() -> Callable[[Engine], Gate]:
    """The points of some engine's calls."""
    return Gate
