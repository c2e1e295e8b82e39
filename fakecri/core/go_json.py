"""Messages and values as Go's ``encoding/json`` writes them: what agents parse out of a runtime's verbose ``info``.

A message becomes what its generated Go struct becomes: fields under their proto names in order of declaration, those at
their zero value left out, enums and 64-bit integers as numbers, bytes in base64. Text is compact, with ``<``, ``>`` and
``&`` escaped.
"""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from fakecri.clock import SECOND

if TYPE_CHECKING:
    from collections.abc import Mapping

    from google.protobuf.message import Message

_ESCAPES = str.maketrans(
    {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"},
)
#: Go's ``time.Time{}``.
ZERO_TIME: Final = "0001-01-01T00:00:00Z"


def dumps(value: Any) -> str:
    """JSON text; keys keep their order, as fields of a Go struct do."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).translate(_ESCAPES)


def struct(message: Message) -> dict[str, Any]:
    """A message as the object that Go makes of its struct (every field tagged ``omitempty``)."""
    shown: dict[str, Any] = {}
    for field, value in message.ListFields():
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            shown[field.name] = {key: _plain(value[key]) for key in sorted(value)}
        elif not isinstance(value, (str, bytes)) and hasattr(value, "__len__"):
            shown[field.name] = [_plain(item) for item in value]
        else:
            shown[field.name] = _plain(value)
    return shown


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return struct(value) if hasattr(value, "ListFields") else value


def omit_empty(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Fields without those at a zero value: Go's ``omitempty``, one level deep."""
    return {name: value for name, value in fields.items() if value not in (None, False, 0, "", [], {}, ())}


def time_text(wall_ns: int) -> str:
    """A ``time.Time`` in UTC: RFC 3339 with as many digits of the second as are not zero."""
    seconds, nanoseconds = divmod(wall_ns, SECOND)
    fraction = f".{nanoseconds:09}".rstrip("0") if nanoseconds else ""
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}{fraction}Z"
