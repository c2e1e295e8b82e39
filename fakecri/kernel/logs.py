"""Container log lines as CRI wants them: ``<time> <stream> <tag> <content>``, out of chunks as they were written.

How long lines are cut, what becomes of a line without an end, how times look and how files are made differ between
runtimes: those are rows of ``LOG_STYLES``. With buffered partial lines (containerd) the result does not depend on how
the output was split into writes, only on its bytes and times.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from functools import lru_cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

_STREAMS: Final = {1: b"stdout", 2: b"stderr"}
_SECOND_NS: Final = 1_000_000_000


class LogTimes(Enum):
    """How a time is written."""

    #: ``2026-11-30T18:03:21.1262Z``: trailing zeros of the fraction are left out, the point with them.
    TRIMMED_ZULU = "trimmed, Z"
    #: ``2026-11-30T18:03:21.126200000+00:00``: always nine digits, numeric offset.
    FIXED_OFFSET = "nine digits, +00:00"


class LogFileMade(Enum):
    """When a container's log file comes to be."""

    AT_CREATE = "CreateContainer"
    AT_START = "StartContainer"


@dataclass(frozen=True, slots=True)
class LogStyle:
    """How one runtime writes container logs."""

    #: Longest content of one line in bytes; what is longer is cut into lines tagged P.
    chunk_bytes: int = 16384
    #: True: a line is written once its end came, or more than ``chunk_bytes`` of it. False: each write is written at
    #: once, in chunks of at most ``chunk_bytes``, and one that does not end a line is tagged P.
    buffered: bool = True
    times: LogTimes = LogTimes.TRIMMED_ZULU
    file_mode: int = 0o640
    file_made: LogFileMade = LogFileMade.AT_START


#: Measured: containerd 1.6.20, 1.7.24, 2.1.9 and CRI-O 1.25.5, 1.36.3 (conmon 2.1.6).
LOG_STYLES: Final[Mapping[str, LogStyle]] = {
    "containerd": LogStyle(),
    "cri-o": LogStyle(
        chunk_bytes=8192,
        buffered=False,
        times=LogTimes.FIXED_OFFSET,
        file_mode=0o600,
        file_made=LogFileMade.AT_CREATE,
    ),
}


@lru_cache(maxsize=64)
def _second(unix_s: int) -> str:
    return datetime.fromtimestamp(unix_s, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def log_time(wall_ns: int, times: LogTimes = LogTimes.TRIMMED_ZULU) -> str:
    """A unix time in ns as RFC 3339 in UTC."""
    seconds, fraction_ns = divmod(wall_ns, _SECOND_NS)
    text = f"{_second(seconds)}.{fraction_ns:09}"
    if times is LogTimes.FIXED_OFFSET:
        return f"{text}+00:00"
    return text.rstrip("0").removesuffix(".") + "Z" if fraction_ns else f"{_second(seconds)}Z"


class LogLines:
    """The lines of one container's log; remembers what each stream has not finished yet."""

    __slots__ = ("_open", "_style", "_tty")

    def __init__(self, style: LogStyle, *, tty: bool = False) -> None:
        self._style = style
        #: A terminal has one stream, and the carriage return before a line feed is dropped: it is the terminal's own.
        self._tty = tty
        self._open: dict[bytes, bytes] = {}

    def feed(self, descriptor: int, chunk: bytes, wall_ns: int) -> list[bytes]:
        """The log lines (each with its newline) that a write to descriptor 1 or 2 completes."""
        stream = _STREAMS[1] if self._tty else _STREAMS[descriptor]
        unfinished = self._open.pop(stream, b"") + chunk
        held = b""
        if self._tty:
            unfinished = unfinished.replace(b"\r\n", b"\n")
            if unfinished.endswith(b"\r"):  # perhaps before a line feed that is still to come
                unfinished, held = unfinished[:-1], b"\r"
        lines: list[bytes] = []
        cut = self._cut_lines if self._style.buffered else self._cut_write
        unfinished = cut(unfinished, stream, wall_ns, lines) + held
        if unfinished:
            self._open[stream] = unfinished
        return lines

    def end(self, wall_ns: int) -> list[bytes]:
        """What is left at the end of the streams: lines without an end, tagged P."""
        opened, self._open = self._open, {}
        return [
            self._line(stream, b"P", rest[begin : begin + self._style.chunk_bytes], wall_ns)
            for stream, rest in sorted(opened.items(), reverse=True)
            for begin in range(0, len(rest), self._style.chunk_bytes)
        ]

    def _cut_lines(self, unfinished: bytes, stream: bytes, wall_ns: int, lines: list[bytes]) -> bytes:
        """Write every whole line, and of a line without an end what is longer than a chunk; return the rest."""
        limit = self._style.chunk_bytes
        *whole, rest = unfinished.split(b"\n")
        for content in whole:
            last = self._cut_chunks(content, stream, wall_ns, lines, limit)
            lines.append(self._line(stream, b"F", last, wall_ns))
        return self._cut_chunks(rest, stream, wall_ns, lines, limit)

    def _cut_chunks(self, content: bytes, stream: bytes, wall_ns: int, lines: list[bytes], limit: int) -> bytes:
        start = 0
        while len(content) - start > limit:
            lines.append(self._line(stream, b"P", content[start : start + limit], wall_ns))
            start += limit
        return content[start:]

    def _cut_write(self, unfinished: bytes, stream: bytes, wall_ns: int, lines: list[bytes]) -> bytes:
        """Write everything, as if read in chunks: what does not end in a newline is partial."""
        limit = self._style.chunk_bytes
        for begin in range(0, len(unfinished), limit):
            *whole, part = unfinished[begin : begin + limit].split(b"\n")
            lines += [self._line(stream, b"F", content, wall_ns) for content in whole]
            if part:
                lines.append(self._line(stream, b"P", part, wall_ns))
        return b""

    def _line(self, stream: bytes, tag: bytes, content: bytes, wall_ns: int) -> bytes:
        return b"%s %s %s %s\n" % (log_time(wall_ns, self._style.times).encode(), stream, tag, content)
