"""Container logs on the machine's own file system: one writer thread for all of them.

A line is queued under its path and never waited for; requests to open, reopen or close a log are queued with the
lines and so answered in their order, by the writer. A log is known by its inode: renamed by whoever rotates it, it
goes on in the renamed file until it is reopened, also when its descriptor had to be closed meanwhile to keep the
number of open files down. No exception vanishes: what no answer carries goes to ``on_error``.
"""

from __future__ import annotations

import os
import posixpath
import threading
from collections import OrderedDict, deque
from typing import TYPE_CHECKING, Final, TypeAlias

from fakecri.base.ports import LogRequest, OpenLog, ReopenLog
from fakecri.base.reasons import CriError
from fakecri.service.host_files import write_all

if TYPE_CHECKING:
    from collections.abc import Callable

    from fakecri.service.host_files import RealHostFiles

Answer: TypeAlias = "Callable[[str | None], None]"
_Queued: TypeAlias = "bytes | tuple[LogRequest, Answer]"

_APPEND: Final = os.O_WRONLY | os.O_APPEND


class _Log:
    """One open log."""

    __slots__ = ("descriptor", "device", "inode", "path", "problem", "users")

    def __init__(self, path: str, descriptor: int) -> None:
        self.path = path
        self.users = 0
        #: Why lines were lost, if any were.
        self.problem: str | None = None
        self.take(descriptor)

    def take(self, descriptor: int) -> None:
        found = os.fstat(descriptor)
        self.descriptor: int | None = descriptor
        self.device, self.inode = found.st_dev, found.st_ino


class RealLogFiles:
    """``LogFiles`` and its port ``logs``; end it with ``close``."""

    def __init__(
        self, files: RealHostFiles, *, on_error: Callable[[str, BaseException], None], open_limit: int = 256
    ) -> None:
        """Start the writer.

        ``on_error(path, exception)`` is called in the writer's thread. ``open_limit``: descriptors held at most.
        """
        self._files = files
        self._on_error = on_error
        self._open_limit = open_limit
        self._queues: dict[str, deque[_Queued]] = {}
        self._ready: deque[str] = deque()
        self._wake = threading.Condition()
        self._closing = False
        self._logs: dict[str, _Log] = {}
        #: Logs with a descriptor, the one used longest ago first.
        self._held: OrderedDict[str, _Log] = OrderedDict()
        self._thread = threading.Thread(target=self._run, name="fakecri-logs", daemon=True)
        self._thread.start()

    # -- any thread ----------------------------------------------------------------------------------------------------
    def append(self, path: str, line: bytes) -> None:
        """Queue one complete line for an open log.

        Raises:
            ValueError: ``close`` was called.
        """
        self._queue(path, line)

    def port(self, request: LogRequest, answer: Answer) -> None:
        """Queue OpenLog, ReopenLog or CloseLog; ``answer(None | error text)`` is called in the writer's thread.

        Raises:
            ValueError: ``close`` was called.
        """
        self._queue(request.path, (request, answer))

    def close(self) -> None:
        """Write everything that is queued, then end the writer. Not to be called with the engine's lock held."""
        with self._wake:
            self._closing = True
            self._wake.notify()
        self._thread.join()

    def _queue(self, path: str, item: _Queued) -> None:
        with self._wake:
            if self._closing:
                raise ValueError(f"log {path}: the writer is closed")
            queue = self._queues.get(path)
            if queue is None:
                queue = self._queues[path] = deque()
                self._ready.append(path)
                self._wake.notify()
            queue.append(item)

    # -- the writer's thread -------------------------------------------------------------------------------------------
    def _run(self) -> None:
        while (work := self._next()) is not None:
            path, queue = work
            lines: list[bytes] = []
            for item in queue:
                if isinstance(item, bytes):
                    lines.append(item)
                    continue
                self._write(path, lines)
                lines = []
                self._serve(*item)
            self._write(path, lines)
        for log in self._held.values():
            assert log.descriptor is not None
            os.close(log.descriptor)

    def _next(self) -> tuple[str, deque[_Queued]] | None:
        with self._wake:
            while not self._ready:
                if self._closing:
                    return None
                self._wake.wait()
            path = self._ready.popleft()
            return path, self._queues.pop(path)

    def _serve(self, request: LogRequest, answer: Answer) -> None:
        problem: str | None = None
        try:
            if isinstance(request, OpenLog):
                self._open(request)
            elif isinstance(request, ReopenLog):
                problem = self._reopen(request)
            else:
                problem = self._close(request.path)
        except CriError as refusal:
            problem = str(refusal.facts["detail"])
        except Exception as error:
            problem = str(error)
            self._on_error(request.path, error)
        try:
            answer(problem)
        except Exception as error:
            self._on_error(request.path, error)

    def _open(self, request: OpenLog) -> None:
        log = self._logs.get(request.path)
        if log is None:
            descriptor = self._files.open_file(request.path, _APPEND | os.O_CREAT, request.mode, make_parents=True)
            log = self._logs[request.path] = _Log(request.path, descriptor)
            self._hold(log)
        log.users += 1

    def _reopen(self, request: ReopenLog) -> str | None:
        log = self._logs.get(request.path)
        if log is None:
            return f"log {request.path} is not open"
        descriptor = self._files.open_file(request.path, _APPEND | os.O_CREAT, request.mode)
        self._let_go(log)
        log.take(descriptor)
        self._hold(log)
        return None

    def _close(self, path: str) -> str | None:
        log = self._logs.get(path)
        if log is None:
            return None
        problem, log.problem = log.problem, None
        log.users -= 1
        if log.users == 0:
            del self._logs[path]
            self._let_go(log)
        return problem

    def _write(self, path: str, lines: list[bytes]) -> None:
        if not lines:
            return
        log = self._logs.get(path)
        try:
            if log is None:
                raise ValueError(f"log {path} is not open: {len(lines)} lines are lost")
            descriptor = self._descriptor(log)
            if descriptor is not None:  # else the file was removed: lines go where a removed file's go
                write_all(descriptor, b"".join(lines))
        except Exception as error:
            if log is not None:
                log.problem = error.strerror or str(error) if isinstance(error, OSError) else str(error)
            self._on_error(path, error)

    # -- descriptors ---------------------------------------------------------------------------------------------------
    def _descriptor(self, log: _Log) -> int | None:
        """The log's descriptor, found again by its inode if it had to be closed; None when its file is gone."""
        if log.descriptor is None:
            directory = posixpath.dirname(log.path)
            descriptor = self._files.open_inode(directory, log.device, log.inode, _APPEND)
            if descriptor is None:
                return None
            log.take(descriptor)
        self._hold(log)
        return log.descriptor

    def _hold(self, log: _Log) -> None:
        self._held[log.path] = log
        self._held.move_to_end(log.path)
        while len(self._held) > self._open_limit:
            self._let_go(next(iter(self._held.values())))

    def _let_go(self, log: _Log) -> None:
        self._held.pop(log.path, None)
        if log.descriptor is not None:
            os.close(log.descriptor)
            log.descriptor = None
