"""Everything that looks random: a keyed hash over (seed, stream, counter).

Two runs with one seed that ask the same streams in the same order get the same answers, in any interpreter. Streams
are independent: asking one more pid does not move the next container id.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict


class Ids:
    """Seeded source of ids, addresses' offsets, jitter and order."""

    __slots__ = ("_counters", "_key", "seed")

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed
        self._key = hashlib.blake2b(str(seed).encode(), digest_size=32).digest()
        self._counters: defaultdict[str, int] = defaultdict(int)

    def _next(self, stream: str) -> bytes:
        self._counters[stream] += 1
        return self.of(stream, str(self._counters[stream]))

    def of(self, stream: str, name: str) -> bytes:
        """32 bytes that depend on seed, stream and name alone."""
        return hashlib.blake2b(f"{stream}\0{name}".encode(), key=self._key, digest_size=32).digest()

    def hex64(self, stream: str) -> str:
        """A runtime's object id: 64 lower-case hex digits, no ``-`` (kubelet cuts log links at the last one)."""
        return self._next(stream).hex()

    def token(self, stream: str, digits: int = 16) -> str:
        """A short lower-case hex token."""
        return self._next(stream).hex()[:digits]

    def below(self, stream: str, limit: int) -> int:
        """An integer in ``range(limit)``; ``limit`` must be positive."""
        return int.from_bytes(self._next(stream)[:8]) % limit
