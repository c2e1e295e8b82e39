"""Tasks: waiting for any of several conditions, triggers, cancelling, atomic steps, other steps and failures."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakecri.base.steps import After, Ask, At, Busy, Cancelled, Emit, Trigger, Wait
from fakecri.base.tasks import Task, Tasks
from fakecri.clock import Lane, VirtualClock


class World:
    """A clock, its tasks, and the ends of the tasks started here."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.tasks = Tasks(self.clock)
        self.ends: dict[Task, tuple[Any, BaseException | None]] = {}
        self.steps: list[tuple[Task, Any]] = []

    def start(self, steps: Iterator[Any]) -> Task:
        task = self.tasks.spawn(
            steps,  # type: ignore[arg-type]
            self.ended,
            lambda task, step: self.steps.append((task, step)),
        )
        self.tasks.run_ready()
        return task

    def ended(self, task: Task, value: Any, error: BaseException | None) -> None:
        assert task not in self.ends, "a task ends once"
        assert task.done
        self.ends[task] = (value, error)

    def run(self, until_ns: int = 10**12) -> None:
        self.tasks.run_ready()
        while self.clock.run_next(until_ns):
            self.tasks.run_ready()

    def idle(self) -> bool:
        """Nothing is scheduled any more."""
        return self.clock.next_due_ns(Lane.TIMER) is None and self.clock.next_due_ns(Lane.WORK) is None


@pytest.fixture
def world() -> World:
    return World()


def waits(*conditions: Any) -> Iterator[Any]:
    return (yield Wait(*conditions))


def test_a_task_ends_with_its_value(world: World) -> None:
    def steps() -> Iterator[Any]:
        yield Wait(After(0))
        return "done"

    task = world.start(steps())
    assert not task.done
    world.run()
    assert world.ends[task] == ("done", None)


@given(st.lists(st.integers(0, 30), min_size=1, max_size=6))
def test_the_earliest_of_several_times_answers_and_the_others_are_forgotten(delays: list[int]) -> None:
    world = World()
    conditions = [After(delay) for delay in delays]
    task = world.start(waits(*conditions))
    assert task.deadline_ns == min(delays)
    world.clock.run_next(10**9)
    world.tasks.run_ready()
    assert world.ends[task] == (conditions[delays.index(min(delays))], None)
    assert world.clock.now_ns == min(delays)
    assert world.idle()


def test_a_trigger_answers_before_a_later_time_which_is_then_forgotten(world: World) -> None:
    trigger = Trigger()
    task = world.start(waits(After(50), trigger))
    assert task.waiting
    trigger.fire()
    assert not task.waiting
    assert task.deadline_ns is None
    world.tasks.run_ready()
    assert world.ends[task] == (trigger, None)
    assert world.idle()


def test_a_time_answers_before_a_trigger_which_then_wakes_nobody(world: World) -> None:
    trigger, late = Trigger(), After(5)
    task = world.start(waits(trigger, late))
    world.run()
    assert world.ends[task] == (late, None)
    assert not trigger.waiting


def test_two_triggers_fired_at_once_answer_one_wait_once(world: World) -> None:
    one, other = Trigger(), Trigger()

    def steps() -> Iterator[Any]:
        first = yield Wait(one, other)
        second = yield Wait(one, other, After(9))
        return [first, second]

    task = world.start(steps())
    other.fire()
    one.fire()
    world.run()
    (first, second), error = world.ends[task]
    assert error is None
    assert first is other
    assert isinstance(second, After)


def test_a_trigger_fired_without_waiters_is_not_remembered(world: World) -> None:
    trigger = Trigger()
    trigger.fire()
    task = world.start(waits(trigger))
    world.run()
    assert task.waiting
    trigger.fire()
    world.run()
    assert world.ends[task] == (trigger, None)


def test_waiters_go_on_in_the_order_in_which_they_began_to_wait(world: World) -> None:
    trigger, order = Trigger(), []

    def steps(name: str) -> Iterator[Any]:
        yield Wait(trigger)
        order.append(name)

    for name in "cab":
        world.start(steps(name))
    trigger.fire()
    world.run()
    assert order == ["c", "a", "b"]


