"""What a client of something else may write to the socket: no HTTP/2, wrong prefaces, frames cut short or made up."""

from __future__ import annotations

import random
import socket
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    """One HTTP/2 frame."""
    return len(payload).to_bytes(3) + bytes([kind, flags]) + stream.to_bytes(4) + payload


SETTINGS = frame(4, 0, 0, b"")


def not_http2(source: random.Random) -> bytes:
    return source.choice([b"", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"\x16\x03\x01\x02\x00", source.randbytes(200)])


def wrong_preface(source: random.Random) -> bytes:
    wrong = bytearray(PREFACE)
    wrong[source.randrange(len(wrong))] ^= 1 << source.randrange(8)
    return bytes(wrong) + SETTINGS


def truncated_frame(source: random.Random) -> bytes:
    whole = frame(source.randrange(10), source.randrange(256), source.randrange(1, 9), source.randbytes(60))
    return PREFACE + SETTINGS + whole[: source.randrange(1, len(whole))]


def random_frames(source: random.Random) -> bytes:
    frames = [
        frame(
            source.randrange(12),
            source.randrange(256),
            source.choice([0, 1, 2, 3, 1 << 31 - 1]),
            source.randbytes(source.randrange(40)),
        )
        for _ in range(source.randrange(1, 8))
    ]
    return PREFACE + SETTINGS + b"".join(frames)


def broken_headers(source: random.Random) -> bytes:
    return (
        PREFACE + SETTINGS + frame(1, 4, 1, source.randbytes(30)) + frame(0, 1, 1, b"\x00\xff\xff\xff\xff" + b"x" * 20)
    )


KINDS = (not_http2, wrong_preface, truncated_frame, random_frames, broken_headers)


def pieces(seed: int, count: int) -> Iterator[bytes]:
    """So many pieces, of every kind in turn."""
    source = random.Random(seed)
    for number in range(count):
        yield KINDS[number % len(KINDS)](source)


def send(path: Path, piece: bytes) -> None:
    """Connect, write a piece, and hang up."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.connect(str(path))
        try:
            connection.sendall(piece)
        except (BrokenPipeError, ConnectionResetError):
            return  # the server did not even want to hear all of it
