"""Where sandboxes and containers live: by id, by unique id prefix, by reserved name, by label; and their list pieces.

Reserved names are not in the store: until ``add`` nobody can list or find the object.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from enum import Enum, auto
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from fakecri.base.steps import Trigger
from fakecri.core.pieces import Identified, PieceEncoder, PieceTable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping


class Stored(Identified, Protocol):
    """What a store needs of an entity."""

    @property
    def name(self) -> str:
        """The name that is reserved for it."""

    @property
    def labels(self) -> Mapping[str, str]:
        """What label selectors look at."""


E = TypeVar("E", bound=Stored)


class Miss(Enum):
    """Why a look-up by id or prefix found nothing."""

    EMPTY = auto()
    UNKNOWN = auto()
    AMBIGUOUS = auto()


class Store(Generic[E]):
    """One kind of object. Iteration is oldest first."""

    #: Encodings kept at a time: two API versions and two levels are in use at most, in practice.
    MAX_TABLES = 4

    def __init__(self) -> None:
        self._by_id: dict[str, E] = {}
        self._sorted_ids: list[str] = []
        self._names: dict[str, str] = {}
        self._tables: dict[object, PieceTable[E]] = {}
        self._label_indexes: dict[str, dict[str, dict[str, None]]] = {}
        #: Fires when a reservation ends: the object is there now, or the name is free again.
        self.released = Trigger()

    # -- looking up ------------------------------------------------------------------------------------------------
    def __len__(self) -> int:
        return len(self._by_id)

    def __iter__(self) -> Iterator[E]:
        return iter(self._by_id.values())

    def __contains__(self, full_id: object) -> bool:
        return full_id in self._by_id

    def get(self, full_id: str) -> E | None:
        """The object with exactly this id."""
        return self._by_id.get(full_id)

    def find(self, id_or_prefix: str) -> E | Miss:
        """The object with this id, or the only one whose id begins so."""
        entity = self._by_id.get(id_or_prefix)
        if entity is not None:
            return entity
        if not id_or_prefix:
            return Miss.EMPTY
        at = bisect_left(self._sorted_ids, id_or_prefix)
        ids = self._sorted_ids
        if at >= len(ids) or not ids[at].startswith(id_or_prefix):
            return Miss.UNKNOWN
        if at + 1 < len(ids) and ids[at + 1].startswith(id_or_prefix):
            return Miss.AMBIGUOUS
        return self._by_id[ids[at]]

    def with_label(self, key: str, value: str) -> Iterable[E]:
        """Objects that carry exactly this label, oldest first; the key is indexed from its first use on."""
        index = self._label_indexes.get(key)
        if index is None:
            index = self._label_indexes[key] = {}
            for entity in self._by_id.values():
                labels = entity.labels
                if key in labels:
                    index.setdefault(labels[key], {})[entity.id] = None
        return [self._by_id[full_id] for full_id in index.get(value, ())]

    # -- names -----------------------------------------------------------------------------------------------------
    def name_owner(self, name: str) -> str | None:
        """The id that holds a name, committed or only reserved."""
        return self._names.get(name)

    def reserve(self, name: str, owner_id: str) -> None:
        """Hold a free name for an object that does not exist yet."""
        assert name not in self._names
        self._names[name] = owner_id

    def release(self, name: str, owner_id: str) -> None:
        """Give a name back if that object still holds it."""
        if self._names.get(name) == owner_id:
            del self._names[name]
            self.released.fire()

    # -- changing --------------------------------------------------------------------------------------------------
    def add(self, entity: E) -> None:
        """Commit an object whose name is reserved for it."""
        assert self._names.get(entity.name) == entity.id
        self._by_id[entity.id] = entity
        insort(self._sorted_ids, entity.id)
        self.released.fire()
        labels = entity.labels if self._label_indexes else {}
        for key, index in self._label_indexes.items():
            if key in labels:
                index.setdefault(labels[key], {})[entity.id] = None
        for table in self._tables.values():
            table.touch(entity)

    def remove(self, entity: E) -> None:
        """Forget an object and free its name."""
        del self._by_id[entity.id]
        del self._sorted_ids[bisect_left(self._sorted_ids, entity.id)]
        self.release(entity.name, entity.id)
        labels = entity.labels if self._label_indexes else {}
        for key, index in self._label_indexes.items():
            if key in labels:
                index[labels[key]].pop(entity.id, None)
                if not index[labels[key]]:
                    del index[labels[key]]
        for table in self._tables.values():
            table.drop(entity)

    def touch(self, entity: E) -> None:
        """Something that a list entry shows has changed."""
        if entity.id in self._by_id:
            for table in self._tables.values():
                table.touch(entity)

    def pieces(self, encoding: object, encode: PieceEncoder[E]) -> PieceTable[E]:
        """The kept list entries under one encoding (a hashable name for it); made on first use."""
        table = self._tables.pop(encoding, None)
        if table is None:
            table = PieceTable(self._by_id.values(), encode)
            while len(self._tables) >= self.MAX_TABLES:
                self._tables.pop(next(iter(self._tables)))
        self._tables[encoding] = table  # re-inserted: the oldest unused one is the first to go
        return table
