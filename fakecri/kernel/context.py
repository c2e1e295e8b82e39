"""What a program sees of the machine: the system calls of the simulation.

All waits of a program go through ``wait`` here. That is where signals are delivered, a stopped process stays, and
rests are told from work; so a program is straight-line code that need not think of any of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fakecri.base.steps import After, Ask, At, Busy, Condition, Steps, Wait
from fakecri.kernel.process import (
    BOUND_COMMAND_COST_NS,
    COMMAND_COST_NS,
    REST_NS,
    Disposition,
    Process,
    ProcessSpec,
    ProcessState,
)
from fakecri.kernel.program import Exit
from fakecri.kernel.signals import UNBLOCKABLE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fakecri.kernel.machine import Machine
    from fakecri.kernel.program import SignalHandler


class ProcessContext:
    """The calls that a program makes. Generators among them are used with ``yield from``."""

    __slots__ = ("_machine", "process")

    def __init__(self, machine: Machine, process: Process) -> None:
        self._machine = machine
        self.process = process

    # -- what it was started with --------------------------------------------------------------------------------------
    @property
    def argv(self) -> tuple[str, ...]:
        """The command and its arguments."""
        return self.process.spec.argv

    @property
    def environment(self) -> Mapping[str, str]:
        """The environment; a program that changes it passes its own to ``spawn``."""
        return self.process.spec.environment

    @property
    def pid(self) -> int:
        """The pid as the process itself sees it: 1 for the first of its pid namespace."""
        return 1 if self.process.is_namespace_init else self.process.pid

    @property
    def now_ns(self) -> int:
        """Monotonic virtual time."""
        return self._machine.clock.now_ns

    @property
    def wall_ns(self) -> int:
        """Unix time in ns."""
        return self._machine.clock.wall_ns

    @property
    def age_ns(self) -> int:
        """Ns since the process's start."""
        return self.process.age_ns(self._machine.clock.now_ns)

    @property
    def memory(self) -> dict[str, Any]:
        """What a resumable program wants to find again after a restore: plain values, kept with the process."""
        if self.process.memory is None:
            self.process.memory = {}
        return self.process.memory

    # -- effects -------------------------------------------------------------------------------------------------------
    def write(self, descriptor: int, chunk: bytes) -> None:
        """Write to file descriptor 1 or 2."""
        if chunk:
            self.process.spec.write(descriptor, chunk)

    def print(self, text: str) -> None:
        """Write a line to standard output."""
        self.write(1, text.encode("utf-8", "surrogateescape") + b"\n")

    def complain(self, text: str) -> None:
        """Write a line to standard error."""
        self.write(2, text.encode("utf-8", "surrogateescape") + b"\n")

    def use_memory(self, resident_bytes: int | None) -> None:
        """Set what the process occupies from now on; None: what its program declares."""
        self.process.resident_bytes = resident_bytes

    def exists(self, path: str) -> bool:
        """Whether anything is at a path, at this moment."""
        return self.process.spec.files.exists(path)

    def read_file(self, path: str) -> bytes | None:
        """A file's content; None when there is none."""
        return self.process.spec.files.read(path)

    def write_file(self, path: str, content: bytes) -> None:
        """Replace or create a file.

        Raises:
            OSError: as the operating system would refuse.
        """
        self.process.spec.files.write(path, content)

    def on_signal(self, number: int, handler: SignalHandler | Disposition) -> None:
        """Set what a signal does, as ``sigaction`` would.

        Raises:
            ValueError: SIGKILL and SIGSTOP cannot be handled.
        """
        if number in UNBLOCKABLE:
            raise ValueError(f"signal {number} can be neither handled nor ignored")
        if self.process.handlers is None:
            self.process.handlers = {}
        self.process.handlers[number] = handler

    def kill(self, target: Process, number: int) -> None:
        """Send a signal, from inside the target's pid namespace when the target is an ancestor."""
        self._machine.signal(target, number, sender=self.process)
        if self.process.ended:
            raise Exit(self.process.exit_code)

    # -- time ----------------------------------------------------------------------------------------------------------
    def sleep(self, duration_ns: int) -> Steps[None]:
        """Rest for a span; signals are handled meanwhile and do not shorten it."""
        yield from self.wait(After(duration_ns))

    def until_age(self, age_ns: int) -> Steps[None]:
        """Rest until the process is so old (at once when it is): what a resumable program waits by."""
        if age_ns > self.age_ns:
            yield from self.wait(At(self.process.started_ns + age_ns))

    def for_ever(self) -> Steps[int]:
        """Rest until a signal ends the process."""
        while True:
            yield from self.wait()

    def wait(self, *any_of: Condition, interruptible: bool = False) -> Steps[Condition | None]:
        """Suspend until a condition comes true, and return it; with none, only a signal can end the wait.

        Signal handlers run meanwhile. Afterwards the wait goes on, or, when ``interruptible``, returns None.
        """
        machine, process = self._machine, self.process
        began_ns = machine.clock.now_ns
        lasting = tuple(At(began_ns + one.delay_ns) if type(one) is After else one for one in any_of)
        pause = Wait(*lasting) if lasting else Wait(machine.never)
        process.starting = False
        while True:
            if process.pending:
                yield from self._deliver()
                if interruptible:
                    return None
            process.resting_since_ns = began_ns
            answer = yield pause
            process.resting_since_ns = None
            if process.state is ProcessState.STOPPED:
                yield from self._stay_stopped()
            if answer is not machine.signalled:
                break
        if process.pending:
            yield from self._deliver()
        if machine.clock.now_ns - began_ns >= REST_NS:
            process.since_rest = 0
        return any_of[lasting.index(answer)]

    def command(self, cost_ns: int = COMMAND_COST_NS) -> Steps[None]:
        """Account for one command: its CPU time passes, and more of it once the process is CPU-bound."""
        process = self.process
        process.starting = False
        if process.pending:
            yield from self._deliver()
        yield from self.spend(max(cost_ns, BOUND_COMMAND_COST_NS) if process.cpu_bound else cost_ns)
        if process.state is ProcessState.STOPPED:
            yield from self._stay_stopped()
        if process.pending:
            yield from self._deliver()

    def spend(self, cost_ns: int) -> Steps[None]:
        """Let one command's CPU time pass; no signal but SIGKILL cuts it short."""
        process = self.process
        process.commands += 1
        process.since_rest += 1
        process.busy_since_ns = self._machine.clock.now_ns
        process.busy_cost_ns = cost_ns
        yield Wait(Busy(cost_ns))
        process.spent_ns += cost_ns
        process.busy_cost_ns = 0

    def _stay_stopped(self) -> Steps[None]:
        process = self.process
        while process.state is ProcessState.STOPPED:
            process.resting_since_ns = self._machine.clock.now_ns
            yield Wait(self._machine.never)
            process.resting_since_ns = None

    def ask(self, port: str, request: Any) -> Steps[Any]:
        """Ask a port of the engine and return its answer."""
        answer = yield Ask(port, request)
        return answer

    def _deliver(self) -> Steps[None]:
        process = self.process
        while process.pending:
            number, process.pending = process.pending[0], process.pending[1:]
            handler = self._machine.act(process, number)
            if process.ended:
                raise Exit(process.exit_code)
            if process.state is ProcessState.STOPPED:
                yield from self._stay_stopped()
            steps = handler(number) if handler is not None else None
            if steps is not None:
                yield from steps

    # -- children ------------------------------------------------------------------------------------------------------
    def spawn(self, argv: tuple[str, ...], **changes: Any) -> Process:
        """Start a child that inherits everything but ``changes`` (fields of ``ProcessSpec``).

        Raises:
            SpawnError: the command cannot be executed.
        """
        return self._machine.spawn_child(self.process, argv, changes)

    def wait_child(self, child: Process, *, interruptible: bool = False) -> Steps[int | None]:
        """Wait for a child's end and return its exit code; None when ``interruptible`` and a handler ran first."""
        if not child.ended:
            answer = yield from self.wait(child.exited, interruptible=interruptible)
            if answer is None and not child.ended:
                return None
            # Waiting for a child that only worked is no rest: go on from its count, which began with ours.
            self.process.since_rest = child.since_rest
        return child.exit_code


def spec_for_child(parent: ProcessSpec, argv: tuple[str, ...], changes: Mapping[str, Any]) -> ProcessSpec:
    """The parent's spec as a child inherits it."""
    inherited = {name: getattr(parent, name) for name in ("environment", "working_directory", "executables", "write")}
    inherited |= {name: getattr(parent, name) for name in ("files", "uid", "gid", "oom_score_adj")}
    return ProcessSpec(argv, **{"is_namespace_init": False, **inherited, **changes})