def test_a_step_is_atomic_what_it_wakes_runs_after_it(world: World) -> None:
    trigger, seen = Trigger(), []

    def waiter() -> Iterator[Any]:
        yield Wait(trigger)
        seen.append("woken")

    def firer() -> Iterator[Any]:
        trigger.fire()
        world.tasks.run_ready()  # from inside a task: returns at once
        seen.append("fired")
        yield Wait(After(0))
        seen.append("next step")

    world.start(waiter())
    world.start(firer())
    world.run()
    assert seen == ["fired", "woken", "next step"]


def test_a_trigger_fired_by_the_task_it_wakes_next_does_not_lose_the_wait(world: World) -> None:
    trigger, rounds = Trigger(), []

    def ping(name: str) -> Iterator[Any]:
        for number in range(3):
            yield Wait(trigger)
            rounds.append((name, number))
            trigger.fire()

    world.start(ping("a"))
    world.start(ping("b"))
    trigger.fire()
    world.run()
    assert rounds[:3] == [("a", 0), ("b", 0), ("a", 1)]


def test_at_is_an_absolute_time_and_a_past_one_is_due_at_once(world: World) -> None:
    world.clock.move_to(100)
    future, past = At(130), At(20)
    one, other = world.start(waits(future)), world.start(waits(past))
    world.run(until_ns=100)
    assert world.ends == {other: (past, None)}
    world.run()
    assert world.ends[one] == (future, None)
    assert world.clock.now_ns == 130


def test_busy_waits_in_the_work_lane(world: World) -> None:
    task = world.start(waits(Busy(7)))
    assert world.clock.next_due_ns(Lane.TIMER) is None
    assert world.clock.next_due_ns(Lane.WORK) == 7
    assert task.deadline_ns == 7
    world.run()
    assert task.done


def test_cancel_throws_at_the_pending_wait_and_forgets_it(world: World) -> None:
    trigger = Trigger()
    task = world.start(waits(trigger, After(1000)))
    world.tasks.cancel(task)
    assert not trigger.waiting
    assert world.idle()
    world.run()
    value, error = world.ends[task]
    assert value is None
    assert isinstance(error, Cancelled)


def test_cancel_with_an_error_of_ones_own(world: World) -> None:
    problem = RuntimeError("deadline")
    task = world.start(waits(Trigger()))
    world.tasks.cancel(task, problem)
    world.run()
    assert world.ends[task] == (None, problem)


def test_cancel_of_a_task_that_was_already_woken_leaves_no_wait_behind(world: World) -> None:
    first, second, undone = Trigger(), Trigger(), []

    def steps() -> Iterator[Any]:
        yield Wait(first)
        try:
            yield Wait(second, After(1000))
        except Cancelled:
            undone.append((yield Wait(After(3))))
            raise

    task = world.start(steps())
    first.fire()  # queued, not yet run
    world.tasks.cancel(task)
    world.tasks.run_ready()
    assert not second.waiting, "the wait that was cut short is forgotten"
    second.fire()
    world.run()
    assert isinstance(undone[0], After)
    assert isinstance(world.ends[task][1], Cancelled)
    assert world.clock.now_ns == 3
    assert world.idle()


def test_cancel_before_the_first_step_leaves_no_timer_behind(world: World) -> None:
    task = world.tasks.spawn(waits(After(1000)), world.ended)  # type: ignore[arg-type]
    world.tasks.cancel(task)
    world.tasks.run_ready()
    assert isinstance(world.ends[task][1], Cancelled)
    assert world.idle()


def test_cancel_inside_the_tasks_own_step_is_thrown_at_its_next_one(world: World) -> None:
    reached = []

    def steps() -> Iterator[Any]:
        world.tasks.cancel(task)
        reached.append("own step goes on")
        yield Wait(After(1000))
        reached.append("never")

    task = world.tasks.spawn(steps(), world.ended)  # type: ignore[arg-type]
    world.tasks.run_ready()
    assert reached == ["own step goes on"]
    assert isinstance(world.ends[task][1], Cancelled)
    assert world.idle()


