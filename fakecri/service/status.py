"""The one place where (code number, text) becomes gRPC.

The rule: what the engine answered is passed on unchanged, and nothing else in the package speaks grpcio's status
types.
"""

from __future__ import annotations

from typing import Any, Final, NoReturn

import grpc

_STATUS: Final[dict[int, grpc.StatusCode]] = {status.value[0]: status for status in grpc.StatusCode}


async def refuse(context: grpc.aio.ServicerContext[Any, Any], code: int, text: str) -> NoReturn:
    """End a call with a status other than OK; text that is no Unicode (a lone surrogate) is shown escaped."""
    status = _STATUS.get(code, grpc.StatusCode.UNKNOWN)
    await context.abort(status, text.encode("utf-8", "backslashreplace").decode())
    raise AssertionError("abort returned")
