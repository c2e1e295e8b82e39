"""A server: one engine on its sockets, with time flowing.

The rule: sockets, door and time driver live and die together, in one event loop that all servers of the process share;
``start`` returns when clients can connect, ``stop`` when nothing of the server is left.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

from fakecri.service.grpc_server import Door, Observer
from fakecri.service.real_time import ClockMode, ServiceLoop, TimeDriver
from fakecri.service.socket import SocketFile

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from concurrent.futures import Future

    from fakecri.engine import Engine

T = TypeVar("T")

#: Real seconds that open calls, subscriptions aside, are given at a stop.
GRACE_S: Final = 2.0


class LoopThread:
    """An event loop in a daemon thread, in which all servers of this process live.

    The thread runs ``run_forever`` itself, with no frame of ours around it: freezegun looks five frames up for a module
    that is not to be frozen, and finds ``threading`` there from a handler's first level.
    """

    def __init__(self) -> None:
        self.process = os.getpid()
        self.loop = ServiceLoop()
        self._thread = threading.Thread(target=self.loop.run_forever, name="fakecri", daemon=True)
        self._thread.start()
        atexit.register(self._close)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in the loop and wait for its result.

        Raises:
            RuntimeError: called in the loop's own thread, which would wait for itself.
        """
        if threading.current_thread() is self._thread:
            work.close()
            raise RuntimeError("a server cannot be started or stopped from one of its own callbacks")
        future: Future[T] = asyncio.run_coroutine_threadsafe(work, self.loop)
        return future.result()

    def _close(self) -> None:
        if os.getpid() == self.process:
            self.loop.call_soon_threadsafe(self.loop.stop)
            self._thread.join(1)
            if not self.loop.is_running():
                self.loop.close()


_loop_thread: LoopThread | None = None
_loop_thread_lock: Final = threading.Lock()


def loop_thread() -> LoopThread:
    """The process's loop thread, started at first use; a forked child gets its own."""
    global _loop_thread
    with _loop_thread_lock:
        if _loop_thread is None or _loop_thread.process != os.getpid():
            _loop_thread = LoopThread()
        return _loop_thread


class Server:
    """An engine served on a unix socket, and perhaps on a second one for clients of the image service.

    Both sockets answer both services, as containerd's does; which API versions a service answers is the engine's to
    say, at any time. ``observer`` is told of every call that ended, in the loop's thread.
    """

    def __init__(
        self,
        engine: Engine,
        socket: str | os.PathLike[str],
        *,
        image_socket: str | os.PathLike[str] | None = None,
        clock: ClockMode | str = "real",
        observer: Observer | None = None,
    ) -> None:
        self.engine = engine
        self.clock = ClockMode.parse(clock) if isinstance(clock, str) else clock
        self.socket = Path(os.path.abspath(socket))
        self.image_socket = None if image_socket is None else Path(os.path.abspath(image_socket))
        self._observer = observer
        self._files: list[SocketFile] = []
        self._door: Door | None = None
        self._driver: TimeDriver | None = None

    @property
    def endpoint(self) -> str:
        """``unix:///…``: what a client is pointed at."""
        return f"unix://{self.socket}"

    @property
    def image_endpoint(self) -> str:
        """The same for the image service; the one endpoint when there is no second socket."""
        return self.endpoint if self.image_socket is None else f"unix://{self.image_socket}"

    @property
    def running(self) -> bool:
        """Between ``start`` and ``stop``."""
        return self._door is not None

    def start(self) -> None:
        """Serve. When this returns, clients can connect.

        Raises:
            SocketUnusableError: a socket path cannot be used; nothing of the server is left.
            RuntimeError: it is running already.
        """
        if self.running:
            raise RuntimeError(f"the server on {self.endpoint} is running already")
        try:
            for path in (self.socket, self.image_socket):
                if path is not None:
                    self._files.append(SocketFile.claim(path))
            loop_thread().run(self._start())
        except BaseException:
            self._withdraw()
            raise

    async def _start(self) -> None:
        driver = TimeDriver(self.engine, self.clock, asyncio.get_running_loop())
        door = Door(self.engine, driver, self._observer)
        try:
            await door.start([file.address for file in self._files])
            driver.start()
            for file in self._files:
                file.publish()
        except BaseException:
            driver.stop()
            await door.stop(None)
            raise
        self._door, self._driver = door, driver

    def stop(self, grace_s: float = GRACE_S) -> None:
        """Stop: subscriptions end at once, other calls have ``grace_s`` real seconds. Idempotent.

        Raises:
            RuntimeError: called from one of the server's own callbacks.
        """
        if self.running:
            loop_thread().run(self._stop(grace_s))

    async def _stop(self, grace_s: float) -> None:
        door, driver = self._door, self._driver
        self._door = self._driver = None
        if door is None or driver is None:
            return
        try:
            self.engine.end_subscriptions()
            await door.stop(grace_s)
            driver.stop()
        finally:
            self._withdraw()

    def _withdraw(self) -> None:
        while self._files:
            self._files.pop().withdraw()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()
