"""One runtime being driven: every call, move, refusal and cancel is seen, and attributed to the call that made it.

What the world watches, it watches from outside: it wraps functions of one engine's own objects and changes nothing of
what they do.
"""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field
from typing import Any

from cri_machine.counts import Counts
from cri_machine.postconditions import at_the_end
from cri_machine.settings import Setting, catalogue

from fakecri.assembly import build_engine
from fakecri.base.ports import CloseLog
from fakecri.base.reasons import CriError, Reason
from fakecri.base.tasks import Task, Tasks
from fakecri.core import states
from fakecri.engine import HOLD
from fakecri.kernel.file_port import file_port
from fakecri.kernel.host_twin import TwinHostFiles, TwinLogFiles
from fakecri.record.call import Call, Reply
from fakecri.wire.methods import METHODS

SERVICE_OF = {spec.name: spec.service for spec in METHODS.values()}
CHECKPOINTS = "/checkpoints"


class WatchedTasks(Tasks):
    """The ready queue, knowing whose steps run now."""

    __slots__ = ()
    #: Owner of the task that runs: a call, a process, or None for background work.
    running: Any = None

    def _advance(self, task: Task, answer: Any, error: BaseException | None) -> None:
        before, WatchedTasks.running = WatchedTasks.running, task.owner
        try:
            super()._advance(task, answer, error)
        finally:
            WatchedTasks.running = before


@dataclass(frozen=True)
class Moved:
    """One move of a state machine."""

    owner: Any
    entity: Any
    before: Any
    given: Any
    row: Any


@dataclass
class Exchange:
    """A call that was begun, and what is known of it."""

    method: str
    request: Any
    api: str
    call: Call | None = None
    reply: Reply | None = None
    #: Messages of a stream: those that the transport has not taken, and all.
    bodies: list[bytes] = field(default_factory=list)
    told: list[bytes] = field(default_factory=list)
    reason: Reason | None = None
    moves: list[Moved] = field(default_factory=list)
    #: Name of the point that the gate holds it at.
    held: str = ""
    was_held: bool = False

    def hear(self, content: bytes) -> None:
        """A message of a stream arrives."""
        self.bodies.append(content)
        self.told.append(content)


