"""How virtual time follows a machine's time that the test itself moves."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
from freezegun import freeze_time

from fakecri.clock import MILLISECOND, SECOND, Lane, VirtualClock
from fakecri.service.real_time import ClockMode, Flow, ServiceLoop, TimeDriver, monotonic_ns, wall_ns

MS = MILLISECOND


class Handle:
    """What a loop gives for a scheduled action."""

    def __init__(self) -> None:
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


class Loop:
    """An event loop over a time of its own; every action costs no time unless the test says so."""

    def __init__(self) -> None:
        self.now_ns = 5 * SECOND
        self.queue: list[tuple[int, int, Handle, Callable[..., Any], tuple[Any, ...]]] = []
        self.sequence = 0
        self.wakes = 0

    def read(self) -> int:
        return self.now_ns

    def call_soon(self, action: Callable[..., Any], *arguments: Any) -> Handle:
        return self.call_later(0, action, *arguments)

    call_soon_threadsafe = call_soon

    def call_later(self, delay_s: float, action: Callable[..., Any], *arguments: Any) -> Handle:
        assert delay_s >= 0
        self.sequence += 1
        handle = Handle()
        heapq.heappush(self.queue, (self.now_ns + round(delay_s * SECOND), self.sequence, handle, action, arguments))
        return handle

    def run(self, span_ns: int) -> None:
        """Let the machine's time pass."""
        end_ns = self.now_ns + span_ns
        while self.queue and self.queue[0][0] <= end_ns:
            when_ns, _, handle, action, arguments = heapq.heappop(self.queue)
            self.now_ns = max(self.now_ns, when_ns)
            if not handle.cancelled:
                self.wakes += 1
                assert self.wakes < 10_000, "the driver spins"
                action(*arguments)
        self.now_ns = end_ns


