"""Sizes and durations in documents."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakecri.scenario.quantities import parse_duration, parse_size


@pytest.mark.parametrize(
    ("text", "size"),
    [("0", 0), ("1500", 1500), ("500k", 500_000), ("4Mi", 4 << 20), ("1.5Gi", 3 << 29), ("2M", 2_000_000)],
)
def test_sizes(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "4 Mi", "-1", "4MB", "Mi", "1e3", "4mi"])
def test_no_sizes(text: str) -> None:
    with pytest.raises(ValueError, match="is not a size; write"):
        parse_size(text)


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("5s", 5 * 10**9),
        ("250ms", 250 * 10**6),
        ("1m30s", 90 * 10**9),
        ("1.5h", 5400 * 10**9),
        ("0s", 0),
        ("3us7ns", 3007),
    ],
)
def test_durations(text: str, span: int) -> None:
    assert parse_duration(text) == span


@pytest.mark.parametrize("text", ["", "5", "5 s", "-5s", "s", "1m 30s", "5d"])
def test_no_durations(text: str) -> None:
    with pytest.raises(ValueError, match="is not a duration; write"):
        parse_duration(text)


@given(st.integers(0, 10**6), st.integers(0, 59), st.integers(0, 999))
def test_parts_of_a_duration_add_up(minutes: int, seconds: int, milliseconds: int) -> None:
    assert parse_duration(f"{minutes}m{seconds}s{milliseconds}ms") == (
        (minutes * 60 + seconds) * 10**9 + milliseconds * 10**6
    )
