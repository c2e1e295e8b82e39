"""Seeded ids: the same in every interpreter, independent streams, the forms that clients rely on."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakecri.base.ids import Ids

SCRIPT = """
from fakecri.base.ids import Ids
ids = Ids(7)
print([ids.hex64("sandbox"), ids.token("ns"), ids.below("jitter", 1000)])
print([ids.of("image", "web:1").hex(), ids.hex64("sandbox")])
"""


def test_two_interpreters_with_different_hash_seeds_give_the_same_ids() -> None:
    outputs = {
        subprocess.run(
            [sys.executable, "-c", SCRIPT],
            env=os.environ | {"PYTHONHASHSEED": hash_seed},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for hash_seed in ("0", "1", "4242")
    }
    assert len(outputs) == 1
    assert outputs.pop().count("'") == 8


@given(st.integers(), st.lists(st.sampled_from("abc")))
def test_a_stream_does_not_notice_what_others_are_asked(seed: int, script: list[str]) -> None:
    mixed, alone = Ids(seed), Ids(seed)
    asked = [mixed.hex64(stream) for stream in script]
    kept = [full_id for stream, full_id in zip(script, asked, strict=True) if stream == "b"]
    assert kept == [alone.hex64("b") for _ in kept]


@given(st.integers(), st.integers())
def test_seeds_give_equal_ids_exactly_when_they_are_equal(one: int, other: int) -> None:
    assert (Ids(one).hex64("x") == Ids(other).hex64("x")) is (one == other)


def test_object_ids_are_64_lower_case_hex_digits_and_never_repeat() -> None:
    ids = Ids()
    made = [ids.hex64("container") for _ in range(2000)]
    assert len(set(made)) == len(made)
    assert all(re.fullmatch("[0-9a-f]{64}", full_id) for full_id in made)


def test_a_name_gives_the_same_bytes_however_often_it_is_asked() -> None:
    ids = Ids(3)
    first = ids.of("image", "busybox")
    ids.hex64("image")
    assert ids.of("image", "busybox") == first
    assert ids.of("image", "nginx") != first
    assert ids.of("digest", "busybox") != first


@pytest.mark.parametrize("digits", [1, 8, 16, 64])
def test_a_token_has_the_asked_length(digits: int) -> None:
    assert re.fullmatch(f"[0-9a-f]{{{digits}}}", Ids().token("t", digits))


@given(st.integers(1, 2**40), st.integers(0, 100))
def test_below_stays_in_range(limit: int, seed: int) -> None:
    assert 0 <= Ids(seed).below("b", limit) < limit


def test_below_reaches_every_value() -> None:
    ids = Ids()
    assert {ids.below("die", 6) for _ in range(300)} == set(range(6))
