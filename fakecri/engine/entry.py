"""Coming into the engine from outside, and going out again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from fakecri.engine.engine import Engine
    from fakecri.record.call import Call


class Entry:
    """Coming into the engine from outside, and going out again.

    In: take the lock and let time catch up. Out: run what became ready, release the lock, then tell others. An entry
    from within (a port that answers at once) does neither: the outer one will.
    """

    __slots__ = ("_depth", "_engine")

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._depth = 0

    def __enter__(self) -> None:
        engine = self._engine
        engine.lock.acquire()
        self._depth += 1
        if self._depth == 1 and engine.time_source is not None:
            engine._catch_up()

    def __exit__(self, *exception: object) -> None:
        engine = self._engine
        outbox: list[tuple[Callable[..., None], Call, Any]] = []
        outermost = self._depth == 1
        try:
            if outermost:
                engine._tasks.run_ready()
        finally:
            if outermost and engine._outbox:
                outbox, engine._outbox = engine._outbox, []
            self._depth -= 1
            engine.lock.release()
        for callback, call, value in outbox:
            callback(call, value)
        if outbox:
            with engine.changed:  # told only now: who waits looks at what the callbacks have put down
                engine.changed.notify_all()
        if outermost and engine.on_due_changed is not None:
            engine.on_due_changed()
