"""StopContainer and RemoveContainer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakecri.base.reasons import CriError, Reason
from fakecri.base.steps import BEFORE_COMMIT, CHECKED, Steps
from fakecri.clock import SECOND
from fakecri.core.rpc.registry import Context, handles
from fakecri.core.states import ContainerInput, ContainerState
from fakecri.core.stopping import ask_to_stop, end_container, grace_ns
from fakecri.core.traits import OnUnknown, RunningOnRemove
from fakecri.wire import messages

if TYPE_CHECKING:
    from fakecri.core.container import Container
    from fakecri.core.runtime import Runtime


def _container(runtime: Runtime, id_or_prefix: str, on_unknown: OnUnknown) -> Container | None:
    try:
        return runtime.container(id_or_prefix)
    except CriError as error:
        if error.reason is Reason.CONTAINER_NOT_FOUND and on_unknown is OnUnknown.OK:
            return None
        raise


@handles("StopContainer")
def stop_container(
    runtime: Runtime, context: Context, request: messages.StopContainerRequest
) -> Steps[messages.StopContainerResponse]:
    """Stop signal, ``timeout`` seconds of grace, SIGKILL; EXITED when the call returns. Idempotent.

    Raises:
        CriError: CONTAINER_NOT_FOUND where the runtime refuses unknown ids; CONTAINER_BAD_STATE by the table.
    """
    container = _container(runtime, request.container_id, runtime.traits.stop_unknown_container)
    yield CHECKED
    if container is not None and container.state is not ContainerState.ABSENT:
        ask_to_stop(runtime, container)
        yield from end_container(runtime, container, request.timeout * SECOND)
    return messages.StopContainerResponse()


@handles("RemoveContainer")
def remove_container(
    runtime: Runtime, context: Context, request: messages.RemoveContainerRequest
) -> Steps[messages.RemoveContainerResponse]:
    """Remove a container in any state; one that runs is ended first, or refused, by the personality's trait.

    Raises:
        CriError: CONTAINER_STARTING; CONTAINER_NOT_FOUND or CONTAINER_BAD_STATE, where the runtime refuses.
    """
    container = _container(runtime, request.container_id, runtime.traits.remove_unknown_container)
    if container is not None:
        _check_not_starting(container)
    yield CHECKED
    if container is not None:
        yield from _end_first(runtime, context, container)
    yield BEFORE_COMMIT
    if container is not None:
        _check_not_starting(container)  # as the next line: another call may have begun meanwhile
        yield from _end_first(runtime, context, container)
        if container.state is not ContainerState.ABSENT:
            runtime.move_container(container, ContainerInput.REMOVE)
    return messages.RemoveContainerResponse()


def _check_not_starting(container: Container) -> None:
    if container.starting:
        raise CriError(Reason.CONTAINER_STARTING, id=container.id)


def _end_first(runtime: Runtime, context: Context, container: Container) -> Steps[None]:
    if not container.running:
        return
    choice = runtime.traits.running_on_remove
    if choice is RunningOnRemove.REFUSE:
        raise CriError(
            Reason.CONTAINER_BAD_STATE,
            id=container.id,
            state=container.state.name,
            input=ContainerInput.REMOVE.name,
        )
    grace = grace_ns(runtime, context) if choice is RunningOnRemove.GRACEFUL else 0
    yield from end_container(runtime, container, grace)
