"""One lock, one clock, one pipeline: what every door, fixture and state machine drives.

``submit`` runs a call until it ends or must wait; it goes on when the clock moves, a trigger fires, a port answers or
the transport took its last message. The lock is held for steps, never while a callback runs: what is to be told to
others is collected and told after the lock is released.
"""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from fakecri.base.reasons import Code
from fakecri.base.steps import Ask, Cancelled, Emit, Point, Step
from fakecri.clock import Lane, VirtualClock
from fakecri.core.traits import OnClientGone
from fakecri.engine import in_process
from fakecri.engine.entry import Entry
from fakecri.personality.model import word
from fakecri.pipeline import Pipeline
from fakecri.record.call import Call, Reply
from fakecri.record.recorder import Recorder

if TYPE_CHECKING:
    from google.protobuf.message import Message

    from fakecri.base.tasks import Task
    from fakecri.core.runtime import Runtime
    from fakecri.personality.model import Personality
    from fakecri.wire.levels import View

OnDone = Callable[[Call, Reply], None]
OnMessage = Callable[[Call, bytes], None]
#: Given a request and where to put the answer; may answer at once or later from any thread.
Port = Callable[[Any, Callable[[Any], None]], None]
#: Asked at every named point of a call: None lets it pass, an exception is raised there, HOLD suspends it.
Gate = Callable[[Call, str], "BaseException | object | None"]
HOLD = object()


class StopSubscription(Cancelled):
    """The runtime ends a subscription of its own accord."""


