"""The gRPC door: bytes in, bytes out, over grpc.aio.

The rule: the door knows HTTP/2 and no messages. Every path goes to the engine, also one that names nothing, since the
answer to that is a personality's too. Deadlines and vanished clients reach the engine as ``cancel``; a stream's next
message is asked for (``notify``) only when the transport took the last one. The engine may call back from any thread;
everything here happens in the loop's.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

import grpc

from fakecri.clock import SECOND
from fakecri.service import health
from fakecri.service.real_time import monotonic_ns
from fakecri.service.status import MESSAGE_LIMIT, refuse, too_large_to_receive, too_large_to_send
from fakecri.wire.methods import METHODS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fakecri.engine import Engine
    from fakecri.record.call import Call, Reply

Context = grpc.aio.ServicerContext[Any, Any]

# grpcio's own limit; far above the door's, so that requests over 16 MiB are refused with grpc-go's words.
_GRPCIO_LIMIT: Final = 64 << 20
_OPTIONS: Final = (
    ("grpc.max_receive_message_length", _GRPCIO_LIMIT),
    ("grpc.max_send_message_length", _GRPCIO_LIMIT),
    ("grpc.so_reuseport", 0),
)


@dataclass(frozen=True, slots=True)
class Exchange:
    """One call as the door saw it end: real ns, message counts and body sizes in bytes.

    ``code`` is None when the client went away first.
    """

    path: str
    code: int | None
    text: str
    duration_ns: int
    messages: int
    request_bytes: int
    reply_bytes: int


Observer = Callable[[Exchange], None]


class Activity(Protocol):
    """Who is told that something was exchanged with a client."""

    def touch(self) -> None:
        """A call came, a message left, or a call ended."""


class Door:
    """One grpc.aio server in front of one engine, on any number of sockets.

    Made, started and stopped in the thread of a running event loop.
    """

    def __init__(self, engine: Engine, activity: Activity, observer: Observer | None = None) -> None:
        self.engine = engine
        self.activity = activity
        self.observer = observer
        self.loop = asyncio.get_running_loop()
        self.thread = threading.get_ident()
        self.closing = self.loop.create_future()
        self._server = grpc.aio.server(options=_OPTIONS)
        self._server.add_generic_rpc_handlers((_EveryPath(self),))

    async def start(self, addresses: Sequence[str]) -> None:
        """Bind and serve.

        Raises:
            OSError: an address cannot be bound.
        """
        for address in addresses:
            try:
                self._server.add_insecure_port(address)
            except RuntimeError as error:
                raise OSError(f"cannot listen on {address}: {error}") from error
        await self._server.start()

    async def stop(self, grace_s: float | None) -> None:
        """Take no more calls, let those that are open go on for ``grace_s`` real seconds, then cancel them."""
        if not self.closing.done():
            self.closing.set_result(None)
        await self._server.stop(grace_s)

    def marshal(self, action: Callable[[Any], None], value: Any) -> None:
        """Run an action in the loop's thread: at once when that is this thread."""
        if threading.get_ident() == self.thread:
            action(value)
        else:
            self.loop.call_soon_threadsafe(action, value)


class _EveryPath(grpc.GenericRpcHandler):
    """Finds the handler of a path; a path that names no RPC is answered without waiting for a message."""

    def __init__(self, door: Door) -> None:
        self._door = door
        self._handlers: dict[str, Any] = {
            path: grpc.unary_stream_rpc_method_handler(_Streaming(door, path).serve)
            if spec.server_streaming
            else grpc.unary_unary_rpc_method_handler(_Unary(door, path).serve)
            for path, spec in METHODS.items()
        }
        self._handlers[health.CHECK] = grpc.unary_unary_rpc_method_handler(_check)
        self._handlers[health.WATCH] = grpc.unary_stream_rpc_method_handler(_Watch(door).serve)

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler[Any, Any]:
        """The handler of a call."""
        path = handler_call_details.method
        found = self._handlers.get(path)
        if found is None:
            found = grpc.stream_stream_rpc_method_handler(_Unknown(self._door, path).serve)
        return found


class _Path:
    """What all handlers share: how a call comes in, and how it is told to whoever watches."""

    __slots__ = ("_door", "_path")

    def __init__(self, door: Door, path: str) -> None:
        self._door = door
        self._path = path

    def submit(self, request: bytes, context: Context, left_s: float | None, exchange: _Open) -> Call:
        door = self._door
        door.activity.touch()
        return door.engine.submit(
            self._path,
            request,
            on_done=exchange.done,
            on_message=exchange.message,
            connection=context.peer(),
            metadata=context.invocation_metadata() or (),  # type: ignore[arg-type]
            time_left_ns=None if left_s is None else int(left_s * SECOND),
        )

    def ended(self, outcome: tuple[int, str] | None, exchange: _Open, request: bytes) -> None:
        door = self._door
        door.activity.touch()
        if door.observer is not None:
            code, text = outcome if outcome is not None else (None, "")
            duration_ns = monotonic_ns() - exchange.began_ns
            door.observer(
                Exchange(self._path, code, text, duration_ns, exchange.messages, len(request), exchange.sent_bytes)
            )


