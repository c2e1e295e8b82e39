"""UpdateContainerResources and ReopenContainerLog."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakecri.base.ports import ReopenLog
from fakecri.base.reasons import CriError, Reason
from fakecri.base.steps import BEFORE_COMMIT, CHECKED, Ask, Steps
from fakecri.core import processes, stats
from fakecri.core.resources import merged
from fakecri.core.rpc.registry import Context, handles
from fakecri.core.sandbox import encoded
from fakecri.core.states import ContainerState
from fakecri.core.traits import StoppedContainerCalls
from fakecri.wire import messages

if TYPE_CHECKING:
    from fakecri.core.container import Container
    from fakecri.core.runtime import Runtime


def _refuses_stopped(runtime: Runtime) -> bool:
    return runtime.traits.update_of_exited is StoppedContainerCalls.REFUSE


@handles("UpdateContainerResources")
def update_container_resources(
    runtime: Runtime, context: Context, request: messages.UpdateContainerResourcesRequest
) -> Steps[messages.UpdateContainerResourcesResponse]:
    """Change limits in place; what the request leaves zero stays. ContainerStatus shows the result at once.

    Raises:
        CriError: CONTAINER_NOT_FOUND, MEMORY_LIMIT_BELOW_USAGE, or CONTAINER_NOT_RUNNING for an exited container
            where the runtime refuses it.
    """
    container = runtime.container(request.container_id)
    if container.state is ContainerState.EXITED and _refuses_stopped(runtime):
        raise CriError(Reason.CONTAINER_NOT_RUNNING, id=container.id, state=container.state.name)
    if request.HasField("linux"):
        _check_memory(runtime, container, request.linux.memory_limit_in_bytes)
        yield CHECKED
        yield BEFORE_COMMIT
        stats.settle(container, runtime.clock.now_ns)
        container.resources_bytes = encoded(merged(container.resources(), request.linux))
    return messages.UpdateContainerResourcesResponse()


def _check_memory(runtime: Runtime, container: Container, limit: int) -> None:
    usage = container.process.usage(runtime.clock.now_ns).memory_bytes if container.process is not None else 0
    if container.running and 0 < limit < usage:
        raise CriError(Reason.MEMORY_LIMIT_BELOW_USAGE, id=container.id, limit=limit, usage=usage)


def _check_running(container: Container) -> None:
    if not container.running:
        raise CriError(Reason.CONTAINER_NOT_RUNNING, id=container.id, state=container.state.name)


@handles("ReopenContainerLog")
def reopen_container_log(
    runtime: Runtime, context: Context, request: messages.ReopenContainerLogRequest
) -> Steps[messages.ReopenContainerLogResponse]:
    """Go on in a new file at ``log_path``, which the kubelet has renamed; the old file keeps what was written.

    Raises:
        CriError: CONTAINER_NOT_FOUND; CONTAINER_NOT_RUNNING; LOG_UNWRITABLE, and then there is no new file.
    """
    container = runtime.container(request.container_id)
    _check_running(container)
    yield CHECKED
    _check_running(container)  # it may have ended meanwhile, and its log with it
    if container.log_path:
        problem = yield Ask("logs", ReopenLog(container.log_path, processes.log_style(runtime).file_mode))
        if problem is not None:
            raise CriError(Reason.LOG_UNWRITABLE, id=container.id, path=container.log_path, error=problem)
    return messages.ReopenContainerLogResponse()
