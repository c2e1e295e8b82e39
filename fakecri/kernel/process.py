"""One simulated process: explicit, inspectable state around a program that the clock drives.

Everything that a reader may ask (state, usage, age) is a function of this object and the time; nothing is updated by
reading. Only ``Machine`` starts, signals and ends processes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from fakecri.base.steps import Trigger
from fakecri.kernel.executables import Executables

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from fakecri.base.tasks import Task
    from fakecri.kernel.program import Files, Program, SignalHandler

#: Above any pid_max of a real host (2**22), so that no client can signal a real process by a simulated pid.
FIRST_PID: Final = 5_000_000
#: After so many commands without a rest a process counts as CPU-bound.
COMMANDS_WITHOUT_REST: Final = 100_000
#: What a command costs, and what each costs once the process is CPU-bound.
COMMAND_COST_NS: Final = 100_000
BOUND_COMMAND_COST_NS: Final = 100_000_000
#: A wait shorter than this is no rest: a loop around it is as busy as one without.
REST_NS: Final = 1_000_000

_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})


class ProcessState(Enum):
    """Where a process is in its life."""

    RUNNING = "running"
    #: By SIGSTOP and its like; time passes, the program does not go on.
    STOPPED = "stopped"
    EXITED = "exited"


class Disposition(Enum):
    """What happens on a signal that has no handler."""

    DEFAULT = "default"
    IGNORE = "ignore"


@dataclass(frozen=True, slots=True)
class Usage:
    """What a process has used: CPU since its start (ns, never goes down) and memory now (bytes)."""

    cpu_ns: int = 0
    memory_bytes: int = 0
    processes: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.cpu_ns + other.cpu_ns, self.memory_bytes + other.memory_bytes, self.processes + other.processes
        )


def _discard(descriptor: int, chunk: bytes) -> None:
    """Where output goes that nobody wants."""


def _unnoticed(process: Process) -> None:
    """What happens at an exit that nobody watches."""


class NoFiles:
    """A process that sees no file at all."""

    def exists(self, path: str) -> bool:
        """Nothing is there."""
        return False

    def read(self, path: str) -> bytes | None:
        """There is no file."""
        return None

    def write(self, path: str, content: bytes) -> None:
        """Refuse, since there is no directory either.

        Raises:
            FileNotFoundError: always.
        """
        raise FileNotFoundError(2, "No such file or directory", path)


NO_FILES: Final = NoFiles()
NOTHING_INSTALLED: Final = Executables()


@dataclass(frozen=True, slots=True, eq=False)
class ProcessSpec:
    """What to start, and where its effects go."""

    argv: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=lambda: _NOTHING)
    working_directory: str = "/"
    executables: Executables = NOTHING_INSTALLED
    #: Run this instead of looking ``argv[0]`` up (a scenario's workload).
    program: Program | None = None
    #: Sink of file descriptors 1 and 2: ``write(descriptor, chunk)``.
    write: Callable[[int, bytes], None] = _discard
    #: Called once, when the process has ended; its exit code and finish time are set.
    on_exit: Callable[[Process], None] = _unnoticed
    files: Files = NO_FILES
    uid: int = 0
    gid: int = 0
    oom_score_adj: int = 0
    #: First process of its own pid namespace (pid mode CONTAINER): signals without a handler do not kill it, except
    #: SIGKILL from outside; when it ends, all that descend from it end. False in the pod's or the host's namespace.
    is_namespace_init: bool = True
    #: How long it has run already, in ns, and the CPU it has used: a process taken up from a checkpoint.
    age_ns: int = 0
    spent_ns: int = 0
    #: What the program remembered (``ProcessContext.memory``), for the same purpose.
    memory: Mapping[str, Any] | None = None


class Process:
    """A process and all that is known of it. Times are ns of the monotonic virtual clock."""

    __slots__ = (
        "_exited",
        "busy_cost_ns",
        "busy_since_ns",
        "children",
        "commands",
        "dependents",
        "exit_code",
        "finished_ns",
        "handlers",
        "memory",
        "namespace",
        "owner",
        "parent",
        "pending",
        "pid",
        "program",
        "reaped_ns",
        "resident_bytes",
        "resting_since_ns",
        "signal",
        "since_rest",
        "spec",
        "spent_ns",
        "started_ns",
        "starting",
        "state",
        "task",
    )

    def __init__(self, pid: int, spec: ProcessSpec, program: Program, parent: Process | None, now_ns: int) -> None:
        self.pid = pid
        self.spec = spec
        self.program = program
        self.parent = parent
        #: Set by whoever started it.
        self.owner: Any = None
        self.task: Task | None = None
        self.state = ProcessState.RUNNING
        #: True until the program has come to its first wait: signals (but SIGKILL, SIGSTOP) are held back till then.
        self.starting = True
        #: 0-255; 128 + n when signal n ended the process. Meaningful once it has exited.
        self.exit_code = 0
        #: Number of the signal that ended it; 0 when it ended by itself.
        self.signal = 0
        self.started_ns = now_ns - spec.age_ns
        self.finished_ns: int | None = None
        #: Living children by pid; None until there was one.
        self.children: dict[int, Process] | None = None
        #: Living processes outside its tree that end with it.
        self.dependents: list[Process] | None = None
        #: The process outside its tree with which it ends.
        self.namespace: Process | None = None
        #: Signal number → what the program set for it; None until it set one.
        self.handlers: dict[int, SignalHandler | Disposition] | None = None
        #: Signals that wait for delivery, in order of arrival.
        self.pending: tuple[int, ...] = ()
        #: Fires once, when it has ended.
        self._exited: Trigger | None = None
        #: Commands run in all, and since the process (or a child it waited for) last rested.
        self.commands = 0
        self.since_rest: int = parent.since_rest if parent is not None else 0
        #: CPU ns of commands that are done, without the one under way.
        self.spent_ns = spec.spent_ns
        #: CPU ns of descendants that have ended.
        self.reaped_ns = 0
        #: When the wait under way began, if it is one that a signal interrupts.
        self.resting_since_ns: int | None = None
        self.busy_since_ns = 0
        self.busy_cost_ns = 0
        #: Memory in bytes when the program has set it; None: as the program declares.
        self.resident_bytes: int | None = None
        #: What a resumable program remembers: plain values.
        self.memory: dict[str, Any] | None = dict(spec.memory) if spec.memory is not None else None

    # -- what it is --------------------------------------------------------------------------------------------------
    @property
    def argv(self) -> tuple[str, ...]:
        """The command and its arguments."""
        return self.spec.argv

    @property
    def environment(self) -> Mapping[str, str]:
        """The environment that it was started with."""
        return self.spec.environment

    @property
    def ended(self) -> bool:
        """Whether it has exited."""
        return self.state is ProcessState.EXITED

    @property
    def exited(self) -> Trigger:
        """Fires once, when it ends; made when somebody waits."""
        if self._exited is None:
            self._exited = Trigger()
        return self._exited

    @property
    def is_namespace_init(self) -> bool:
        """Whether it is the first process of its pid namespace."""
        return self.spec.is_namespace_init

    @property
    def cpu_bound(self) -> bool:
        """Whether it has run so many commands without a rest that each further one is slowed."""
        return self.since_rest >= COMMANDS_WITHOUT_REST

    # -- what it uses ------------------------------------------------------------------------------------------------
    def age_ns(self, now_ns: int) -> int:
        """Ns since its start, until its end."""
        return (now_ns if self.finished_ns is None else self.finished_ns) - self.started_ns

    def own_usage(self, now_ns: int) -> Usage:
        """What it alone has used: a function of its state and the time, whoever reads it and how often."""
        age_ns = self.age_ns(now_ns)
        cpu_ns = self.spent_ns
        if self.busy_cost_ns:
            cpu_ns += min(now_ns - self.busy_since_ns, self.busy_cost_ns)
        if self.program.cpu is not None:
            cpu_ns += self.program.cpu.area_until(age_ns) // 1000
        if self.ended:
            return Usage(cpu_ns)
        if self.resident_bytes is not None:
            return Usage(cpu_ns, self.resident_bytes, 1)
        if self.program.memory is not None:
            return Usage(cpu_ns, self.program.memory.value_at(age_ns), 1)
        return Usage(cpu_ns, self.program.memory_bytes, 1)

    def usage(self, now_ns: int) -> Usage:
        """What it and everything that descends from it have used; CPU of descendants that ended stays in it."""
        total = self.own_usage(now_ns) + Usage(self.reaped_ns)
        for child in (self.children or {}).values():
            total += child.usage(now_ns)
        return total

    def oom_score(self, now_ns: int, node_memory_bytes: int) -> int:
        """0-2000 as in ``/proc/PID/oom_score`` (Linux ≥ 5.9): the highest is killed first."""
        adjustment = self.spec.oom_score_adj
        if adjustment <= -1000:
            return 0
        points = self.own_usage(now_ns).memory_bytes * 1000 // node_memory_bytes + adjustment
        return max(0, (1000 + points) * 2 // 3)

    def describe(self, now_ns: int) -> dict[str, Any]:
        """Its state as plain values: what a checkpoint keeps and a person reads."""
        return {
            "pid": self.pid,
            "argv": list(self.argv),
            "program": self.program.name,
            "resumable": self.program.resumable,
            "state": self.state.value,
            "exit_code": self.exit_code,
            "signal": self.signal,
            "age_ns": self.age_ns(now_ns),
            "spent_ns": self.spent_ns
            + (min(now_ns - self.busy_since_ns, self.busy_cost_ns) if self.busy_cost_ns else 0),
            "commands": self.commands,
            "cpu_bound": self.cpu_bound,
            "memory": dict(self.memory or {}),
            "children": [child.pid for child in (self.children or {}).values()],
        }

    def descendants(self) -> list[Process]:
        """Every living process below it, the deepest first."""
        found: list[Process] = []
        for child in (self.children or {}).values():
            found.extend(child.descendants())
            found.append(child)
        return found
