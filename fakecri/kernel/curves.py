"""Quantities as functions of time, in closed form: what a gauge shows and what a counter has reached at any moment.

Nothing is summed up between two readings, so two readers at different paces and a replay see the same numbers, and
the integral of a curve without negative values never goes down. All arithmetic is on integers and exact; only the
result is rounded, downwards.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


class Curve:
    """A piecewise linear function through ``points`` ((time ns, value), …), level before the first and after the last.

    Two points at one time are a jump: the later one holds from that time on.
    """

    __slots__ = ("_doubled_areas", "_times", "points")

    def __init__(self, points: Sequence[tuple[int, int]]) -> None:
        """Take the points in order of time.

        Raises:
            ValueError: no point, a negative time or value, or times out of order; the text names the point.
        """
        if not points:
            raise ValueError("a curve needs at least one (time ns, value) point")
        before_ns = 0
        for position, (time_ns, value) in enumerate(points):
            if time_ns < before_ns:
                raise ValueError(
                    f"point {position} of the curve: time {time_ns} ns comes after {before_ns} ns; sort them"
                )
            if value < 0:
                raise ValueError(f"point {position} of the curve: value {value} is negative")
            before_ns = time_ns
        self.points = tuple(points)
        self._times = [time_ns for time_ns, _ in self.points]
        # Twice the area from time 0 to each point: a trapezoid's area is a half-integer.
        areas = [2 * self.points[0][0] * self.points[0][1]]
        for (start_ns, start), (end_ns, end) in zip(self.points, self.points[1:], strict=False):
            areas.append(areas[-1] + (start + end) * (end_ns - start_ns))
        self._doubled_areas = areas

    def value_at(self, time_ns: int) -> int:
        """The value at a time, rounded down."""
        after = bisect_right(self._times, time_ns)
        if after == 0:
            return self.points[0][1]
        start_ns, start = self.points[after - 1]
        if after == len(self.points):
            return start
        end_ns, end = self.points[after]
        return start + (end - start) * (time_ns - start_ns) // (end_ns - start_ns)

    def area_until(self, time_ns: int) -> int:
        """The integral from time 0 to ``time_ns`` (value times ns), rounded down; 0 before time 0."""
        if time_ns <= 0:
            return 0
        after = bisect_right(self._times, time_ns)
        if after == 0:
            return time_ns * self.points[0][1]
        start_ns, start = self.points[after - 1]
        span_ns = time_ns - start_ns
        doubled = self._doubled_areas[after - 1] + 2 * start * span_ns
        if after == len(self.points):
            return doubled // 2
        end_ns, end = self.points[after]
        length_ns = end_ns - start_ns
        return (doubled * length_ns + (end - start) * span_ns * span_ns) // (2 * length_ns)

    def reaches(self, value: int, from_ns: int = 0) -> int | None:
        """The first whole ns, at or after ``from_ns``, at which the curve is at least ``value``; None when never."""
        if self.value_at(from_ns) >= value:
            return from_ns
        # Each stretch is looked at without its end, where a jump may begin the next one.
        for position in range(max(bisect_right(self._times, from_ns), 1), len(self.points)):
            start_ns, start = self.points[position - 1]
            end_ns, end = self.points[position]
            first_ns = max(start_ns, from_ns)
            if first_ns < end_ns and self.value_at(first_ns) >= value:
                return first_ns
            if end > start:
                crossing_ns = start_ns - (start - value) * (end_ns - start_ns) // (end - start)
                if first_ns <= crossing_ns < end_ns:
                    return crossing_ns
        return max(self._times[-1], from_ns) if self.points[-1][1] >= value else None


def level(value: int) -> Curve:
    """The curve that is ``value`` for ever."""
    return Curve(((0, value),))
