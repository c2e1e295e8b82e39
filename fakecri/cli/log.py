"""The server's log: one line per call at ``-v``, and always what no rule foresaw."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from fakecri.base.reasons import Code

if TYPE_CHECKING:
    from fakecri.engine import Engine
    from fakecri.service.grpc_server import Exchange

_LOGGER: Final = logging.getLogger("fakecri")


class _Text(logging.Formatter):
    """Time (RFC 3339, UTC) and message."""

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:  # noqa: N802
        """The moment at which the record was made."""
        return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")

    def format(self, record: logging.LogRecord) -> str:
        """One line."""
        return f"{self.formatTime(record)} {record.getMessage()}"


class _Json(_Text):
    """One JSON object per line: time, level, message, and the record's facts."""

    def format(self, record: logging.LogRecord) -> str:
        """One line."""
        fields: dict[str, Any] = {
            "time": self.formatTime(record),
            "level": record.levelname.lower(),
            "message": record.getMessage(),
            **getattr(record, "facts", {}),
        }
        return json.dumps(fields, ensure_ascii=False)


class CallLog:
    """Writes to standard error. ``ended`` is told of every call that came through a socket."""

    def __init__(self, engine: Engine, log_format: str, *, calls: bool) -> None:
        self._engine = engine
        self._calls = calls
        self._failures = 0
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(_Json() if log_format == "json" else _Text())
        _LOGGER.handlers[:] = [handler]
        _LOGGER.propagate = False
        _LOGGER.setLevel(logging.INFO)

    def ended(self, exchange: Exchange) -> None:
        """One call ended."""
        if self._calls:
            facts = _facts(exchange)
            _LOGGER.info(_line(facts), extra={"facts": facts})
        failures = self._engine.failures
        for failure in failures[self._failures :]:
            _LOGGER.error("unforeseen: %s", failure)
        self._failures = len(failures)


def file_problem(path: str, error: BaseException) -> None:
    """A line of a container's log could not be written."""
    _LOGGER.error("log file %s: %s", path, error)


def _facts(exchange: Exchange) -> dict[str, Any]:
    return {
        "method": exchange.path.lstrip("/"),
        "outcome": "client gone" if exchange.code is None else Code(exchange.code).name,
        "duration_ms": round(exchange.duration_ns / 1e6, 3),
        "text": exchange.text,
        "messages": exchange.messages,
        "request_bytes": exchange.request_bytes,
        "reply_bytes": exchange.reply_bytes,
    }


def _line(facts: dict[str, Any]) -> str:
    text = f": {facts['text']}" if facts["text"] else ""
    streamed = f", {facts['messages']} messages" if facts["messages"] > 1 else ""
    return f"{facts['method']} {facts['outcome']} {facts['duration_ms']:.2f}ms{streamed}{text}"
