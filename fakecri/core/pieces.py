"""The encoded list entries of every object of one kind, kept joined as they go to the wire.

A List of ten thousand is one byte string that is handed out as it is while nothing changes. What has changed is encoded
anew at the next reading, and the string is put together from its unchanged stretches; so each entry is kept once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from io import BytesIO
from typing import Final, Generic, Protocol, TypeVar


class Identified(Protocol):
    """What a table of list pieces needs of an entity."""

    @property
    def id(self) -> str:
        """The runtime's id of it."""


P = TypeVar("P", bound=Identified)
PieceEncoder = Callable[[P], bytes]

#: Up to so many entries are encoded when they are asked for; more are cut out of the joined list.
FEW: Final = 32


class PieceTable(Generic[P]):
    """The list entries for one way of encoding, in the order in which their objects came."""

    __slots__ = ("_body", "_dirty", "_encode", "_gone", "_lengths")

    def __init__(self, entities: Iterable[P], encode: PieceEncoder[P]) -> None:
        self._encode = encode
        self._body = b""
        #: Length of each entry in the body, in order.
        self._lengths: dict[str, int] = {}
        #: Objects whose entry in the body (if it has one) is not theirs any more.
        self._dirty: dict[str, P] = {entity.id: entity for entity in entities}
        #: Ids whose entry is still in the body though the object is gone.
        self._gone: set[str] = set()

    def touch(self, entity: P) -> None:
        """The object was added or has changed; a new one goes to the end of the order."""
        if entity.id in self._gone:  # it came back: its old place is another's
            self._settle()
        self._dirty[entity.id] = entity

    def drop(self, entity: P) -> None:
        """The object is gone."""
        self._dirty.pop(entity.id, None)
        if entity.id in self._lengths:
            self._gone.add(entity.id)

    def all(self) -> bytes:
        """Every entry, oldest first, as one byte string."""
        if self._dirty or self._gone:
            self._settle()
        return self._body

    def some(self, entities: Iterable[P]) -> bytes:
        """The entries of these objects, in the order given."""
        return b"".join(self.each(entities))

    def each(self, entities: Iterable[P]) -> list[bytes]:
        """The entries of these objects one by one, in the order given."""
        wanted = list(entities)
        if len(wanted) <= FEW:
            return [self._encode(entity) for entity in wanted]
        body, starts, at = self.all(), {}, 0
        for key, length in self._lengths.items():
            starts[key] = at
            at += length
        lengths = self._lengths
        return [body[(start := starts[entity.id]) : start + lengths[entity.id]] for entity in wanted]

    def _settle(self) -> None:
        """Bring the body up to date, entry by entry. An encoder that raises leaves everything as it was."""
        old, body = memoryview(self._body), BytesIO()
        begin = end = 0  # the stretch of the old body that goes over unchanged
        lengths: dict[str, int] = {}
        same: dict[int, int] = {}  # equal lengths share one object
        left = dict(self._dirty)
        for key, length in self._lengths.items():
            changed = left.pop(key, None)
            if changed is None and key not in self._gone:
                end += length
                lengths[key] = length
                continue
            body.write(old[begin:end])
            begin = end = end + length
            if changed is not None:
                length = body.write(self._encode(changed))
                lengths[key] = same.setdefault(length, length)
        body.write(old[begin:end])
        for key, entity in left.items():
            length = body.write(self._encode(entity))
            lengths[key] = same.setdefault(length, length)
        self._body, self._lengths = body.getvalue(), lengths
        self._dirty.clear()
        self._gone.clear()