class Timers:
    """The part of an engine that a driver drives: a clock, and a call that may wait for it."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.time_source: Callable[[], int] | None = None
        self.on_due_changed: Callable[[], None] | None = None
        self.waits_until_ns: int | None = None

    def enter(self) -> None:
        """Anybody comes in: time catches up."""
        if self.time_source is not None:
            self.forward(self.time_source(), 0)

    def forward(self, now_ns: int, budget: int) -> bool:
        while self.clock.run_next(now_ns, work=False):
            pass
        self.clock.move_to(max(now_ns, self.clock.now_ns))
        while budget > 0 and self.clock.run_late_work():
            budget -= 1
        due_ns = self.clock.next_due_ns(Lane.WORK)
        return due_ns is not None and due_ns <= self.clock.now_ns

    def advance_to(self, now_ns: int, work_budget: int | None = None) -> bool:
        self.enter()
        late = self.forward(max(now_ns, self.clock.now_ns), work_budget or 0)
        self.changed()
        return late

    def next_due_ns(self) -> int | None:
        return min((due for lane in Lane if (due := self.clock.next_due_ns(lane)) is not None), default=None)

    def waiting_until_ns(self) -> int | None:
        return self.waits_until_ns

    def changed(self) -> None:
        if self.on_due_changed is not None:
            self.on_due_changed()

    def after(self, delay_ns: int, action: Callable[[], None], lane: Lane = Lane.TIMER) -> None:
        """Schedule something, as a call that comes in would."""
        self.enter()
        self.clock.call_after(delay_ns, action, lane)
        self.changed()


class World:
    """A driver over both."""

    def __init__(self, mode: str) -> None:
        self.loop = Loop()
        self.engine = Timers()
        self.fired: list[tuple[str, int]] = []
        self.driver = TimeDriver(self.engine, ClockMode.parse(mode), self.loop, read_ns=self.loop.read)  # type: ignore[arg-type]
        self.driver.start()

    def mark(self, name: str) -> Callable[[], None]:
        """An action that notes the virtual time at which it ran."""
        return lambda: self.fired.append((name, self.engine.clock.now_ns))

    def wait(self, delay_ns: int, name: str = "call") -> None:
        """A call comes in and waits for the clock; when it ends, the door says so."""
        self.driver.touch()

        def ended() -> None:
            self.engine.waits_until_ns = None
            self.mark(name)()
            self.driver.touch()

        self.engine.after(delay_ns, ended)
        self.engine.waits_until_ns = self.engine.clock.now_ns + delay_ns
        self.engine.changed()


@pytest.mark.parametrize(
    ("text", "mode"),
    [
        ("real", ClockMode(Flow.REAL)),
        ("hold", ClockMode(Flow.HOLD)),
        ("autojump", ClockMode(Flow.AUTOJUMP)),
        ("autojump=5ms", ClockMode(Flow.AUTOJUMP, quiet_ns=5 * MS)),
        ("autojump=1.5s", ClockMode(Flow.AUTOJUMP, quiet_ns=1500 * MS)),
        ("rate=60", ClockMode(Flow.RATE, rate=Fraction(60))),
        ("rate=0.5", ClockMode(Flow.RATE, rate=Fraction(1, 2))),
    ],
)
def test_a_mode_is_read_and_written(text: str, mode: ClockMode) -> None:
    assert ClockMode.parse(text) == mode
    assert ClockMode.parse(str(mode)) == mode


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("", "unknown clock ''"),
        ("Real", "unknown clock 'Real'"),
        ("real=1", "unknown clock 'real=1'"),
        ("rate", "unknown clock 'rate'"),
        ("rate=", "clock rate '' is not a positive number"),
        ("rate=0", "clock rate '0' is not"),
        ("rate=-1", "clock rate '-1' is not"),
        ("rate=nan", "clock rate 'nan' is not"),
        ("autojump=20", "'20' is not a span"),
        ("autojump=0ms", "'0ms' is not a span"),
    ],
)
def test_anything_else_is_refused(text: str, named: str) -> None:
    with pytest.raises(ValueError, match=named):
        ClockMode.parse(text)


def test_real_time_flows_at_the_machines_rate() -> None:
    world = World("real")
    world.engine.after(300 * MS, world.mark("timer"))
    world.loop.run(299 * MS)
    assert world.fired == []
    world.loop.run(2 * MS)
    assert world.fired == [("timer", 300 * MS)]
    world.loop.run(10 * SECOND)
    world.engine.enter()
    assert world.engine.clock.now_ns == 10_301 * MS


def test_time_that_passed_before_a_call_counts_for_it() -> None:
    world = World("real")
    world.loop.run(7 * SECOND)
    world.engine.after(SECOND, world.mark("timer"))
    world.loop.run(SECOND)
    assert world.fired == [("timer", 8 * SECOND)]


@pytest.mark.parametrize(
    ("rate", "real_ns"), [("rate=60", SECOND), ("rate=0.5", 120 * SECOND), ("rate=3", 20 * SECOND)]
)
def test_a_rate_scales_it(rate: str, real_ns: int) -> None:
    world = World(rate)
    world.engine.after(60 * SECOND, world.mark("timer"))
    world.loop.run(real_ns - MS)
    assert world.fired == []
    world.loop.run(MS)
    assert world.fired == [("timer", 60 * SECOND)]


def test_a_rate_loses_nothing_to_rounding() -> None:
    world = World("rate=0.3")
    for _ in range(1000):
        world.loop.run(7)
        world.engine.enter()
    assert world.engine.clock.now_ns == 2100


def test_an_advance_adds_to_what_flows() -> None:
    world = World("real")
    world.loop.run(10 * SECOND)
    world.engine.enter()
    world.engine.forward(world.engine.clock.now_ns + 3600 * SECOND, 0)
    world.loop.run(SECOND)
    world.engine.enter()
    assert world.engine.clock.now_ns == 3611 * SECOND


def test_held_time_stands_still_until_it_is_advanced() -> None:
    world = World("hold")
    world.engine.after(SECOND, world.mark("timer"))
    world.loop.run(3600 * SECOND)
    assert world.fired == []
    assert world.engine.clock.now_ns == 0
    world.engine.advance_to(SECOND)
    assert world.fired == [("timer", SECOND)]


def test_late_work_is_done_in_held_time_too() -> None:
    world = World("hold")
    world.engine.after(SECOND, world.mark("work"), Lane.WORK)
    world.engine.advance_to(2 * SECOND)
    assert world.fired == []
    world.loop.run(0)
    assert world.fired == [("work", 2 * SECOND)]


def test_a_waiting_call_makes_time_jump_once_clients_are_quiet() -> None:
    world = World("autojump")
    world.wait(10 * SECOND)
    world.loop.run(19 * MS)
    assert world.fired == []
    world.loop.run(MS)
    assert world.fired == [("call", 10 * SECOND)]


def test_the_quiet_begins_anew_with_everything_exchanged() -> None:
    world = World("autojump")
    world.wait(10 * SECOND)
    for _ in range(10):
        world.loop.run(15 * MS)
        world.driver.touch()
    assert world.fired == []
    world.loop.run(20 * MS)
    assert [name for name, _ in world.fired] == ["call"]


def test_nothing_jumps_when_no_call_waits() -> None:
    world = World("autojump")
    world.engine.after(10 * SECOND, world.mark("background"))
    world.loop.run(9 * SECOND)
    assert world.fired == []
    world.loop.run(SECOND)
    assert world.fired == [("background", 10 * SECOND)]


def test_a_jump_goes_through_earlier_timers_and_never_past_the_calls_own() -> None:
    world = World("autojump")
    world.engine.after(4 * SECOND, world.mark("before"))
    world.engine.after(11 * SECOND, world.mark("after"))
    world.wait(10 * SECOND)
    world.loop.run(21 * MS)
    assert world.fired == [("before", 4 * SECOND), ("call", 10 * SECOND)]
    world.loop.run(500 * MS)
    assert len(world.fired) == 2
    world.loop.run(SECOND)
    assert [name for name, _ in world.fired] == ["before", "call", "after"]


def test_a_message_that_leaves_on_the_way_stops_the_jump_for_the_quiet_time() -> None:
    world = World("autojump")
    world.engine.after(4 * SECOND, world.driver.touch)
    world.wait(10 * SECOND)
    world.loop.run(39 * MS)
    assert world.engine.clock.now_ns < 5 * SECOND
    world.loop.run(2 * MS)
    assert world.fired == [("call", 10 * SECOND)]


def test_a_jump_does_the_cpu_work_on_its_way_in_time_order() -> None:
    world = World("autojump")

    def work() -> None:
        world.mark("work")()
        if len(world.fired) < 30:
            world.engine.clock.call_after(100 * MS, work, Lane.WORK)

    world.engine.after(100 * MS, work, Lane.WORK)
    world.wait(10 * SECOND)
    world.loop.run(25 * MS)
    assert world.fired[:30] == [("work", (index + 1) * 100 * MS) for index in range(30)]
    assert world.fired[30] == ("call", 10 * SECOND)


def test_work_leaves_room_for_calls() -> None:
    world = World("real")
    pieces = 0

    def work() -> None:
        nonlocal pieces
        pieces += 1
        world.loop.now_ns += 200_000  # a piece costs 0.2 ms of the machine's time
        world.engine.clock.call_after(100_000, work, Lane.WORK)  # and 0.1 ms of virtual time: it falls behind

    world.engine.after(0, work, Lane.WORK)
    waited = []
    for _ in range(50):
        asked_ns = world.loop.now_ns
        world.loop.call_soon(lambda asked_ns=asked_ns: waited.append(world.loop.now_ns - asked_ns))
        world.loop.run(2 * MS)
    assert pieces > 100
    assert max(waited) <= 2 * MS


def test_one_wake_for_one_timer() -> None:
    world = World("real")
    world.loop.run(0)
    world.loop.wakes = 0
    world.engine.after(3600 * 3 * SECOND, world.mark("timer"))
    world.loop.run(3600 * 3 * SECOND)
    assert len(world.fired) == 1
    assert world.loop.wakes <= 8


def test_a_driver_that_stopped_moves_nothing() -> None:
    world = World("real")
    world.engine.after(SECOND, world.mark("timer"))
    world.driver.stop()
    world.loop.run(10 * SECOND)
    assert world.fired == []
    assert world.engine.time_source is None
    assert world.engine.on_due_changed is None


def test_a_frozen_time_reaches_neither_clock_nor_loop() -> None:
    before_ns, wall_before_ns = monotonic_ns(), wall_ns()
    loop = ServiceLoop()
    try:
        with freeze_time("2040-01-01"):
            assert before_ns <= monotonic_ns() < before_ns + 60 * SECOND
            assert wall_before_ns <= wall_ns() < wall_before_ns + 60 * SECOND
            assert loop.time() * SECOND >= before_ns
    finally:
        loop.close()