def test_a_task_that_catches_its_cancel_may_go_on_and_end(world: World) -> None:
    def steps() -> Iterator[Any]:
        try:
            yield Wait(Trigger())
        except Cancelled:
            yield Wait(After(4))
            return "tidied"

    task = world.start(steps())
    world.tasks.cancel(task)
    world.run()
    assert world.ends[task] == ("tidied", None)


def test_cancel_and_resume_of_a_task_that_ended_do_nothing(world: World) -> None:
    task = world.start(waits(After(0)))
    world.run()
    world.tasks.cancel(task)
    world.tasks.resume(task, "more")
    world.run()
    assert len(world.ends) == 1


def test_other_steps_go_to_the_owner_whose_answer_resumes_the_task(world: World) -> None:
    def steps() -> Iterator[Any]:
        answer = yield Ask("logs", "open")
        yield Emit(answer)
        return answer

    task = world.start(steps())
    (asked, step) = world.steps.pop()
    assert asked is task
    assert (step.port, step.request) == ("logs", "open")
    assert not task.waiting
    world.tasks.resume(task, "file")
    world.run()
    assert world.steps.pop()[1].message == "file"
    world.tasks.resume(task)
    world.run()
    assert world.ends[task] == ("file", None)


@pytest.mark.parametrize("late", [False, True], ids=["queued with the cancel", "after it"])
def test_an_answer_to_a_step_that_was_cancelled_is_no_answer_to_the_next(world: World, late: bool) -> None:
    def steps() -> Iterator[Any]:
        try:
            yield Ask("logs", "open")
        except Cancelled:
            return (yield Ask("logs", "close"))

    task = world.start(steps())
    (_, opening) = world.steps.pop()
    world.tasks.cancel(task)
    if late:
        world.run()
    world.tasks.resume(task, "opened", step=opening)
    world.run()
    assert not task.done
    (_, closing) = world.steps.pop()
    world.tasks.resume(task, "closed", step=closing)
    world.run()
    assert world.ends[task] == ("closed", None)


def test_an_answer_may_be_an_error_raised_at_the_step(world: World) -> None:
    def steps() -> Iterator[Any]:
        with pytest.raises(OSError, match="disk full"):
            yield Ask("logs", "open")
        return "went on"

    task = world.start(steps())
    world.tasks.resume(task, error=OSError("disk full"))
    world.run()
    assert world.ends[task] == ("went on", None)


def test_a_failure_goes_to_on_done_and_harms_no_other_task(world: World) -> None:
    def failing() -> Iterator[Any]:
        yield Wait(After(1))
        raise KeyError("broken")

    bad, good = world.start(failing()), world.start(waits(After(2)))
    world.run()
    assert isinstance(world.ends[bad][1], KeyError)
    assert world.ends[good][1] is None


def test_a_task_without_an_owner_may_only_wait(world: World) -> None:
    def steps() -> Iterator[Any]:
        yield Ask("logs", "open")

    world.tasks.spawn(steps(), world.ended)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="Ask is not allowed here"):
        world.tasks.run_ready()
    later = world.start(waits(After(1)))  # the queue still works
    world.run()
    assert later.done


def test_tasks_may_start_tasks(world: World) -> None:
    order = []

    def child(name: str) -> Iterator[Any]:
        order.append(name)
        yield Wait(After(1))
        order.append(f"{name} again")

    def parent() -> Iterator[Any]:
        world.tasks.spawn(child("child"), world.ended)  # type: ignore[arg-type]
        order.append("parent")
        yield Wait(After(1))
        order.append("parent again")

    world.start(parent())
    world.run()
    assert order == ["parent", "child", "parent again", "child again"]


@given(st.lists(st.lists(st.integers(0, 5), max_size=5), max_size=6))
def test_many_tasks_each_see_their_own_times(delays: list[list[int]]) -> None:
    world, seen = World(), {}

    def steps(number: int, own: list[int]) -> Iterator[Any]:
        seen[number] = []
        for delay in own:
            yield Wait(After(delay))
            seen[number].append(world.clock.now_ns)

    for number, own in enumerate(delays):
        world.start(steps(number, own))
    world.run()
    for number, own in enumerate(delays):
        assert seen[number] == [sum(own[: at + 1]) for at in range(len(own))]
    assert len(world.ends) == len(delays)
