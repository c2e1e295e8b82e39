"""One RPC exchange as the client saw it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fakecri.base.reasons import Code

if TYPE_CHECKING:
    from google.protobuf.message import Message

    from fakecri.base.tasks import Task
    from fakecri.wire.methods import MethodSpec


@dataclass(frozen=True, slots=True)
class Reply:
    """How a call ended: gRPC code number, its text, and the encoded response (empty unless the code is OK)."""

    code: int
    text: str
    body: bytes

    @property
    def ok(self) -> bool:
        """Whether the call succeeded."""
        return self.code == Code.OK


class Call:
    """One exchange: what the client sent, how it stands, and how it ended.

    Times are virtual ns. ``time_left_ns`` is what the client's own deadline left when the call came in; that deadline
    is real time, kept by the door.
    """

    __slots__ = (
        "asking",
        "client_gone",
        "connection",
        "ended_ns",
        "error",
        "id",
        "message_count",
        "metadata",
        "on_done",
        "on_message",
        "path",
        "received_ns",
        "reply",
        "request",
        "spec",
        "subscription",
        "task",
        "time_left_ns",
        "unsent",
    )

    def __init__(
        self,
        call_id: int,
        path: str,
        request: bytes,
        *,
        connection: str = "",
        metadata: tuple[tuple[str, str | bytes], ...] = (),
        received_ns: int = 0,
        time_left_ns: int | None = None,
    ) -> None:
        self.id = call_id
        self.path = path
        self.request = request
        self.connection = connection
        self.metadata = metadata
        self.received_ns = received_ns
        self.time_left_ns = time_left_ns
        #: The RPC, once the path is known to name one that is served.
        self.spec: MethodSpec | None = None
        #: The outcome; None while the call is open, or when its client went away first.
        self.reply: Reply | None = None
        self.ended_ns: int | None = None
        self.message_count = 0
        self.client_gone = False
        #: Traceback of an unforeseen exception.
        self.error: str | None = None
        #: A stream without an end of its own (events); it never holds up or drives the clock.
        self.subscription = False
        # What the engine needs while the call is open.
        self.on_done: Any = None
        self.on_message: Any = None
        self.task: Task | None = None
        self.asking = False
        self.unsent = False

    @property
    def method(self) -> str:
        """The RPC's name, or the path when it names none."""
        return self.spec.name if self.spec is not None else self.path

    def decoded(self) -> Message:
        """The request as a message.

        Raises:
            google.protobuf.message.DecodeError: the bytes are not that message.
            ValueError: the call named no RPC.
        """
        if self.spec is None:
            raise ValueError(f"{self.path} names no RPC that was served")
        return self.spec.request.FromString(self.request)

    def __repr__(self) -> str:
        if self.reply is None:
            state = "client gone" if self.client_gone else "open"
        else:
            state = Code(self.reply.code).name + (f": {self.reply.text}" if self.reply.text else "")
        return f"<Call {self.id} {self.method} {state}>"
