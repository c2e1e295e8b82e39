"""The clock: order of actions, the two lanes, cancelling, the wall offset, stamps, late work."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakecri.clock import DEFAULT_EPOCH_NS, SECOND, Lane, VirtualClock

LANES = st.sampled_from(Lane)


def run_all(clock: VirtualClock, until_ns: int = 10**18) -> None:
    while clock.run_next(until_ns):
        pass


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def seen() -> list[tuple[str, int]]:
    """What ran, and at which time."""
    return []


@pytest.fixture
def note(clock: VirtualClock, seen: list[tuple[str, int]]) -> Callable[[str], Callable[[], None]]:
    """An action that writes its name and time into ``seen``."""
    return lambda name: lambda: seen.append((name, clock.now_ns))


@given(st.lists(st.tuples(st.integers(0, 20), LANES), max_size=60))
def test_actions_run_in_order_of_time_then_lane_then_insertion(entries: list[tuple[int, Lane]]) -> None:
    clock = VirtualClock()
    ran: list[tuple[int, Lane, int]] = []
    for number, (when_ns, lane) in enumerate(entries):
        clock.call_at(
            when_ns,
            lambda when_ns=when_ns, lane=lane, number=number: (
                ran.append((when_ns, lane, number)) or None if clock.now_ns == when_ns else pytest.fail("wrong now")
            ),
            lane,
        )
    run_all(clock)
    assert ran == sorted((when_ns, lane, number) for number, (when_ns, lane) in enumerate(entries))


@given(
    st.lists(st.tuples(st.integers(0, 50), LANES), min_size=1, max_size=300),
    st.sets(st.integers(0, 299)),
)
def test_a_cancelled_action_never_runs_and_leaves_the_others_alone(
    entries: list[tuple[int, Lane]], cancelled: set[int]
) -> None:
    clock = VirtualClock()
    ran: list[int] = []
    timers = [clock.call_at(when, lambda n=n: ran.append(n), lane) for n, (when, lane) in enumerate(entries)]
    for number in sorted(cancelled):
        if number < len(timers):
            timers[number].cancel()
            timers[number].cancel()  # idempotent
    kept = [number for number in range(len(entries)) if number not in cancelled]
    for lane in Lane:
        due = [entries[number][0] for number in kept if entries[number][1] is lane]
        assert clock.next_due_ns(lane) == (min(due) if due else None)
    run_all(clock)
    assert sorted(ran) == kept
    assert not any(timer.pending for timer in timers)


@given(st.lists(st.one_of(st.integers(0, 9).map(lambda n: ("add", n)), st.just(("cancel", 0)), st.just(("run", 0)))))
def test_adding_cancelling_and_running_in_any_order_agrees_with_a_sorted_list(script: list[tuple[str, int]]) -> None:
    clock = VirtualClock()
    model: list[tuple[int, int]] = []
    timers: dict[int, object] = {}
    ran: list[int] = []
    for number, (verb, delay) in enumerate(script):
        if verb == "add":
            timers[number] = clock.call_after(delay, lambda number=number: ran.append(number))
            model.append((clock.now_ns + delay, number))
        elif verb == "cancel" and model:
            model.sort()
            timers[model.pop(len(model) // 2)[1]].cancel()  # type: ignore[attr-defined]
        elif verb == "run":
            model.sort()
            expected = model.pop(0) if model else None
            before = len(ran)
            assert clock.run_next(10**9) is (expected is not None)
            if expected is not None:
                assert ran[before:] == [expected[1]]
                assert clock.now_ns == expected[0]


def test_a_thousand_cancelled_timers_do_not_stay_in_the_heap(clock: VirtualClock) -> None:
    live = clock.call_at(5, lambda: None)
    for _ in range(1000):
        clock.call_at(10**15, lambda: None).cancel()
    assert len(clock._heaps[Lane.TIMER]) < 200
    assert live.pending
    assert clock.next_due_ns() == 5


def test_cancelling_inside_an_action_stops_one_due_at_the_same_time(clock: VirtualClock) -> None:
    ran: list[str] = []
    clock.call_at(3, lambda: later.cancel())
    later = clock.call_at(3, lambda: ran.append("later"))
    run_all(clock)
    assert ran == []


def test_an_action_in_the_past_is_due_at_once_and_does_not_turn_time_back(clock: VirtualClock, seen, note) -> None:
    clock.move_to(100)
    clock.call_at(40, note("late"))
    assert clock.run_next(100)
    assert seen == [("late", 100)]


def test_nothing_beyond_the_limit_runs(clock: VirtualClock, seen, note) -> None:
    clock.call_at(11, note("timer"))
    clock.call_at(12, note("work"), Lane.WORK)
    assert not clock.run_next(10)
    assert clock.now_ns == 0
    assert seen == []


def test_an_action_may_schedule_another_at_its_own_time(clock: VirtualClock, seen, note) -> None:
    clock.call_at(7, lambda: clock.call_after(0, note("second")))
    clock.call_at(7, note("first"))
    run_all(clock)
    assert seen == [("first", 7), ("second", 7)]


def test_timers_alone_pass_over_earlier_work_which_then_runs_late(clock: VirtualClock, seen, note) -> None:
    clock.call_at(1, note("work"), Lane.WORK)
    clock.call_at(5, note("timer"))
    assert clock.run_next(10, work=False)
    assert not clock.run_next(10, work=False)
    assert seen == [("timer", 5)]
    assert clock.run_late_work()
    assert seen == [("timer", 5), ("work", 5)]
    assert not clock.run_late_work()


def test_late_work_runs_only_what_is_due_and_in_order(clock: VirtualClock, seen, note) -> None:
    clock.call_at(9, note("not yet"), Lane.WORK)
    clock.call_at(2, note("second"), Lane.WORK)
    clock.call_at(1, note("first"), Lane.WORK)
    clock.move_to(5)
    while clock.run_late_work():
        pass
    assert [name for name, _ in seen] == ["first", "second"]
    assert clock.next_due_ns(Lane.WORK) == 9


def test_an_action_that_fails_is_not_run_again(clock: VirtualClock) -> None:
    timer = clock.call_at(1, lambda: 1 / 0)  # type: ignore[arg-type, return-value]
    with pytest.raises(ZeroDivisionError):
        clock.run_next(1)
    assert not timer.pending
    assert not clock.run_next(1)


def test_time_never_goes_back(clock: VirtualClock) -> None:
    clock.move_to(5)
    with pytest.raises(ValueError, match="now 5 ns, asked for 4 ns"):
        clock.move_to(4)
    assert clock.now_ns == 5


@given(st.integers(-(10**18), 10**18))
def test_stepping_the_wall_clock_moves_timestamps_and_no_timer(delta_ns: int) -> None:
    clock = VirtualClock(epoch_ns=50)
    clock.call_at(SECOND, lambda: None)
    clock.move_to(10)
    clock.step_wall(delta_ns)
    assert clock.wall_ns == 60 + delta_ns
    assert clock.wall_offset_ns == 50 + delta_ns
    assert clock.now_ns == 10
    assert clock.next_due_ns() == SECOND


def test_the_wall_clock_starts_at_the_epoch(clock: VirtualClock) -> None:
    assert clock.wall_ns == DEFAULT_EPOCH_NS


@given(st.lists(st.integers(0, 3)))
def test_stamps_differ_and_rise_and_never_precede_the_wall_clock(moves: list[int]) -> None:
    clock = VirtualClock()
    stamps = [clock.stamp_ns()]
    for delta_ns in moves:
        clock.move_to(clock.now_ns + delta_ns)
        stamps.append(clock.stamp_ns())
        assert stamps[-1] >= clock.wall_ns
    assert stamps == sorted(set(stamps))


def test_stamps_follow_the_wall_clock_when_it_is_stepped_back(clock: VirtualClock) -> None:
    for _ in range(5):
        clock.stamp_ns()
    clock.step_wall(-3600 * SECOND)
    assert clock.stamp_ns() == clock.wall_ns == DEFAULT_EPOCH_NS - 3600 * SECOND