class World:
    """An engine, what is open on it, and what its client remembers."""

    def __init__(self, setting: Setting, seed: int, counts: Counts) -> None:
        self.setting = setting
        self.counts = counts
        files = TwinHostFiles()
        files.make_directories(CHECKPOINTS)
        self.logs = TwinLogFiles(files)
        self._serve_file = file_port(files)
        self.engine = build_engine(
            personality=setting.personality,
            node=setting.node(),
            catalogue=catalogue(),
            seed=seed,
            host_files=files,
            log_files=self.logs,
            ports={"logs": self._log_port, "files": self._file_port},
            kept_calls=0,
        )
        self.runtime = self.engine.runtime
        self.apis = sorted(self.engine.served["RuntimeService"])
        #: By call id: what has not ended.
        self.open: dict[int, Exchange] = {}
        self._starting: Exchange | None = None
        #: Ids that the client has seen, the removed ones too.
        self.pods: deque[str] = deque(maxlen=6)
        self.containers: deque[str] = deque(maxlen=8)
        self.removed: deque[Any] = deque(maxlen=4)
        #: Moves since the last look, and sandboxes whose own process died and that were not stopped since.
        self.moves: list[Moved] = []
        self.move_counts: Counter[tuple[Any, Any]] = Counter()
        self.died: set[str] = set()
        #: (RPC, point) → what happens to the next call that comes by.
        self.armed: dict[tuple[str, str], object] = {}
        #: How ports answer: at once, later, or (logs) that there is no space.
        self.log_answers = "at once"
        self.asked: list[tuple[Any, Any, Any]] = []
        self.serial = 0
        #: Directory, pod config and container configs of what CheckpointPod was asked for.
        self.checkpoints: deque[tuple[str, Any, list[Any]]] = deque(maxlen=4)
        self.events_seen = 0
        self._watch()

    # -- watching --------------------------------------------------------------------------------------------------
    def _watch(self) -> None:
        engine, runtime = self.engine, self.runtime
        runtime.tasks.__class__ = WatchedTasks
        engine.gate = self._gate
        refuse, close = engine._pipeline._refuse, engine.calls.close

        def refused(call: Call, refusal: CriError) -> Reply:
            exchange = self._exchange(call)
            exchange.reason = refusal.reason
            self.counts.reasons[exchange.method, refusal.reason] += 1
            if "input" in refusal.facts:  # a pair without a row
                kind = refusal.reason.partition("_")[0]
                self.counts.pairs[kind, refusal.facts["state"], refusal.facts["input"]] += 1
            return refuse(call, refusal)

        def closed(call: Call, reply: Reply | None, now_ns: int) -> None:
            close(call, reply, now_ns)
            exchange = self._exchange(call)
            exchange.held = ""
            self.counts.outcomes[exchange.method, reply.code if reply is not None else -1] += 1
            at_the_end(self, exchange, reply)
            self.open.pop(call.id, None)

        engine._pipeline._refuse = refused  # type: ignore[method-assign]
        engine.calls.close = closed  # type: ignore[method-assign]
        for name in ("move_sandbox", "move_container"):
            setattr(runtime, name, self._watched_move(name, getattr(runtime, name)))

    def _watched_move(self, name: str, move: Any) -> Any:
        def moved(entity: Any, given: Any) -> Any:
            before = entity.state
            row = move(entity, given)
            seen = Moved(WatchedTasks.running, entity, before, given, row)
            self.moves.append(seen)
            self.move_counts[before, given] += 1
            self.counts.pairs[name[5:], before.name, given.name] += 1
            if isinstance(seen.owner, Call):
                self._exchange(seen.owner).moves.append(seen)
            if given is states.SandboxInput.DIE:
                self.died.add(entity.id)
            elif given in (states.SandboxInput.STOP, states.SandboxInput.REMOVE):
                self.died.discard(entity.id)
            if row.to.name == "ABSENT":
                self.removed.append(entity)
            return row

        return moved

    def _exchange(self, call: Call) -> Exchange:
        if call.id in self.open:
            return self.open[call.id]
        assert self._starting is not None  # refused or closed before submit came back
        self._starting.call = call
        return self._starting

    def _gate(self, call: Call, point: str) -> Any:
        exchange = self._exchange(call)
        self.counts.points[exchange.method, point] += 1
        verdict = self.armed.pop((exchange.method, point), None)
        if verdict is HOLD:
            exchange.held, exchange.was_held = point, True
        return verdict

    def _log_port(self, request: Any, answer: Any) -> None:
        if self.log_answers == "no space" and not isinstance(request, CloseLog):
            answer("no space left on device")
        else:
            self._serve(self.logs.port, request, answer)

    def _file_port(self, request: Any, answer: Any) -> None:
        self._serve(self._serve_file, request, answer)

    def _serve(self, port: Any, request: Any, answer: Any) -> None:
        if self.log_answers == "later":
            self.asked.append((port, request, answer))
        else:
            port(request, answer)

    def answer_port(self) -> None:
        """Let a port do the oldest thing that was asked for."""
        port, request, answer = self.asked.pop(0)
        port(request, answer)

    # -- driving ---------------------------------------------------------------------------------------------------
    def send(self, method: str, request: Any, *, api: str = "", time_left_ns: int | None = None) -> Exchange:
        """Begin a call, with a message or with bytes."""
        api = api or self.apis[0]
        service = SERVICE_OF.get(method, "RuntimeService")
        body = request if isinstance(request, bytes) else request.SerializeToString(deterministic=True)
        exchange = Exchange(method, request, api)
        self._starting = exchange
        call = self.engine.submit(
            f"/runtime.{api}.{service}/{method}",
            body,
            on_done=lambda _, reply: setattr(exchange, "reply", reply),
            on_message=lambda _, content: exchange.hear(content),
            time_left_ns=time_left_ns,
        )
        exchange.call = call
        if exchange.reply is None and call in self.engine.open_calls:
            self.open[call.id] = exchange
        self._starting = None
        return exchange

    def place(self, exchange: Exchange) -> str:
        """Where an open call stands."""
        call = exchange.call
        assert call is not None
        if exchange.held:
            return exchange.held
        if call.unsent:
            return "emit"
        return "wait" if call.task is not None and call.task.waiting else "ask"

    def cancel(self, exchange: Exchange) -> None:
        """The client goes away."""
        assert exchange.call is not None
        self.counts.cancels[exchange.method, self.place(exchange)] += 1
        self.engine.cancel(exchange.call)

    def release(self, exchange: Exchange) -> None:
        """Let a held call go on."""
        assert exchange.call is not None
        exchange.held = ""
        self.engine.release(exchange.call)

    def take(self, exchange: Exchange) -> None:
        """The transport takes a stream's message."""
        assert exchange.call is not None
        exchange.bodies.clear()
        self.engine.notify(exchange.call)

    def close(self) -> None:
        """End everything that is open, and let time settle the rest."""
        self.armed.clear()
        self.log_answers = "at once"
        while self.asked:
            self.answer_port()
        while self.open:
            exchange = next(iter(self.open.values()))
            if exchange.held:
                self.release(exchange)
            elif exchange.bodies:
                self.take(exchange)
            elif exchange.call is not None and (exchange.call.subscription or exchange.call.client_gone is False):
                self.engine.cancel(exchange.call)
                if exchange.call.id in self.open:
                    self.engine.advance(20 * 10**9)
            else:
                self.engine.advance(20 * 10**9)
        self.engine.advance(10**9)
