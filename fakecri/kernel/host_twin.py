"""The host's files and log files in memory: what a runtime that must not touch the machine works on.

They keep the rules of the real ones, as far as memory has a meaning for them: absolute paths without ``..``, inodes
that a rename does not change, a log that goes on in its old file until it is reopened. Nothing waits.
"""

from __future__ import annotations

import posixpath
from bisect import bisect_left, insort
from typing import TYPE_CHECKING

from fakecri.base.ports import CloseLog, FileStat, LogRequest, OpenLog, ReopenLog
from fakecri.base.reasons import CriError, Reason

if TYPE_CHECKING:
    from collections.abc import Callable


class _Inode:
    __slots__ = ("content", "mode")

    def __init__(self, mode: int, content: bytes = b"") -> None:
        self.mode = mode
        self.content = bytearray(content)


def checked_path(path: str) -> str:
    """A client's path in normal form.

    Raises:
        CriError: PATH_REFUSED; the path is not absolute, or ``..`` or a NUL is in it.
    """
    if not path.startswith("/"):
        raise CriError(Reason.PATH_REFUSED, path=path, detail="the path is not absolute")
    if "\0" in path:
        raise CriError(Reason.PATH_REFUSED, path=path, detail="the path has a NUL in it")
    if ".." in path.split("/"):
        raise CriError(Reason.PATH_REFUSED, path=path, detail="the path has '..' in it")
    normal = "/" + posixpath.normpath(path).strip("/")
    return path if path == normal else normal  # the caller's own string, where it may be kept


class TwinHostFiles:
    """``HostFiles`` in memory. Nothing but the root directory is there at first."""

    def __init__(self) -> None:
        self._files: dict[str, _Inode] = {}
        #: Directories that were asked for; those above them are there too and are not written down.
        self._directories: dict[str, int] = {"/": 0o755}
        self._sorted: list[str] = []

    # -- the port ------------------------------------------------------------------------------------------------------
    def allow(self, path: str) -> None:
        """All of memory may be used."""

    def stat(self, path: str) -> FileStat | None:
        """Metadata of a path; None when nothing is there."""
        path = checked_path(path)
        if self._is_directory(path):
            return FileStat(is_directory=True, size_bytes=0, mode=self._directories.get(path, 0o755))
        inode = self._files.get(path)
        return None if inode is None else FileStat(False, len(inode.content), inode.mode)

    def make_directories(self, path: str, mode: int = 0o755) -> None:
        """Create a directory and its parents.

        Raises:
            CriError: PATH_REFUSED; a file is in the way.
        """
        path = checked_path(path)
        above = path
        while not self._is_directory(above):
            if above in self._files:
                raise CriError(Reason.PATH_REFUSED, path=above, detail="not a directory")
            above = posixpath.dirname(above)
        if above != path:
            self._directories[path] = mode
            insort(self._sorted, path)

    def _is_directory(self, path: str) -> bool:
        """Whether a directory was asked for at or below a path."""
        if path in self._directories:
            return True
        below = f"{path}/"
        at = bisect_left(self._sorted, below)
        return at < len(self._sorted) and self._sorted[at].startswith(below)

    def read(self, path: str, limit_bytes: int = 65536) -> bytes | None:
        """The first ``limit_bytes`` of a file; None when there is none.

        Raises:
            CriError: PATH_REFUSED; it is a directory.
        """
        path = checked_path(path)
        if self._is_directory(path):
            raise CriError(Reason.PATH_REFUSED, path=path, detail="is a directory")
        inode = self._files.get(path)
        return None if inode is None else bytes(inode.content[:limit_bytes])

    def write(self, path: str, content: bytes, mode: int = 0o644) -> None:
        """Replace a file's content in place, or create it.

        Raises:
            CriError: PATH_REFUSED; it is a directory, or its directory is not there.
        """
        self._inode(checked_path(path), mode).content[:] = content

    def remove(self, path: str) -> None:
        """Remove one file; nothing there is no error.

        Raises:
            CriError: PATH_REFUSED; it is a directory.
        """
        path = checked_path(path)
        if self._is_directory(path):
            raise CriError(Reason.PATH_REFUSED, path=path, detail="is a directory")
        self._files.pop(path, None)

    def entries(self, path: str) -> tuple[str, ...] | None:
        """Names in a directory, sorted; None when there is no such directory."""
        path = checked_path(path)
        if not self._is_directory(path):
            return None
        within = path.rstrip("/") + "/"
        inside = (one for one in (*self._files, *self._sorted) if one.startswith(within))
        return tuple(sorted({one.removeprefix(within).partition("/")[0] for one in inside}))

    # -- what a client would do to its own files -----------------------------------------------------------------------
    def rename(self, old: str, new: str) -> None:
        """Move a file; its inode stays, so a log that is open goes on in it.

        Raises:
            KeyError: there is no such file.
        """
        self._files[checked_path(new)] = self._files.pop(checked_path(old))

    def _inode(self, path: str, mode: int) -> _Inode:
        if self._is_directory(path):
            raise CriError(Reason.PATH_REFUSED, path=path, detail="is a directory")
        if not self._is_directory(posixpath.dirname(path)):
            raise CriError(Reason.PATH_REFUSED, path=path, detail="no such file or directory")
        if path not in self._files:
            self._files[path] = _Inode(mode)
        return self._files[path]

    def opened(self, path: str, mode: int) -> bytearray:
        """The content behind a path, to be appended to: it stays the same when the file is renamed or removed."""
        return self._inode(checked_path(path), mode).content


class TwinLogFiles:
    """``LogFiles`` in memory, and their port ``logs``, which answers at once."""

    def __init__(self, files: TwinHostFiles | None = None) -> None:
        self.files = files if files is not None else TwinHostFiles()
        self._open: dict[str, bytearray] = {}
        self._users: dict[str, int] = {}

    def append(self, path: str, line: bytes) -> None:
        """Write one complete line to an open log.

        Raises:
            ValueError: the log is not open.
        """
        if path not in self._open:
            raise ValueError(f"log {path} is not open: ask for OpenLog first")
        self._open[path] += line

    def port(self, request: LogRequest, answer: Callable[[str | None], None]) -> None:
        """Answer OpenLog, ReopenLog, CloseLog: None, or why it failed."""
        answer(self._serve(request))

    def _serve(self, request: LogRequest) -> str | None:
        try:
            if isinstance(request, OpenLog):
                self.files.make_directories(posixpath.dirname(checked_path(request.path)))
                if request.path not in self._open:
                    self._open[request.path] = self.files.opened(request.path, request.mode)
                self._users[request.path] = self._users.get(request.path, 0) + 1
            elif isinstance(request, ReopenLog):
                if request.path not in self._open:
                    return f"log {request.path} is not open"
                self._open[request.path] = self.files.opened(request.path, request.mode)
            else:
                assert isinstance(request, CloseLog)
                self._close(request.path)
        except CriError as refusal:
            return str(refusal.facts["detail"])
        return None

    def _close(self, path: str) -> None:
        if path in self._users:
            self._users[path] -= 1
            if self._users[path] == 0:
                del self._users[path], self._open[path]

    # -- looking -------------------------------------------------------------------------------------------------------
    def content(self, path: str) -> bytes:
        """What is in the file at a path now; empty when there is none."""
        return self.files.read(path, limit_bytes=1 << 62) or b""

    @property
    def paths(self) -> tuple[str, ...]:
        """The logs that are open, in order of opening."""
        return tuple(self._open)
