"""The gRPC door: bytes in, bytes out, over grpc.aio.

The rule: the door knows HTTP/2 and no messages. Every path goes to the engine, also one that names nothing, since the
answer to that is a personality's too. Deadlines and vanished clients reach the engine as ``cancel``; a stream's next
message is asked for (``notify``) only when the transport took the last one. The engine may call back from any thread;
everything here happens in the loop's.
"""

from __future__ import annotations

import asyncio
import threading
import traceback
from collections import deque
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol, Self

import grpc

from fakecri.clock import SECOND
from fakecri.service import health
from fakecri.service.real_time import monotonic_ns
from fakecri.service.status import refuse
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


class _Exchange:
    """One call between the engine, which reports from any thread, and its handler's coroutine.

    As a context manager it tells whoever watches how the call ended, and keeps what nobody foresaw.
    """

    __slots__ = (
        "_began_ns",
        "_changed",
        "_door",
        "_path",
        "_request",
        "bodies",
        "messages",
        "outcome",
        "reply",
        "sent",
    )

    def __init__(self, door: Door, path: str, request: bytes) -> None:
        self._door = door
        self._path = path
        self._request = request
        self._began_ns = monotonic_ns() if door.observer is not None else 0
        self._changed: asyncio.Future[None] | None = None
        self.reply: Reply | None = None
        self.bodies: deque[bytes] = deque()
        #: (code, text) as the client sees them; None while it sees none.
        self.outcome: tuple[int, str] | None = None
        self.messages = 0
        self.sent = 0

    def submit(self, context: Context, left_s: float | None) -> Call:
        """Hand the call to the engine."""
        self._door.activity.touch()
        return self._door.engine.submit(
            self._path,
            self._request,
            on_done=self._done,
            on_message=self._message,
            connection=context.peer(),
            metadata=context.invocation_metadata() or (),  # type: ignore[arg-type]
            time_left_ns=None if left_s is None else int(left_s * SECOND),
        )

    def _done(self, call: Call, reply: Reply) -> None:
        self._door.marshal(self._take_reply, reply)

    def _message(self, call: Call, body: bytes) -> None:
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

    def took(self, body: bytes) -> None:
        """The transport has one more message."""
        self.messages += 1
        self.sent += len(body)
        self._door.activity.touch()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        door = self._door
        if error is not None and not isinstance(error, (grpc.aio.BaseError, asyncio.CancelledError)):
            door.engine.failures.append("".join(traceback.format_exception(error)))
        door.activity.touch()
        if door.observer is not None:
            code, text = self.outcome if self.outcome is not None else (None, "")
            duration_ns = monotonic_ns() - self._began_ns
            door.observer(Exchange(self._path, code, text, duration_ns, self.messages, len(self._request), self.sent))


class _Path:
    """Serves the calls of one path.

    grpcio computes the time that is left with ``time.time()``. It is asked in ``serve`` itself and nowhere deeper,
    where a frozen time does not reach it: freezegun looks at no more than five frames, and ``threading`` is the fifth.
    """

    __slots__ = ("_door", "_path")

    def __init__(self, door: Door, path: str) -> None:
        self._door = door
        self._path = path


class _Unary(_Path):
    """An RPC with one request and one reply."""

    __slots__ = ()

    async def serve(self, request: bytes, context: Context) -> bytes:
        left_s = context.time_remaining()
        with _Exchange(self._door, self._path, request) as exchange:
            call = exchange.submit(context, left_s)
            try:
                while exchange.reply is None:
                    await exchange.change()
            except asyncio.CancelledError:
                self._door.engine.cancel(call)
                raise
            reply = exchange.reply
            exchange.outcome = reply.code, reply.text
            if exchange.outcome[0]:
                await refuse(context, *exchange.outcome)
            exchange.took(reply.body)
            return reply.body


class _Streaming(_Path):
    """An RPC with one request and a stream of replies."""

    __slots__ = ()

    async def serve(self, request: bytes, context: Context) -> None:
        left_s = context.time_remaining()
        with _Exchange(self._door, self._path, request) as exchange:
            call = exchange.submit(context, left_s)
            try:
                exchange.outcome = await self._stream(exchange, call, context)
            except asyncio.CancelledError:
                self._door.engine.cancel(call)
                raise
            if exchange.outcome is not None and exchange.outcome[0]:
                await refuse(context, *exchange.outcome)

    async def _stream(self, exchange: _Exchange, call: Call, context: Context) -> tuple[int, str] | None:
        engine = self._door.engine
        while True:
            while exchange.bodies:
                body = exchange.bodies.popleft()
                if not await _sent(context, body):
                    engine.cancel(call)
                    return None
                exchange.took(body)
                engine.notify(call)
            if exchange.reply is not None:
                return exchange.reply.code, exchange.reply.text
            await exchange.change()


async def _sent(context: Context, body: bytes) -> bool:
    """Write one message; False when the client went away meanwhile."""
    try:
        await context.write(body)
    except (grpc.aio.BaseError, asyncio.InvalidStateError):
        return False
    return True


class _Unknown(_Path):
    """A path that names no RPC of ours: the engine words the refusal, and no message is waited for."""

    __slots__ = ()

    async def serve(self, requests: AsyncIterator[bytes], context: Context) -> None:
        left_s = context.time_remaining()
        with _Exchange(self._door, self._path, b"") as exchange:
            exchange.submit(context, left_s)
            while exchange.reply is None:
                await exchange.change()
            exchange.outcome = exchange.reply.code, exchange.reply.text
            await refuse(context, *exchange.outcome)


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
        if await _sent(context, health.SERVING if known else health.SERVICE_UNKNOWN):
            await asyncio.shield(self._door.closing)
            if known:
                await _sent(context, health.NOT_SERVING)
