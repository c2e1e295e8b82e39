"""StartContainer: put the log file in place, run the first process, commit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakecri.base.ports import OpenLog
from fakecri.base.reasons import CriError, Reason
from fakecri.base.steps import BEFORE_COMMIT, CHECKED, Ask, Steps
from fakecri.core import processes, states
from fakecri.core.rpc.registry import Context, handles
from fakecri.core.states import ContainerInput, ContainerState
from fakecri.kernel.executables import SpawnError
from fakecri.wire import messages

if TYPE_CHECKING:
    from fakecri.core.container import Container
    from fakecri.core.runtime import Runtime

#: Exit code of a container whose process could not be started (containerd, measured).
START_ERROR_CODE = 128


@handles("StartContainer")
def start_container(
    runtime: Runtime, context: Context, request: messages.StartContainerRequest
) -> Steps[messages.StartContainerResponse]:
    """Run a created container; RUNNING when the call returns, its log file in place.

    Raises:
        CriError: CONTAINER_NOT_FOUND, CONTAINER_BAD_STATE, CONTAINER_STARTING; or, leaving the residue that the
            START row names: START_IN_STOPPED_SANDBOX, COMMAND_NOT_FOUND, COMMAND_NOT_EXECUTABLE,
            WORKING_DIRECTORY_INVALID, LOG_UNWRITABLE.
    """
    container = runtime.container(request.container_id)
    if container.starting:
        raise CriError(Reason.CONTAINER_STARTING, id=container.id)
    states.look_up(runtime.behaviour.container_table, container, ContainerInput.START)
    container.starting = True
    try:
        yield CHECKED
        yield from _run(runtime, container)
    except CriError as error:
        _leave_residue(runtime, container, error)
        raise
    finally:
        container.starting = False
    return messages.StartContainerResponse()


def _run(runtime: Runtime, container: Container) -> Steps[None]:
    table = runtime.behaviour.container_table
    if not container.sandbox.ready:
        raise CriError(Reason.START_IN_STOPPED_SANDBOX, id=container.sandbox.id, container=container.id)
    log_open = False
    try:
        if container.log_path:
            mode = processes.log_style(runtime).file_mode
            log_open = True
            problem = yield Ask("logs", OpenLog(container.log_path, mode))
            if problem is not None:
                raise CriError(Reason.LOG_UNWRITABLE, id=container.id, path=container.log_path, error=problem)
        yield BEFORE_COMMIT
        if container.state is ContainerState.ABSENT:  # removed meanwhile, with its sandbox
            raise CriError(Reason.CONTAINER_NOT_FOUND, id=container.id)
        states.look_up(table, container, ContainerInput.START)
        if not container.sandbox.ready:
            raise CriError(Reason.START_IN_STOPPED_SANDBOX, id=container.sandbox.id, container=container.id)
        try:
            processes.start_container(runtime, container)
        except SpawnError as error:
            raise processes.spawn_refusal(container.id, error) from error
        container.started_at_ns = runtime.clock.stamp_ns()
        runtime.move_container(container, ContainerInput.START)
    finally:
        if log_open and not container.running:
            runtime.background(processes.close_log(container.log_path))


def _leave_residue(runtime: Runtime, container: Container, error: CriError) -> None:
    move = runtime.behaviour.container_table.get((container.state, ContainerInput.START))
    if move is None or move.residue is None:
        return
    assert isinstance(move.residue, ContainerInput)
    container.exit_code = START_ERROR_CODE
    container.reason = "StartError"
    container.message = runtime.word("StartContainer", error)
    container.finished_at_ns = runtime.clock.stamp_ns()
    runtime.move_container(container, move.residue)
