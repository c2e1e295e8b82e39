"""``grpc.health.v1``: the server is serving, and nothing else is known by name.

The rule: these answers are the transport's, as grpc-go's health server gives them (containerd 1.6-2.1, measured: Check
of the empty service is ``0801``); they are no calls of the runtime and are not recorded.
"""

from __future__ import annotations

from typing import Final

from fakecri.base.reasons import Code

CHECK: Final = "/grpc.health.v1.Health/Check"
WATCH: Final = "/grpc.health.v1.Health/Watch"

#: ``HealthCheckResponse{status: SERVING}``, ``… NOT_SERVING`` and ``… SERVICE_UNKNOWN``.
SERVING: Final = b"\x08\x01"
NOT_SERVING: Final = b"\x08\x02"
SERVICE_UNKNOWN: Final = b"\x08\x03"

#: What grpc-go answers to a Check of a service that was never registered with its health server.
UNKNOWN_SERVICE: Final = (Code.NOT_FOUND, "unknown service")


def is_whole_server(request: bytes) -> bool:
    """Whether a ``HealthCheckRequest`` asks for the server as a whole: no service named, or the empty name."""
    return request in (b"", b"\n\x00")
