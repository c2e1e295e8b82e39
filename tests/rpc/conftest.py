"""A runtime's images without the rest of the runtime: handlers driven step by step, time moved by the test."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from fakecri.base.ids import Ids
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
from fakecri.wire import messages
from fakecri.wire.levels import Level, view

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
