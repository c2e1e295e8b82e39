"""Calls from the thread that holds the engine: no socket, no door, and time that jumps while a call waits for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fakecri.base.reasons import Code
from fakecri.wire.methods import METHODS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from google.protobuf.message import Message

    from fakecri.engine.engine import Engine
    from fakecri.record.call import Call, Reply
    from fakecri.wire.methods import MethodSpec


class CallFailed(Exception):
    """An in-process call was refused."""

    def __init__(self, method: str, code: int, text: str) -> None:
        super().__init__(f"{method}: {Code(code).name}: {text}")
        self.method = method
        self.code = Code(code)
        self.text = text


def call(engine: Engine, method: str, message: Message | None, api: str) -> Any:
    """One unary call, here and now. While it waits for the clock, time jumps from timer to timer.

    Raises:
        CallFailed: the runtime refused.
        RuntimeError: the call waits for something that no timer and no port will bring.
    """
    spec = _spec(method, api)
    replies: list[Reply] = []
    body = message.SerializeToString(deterministic=True) if message is not None else b""
    open_call = engine.submit(spec.path, body, on_done=lambda _, reply: replies.append(reply))
    _run_until(engine, lambda: bool(replies), open_call)
    if not replies[0].ok:
        raise CallFailed(method, replies[0].code, replies[0].text)
    return spec.response.FromString(replies[0].body)


def stream(engine: Engine, method: str, message: Message | None, api: str) -> Iterator[Any]:
    """One streaming call, as an iterator; closing the iterator cancels the call.

    Time is not moved for a subscription: its iterator ends, and with it the call, when nothing is queued.
    """
    spec = _spec(method, api)
    replies: list[Reply] = []
    bodies: list[bytes] = []
    body = message.SerializeToString(deterministic=True) if message is not None else b""
    open_call = engine.submit(
        spec.path,
        body,
        on_done=lambda _, reply: replies.append(reply),
        on_message=lambda _, content: bodies.append(content),
    )
    try:
        while True:
            if not open_call.subscription:
                _run_until(engine, lambda: bool(bodies or replies), open_call)
            if not bodies:
                break
            yield spec.response.FromString(bodies.pop(0))
            engine.notify(open_call)
        if replies and not replies[0].ok:
            raise CallFailed(method, replies[0].code, replies[0].text)
    finally:
        engine.cancel(open_call)


def _spec(method: str, api: str) -> MethodSpec:
    for service in ("RuntimeService", "ImageService"):
        spec = METHODS.get(f"/runtime.{api}.{service}/{method}")
        if spec is not None:
            return spec
    raise ValueError(f"{api} has no RPC {method!r}")


def _run_until(engine: Engine, finished: Callable[[], bool], open_call: Call) -> None:
    while not finished():
        with engine.lock:
            if engine.waits_for_others:
                if not finished():
                    engine.changed.wait(timeout=60)
                continue
            due_ns = engine.next_due_ns()
        if due_ns is None:
            raise RuntimeError(f"{open_call!r} waits for something that no timer will bring")
        engine.advance_to(due_ns)