class _Open:
    """One call between the engine, which reports from any thread, and its handler's coroutine."""

    __slots__ = ("_changed", "_door", "began_ns", "bodies", "messages", "reply", "sent_bytes")

    def __init__(self, door: Door) -> None:
        self._door = door
        self._changed: asyncio.Future[None] | None = None
        self.began_ns = monotonic_ns()
        self.reply: Reply | None = None
        self.bodies: deque[bytes] = deque()
        self.messages = 0
        self.sent_bytes = 0

    def done(self, call: Call, reply: Reply) -> None:
        """The engine: the call ended."""
        self._door.marshal(self._take_reply, reply)

    def message(self, call: Call, body: bytes) -> None:
        """The engine: one message of a stream."""
        self._door.marshal(self._take_body, body)

    def _take_reply(self, reply: Reply) -> None:
        self.reply = reply
        self._wake()

    def _take_body(self, body: bytes) -> None:
        self._door.activity.touch()
        self.bodies.append(body)
        self._wake()

    def _wake(self) -> None:
        if self._changed is not None and not self._changed.done():
            self._changed.set_result(None)

    async def change(self) -> None:
        """Wait for the engine's next word."""
        self._changed = self._door.loop.create_future()
        await self._changed


class _Unary(_Path):
    """An RPC with one request and one reply."""

    async def serve(self, request: bytes, context: Context) -> bytes:
        # grpcio computes this with time.time(); called from here, and only here, a frozen time does not reach it
        left_s = context.time_remaining()
        exchange = _Open(self._door)
        outcome: tuple[int, str] | None = None
        try:
            if len(request) > MESSAGE_LIMIT:
                outcome = too_large_to_receive(len(request))
            else:
                reply = await self._answered(request, context, left_s, exchange)
                outcome = reply.code, reply.text
                if len(reply.body) > MESSAGE_LIMIT:
                    outcome = too_large_to_send(len(reply.body))
                elif not reply.code:
                    exchange.messages, exchange.sent_bytes = 1, len(reply.body)
                    return reply.body
            await refuse(context, *outcome)
        finally:
            self.ended(outcome, exchange, request)

    async def _answered(self, request: bytes, context: Context, left_s: float | None, exchange: _Open) -> Reply:
        call = self.submit(request, context, left_s, exchange)
        try:
            while exchange.reply is None:
                await exchange.change()
        except asyncio.CancelledError:
            self._door.engine.cancel(call)
            raise
        return exchange.reply


class _Streaming(_Path):
    """An RPC with one request and a stream of replies."""

    async def serve(self, request: bytes, context: Context) -> None:
        left_s = context.time_remaining()
        exchange = _Open(self._door)
        outcome: tuple[int, str] | None = None
        try:
            if len(request) > MESSAGE_LIMIT:
                outcome = too_large_to_receive(len(request))
            else:
                outcome = await self._streamed(request, context, left_s, exchange)
            if outcome[0]:
                await refuse(context, *outcome)
        finally:
            self.ended(outcome, exchange, request)

    async def _streamed(
        self, request: bytes, context: Context, left_s: float | None, exchange: _Open
    ) -> tuple[int, str]:
        engine = self._door.engine
        call = self.submit(request, context, left_s, exchange)
        try:
            while True:
                while exchange.bodies:
                    body = exchange.bodies.popleft()
                    if len(body) > MESSAGE_LIMIT:
                        engine.cancel(call)
                        return too_large_to_send(len(body))
                    await context.write(body)
                    exchange.messages += 1
                    exchange.sent_bytes += len(body)
                    self._door.activity.touch()
                    engine.notify(call)
                if exchange.reply is not None:
                    return exchange.reply.code, exchange.reply.text
                await exchange.change()
        except (asyncio.CancelledError, grpc.RpcError, asyncio.InvalidStateError):
            engine.cancel(call)
            raise


class _Unknown(_Path):
    """A path that names no RPC of ours: the engine words the refusal."""

    async def serve(self, requests: AsyncIterator[bytes], context: Context) -> None:
        left_s = context.time_remaining()
        exchange = _Open(self._door)
        outcome: tuple[int, str] | None = None
        try:
            self.submit(b"", context, left_s, exchange)
            while exchange.reply is None:
                await exchange.change()
            outcome = exchange.reply.code, exchange.reply.text
            await refuse(context, *outcome)
        finally:
            self.ended(outcome, exchange, b"")


async def _check(request: bytes, context: Context) -> bytes:
    if health.is_whole_server(request):
        return health.SERVING
    return await refuse(context, *health.UNKNOWN_SERVICE)


class _Watch:
    """``Health/Watch``: the state now, and once more when the server stops."""

    def __init__(self, door: Door) -> None:
        self._door = door

    async def serve(self, request: bytes, context: Context) -> None:
        known = health.is_whole_server(request)
        await context.write(health.SERVING if known else health.SERVICE_UNKNOWN)
        await asyncio.shield(self._door.closing)
        if known:
            await context.write(health.NOT_SERVING)
