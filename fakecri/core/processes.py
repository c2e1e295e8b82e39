"""The processes of sandboxes and containers: what to run, where its output goes, what its end means."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Final

from fakecri.base.ports import CloseLog
from fakecri.base.reasons import CriError, Reason
from fakecri.base.steps import Ask, Steps
from fakecri.core import states
from fakecri.core.files import ContainerFiles
from fakecri.core.sandbox import encoded
from fakecri.core.states import ContainerInput, ContainerState, SandboxInput, SandboxState
from fakecri.kernel.executables import (
    DEFAULT_PATH,
    BadWorkingDirectory,
    CommandNotFound,
    Executables,
    NotExecutable,
    SpawnError,
)
from fakecri.kernel.logs import LOG_STYLES, LogLines, LogStyle
from fakecri.kernel.process import Process, ProcessSpec
from fakecri.kernel.signals import Signal
from fakecri.wire import messages

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fakecri.core.container import Container
    from fakecri.core.image import Image
    from fakecri.core.runtime import Runtime
    from fakecri.core.sandbox import PodSandbox

#: The sandbox's own process, in every runtime's pause image.
PAUSE: Final = "/pause"
#: Exit code of a container whose end nobody saw (containerd).
LOST_EXIT_CODE: Final = 255
_PAUSE_EXECUTABLES: Final = Executables(programs={PAUSE: "pause"})


# -- what to run -------------------------------------------------------------------------------------------------------
def argv(config: messages.ContainerConfig, image: Image) -> tuple[str, ...]:
    """The command line: the config's command replaces the image's entrypoint and command, its args the command."""
    if config.command:
        return (*config.command, *config.args)
    return (*image.entrypoint, *(config.args or image.command))


class Environment(Mapping[str, str]):
    """A container's variables: PATH, then the image's, then the config's over them; put together when somebody looks.

    Values that are not UTF-8 survive as surrogates.
    """

    __slots__ = ("_config_bytes", "_image", "_variables")

    def __init__(self, config_bytes: bytes, image: Image) -> None:
        self._config_bytes = config_bytes
        self._image = image
        self._variables: dict[str, str] | None = None

    def _all(self) -> dict[str, str]:
        if self._variables is None:
            variables = {"PATH": DEFAULT_PATH}
            variables.update(variable.partition("=")[::2] for variable in self._image.environment)
            config = messages.ContainerConfig.FromString(self._config_bytes)
            variables.update((pair.key, pair.value.decode("utf-8", "surrogateescape")) for pair in config.envs)
            self._variables = variables
        return self._variables

    def __getitem__(self, name: str) -> str:
        return self._all()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())


def working_directory(config: messages.ContainerConfig, image: Image) -> str:
    """Where the process starts."""
    return config.working_dir or image.working_directory or "/"


def check_executable(config: messages.ContainerConfig, image: Image) -> None:
    """Look the command up without running it.

    Raises:
        SpawnError: as the start would.
    """
    directory = working_directory(config, image)
    image.executables.check_working_directory(directory)
    image.executables.find(argv(config, image)[0], Environment(encoded(config), image), directory)


def spawn_refusal(container_id: str, error: SpawnError) -> CriError:
    """The refusal that a failed look-up or start means."""
    if isinstance(error, CommandNotFound):
        return CriError(Reason.COMMAND_NOT_FOUND, id=container_id, command=error.command, detail=error.text)
    if isinstance(error, NotExecutable):
        return CriError(Reason.COMMAND_NOT_EXECUTABLE, id=container_id, command=error.command, detail=error.text)
    assert isinstance(error, BadWorkingDirectory)
    return CriError(Reason.WORKING_DIRECTORY_INVALID, id=container_id, path=error.path, detail=error.text)


# -- pod sandboxes -----------------------------------------------------------------------------------------------------
def start_sandbox(runtime: Runtime, sandbox: PodSandbox) -> None:
    """Run the sandbox's own process; all of a runtime share one description."""
    if runtime.pause is None:
        runtime.pause = ProcessSpec(
            argv=(PAUSE,),
            executables=_PAUSE_EXECUTABLES,
            on_exit=partial(_sandbox_process_ended, runtime),
            oom_score_adj=-998,
        )
    sandbox.process = runtime.machine.start(runtime.pause, owner=sandbox)


def _sandbox_process_ended(runtime: Runtime, process: Process) -> None:
    """The sandbox becomes NOTREADY, unless it was being stopped."""
    sandbox = process.owner
    if sandbox.process is process:
        sandbox.process = None
        if sandbox.state is SandboxState.READY:
            runtime.move_sandbox(sandbox, SandboxInput.DIE)


