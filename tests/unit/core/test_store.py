"""The store against a naive model: ids, unique prefixes, names, labels, order; joined pieces equal a fresh encoding."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, multiple, rule

from fakecri.core.pieces import PieceTable
from fakecri.core.store import Miss, Store

LABELS = st.dictionaries(st.sampled_from(["app", "tier", "zone"]), st.sampled_from(["a", "b", ""]), max_size=3)
IDS = st.text("01", min_size=1, max_size=5)
NAMES = st.sampled_from([f"name-{number}" for number in range(6)])
ENCODINGS = ("v1", "v1alpha2", "1.20")


@dataclass
class Thing:
    """An object with what a store needs, and one thing that its list entry shows."""

    id: str
    name: str
    labels: dict[str, str] = field(default_factory=dict)
    state: int = 0


def encoder(encoding: str):
    """Encode so that a stale piece shows."""
    return lambda thing: f"<{encoding} {thing.id} {thing.name} {thing.state}>".encode()


class StoreAgainstModel(RuleBasedStateMachine):
    """Every operation on a Store and on a plain list; they must agree after each."""

    things = Bundle("things")
    gone = Bundle("gone")

    def __init__(self) -> None:
        super().__init__()
        self.store: Store[Thing] = Store()
        self.model: list[Thing] = []
        self.reserved: dict[str, str] = {}

    @rule(target=things, full_id=IDS, name=NAMES, labels=LABELS)
    def add(self, full_id: str, name: str, labels: dict[str, str]):
        if name in self.reserved or any(thing.id == full_id or thing.name == name for thing in self.model):
            return multiple()
        thing = Thing(full_id, name, labels)
        self.store.reserve(name, full_id)
        assert full_id not in self.store, "reserved is not committed"
        assert thing not in list(self.store)
        self.store.add(thing)
        self.model.append(thing)
        return thing

    @rule(target=gone, thing=consumes(things))
    def remove(self, thing: Thing) -> Thing:
        self.store.remove(thing)
        self.model.remove(thing)
        return thing

    @rule(thing=things, state=st.integers(0, 3))
    def change(self, thing: Thing, state: int) -> None:
        thing.state = state
        self.store.touch(thing)

    @rule(thing=gone)
    def touch_what_is_gone(self, thing: Thing) -> None:
        if thing.id not in self.store:
            self.store.touch(thing)

    @rule(name=NAMES)
    def reserve_and_release(self, name: str) -> None:
        if self.store.name_owner(name) is None:
            self.store.reserve(name, "pending")
            self.reserved[name] = "pending"
        elif name in self.reserved:
            self.store.release(name, "somebody else")
            assert self.store.name_owner(name) == "pending"
            self.store.release(name, self.reserved.pop(name))

    @rule(prefix=st.text("01", max_size=6))
    def find(self, prefix: str) -> None:
        exact = [thing for thing in self.model if thing.id == prefix]
        begins = [thing for thing in self.model if thing.id.startswith(prefix)]
        found = self.store.find(prefix)
        assert self.store.get(prefix) is (exact[0] if exact else None)
        assert (prefix in self.store) is bool(exact)
        if exact:
            assert found is exact[0]
        elif not prefix:
            assert found is Miss.EMPTY
        elif not begins:
            assert found is Miss.UNKNOWN
        elif len(begins) > 1:
            assert found is Miss.AMBIGUOUS
        else:
            assert found is begins[0]

    @rule(key=st.sampled_from(["app", "tier", "zone", "none"]), value=st.sampled_from(["a", "b", ""]))
    def select(self, key: str, value: str) -> None:
        expected = [thing for thing in self.model if key in thing.labels and thing.labels[key] == value]
        assert list(self.store.with_label(key, value)) == expected

    @rule(encoding=st.sampled_from(ENCODINGS))
    def list_all(self, encoding: str) -> None:
        encode = encoder(encoding)
        assert self.store.pieces(encoding, encode).all() == b"".join(encode(thing) for thing in self.model)

    @rule(encoding=st.sampled_from(ENCODINGS), pick=st.randoms(use_true_random=False))
    def list_some(self, encoding: str, pick) -> None:
        chosen = pick.sample(self.model, k=len(self.model) // 2)
        encode = encoder(encoding)
        table = self.store.pieces(encoding, encode)
        assert table.each(chosen) == [encode(thing) for thing in chosen]
        assert table.some(chosen) == b"".join(encode(thing) for thing in chosen)

    @invariant()
    def agrees(self) -> None:
        assert list(self.store) == self.model
        assert len(self.store) == len(self.model)
        owners = {thing.name: thing.id for thing in self.model} | self.reserved
        for number in range(6):
            assert self.store.name_owner(f"name-{number}") == owners.get(f"name-{number}")


TestStoreAgainstModel = StoreAgainstModel.TestCase
TestStoreAgainstModel.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)


def stored(*things: Thing) -> Store[Thing]:
    store: Store[Thing] = Store()
    for thing in things:
        store.reserve(thing.name, thing.id)
        store.add(thing)
    return store


def test_only_what_changed_is_encoded_anew() -> None:
    things = [Thing(f"{number:04}", f"name-{number}") for number in range(100)]
    store, encoded = stored(*things), []

    def encode(thing: Thing) -> bytes:
        encoded.append(thing.id)
        return thing.id.encode()

    store.pieces("v1", encode).all()
    assert len(encoded) == 100
    encoded.clear()
    store.pieces("v1", encode).all()
    assert encoded == []
    store.touch(things[41])
    store.touch(things[41])
    assert store.pieces("v1", encode).all() == b"".join(thing.id.encode() for thing in things)
    assert encoded == ["0041"]


def test_an_unchanged_list_is_the_very_same_bytes() -> None:
    store = stored(Thing("1", "a"), Thing("2", "b"))
    table = store.pieces("v1", encoder("v1"))
    assert table.all() is table.all()


def test_at_most_four_encodings_are_kept_and_the_one_longest_unused_goes() -> None:
    store = stored(Thing("1", "a"))
    tables: dict[int, PieceTable[Thing]] = {number: store.pieces(number, encoder("e")) for number in range(4)}
    assert store.pieces(0, encoder("e")) is tables[0]
    store.pieces(4, encoder("e"))  # drops 1, since 0 was used after it
    assert store.pieces(0, encoder("e")) is tables[0]
    assert store.pieces(1, encoder("e")) is not tables[1]


def test_an_encoding_that_fails_is_tried_again() -> None:
    store, fails = stored(Thing("1", "a")), [True]

    def encode(thing: Thing) -> bytes:
        if fails.pop() if fails else False:
            raise ValueError("not now")
        return b"entry"

    table = store.pieces("v1", encode)
    with pytest.raises(ValueError, match="not now"):
        table.all()
    assert table.all() == b"entry"


def test_a_name_is_free_again_after_its_holder_went() -> None:
    first = Thing("1", "web")
    store = stored(first)
    assert store.name_owner("web") == "1"
    store.remove(first)
    assert store.name_owner("web") is None
    store.reserve("web", "2")
    store.release("web", "1")  # an old holder gives back nothing
    assert store.name_owner("web") == "2"


def test_an_object_that_came_back_under_its_old_id_stands_last() -> None:
    first, second = Thing("1", "a"), Thing("2", "b")
    store = stored(first, second)
    table = store.pieces("v1", encoder("v1"))
    table.all()
    store.remove(first)
    store.reserve("a", "1")
    store.add(first)
    assert [thing.id for thing in store] == ["2", "1"]
    assert table.all() == encoder("v1")(second) + encoder("v1")(first)


def test_a_large_selection_is_cut_out_of_the_list_in_any_order_after_changes() -> None:
    things = [Thing(f"{number:04}", f"name-{number}") for number in range(120)]
    store = stored(*things)
    encode = encoder("v1")
    table = store.pieces("v1", encode)
    table.all()
    for thing in things[10:20]:
        store.remove(thing)
    store.touch(things[50])
    chosen = [*things[119:60:-1], *things[:10], things[50]]
    assert table.each(chosen) == [encode(thing) for thing in chosen]
    assert table.some(chosen) == b"".join(encode(thing) for thing in chosen)
    assert table.all() == b"".join(encode(thing) for thing in store)