class Engine:
    """A runtime that takes calls."""

    def __init__(
        self,
        runtime: Runtime,
        personality: Personality,
        *,
        views: Mapping[str, View],
        served: Mapping[str, frozenset[str]],
        ports: Mapping[str, Port],
        recorder: Recorder | None = None,
    ) -> None:
        self.runtime = runtime
        self.personality = personality
        self.clock: VirtualClock = runtime.clock
        self.calls = recorder if recorder is not None else Recorder()
        self.views = views
        self.lock = threading.RLock()
        self.gate: Gate | None = None
        #: Set by whatever makes time flow: the virtual now (ns), read at every entry. None: time moves only by calls.
        self.time_source: Callable[[], int] | None = None
        #: Called, without the lock, after anything that may have changed when the next timer is due.
        self.on_due_changed: Callable[[], None] | None = None
        self._served = dict(served)
        self._pipeline = Pipeline(runtime, personality, self.calls, views, self._served)
        self._tasks = runtime.tasks
        self._ports = ports
        self._open: dict[int, Call] = {}
        self._outbox: list[tuple[Callable[..., None], Call, Any]] = []
        self._next_call = 0
        self._asked = 0
        self.changed = threading.Condition(self.lock)
        self._entry = Entry(self)
        runtime.on_background_step = self._on_background_step
        runtime.machine.on_step = self._on_background_step
        runtime.machine.on_failure = lambda process, error: self._on_background_failure(error)
        runtime.on_background_failure = self._on_background_failure
        runtime.word = lambda method, refusal: word(personality, method, refusal)[1]

    # -- what is served --------------------------------------------------------------------------------------------
    @property
    def served(self) -> Mapping[str, frozenset[str]]:
        """Service name → API versions answered now."""
        return dict(self._served)

    def serve(self, service: str, apis: frozenset[str]) -> None:
        """Change which API versions a service answers, from the next call on.

        Raises:
            ValueError: no such service, or no such API version at this level.
        """
        if service not in self._served:
            raise ValueError(f"unknown service {service!r}: it is {' or '.join(sorted(self._served))}")
        if unknown := apis - self.views.keys():
            raise ValueError(f"{service} cannot serve {', '.join(sorted(unknown))}: it has {', '.join(self.views)}")
        with self.lock:
            self._served[service] = apis

    @property
    def failures(self) -> list[str]:
        """Tracebacks of everything that no rule foresaw."""
        return self.calls.failures

    # -- calls -----------------------------------------------------------------------------------------------------
    def submit(
        self,
        path: str,
        request: bytes,
        *,
        on_done: OnDone,
        on_message: OnMessage | None = None,
        connection: str = "",
        metadata: tuple[tuple[str, str | bytes], ...] = (),
        time_left_ns: int | None = None,
    ) -> Call:
        """Take a call. ``on_done`` is called once, unless the call is cancelled; perhaps before this returns."""
        with self._entry:
            self._next_call += 1
            call = Call(
                self._next_call,
                path,
                request,
                connection=connection,
                metadata=metadata,
                received_ns=self.clock.now_ns,
                time_left_ns=time_left_ns,
            )
            outcome = self._pipeline.start(call)
            if type(outcome) is Reply:
                self._outbox.append((on_done, call, outcome))
            else:
                assert not isinstance(outcome, Reply)
                call.on_done = on_done
                call.on_message = on_message
                self._open[call.id] = call
                call.task = self._tasks.spawn(outcome, self._on_call_done, self._on_call_step, call)
        return call

    def cancel(self, call: Call) -> None:
        """The client is gone, or its deadline has passed: nothing more is told to it.

        A mutating call goes on or ends where it stands, by the personality's trait; any other ends.
        """
        with self._entry:
            if call.id in self._open and not call.client_gone:
                call.client_gone = True
                if not self._outlives_its_client(call):
                    assert call.task is not None
                    self._tasks.cancel(call.task)
                elif call.unsent:
                    self._took(call)

    def notify(self, call: Call) -> None:
        """The transport took the stream's last message; the next one may go."""
        with self._entry:
            if call.unsent:
                self._took(call)

    def _took(self, call: Call) -> None:
        call.unsent = False
        assert call.task is not None
        self._tasks.resume(call.task)

    def _outlives_its_client(self, call: Call) -> bool:
        assert call.spec is not None
        return call.spec.mutating and self.runtime.traits.on_client_gone is OnClientGone.CONTINUE

    def end_subscriptions(self) -> None:
        """End every stream that has no end of its own, as a runtime that shuts down does: OK, no more messages."""
        with self._entry:
            for call in [call for call in self._open.values() if call.subscription]:
                assert call.task is not None
                self._tasks.cancel(call.task, StopSubscription())

    @property
    def open_calls(self) -> list[Call]:
        """Calls that have not ended."""
        with self.lock:
            return list(self._open.values())

    # -- time ------------------------------------------------------------------------------------------------------
    def advance_to(self, now_ns: int, work_budget: int | None = None) -> bool:
        """Move virtual time, running what falls due on the way; a time in the past moves nothing.

        With ``work_budget`` None, timers and CPU work run in time order (virtual time). Else timers run first, then
        at most that many pieces of late work; the answer says whether more is due.
        """
        with self._entry:
            return self._advance(max(now_ns, self.clock.now_ns), work_budget)

    def advance(self, delta_ns: int) -> None:
        """Move virtual time by ``delta_ns`` (not negative)."""
        if delta_ns < 0:
            raise ValueError(f"time never goes back: asked to advance by {delta_ns} ns")
        with self._entry:
            self._advance(self.clock.now_ns + delta_ns, None)

    def _advance(self, now_ns: int, work_budget: int | None) -> bool:
        clock, run_ready = self.clock, self._tasks.run_ready
        while clock.run_next(now_ns, work=work_budget is None):
            run_ready()
        clock.move_to(now_ns)
        if work_budget is None:
            return False
        while work_budget > 0 and clock.run_late_work():
            run_ready()
            work_budget -= 1
        due = clock.next_due_ns(Lane.WORK)
        return due is not None and due <= now_ns

    def _catch_up(self) -> None:
        if self.time_source is not None:
            now_ns = self.time_source()
            if now_ns > self.clock.now_ns:
                self._advance(now_ns, 0)

    def next_due_ns(self) -> int | None:
        """When the earliest timer or piece of work is due."""
        with self.lock:
            dues = [due for lane in Lane if (due := self.clock.next_due_ns(lane)) is not None]
            return min(dues, default=None)

    def waiting_until_ns(self) -> int | None:
        """The earliest time that an open call, subscriptions aside, waits for."""
        with self.lock:
            times = [
                call.task.deadline_ns
                for call in self._open.values()
                if not call.subscription and call.task is not None and call.task.deadline_ns is not None
            ]
            return min(times, default=None)

    # -- in process ------------------------------------------------------------------------------------------------
    def call(self, method: str, message: Message | None = None, *, api: str = "v1") -> Any:
        """One unary call, here and now; see ``in_process.call``."""
        return in_process.call(self, method, message, api)

    def stream(self, method: str, message: Message | None = None, *, api: str = "v1") -> Iterator[Any]:
        """One streaming call, as an iterator; see ``in_process.stream``."""
        return in_process.stream(self, method, message, api)

    @property
    def waits_for_others(self) -> bool:
        """Whether something outside this thread will bring what open calls wait for: real time, or a port's answer."""
        return self.time_source is not None or self._asked > 0

    # -- steps -----------------------------------------------------------------------------------------------------
    def _on_call_step(self, task: Task, step: Step) -> None:
        try:
            self._take_step(task, step)
        except Exception as error:  # a rule or an encoder broke: it is this call's end, nobody else's
            self._tasks.resume(task, error=error)

    def _take_step(self, task: Task, step: Step) -> None:
        call: Call = task.owner
        if isinstance(step, Point):
            self._point(call, task, step)
        elif isinstance(step, Emit):
            if call.client_gone:
                self._tasks.resume(task)
                return
            body = self._pipeline.encode(call, step.message)
            call.message_count += 1
            call.unsent = True
            self._outbox.append((call.on_message, call, body))
        else:
            self._on_background_step(task, step)

    def _point(self, call: Call, task: Task, step: Point) -> None:
        verdict = self.gate(call, step.name) if self.gate is not None else None
        if verdict is None:
            self._tasks.resume(task)
        elif isinstance(verdict, BaseException):
            self._tasks.resume(task, error=verdict)

    def release(self, call: Call) -> None:
        """Let a call that the gate held at a point go on."""
        with self._entry:
            if call.task is not None:
                self._tasks.resume(call.task)

    def _on_background_step(self, task: Task, step: Step) -> None:
        if isinstance(step, Ask):
            self._asked += 1
            answered = False

            def answer(value: Any) -> None:
                nonlocal answered
                with self._entry:
                    if answered:
                        raise RuntimeError(f"port {step.port} answered twice: {step.request!r}")
                    answered = True
                    self._asked -= 1
                    self._tasks.resume(task, value, step=step)

            try:
                self._ports[step.port](step.request, answer)
            except Exception as error:
                if answered:
                    self._on_background_failure(error)
                else:
                    answered = True
                    self._asked -= 1
                    self._tasks.resume(task, error=error)
        elif isinstance(step, Point):
            self._tasks.resume(task)
        else:
            raise TypeError(f"background work may not {type(step).__name__}")

    def _on_background_failure(self, error: BaseException) -> None:
        self.calls.failures.append("".join(traceback.format_exception(error)))

    def _on_call_done(self, task: Task, reply: Any, error: BaseException | None) -> None:
        call: Call = task.owner
        del self._open[call.id]
        call.task = None
        if isinstance(error, StopSubscription):
            reply, error = Reply(Code.OK, "", b""), None
        if error is not None:
            if not isinstance(error, Cancelled):
                self._on_background_failure(error)
            self.calls.close(call, None, self.clock.now_ns)
        elif not call.client_gone:
            if call.reply is None:
                self.calls.close(call, reply, self.clock.now_ns)
            self._outbox.append((call.on_done, call, reply))
        call.on_done = call.on_message = None