def end_sandbox(runtime: Runtime, sandbox: PodSandbox) -> None:
    """End the sandbox's own process, if it lives, as part of a stop."""
    process, sandbox.process = sandbox.process, None
    if process is not None and not process.ended:
        runtime.machine.signal(process, Signal.KILL)


# -- containers --------------------------------------------------------------------------------------------------------
def log_style(runtime: Runtime) -> LogStyle:
    """How this runtime writes log lines, by the personality's strategy of kind ``logs``."""
    return LOG_STYLES[runtime.behaviour.strategies.get("logs", "containerd")]


class Outlet:
    """Where the output of a container's first process goes, and what is done at its end."""

    __slots__ = ("_container", "_lines", "_runtime")

    def __init__(self, runtime: Runtime, container: Container) -> None:
        self._runtime = runtime
        self._container = container
        self._lines: LogLines | None = None

    def write(self, descriptor: int, chunk: bytes) -> None:
        """Put output into the container's log, line by line; a container without a log path has none."""
        runtime, container = self._runtime, self._container
        if not container.log_path:
            return
        if self._lines is None:
            self._lines = LogLines(log_style(runtime), tty=container.config().tty)
        for line in self._lines.feed(descriptor, chunk, runtime.clock.wall_ns):
            runtime.log_files.append(container.log_path, line)

    def ended(self, process: Process) -> None:
        """The process has ended: its last lines go to the file before anybody sees the container EXITED."""
        self._runtime.background(self._settle(process, self._runtime.clock.stamp_ns()))

    def _settle(self, process: Process, finished_ns: int) -> Steps[None]:
        runtime, container = self._runtime, self._container
        try:
            if container.log_path:
                for line in self._lines.end(runtime.clock.wall_ns) if self._lines is not None else ():
                    runtime.log_files.append(container.log_path, line)
                yield from close_log(container.log_path)
        except OSError:  # a log that cannot be written keeps no container alive
            _commit_end(runtime, container, process, finished_ns)
            raise
        _commit_end(runtime, container, process, finished_ns)


def start_container(runtime: Runtime, container: Container) -> None:
    """Run the container's first process.

    Raises:
        SpawnError: nothing runs.
    """
    config, image = container.config(), container.image
    outlet = Outlet(runtime, container)
    program = next((found for rule in runtime.workloads if (found := rule(container)) is not None), None)
    pid_mode = config.linux.security_context.namespace_options.pid
    user = container.user()
    container.process = runtime.machine.start(
        ProcessSpec(
            argv=argv(config, image),
            environment=Environment(container.config_bytes, image),
            working_directory=working_directory(config, image),
            executables=image.executables,
            program=program,
            write=outlet.write,
            on_exit=outlet.ended,
            files=ContainerFiles(container, runtime.host_files),
            uid=user.uid,
            gid=user.gid,
            oom_score_adj=config.linux.resources.oom_score_adj,
            is_namespace_init=pid_mode == messages.CONTAINER,
            **container.resumes,
        ),
        namespace=container.sandbox.process if pid_mode == messages.POD else None,
    )


def _commit_end(runtime: Runtime, container: Container, process: Process, finished_ns: int) -> None:
    if container.process is not process or container.state is not ContainerState.RUNNING:
        return
    container.process = None
    container.exit_code = process.exit_code
    container.finished_at_ns = finished_ns
    if not container.reason:
        container.reason = "Error" if process.exit_code else "Completed"
    runtime.move_container(container, ContainerInput.EXIT)


def lose_container(runtime: Runtime, container: Container) -> None:
    """The runtime loses track of a running container: UNKNOWN, 255, its processes gone unseen (containerd's shim died).

    Raises:
        CriError: CONTAINER_BAD_STATE; it does not run.
    """
    states.look_up(runtime.behaviour.container_table, container, ContainerInput.LOSE)
    process, container.process = container.process, None
    container.exit_code = LOST_EXIT_CODE
    container.reason = "Unknown"
    runtime.move_container(container, ContainerInput.LOSE)
    if process is not None:
        runtime.machine.signal(process, Signal.KILL)


def close_log(path: str) -> Steps[None]:
    """Wait until everything queued for a log is in its file.

    Raises:
        OSError: the file could not be written.
    """
    problem = yield Ask("logs", CloseLog(path))
    if problem is not None:
        raise OSError(f"container log {path}: {problem}")
