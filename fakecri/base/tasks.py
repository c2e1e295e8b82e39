"""One driver for everything that suspends: calls and processes.

A task is a generator of steps. The driver answers ``Wait`` itself, from the clock and from triggers; every other step
goes to the task's owner, who later calls ``resume``. Nothing here runs inside anything else: a task made ready by a
trigger runs after the code that fired it has come to its own next step, in order of readiness, so a step is atomic.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

from fakecri.base.steps import After, At, Busy, Cancelled, Condition, Step, Steps, Trigger, Wait
from fakecri.clock import Lane, Timer, VirtualClock

OnDone = Callable[["Task", Any, BaseException | None], None]
OnStep = Callable[["Task", Step], None]


def _no_other_steps(task: Task, step: Step) -> None:
    raise TypeError(f"{type(step).__name__} is not allowed here: this task's owner answers only Wait")


class Task:
    """A generator of steps being driven; ``deadline_ns`` is the earliest time condition it now waits for, if any."""

    __slots__ = (
        "_conditions",
        "_on_done",
        "_on_step",
        "_pending",
        "_steps",
        "_tasks",
        "_timers",
        "deadline_ns",
        "done",
        "owner",
    )

    def __init__(self, tasks: Tasks, steps: Steps[Any], on_done: OnDone, on_step: OnStep, owner: Any) -> None:
        self._tasks = tasks
        self._steps = steps
        self._on_done = on_done
        self._on_step = on_step
        self._conditions: tuple[Condition, ...] = ()
        self._timers: list[Timer] | None = None
        self._pending: Step | None = None
        self.deadline_ns: int | None = None
        self.done = False
        self.owner = owner

    @property
    def waiting(self) -> bool:
        """True while a ``Wait`` of this task is unanswered."""
        return bool(self._conditions)

    def wake(self, answer: Condition) -> None:
        """Answer the pending ``Wait``: called by the condition that came true."""
        self._stop_waiting()
        self._tasks.resume(self, answer)

    def _stop_waiting(self) -> None:
        for condition in self._conditions:
            if isinstance(condition, Trigger) and condition.waiting:
                condition.waiting.pop(self, None)
        self._conditions = ()
        self.deadline_ns = None
        if self._timers:
            for timer in self._timers:
                timer.cancel()
            self._timers = None

    def _wait(self, wait: Wait) -> None:
        clock = self._tasks.clock
        self._conditions = wait.any_of
        for condition in wait.any_of:
            if isinstance(condition, Trigger):
                if condition.waiting is None:
                    condition.waiting = {}
                condition.waiting[self] = None
                continue
            lane = Lane.WORK if isinstance(condition, Busy) else Lane.TIMER
            if isinstance(condition, At):
                when_ns = condition.when_ns
            elif isinstance(condition, After):
                when_ns = clock.now_ns + condition.delay_ns
            else:
                when_ns = clock.now_ns + condition.cost_ns
            if self._timers is None:
                self._timers = []
            self._timers.append(clock.call_at(when_ns, partial(self.wake, condition), lane))
            if self.deadline_ns is None or when_ns < self.deadline_ns:
                self.deadline_ns = when_ns


class Tasks:
    """The ready queue of one runtime."""

    __slots__ = ("_ready", "_running", "clock")

    def __init__(self, clock: VirtualClock) -> None:
        self.clock = clock
        self._ready: deque[tuple[Task, Any, BaseException | None, Step | None]] = deque()
        self._running = False

    def spawn(self, steps: Steps[Any], on_done: OnDone, on_step: OnStep = _no_other_steps, owner: Any = None) -> Task:
        """Queue a new task; it takes its first step when ``run_ready`` comes to it.

        ``on_done(task, value, error)`` is called exactly once. ``error`` is what the generator raised, if anything.
        """
        task = Task(self, steps, on_done, on_step, owner)
        self._ready.append((task, None, None, None))
        return task

    def resume(
        self, task: Task, answer: Any = None, error: BaseException | None = None, step: Step | None = None
    ) -> None:
        """Queue the answer (or an exception to raise at) the task's pending step.

        An answer to a named ``step`` is dropped when the task, cancelled meanwhile, no longer waits for that one.
        """
        if not task.done:
            self._ready.append((task, answer, error, step))

    def cancel(self, task: Task, error: BaseException | None = None) -> None:
        """Throw ``Cancelled`` (or ``error``) into the task at its pending step."""
        if not task.done:
            task._stop_waiting()
            self._ready.append((task, None, error or Cancelled(), None))

    def run_ready(self) -> None:
        """Run until no task is ready; a call from inside a running task returns at once."""
        if self._running:
            return
        self._running = True
        ready = self._ready
        try:
            while ready:
                task, answer, error, step = ready.popleft()
                if not task.done and (step is None or step is task._pending):
                    self._advance(task, answer, error)
        finally:
            self._running = False

    def _advance(self, task: Task, answer: Any, error: BaseException | None) -> None:
        if error is not None and task._conditions:
            task._stop_waiting()  # cancelled while an earlier answer was still queued: this wait began since
        try:
            step = task._steps.throw(error) if error is not None else task._steps.send(answer)
        except StopIteration as stop:
            task.done = True
            task._on_done(task, stop.value, None)
        except BaseException as problem:
            task.done = True
            task._on_done(task, None, problem)
        else:
            task._pending = step
            if type(step) is Wait:
                task._wait(step)
            else:
                task._on_step(task, step)
