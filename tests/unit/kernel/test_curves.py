"""Curves: exact values and areas in closed form."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakecri.kernel.curves import Curve, level

VALUES = st.integers(0, 10**12)
TIMES = st.integers(0, 10**12)
POINTS = st.lists(st.tuples(TIMES, VALUES), min_size=1, max_size=6).map(
    lambda points: sorted(points, key=lambda p: p[0])
)
SMALL = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 30)), min_size=1, max_size=5).map(
    lambda points: sorted(points, key=lambda p: p[0])
)


def exact(points: list[tuple[int, int]], time: Fraction) -> Fraction:
    """The value, by the definition."""
    before = [point for point in points if point[0] <= time]
    after = [point for point in points if point[0] > time]
    if not before or not after:
        return Fraction(before[-1][1] if before else after[0][1])
    (start, low), (end, high) = before[-1], after[0]
    return low + (high - low) * (time - start) / (end - start)


def area(points: list[tuple[int, int]], until: int) -> Fraction:
    """The integral: between two whole numbers ``exact`` is linear, so two inner values give its mean."""
    total = Fraction(0)
    for second in range(until):
        quarter, rest = (exact(points, Fraction(4 * second + part, 4)) for part in (1, 3))
        total += (quarter + rest) / 2
    return total


@given(SMALL, st.integers(0, 20))
def test_values_and_areas_are_exact_and_rounded_down(points: list[tuple[int, int]], time: int) -> None:
    curve = Curve(points)
    assert curve.value_at(time) == exact(points, Fraction(time)).__floor__()
    assert curve.area_until(time) == area(points, time).__floor__()


@given(POINTS, st.lists(TIMES, min_size=2, max_size=8))
def test_a_counter_never_goes_down(points: list[tuple[int, int]], times: list[int]) -> None:
    readings = [Curve(points).area_until(time) for time in sorted(times)]
    assert readings == sorted(readings)


@given(SMALL, st.integers(0, 40), st.integers(0, 20))
def test_the_first_time_that_a_value_is_reached(points: list[tuple[int, int]], value: int, start: int) -> None:
    curve = Curve(points)
    expected = next((time for time in range(start, 40) if curve.value_at(time) >= value), None)
    assert curve.reaches(value, start) == expected


def test_two_points_at_one_time_are_a_jump() -> None:
    curve = Curve(((0, 5), (10, 5), (10, 100)))
    assert [curve.value_at(time) for time in (9, 10, 11)] == [5, 100, 100]
    assert curve.area_until(12) == 5 * 10 + 100 * 2
    assert curve.reaches(50) == 10


def test_a_level_is_the_same_for_ever() -> None:
    assert level(7).value_at(10**18) == 7
    assert level(7).area_until(10**18) == 7 * 10**18
    assert level(7).area_until(-5) == 0


@pytest.mark.parametrize(
    ("points", "words"),
    [
        ((), "at least one"),
        (((5, 1), (3, 1)), "point 1 .* sort"),
        (((-1, 1),), "point 0"),
        (((0, 1), (3, -2)), "point 1.*-2"),
    ],
)
def test_bad_points_are_named(points: tuple[tuple[int, int], ...], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Curve(points)
