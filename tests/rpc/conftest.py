"""Calls in process, with time in the test's hands.

``client`` and ``engine``: a whole runtime in memory. One that met anything unforeseen fails its test at the end,
whatever the test itself found. ``image_runtime``: a runtime's images without the rest, handlers driven step by step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from fakecri.assembly import build_engine
from fakecri.base.ids import Ids
from fakecri.base.reasons import CriError
from fakecri.base.steps import Emit, Point, Step
from fakecri.base.tasks import Task, Tasks
from fakecri.clock import VirtualClock
from fakecri.core.catalogue import Catalogue
from fakecri.core.catalogue_builtin import builtin_catalogue
from fakecri.core.image import ImageStore
from fakecri.core.node import Node
from fakecri.core.rpc import image_list, image_pull, image_remove, image_status
from fakecri.core.rpc.registry import HANDLERS, Context, Pieces
from fakecri.core.traits import Behaviour, Traits
from fakecri.engine import HOLD, CallFailed, Engine
from fakecri.record.call import Call, Reply
from fakecri.wire import messages
from fakecri.wire.levels import Level, view
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
        if "linux" not in config:  # as the kubelet asks for: a pid namespace of its own
            options = messages.NamespaceOption(pid=messages.CONTAINER)
            context = messages.LinuxContainerSecurityContext(namespace_options=options)
            config["linux"] = messages.LinuxContainerConfig(security_context=context)
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


@pytest.fixture(scope="module")
def module_client() -> Iterator[Client]:
    """One runtime for all examples of a property."""
    engine = build_engine()
    yield Client(engine)
    assert engine.failures == []


# -- images alone ------------------------------------------------------------------------------------------------------
MODULES = (image_list, image_pull, image_remove, image_status)


@dataclass
class Running:
    """One call on its way: what it emitted, the points it passed, how it ended."""

    task: Task | None = None
    emitted: list[Any] = field(default_factory=list)
    points: list[str] = field(default_factory=list)
    value: Any = None
    error: BaseException | None = None
    done: bool = False


class Container:
    """As much of a container as images care for."""

    def __init__(self, id_: str, image: Any) -> None:
        self.id = id_
        self.image = image


class ImageRuntime:
    """What image handlers read of a runtime, and a driver for them."""

    def __init__(self, catalogue: Catalogue | None, node: Node, level: str, **traits: Any) -> None:
        self.behaviour = Behaviour(traits=Traits(**traits))
        self.traits = self.behaviour.traits
        self.node = node
        self.clock = VirtualClock()
        self.tasks = Tasks(self.clock)
        self.ids = Ids()
        self.images = ImageStore(catalogue or builtin_catalogue(), self.behaviour, self.ids, node)
        self.containers: list[Container] = []
        self.level = Level.parse(level)

    def use(self, id_: str, reference: str) -> Container:
        """A container of an image that is here."""
        image = self.images.resolve(reference)
        assert image is not None
        self.containers.append(Container(id_, image))
        return self.containers[-1]

    def start(self, method: str, request: Any = None, api: str = "v1", stop_at: str = "") -> Running:
        """Begin a call and run it to its first wait; ``stop_at`` names a point that it is never let past."""
        registered = HANDLERS[method]
        running = Running()
        context = Context(method, view(api, self.level))
        request = request if request is not None else getattr(messages, f"{method}Request")()

        def on_step(task: Task, step: Step) -> None:
            if isinstance(step, Emit):
                running.emitted.append(step.message)
            elif isinstance(step, Point):
                running.points.append(step.name)
                if step.name == stop_at:
                    return
            self.tasks.resume(task)

        def on_done(task: Task, value: Any, error: BaseException | None) -> None:
            running.value, running.error, running.done = value, error, True

        if registered.suspends:
            running.task = self.tasks.spawn(registered.handler(self, context, request), on_done, on_step)
            self.tasks.run_ready()
        else:
            running.value, running.done = registered.handler(self, context, request), True
        return running

    def cancel(self, running: Running) -> None:
        """The client is gone."""
        assert running.task is not None
        self.tasks.cancel(running.task)
        self.tasks.run_ready()

    def advance(self, delta_ns: int) -> None:
        """Let time pass."""
        until = self.clock.now_ns + delta_ns
        while self.clock.run_next(until):
            self.tasks.run_ready()
        self.clock.move_to(until)

    def call(self, method: str, request: Any = None, api: str = "v1") -> Any:
        """A call to its end, time jumping to wherever it waits; the reply as a message (of a stream: all of them)."""
        running = self.start(method, request, api)
        while not running.done:
            assert self.clock.run_next(self.clock.next_due_ns() or 0), f"{method} waits for nothing"
            self.tasks.run_ready()
        if running.error is not None:
            raise running.error
        response = getattr(messages, f"{method}Response")
        if method.startswith("Stream"):
            return [_message(response, message) for message in running.emitted]
        return _message(response, running.value)

    def pull(self, reference: str, **auth: str) -> str:
        """PullImage; the reply's ``image_ref``."""
        request = messages.PullImageRequest(image=messages.ImageSpec(image=reference))
        if auth:
            request.auth.CopyFrom(messages.AuthConfig(**auth))
        return str(self.call("PullImage", request).image_ref)

    def status(self, reference: str, **more: Any) -> Any:
        """ImageStatus; the reply."""
        return self.call("ImageStatus", messages.ImageStatusRequest(image=messages.ImageSpec(image=reference), **more))

    def listed(self, reference: str = "", api: str = "v1") -> list[Any]:
        """ListImages; its images."""
        request = messages.ListImagesRequest()
        if reference:
            request.filter.image.image = reference
        return list(self.call("ListImages", request, api).images)

    def remove(self, reference: str) -> None:
        """RemoveImage."""
        self.call("RemoveImage", messages.RemoveImageRequest(image=messages.ImageSpec(image=reference)))


def _message(response: Any, value: Any) -> Any:
    return response.FromString(value.body) if isinstance(value, Pieces) else value


@pytest.fixture
def image_runtime() -> Any:
    """A factory: ``image_runtime(catalogue=None, node=Node(), level="1.37", **traits)``."""

    def make(
        catalogue: Catalogue | None = None, node: Node | None = None, level: str = "1.37", **traits: Any
    ) -> ImageRuntime:
        return ImageRuntime(catalogue, node if node is not None else Node(), level, **traits)

    return make
