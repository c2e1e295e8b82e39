"""The record of calls: opened first, closed last, bounded when the runtime serves for long."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from fakecri.record.call import Reply

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fakecri.record.call import Call

#: Largest request or reply that a bounded record keeps.
KEPT_BODY_BYTES: Final = 1024


class Recorder:
    """Calls in the order in which they came.

    Without a bound every call is kept whole, as a test wants it. With ``kept`` the oldest beyond that number are
    dropped, and of those that ended only what is small: a body of more than ``KEPT_BODY_BYTES`` is not kept.
    """

    def __init__(self, kept: int | None = None) -> None:
        self._calls: deque[Call] = deque(maxlen=kept)
        self._bounded = kept is not None
        #: Calls that ended, by (method, code).
        self.counts: dict[tuple[str, int], int] = {}
        #: Tracebacks of what no rule foresaw, in calls and in the background.
        self.failures: list[str] = []

    def open(self, call: Call) -> None:
        """A call came in."""
        self._calls.append(call)

    def close(self, call: Call, reply: Reply | None, now_ns: int) -> None:
        """A call ended: with this reply, or (None) because its client went away."""
        call.reply = reply
        call.ended_ns = now_ns
        if self._bounded:
            if reply is not None and len(reply.body) > KEPT_BODY_BYTES:
                call.reply = Reply(reply.code, reply.text, b"")
            if len(call.request) > KEPT_BODY_BYTES:
                call.request = b""
        if reply is not None:
            key = (call.method, reply.code)
            self.counts[key] = self.counts.get(key, 0) + 1

    def __iter__(self) -> Iterator[Call]:
        return iter(tuple(self._calls))

    def __len__(self) -> int:
        return len(self._calls)

    def of(self, method: str) -> list[Call]:
        """The kept calls of one RPC, oldest first."""
        return [call for call in self._calls if call.method == method]

    def clear(self) -> None:
        """Forget calls and counts; failures stay until somebody reads them."""
        self._calls.clear()
        self.counts.clear()
