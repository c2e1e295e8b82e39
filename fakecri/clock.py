"""Time as an argument: integer nanoseconds that move only when somebody moves them.

Rules kept here: time never goes back; due actions run one at a time and each sees its own ``now``; equal times run in
order of insertion; the wall clock is this time plus an offset, which may step in either direction without touching a
timer. There are two lanes: *timers* (grace periods, sleeps, latencies) and *work* (what simulated CPUs do). Under
virtual time both run in time order; a door that follows real time runs the timers first and then as much work as it
has a budget for, so that a busy process lags as it would on a busy machine and never delays a call.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from enum import IntEnum
from typing import Final

NANOSECOND: Final = 1
MICROSECOND: Final = 1_000
MILLISECOND: Final = 1_000_000
SECOND: Final = 1_000_000_000

#: Where the wall clock stands at virtual time 0 unless a caller says otherwise: 2026-01-01T00:00:00Z.
DEFAULT_EPOCH_NS: Final = 1_767_225_600 * SECOND

Action = Callable[[], None]


class Lane(IntEnum):
    """Which queue an action waits in; at equal times timers run before work."""

    TIMER = 0
    WORK = 1


class Timer:
    """One scheduled action; ``cancel`` is idempotent and leaves nothing behind but a dead heap entry."""

    __slots__ = ("action", "clock", "lane", "when_ns")

    def __init__(self, clock: VirtualClock, when_ns: int, action: Action, lane: Lane) -> None:
        self.clock = clock
        self.when_ns = when_ns
        self.action: Action | None = action
        self.lane = lane

    @property
    def pending(self) -> bool:
        """True until the action ran or was cancelled."""
        return self.action is not None

    def cancel(self) -> None:
        """Forget the action; harmless after it ran."""
        if self.action is not None:
            self.action = None
            self.clock._forget(self.lane)


class VirtualClock:
    """Monotonic time in ns from 0, its timers, and a wall clock at an offset from it."""

    __slots__ = ("_dead", "_heaps", "_last_stamp_ns", "_now_ns", "_offset_ns", "_sequence")

    def __init__(self, epoch_ns: int = DEFAULT_EPOCH_NS) -> None:
        self._now_ns = 0
        self._offset_ns = epoch_ns
        self._last_stamp_ns = 0
        self._sequence = 0
        self._heaps: tuple[list[tuple[int, int, Timer]], ...] = ([], [])
        self._dead = [0, 0]

    # -- reading ---------------------------------------------------------------------------------------------------
    @property
    def now_ns(self) -> int:
        """Monotonic virtual time in ns since the clock was made."""
        return self._now_ns

    @property
    def wall_ns(self) -> int:
        """Unix time in ns: what timestamps in CRI messages and log lines show."""
        return self._now_ns + self._offset_ns

    @property
    def wall_offset_ns(self) -> int:
        """Wall time minus monotonic time."""
        return self._offset_ns

    def stamp_ns(self) -> int:
        """A wall-clock time that differs from every stamp before it while the wall clock is not stepped.

        Clients order attempts and events by these (kubelet: newest ``created_at`` first; an event no newer than the
        cache is dropped), and under virtual time many things happen at one instant.
        """
        self._last_stamp_ns = max(self.wall_ns, self._last_stamp_ns + 1)
        return self._last_stamp_ns

    def next_due_ns(self, lane: Lane = Lane.TIMER) -> int | None:
        """When the earliest pending action of a lane is due; None when the lane is empty."""
        heap = self._heaps[lane]
        while heap and heap[0][2].action is None:
            heapq.heappop(heap)
            self._dead[lane] -= 1
        return heap[0][0] if heap else None

    # -- scheduling ------------------------------------------------------------------------------------------------
    def call_at(self, when_ns: int, action: Action, lane: Lane = Lane.TIMER) -> Timer:
        """Run ``action`` once ``now_ns`` reaches ``when_ns`` (a time in the past is due at once)."""
        timer = Timer(self, when_ns, action, lane)
        self._sequence += 1
        heapq.heappush(self._heaps[lane], (when_ns, self._sequence, timer))
        return timer

    def call_after(self, delay_ns: int, action: Action, lane: Lane = Lane.TIMER) -> Timer:
        """Run ``action`` after ``delay_ns``."""
        return self.call_at(self._now_ns + delay_ns, action, lane)

    def _forget(self, lane: Lane) -> None:
        self._dead[lane] += 1
        heap = self._heaps[lane]
        if self._dead[lane] > 64 and self._dead[lane] * 2 > len(heap):
            heap[:] = [entry for entry in heap if entry[2].action is not None]
            heapq.heapify(heap)
            self._dead[lane] = 0

    # -- moving ----------------------------------------------------------------------------------------------------
    def run_next(self, until_ns: int, *, work: bool = True) -> bool:
        """Run the earliest action due by ``until_ns`` at its own time; False when there is none.

        With ``work=False`` only timers are looked at.
        """
        lane = self._earliest(until_ns, work)
        if lane is None:
            return False
        when_ns, _, timer = heapq.heappop(self._heaps[lane])
        self._now_ns = max(self._now_ns, when_ns)
        action, timer.action = timer.action, None
        assert action is not None
        action()
        return True

    def run_late_work(self) -> bool:
        """Run one due work item now, however late it is; False when no work is due."""
        due = self.next_due_ns(Lane.WORK)
        if due is None or due > self._now_ns:
            return False
        return self._run_lane(Lane.WORK)

    def _run_lane(self, lane: Lane) -> bool:
        timer = heapq.heappop(self._heaps[lane])[2]
        action, timer.action = timer.action, None
        assert action is not None
        action()
        return True

    def _earliest(self, until_ns: int, work: bool) -> Lane | None:
        timer_ns = self.next_due_ns(Lane.TIMER)
        work_ns = self.next_due_ns(Lane.WORK) if work else None
        if timer_ns is not None and timer_ns <= until_ns and (work_ns is None or timer_ns <= work_ns):
            return Lane.TIMER
        if work_ns is not None and work_ns <= until_ns:
            return Lane.WORK
        return None

    def move_to(self, now_ns: int) -> None:
        """Set the time, once nothing is due before it.

        Raises:
            ValueError: time would go back.
        """
        if now_ns < self._now_ns:
            raise ValueError(f"time never goes back: now {self._now_ns} ns, asked for {now_ns} ns")
        self._now_ns = now_ns

    def step_wall(self, delta_ns: int) -> None:
        """Step the wall clock by ``delta_ns`` (may be negative); no timer notices."""
        self._offset_ns += delta_ns
        self._last_stamp_ns = 0
