"""Garbage on the socket never takes the server down, while a client works."""

from __future__ import annotations

import random
import socket
from typing import Any

import pytest

from fakecri.testing import FakeRuntime

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
PIECES = 1000


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


@pytest.mark.parametrize("seed", [1])
def test_a_thousand_pieces_of_garbage(cri: FakeRuntime, client: Any, seed: int) -> None:
    source = random.Random(seed)
    sandbox_id = client.pod()
    for number in range(PIECES):
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as piece:
            piece.connect(str(cri.socket))
            try:
                piece.sendall(KINDS[number % len(KINDS)](source))
            except (BrokenPipeError, ConnectionResetError):
                continue  # the server did not even want to hear all of it
        if number % 10 == 0:
            assert client.PodSandboxStatus(pod_sandbox_id=sandbox_id, timeout=20).status.id == sandbox_id
    assert client.Version(timeout=20).version == "0.1.0"
    assert cri.failures == []
    assert {call.method for call in cri.calls} >= {"RunPodSandbox", "PodSandboxStatus", "Version"}
