"""The four things that a suspended call or process asks of the engine.

A handler or a program is a generator: straight-line code that yields a step wherever it must wait, and is handed the
answer. It never blocks, so the same code serves a socket, a test in one thread and a state machine under Hypothesis.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

if TYPE_CHECKING:
    from fakecri.base.tasks import Task

T = TypeVar("T")


class Trigger:
    """A thing that may happen, more than once; whoever waits for it goes on at its next firing."""

    __slots__ = ("waiting",)

    def __init__(self) -> None:
        self.waiting: dict[Task, None] | None = None  # most triggers never have a waiter: no dict until one comes

    def fire(self) -> None:
        """Make every waiter ready, in the order in which they began to wait."""
        if self.waiting:
            waiting, self.waiting = self.waiting, None
            for task in waiting:
                task.wake(self)


class At:
    """A moment of monotonic virtual time, in ns."""

    __slots__ = ("when_ns",)

    def __init__(self, when_ns: int) -> None:
        self.when_ns = when_ns


class After:
    """A span of virtual time from the moment of the wait, in ns."""

    __slots__ = ("delay_ns",)

    def __init__(self, delay_ns: int) -> None:
        self.delay_ns = delay_ns


class Busy:
    """CPU work that takes ``cost_ns`` of virtual time; it queues behind timers and calls."""

    __slots__ = ("cost_ns",)

    def __init__(self, cost_ns: int) -> None:
        self.cost_ns = cost_ns


Condition: TypeAlias = Trigger | At | After | Busy


class Wait:
    """Suspend until one of the conditions comes true; the answer is that condition."""

    __slots__ = ("any_of",)

    def __init__(self, *any_of: Condition) -> None:
        self.any_of = any_of


class Ask:
    """Suspend until the port of that name has answered the request."""

    __slots__ = ("port", "request")

    def __init__(self, port: str, request: Any) -> None:
        self.port = port
        self.request = request


class Emit:
    """Hand one message of a streaming call to the client; goes on once the transport has taken it."""

    __slots__ = ("message",)

    def __init__(self, message: Any) -> None:
        self.message = message


class Point:
    """A named place inside a call where a rule may hold, fail or cancel it; free when no rule looks."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name


#: All checks of a mutating call passed, nothing has changed yet.
CHECKED = Point("checked")
#: What the call needs is reserved, and invisible to others.
RESERVED = Point("reserved")
#: Everything is prepared; the next thing is the visible change.
BEFORE_COMMIT = Point("before_commit")

Step: TypeAlias = Wait | Ask | Emit | Point
Steps: TypeAlias = Generator[Step, Any, T]


class Cancelled(BaseException):
    """Thrown into a suspended call whose client is gone; never caught, except to undo a reservation and re-raise."""
