"""The simulated machine: it starts, signals and ends processes. Nothing else changes a process's state.

Signals follow Linux: SIGKILL always works from outside the target's pid namespace; the first process of a namespace
is protected from the default action of every other signal, and from all it did not ask for when the sender is inside;
a stopped process acts on signals once it is continued. When the first process of a namespace ends, so do all that
descend from it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fakecri.base.steps import Cancelled, Step, Steps, Trigger
from fakecri.kernel.context import ProcessContext, spec_for_child
from fakecri.kernel.executables import NotSimulated
from fakecri.kernel.process import COMMAND_COST_NS, FIRST_PID, REST_NS, Disposition, Process, ProcessSpec, ProcessState
from fakecri.kernel.program import Exit, Program, SignalHandler
from fakecri.kernel.signals import DefaultAction, Signal, UnknownSignal, default_action, is_signal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from fakecri.base.ids import Ids
    from fakecri.base.tasks import Task, Tasks
    from fakecri.clock import VirtualClock

_ENDS = (DefaultAction.TERMINATE, DefaultAction.CORE)
#: Exit code base of a process that a signal ended.
_BY_SIGNAL = 128


class Machine:
    """The processes of one node."""

    def __init__(self, clock: VirtualClock, tasks: Tasks, ids: Ids, programs: Mapping[str, Program]) -> None:
        self.clock = clock
        self.tasks = tasks
        self.ids = ids
        self.programs = programs
        #: Living processes by pid.
        self.processes: dict[int, Process] = {}
        #: Exceptions that a program or an exit callback raised and should not have.
        self.failures: list[tuple[Process, BaseException]] = []
        #: Told of each such failure as it happens.
        self.on_failure: Callable[[Process, BaseException], None] | None = None
        #: Answers the steps other than ``Wait`` that programs take; the engine sets it.
        self.on_step: Callable[[Task, Step], None] | None = None
        #: Never fires: what a process waits for that only a signal can wake.
        self.never = Trigger()
        #: The answer that a wait gets when a signal has come.
        self.signalled = Trigger()
        self._last_pid = FIRST_PID

    # -- starting ------------------------------------------------------------------------------------------------------
    def start(
        self,
        spec: ProcessSpec,
        *,
        parent: Process | None = None,
        namespace: Process | None = None,
        owner: Any = None,
    ) -> Process:
        """Start a process; its program takes its first step when the tasks are next run.

        ``parent``: whose usage it counts to, and with which it ends (an exec's is the container's main process).
        ``namespace``: another process with which it ends, as a pod's containers do with the pod's pause process.
        ``owner``: whatever the caller wants to find again at the process, where one spec serves many.

        Raises:
            CommandNotFound, NotSimulated, NotExecutable, BadWorkingDirectory: nothing was started.
            ValueError: ``argv`` is empty.
        """
        process = Process(self._last_pid + 1, spec, self._program(spec), parent, self.clock.now_ns)
        process.owner = owner
        self._last_pid = process.pid
        self.processes[process.pid] = process
        if parent is not None:
            _adopt(parent, process)
        if namespace is not None:
            if namespace.dependents is None:
                namespace.dependents = []
            namespace.dependents.append(process)
            process.namespace = namespace
        if process.program.body is None:
            process.starting = False
            process.commands = 1
            process.spent_ns += COMMAND_COST_NS
        else:
            process.task = self.tasks.spawn(self._live(process), self._done, self._step, process)
        return process

    def spawn_child(self, parent: Process, argv: tuple[str, ...], changes: Mapping[str, Any]) -> Process:
        """Start a child that inherits all but ``changes``.

        Raises:
            SpawnError: as ``start``.
        """
        return self.start(spec_for_child(parent.spec, argv, changes), parent=parent)

    def _program(self, spec: ProcessSpec) -> Program:
        if not spec.argv:
            raise ValueError("a process needs a command: argv is empty")
        spec.executables.check_working_directory(spec.working_directory)
        if spec.program is not None:
            return spec.program
        name = spec.executables.find(spec.argv[0], spec.environment, spec.working_directory)
        if name not in self.programs:
            raise NotSimulated(spec.argv[0], name)
        return self.programs[name]

    def _live(self, process: Process) -> Steps[int]:
        context = ProcessContext(self, process)
        yield from context.spend(COMMAND_COST_NS)
        try:
            assert process.program.body is not None
            outcome = process.program.body(context)
            return outcome if isinstance(outcome, int) else (yield from outcome)
        except Exit as exit_:
            return exit_.code

    # -- signals -------------------------------------------------------------------------------------------------------
    def signal(self, process: Process, number: int, *, sender: Process | None = None) -> None:
        """Send a signal; one that ends the process has ended it when this returns. Nothing happens to a dead one.

        Raises:
            UnknownSignal: no such number.
        """
        if not is_signal(number):
            raise UnknownSignal(number)
        if process.ended:
            return
        inside = sender is not None and process.is_namespace_init and _descends(sender, process)
        if number == Signal.KILL:
            if not inside:
                self._end(process, _BY_SIGNAL + number, number)
        elif number == Signal.STOP:
            if not inside:
                process.state = ProcessState.STOPPED
        elif number == Signal.CONT and process.state is ProcessState.STOPPED:
            process.state = ProcessState.RUNNING
            self._pend(process, number)
            self._act_on_pending(process)
        elif process.starting or process.state is ProcessState.STOPPED or self._handled(process, number):
            self._pend(process, number)
        else:
            self.act(process, number)

    def act(self, process: Process, number: int) -> SignalHandler | None:
        """Take the default action, if that is what the process left it at; else return its handler, if it has one."""
        if process.program.body is None and number in process.program.exits_on:
            self._end(process, process.program.exits_on[number])
            return None
        disposition = (process.handlers or {}).get(number, Disposition.DEFAULT)
        if not isinstance(disposition, Disposition):
            return disposition
        if disposition is Disposition.DEFAULT and not process.is_namespace_init:
            action = default_action(number)
            if action in _ENDS:
                self._end(process, _BY_SIGNAL + number, number)
            elif action is DefaultAction.STOP:
                process.state = ProcessState.STOPPED
        return None

    def kill_tree(self, process: Process) -> None:
        """End a process and all that descends from it, as SIGKILL to each would; the process itself last."""
        for descendant in process.descendants():
            self._end(descendant, _BY_SIGNAL + Signal.KILL, Signal.KILL)
        self._end(process, _BY_SIGNAL + Signal.KILL, Signal.KILL)

    def _act_on_pending(self, process: Process) -> None:
        """A process without a task takes what was held back while it was stopped, here and now."""
        while process.task is None and process.pending and not process.ended:
            number, process.pending = process.pending[0], process.pending[1:]
            self.act(process, number)

    def _handled(self, process: Process, number: int) -> bool:
        return callable((process.handlers or {}).get(number))

    def _pend(self, process: Process, number: int) -> None:
        if number not in process.pending or number > Signal.SYS:  # standard signals do not queue, real-time ones do
            process.pending += (number,)
        if process.resting_since_ns is not None and process.task is not None and process.task.waiting:
            process.task.wake(self.signalled)

    # -- ending --------------------------------------------------------------------------------------------------------
    def _step(self, task: Task, step: Step) -> None:
        if self.on_step is None:
            raise TypeError(f"{type(step).__name__} by {task.owner.argv}: nobody set who answers the steps of programs")
        self.on_step(task, step)

    def _done(self, task: Task, code: int | None, error: BaseException | None) -> None:
        process: Process = task.owner
        if error is not None and not isinstance(error, Cancelled | Exit):
            self._fail(process, error)
            # A program with a bug dies as one does: by a segmentation fault.
            self._end(process, _BY_SIGNAL + Signal.SEGV, Signal.SEGV)
        elif not process.ended:
            self._end(process, (code or 0) & 0xFF)

    def _fail(self, process: Process, error: BaseException) -> None:
        self.failures.append((process, error))
        if self.on_failure is not None:
            self.on_failure(process, error)

    def _end(self, process: Process, code: int, number: int = 0) -> None:
        if process.ended:
            return
        now_ns = self.clock.now_ns
        orphans = list((process.children or {}).values())
        for orphan in orphans:
            if process.parent is None or process.is_namespace_init:
                self.kill_tree(orphan)
            else:
                orphan.parent = process.parent
                _adopt(process.parent, orphan)
        if process.busy_cost_ns:
            process.spent_ns += min(now_ns - process.busy_since_ns, process.busy_cost_ns)
            process.busy_cost_ns = 0
        if process.resting_since_ns is not None and now_ns - process.resting_since_ns >= REST_NS:
            process.since_rest = 0
        process.state = ProcessState.EXITED
        process.exit_code, process.signal, process.finished_ns = code, int(number), now_ns
        process.children = process.handlers = None
        process.pending = ()
        self._leave(process, now_ns)
        if process.task is not None:
            self.tasks.cancel(process.task)
            process.task = None
        if process._exited is not None:
            process._exited.fire()
        try:
            process.spec.on_exit(process)
        except Exception as error:
            self._fail(process, error)

    def _leave(self, process: Process, now_ns: int) -> None:
        """Take an ended process out of the tables that held it; what it used stays with its parent."""
        self.processes.pop(process.pid, None)
        for dependent in tuple(process.dependents or ()):
            self.kill_tree(dependent)
        process.dependents = None
        if process.namespace is not None and process.namespace.dependents is not None:
            process.namespace.dependents.remove(process)
        parent = process.parent
        if parent is not None:
            (parent.children or {}).pop(process.pid, None)
            parent.reaped_ns += process.usage(now_ns).cpu_ns
            if not parent.ended and self._handled(parent, Signal.CHLD):
                self._pend(parent, Signal.CHLD)


def _adopt(parent: Process, child: Process) -> None:
    if parent.children is None:
        parent.children = {}
    parent.children[child.pid] = child


def _descends(process: Process, ancestor: Process) -> bool:
    above: Process | None = process
    while above is not None and above is not ancestor:
        above = above.parent
    return above is ancestor
