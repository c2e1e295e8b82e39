"""The handlers of all RPCs, by method name, and what a handler is given and gives back.

A handler is ``handler(runtime, context, request) → reply``. One that needs time, ports, points or a stream is a
generator of steps that returns the reply (or, for a streaming RPC, emits messages and returns None). A reply is a
message, or ``Pieces``: the encoded body of a message whose parts were cached.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from inspect import isgeneratorfunction
from typing import TYPE_CHECKING, Any, Final, TypeVar

if TYPE_CHECKING:
    from fakecri.core.runtime import Runtime
    from fakecri.wire.levels import View

Handler = Callable[["Runtime", "Context", Any], Any]
H = TypeVar("H", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Context:
    """What a handler may know of its call beside the request.

    ``view`` is what the client's API version shows at the level in force; cached pieces are pruned by it.
    ``grace_ns`` is the time left until the client's own deadline (real time, as the door computed it), or None.
    """

    method: str
    view: View
    grace_ns: int | None = None


class Pieces:
    """The encoded body of a reply, as it goes to the wire; already pruned for the context's view."""

    __slots__ = ("body",)

    def __init__(self, body: bytes) -> None:
        self.body = body


@dataclass(frozen=True, slots=True)
class Registered:
    """A handler and how to run it."""

    method: str
    handler: Handler
    suspends: bool
    #: A stream that ends only when somebody ends it; it neither holds up nor drives the clock.
    subscription: bool


_HANDLERS: dict[str, Registered] = {}
HANDLERS: Final[Mapping[str, Registered]] = _HANDLERS


def handles(method: str, *, subscription: bool = False) -> Callable[[H], H]:
    """Register a handler for an RPC, by the method's name in the API."""

    def register(handler: H) -> H:
        assert method not in _HANDLERS, f"{method} has two handlers"
        _HANDLERS[method] = Registered(method, handler, isgeneratorfunction(handler), subscription)
        return handler

    return register


def entry(field_number: int, body: bytes) -> bytes:
    """One length-delimited entry of a repeated field, as protobuf encodes it."""
    head = bytearray(_varint(field_number << 3 | 2))
    head += _varint(len(body))
    return bytes(head) + body


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)
