"""Calls upwards: what pure code may ask of the machine, as protocols that outer layers implement and hand in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class FileStat:
    """What the simulation needs to know of a host path."""

    is_directory: bool
    size_bytes: int
    mode: int


class HostFiles(Protocol):
    """Host paths that clients name: metadata, and contents up to 64 KiB, at once.

    Every method raises ``CriError(Reason.PATH_REFUSED, path=…, detail=…)`` for a path outside the allowed roots, with
    ``..`` in it, or reached through a symbolic link that leaves them. A path that is not there is None, not an error.
    """

    def allow(self, path: str) -> None:
        """A client named this path: it, and what lies below, may be used from now on.

        Call it for every host path that a request brings, before its use; never for one that a process asks for.
        """

    def stat(self, path: str) -> FileStat | None:
        """Metadata of a path; None when nothing is there."""

    def make_directories(self, path: str, mode: int = 0o755) -> None:
        """Create a directory and its parents; one that exists is left alone."""

    def read(self, path: str, limit_bytes: int = 65536) -> bytes | None:
        """The first ``limit_bytes`` of a file; None when there is none."""

    def write(self, path: str, content: bytes, mode: int = 0o644) -> None:
        """Replace a file's content in place (its inode stays, so a bind mount sees it)."""

    def remove(self, path: str) -> None:
        """Remove one file; nothing there is no error."""

    def entries(self, path: str) -> tuple[str, ...] | None:
        """Names in a directory, sorted; None when there is no such directory."""


@dataclass(frozen=True, slots=True)
class ReadFile:
    """``Ask("files", …)``: a whole file of any size. Answer: its bytes, None when there is none, or a ``CriError``."""

    path: str
    limit_bytes: int


@dataclass(frozen=True, slots=True)
class WriteFile:
    """``Ask("files", …)``: replace a file's content, of any size. Answer: None, or a ``CriError``."""

    path: str
    content: bytes
    mode: int = 0o600


FileRequest = ReadFile | WriteFile


class LogFiles(Protocol):
    """Container log files: lines are queued per file and written in order by one writer.

    ``append`` never waits. The other three are asked for through ``Ask("logs", OpenLog | ReopenLog | CloseLog)``,
    so that a call is answered only when its file is in place.
    """

    def append(self, path: str, line: bytes) -> None:
        """Queue one complete CRI log line (with its newline) for an open log."""


@dataclass(frozen=True, slots=True)
class OpenLog:
    """Create the file (and its directory) and accept lines for it. Answer: None, or the error text."""

    path: str
    mode: int = 0o640


@dataclass(frozen=True, slots=True)
class ReopenLog:
    """Write what is queued to the old file, then go on in a new file at the same path. Answer: None or error text."""

    path: str
    mode: int = 0o640


@dataclass(frozen=True, slots=True)
class CloseLog:
    """Answered once every queued line is in the file; the file stays. Answer: None or error text."""

    path: str


LogRequest = OpenLog | ReopenLog | CloseLog
