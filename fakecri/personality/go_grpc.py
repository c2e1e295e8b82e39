"""The words of grpc-go itself, which every runtime written in Go shares: routing, sizes, deadlines.

The rule: what never reaches a runtime's own code is worded by its gRPC library. Texts: grpc-go 1.5x … 1.7x, as
containerd 1.6 … 2.1 and CRI-O 1.25 … 1.36 answered on the wire.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from fakecri.base.reasons import Code, Reason
from fakecri.personality.model import Form

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fakecri.personality.model import Key

FORMS: Final[Mapping[Key, Form]] = MappingProxyType(
    {
        (Reason.MALFORMED_METHOD, None): Form(Code.UNIMPLEMENTED, 'malformed method name: "{path}"'),
        (Reason.UNKNOWN_SERVICE, None): Form(Code.UNIMPLEMENTED, "unknown service {service}"),
        (Reason.UNKNOWN_METHOD, None): Form(Code.UNIMPLEMENTED, "unknown method {method} for service {service}"),
        (Reason.METHOD_NOT_IMPLEMENTED, None): Form(Code.UNIMPLEMENTED, "method {method} not implemented"),
        # The decoder's own words differ from library to library; gogo's stop at the first byte that is missing.
        (Reason.UNDECODABLE, None): Form(Code.INTERNAL, "grpc: error unmarshalling request: unexpected EOF"),
        (Reason.FIELD_NOT_UTF8, None): Form(
            Code.INTERNAL, "grpc: error unmarshalling request: field {field} contains invalid UTF-8"
        ),
        (Reason.REQUEST_TOO_LARGE, None): Form(
            Code.RESOURCE_EXHAUSTED, "grpc: received message larger than max ({size} vs. {limit})"
        ),
        (Reason.RESPONSE_TOO_LARGE, None): Form(
            Code.RESOURCE_EXHAUSTED, "grpc: trying to send message larger than max ({size} vs. {limit})"
        ),
        (Reason.CLIENT_GONE, None): Form(Code.CANCELLED, "context canceled"),
        (Reason.DEADLINE, None): Form(Code.DEADLINE_EXCEEDED, "context deadline exceeded"),
        (Reason.SHUTTING_DOWN, None): Form(Code.UNAVAILABLE, "the server is shutting down"),
        (Reason.UNFORESEEN, None): Form(Code.INTERNAL, "unforeseen error in call {call} ({method}): {error}"),
    }
)
