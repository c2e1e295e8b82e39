"""The one place where (code number, text) becomes gRPC.

The rule: what the engine answered is passed on unchanged, and nothing else in the package speaks grpcio's status
types. Texts of our own are those of the transport, which no personality words: grpc-go's, as clients know them.
"""

from __future__ import annotations

from typing import Any, Final, NoReturn

import grpc

from fakecri.base.reasons import Code

#: containerd's limit in both directions, in bytes (measured; its server sets grpc-go's MaxRecvMsgSize/MaxSendMsgSize).
MESSAGE_LIMIT: Final = 16 << 20

_STATUS: Final[dict[int, grpc.StatusCode]] = {status.value[0]: status for status in grpc.StatusCode}


def too_large_to_receive(size: int) -> tuple[int, str]:
    """grpc-go's refusal of a request of ``size`` bytes."""
    return Code.RESOURCE_EXHAUSTED, f"grpc: received message larger than max ({size} vs. {MESSAGE_LIMIT})"


def too_large_to_send(size: int) -> tuple[int, str]:
    """grpc-go's refusal to send a reply of ``size`` bytes."""
    return Code.RESOURCE_EXHAUSTED, f"grpc: trying to send message larger than max ({size} vs. {MESSAGE_LIMIT})"


async def refuse(context: grpc.aio.ServicerContext[Any, Any], code: int, text: str) -> NoReturn:
    """End a call with a status other than OK; text that is no Unicode (a lone surrogate) is shown escaped."""
    status = _STATUS.get(code, grpc.StatusCode.UNKNOWN)
    await context.abort(status, text.encode("utf-8", "backslashreplace").decode())
    raise AssertionError("abort returned")
