"""CheckpointContainer and CheckpointPod: pause, take the archive, go on; nothing partial is left on an error."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING, Final

from fakecri.base.ports import WriteFile
from fakecri.base.reasons import CriError, Reason
from fakecri.base.steps import BEFORE_COMMIT, CHECKED, After, Ask, Steps, Wait
from fakecri.clock import MILLISECOND, SECOND
from fakecri.core import checkpoints
from fakecri.core.rpc.registry import Context, handles
from fakecri.kernel.process import ProcessState
from fakecri.kernel.signals import Signal
from fakecri.wire import messages

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from fakecri.core.container import Container
    from fakecri.core.runtime import Runtime
    from fakecri.core.sandbox import PodSandbox
    from fakecri.kernel.process import Process

#: ``CheckpointContainerRequest.timeout`` when it is 0.
DEFAULT_TIMEOUT_S: Final = 10
#: What taking or loading a container costs: a little for itself, and its memory at 1 GiB/s.
FIXED_COST_NS: Final = 20 * MILLISECOND
BYTES_PER_SECOND: Final = 1 << 30
#: Up to here a file is written through ``HostFiles`` at once; longer ones are asked for.
DIRECT_BYTES: Final = 64 << 10
#: In a pod checkpoint's directory: the pod itself; containers are ``container-0.tar`` and so on.
POD_FILE: Final = "pod.tar"


def duration_ns(memory_bytes: int) -> int:
    """How long it takes to take or load a container with so much memory."""
    return FIXED_COST_NS + memory_bytes * SECOND // BYTES_PER_SECOND


# -- pausing -----------------------------------------------------------------------------------------------------------
class Pause:
    """Keeps the processes of containers from going on, from ``with`` to its end; those already stopped stay so."""

    def __init__(self, runtime: Runtime, containers: Iterable[Container]) -> None:
        self._machine = runtime.machine
        self._roots = [container.process for container in containers if container.process is not None]
        self._paused: list[Process] = []

    def __enter__(self) -> None:
        for root in self._roots:
            for process in (root, *root.descendants()):
                if process.state is ProcessState.RUNNING:
                    self._machine.signal(process, Signal.STOP)
                    self._paused.append(process)

    def __exit__(self, *_: object) -> None:
        for process in self._paused:
            self._machine.signal(process, Signal.CONT)


# -- one container -----------------------------------------------------------------------------------------------------
@handles("CheckpointContainer")
def checkpoint_container(
    runtime: Runtime, context: Context, request: messages.CheckpointContainerRequest
) -> Steps[messages.CheckpointContainerResponse]:
    """Write an archive of a running container to ``location``, which must lie in a directory that exists.

    Raises:
        CriError: CONTAINER_NOT_FOUND, CHECKPOINT_CONTAINER_NOT_RUNNING, CHECKPOINT_LOCATION_EMPTY or _INVALID;
            CHECKPOINT_TIMED_OUT after ``timeout`` seconds. No archive is there then.
    """
    container = runtime.container(request.container_id)
    _check_running(container)
    if not request.location:
        raise CriError(Reason.CHECKPOINT_LOCATION_EMPTY, id=container.id)
    runtime.host_files.allow(request.location)
    _check_directory(runtime, request.location, posixpath.dirname(request.location))
    yield CHECKED
    with Pause(runtime, [container]):
        timeout_s = request.timeout if request.timeout > 0 else DEFAULT_TIMEOUT_S
        yield from _capture(runtime, [container], container.id, timeout_s)
        yield BEFORE_COMMIT
        _check_running(container)
        yield from write_files(runtime, {request.location: checkpoints.of_container(runtime, container)})
    container.checkpointed_at_ns = runtime.clock.stamp_ns()
    return messages.CheckpointContainerResponse()


def _check_running(container: Container) -> None:
    if not container.running or container.process is None or container.process.ended:
        raise CriError(Reason.CHECKPOINT_CONTAINER_NOT_RUNNING, id=container.id, state=container.state.name)


def _capture(runtime: Runtime, containers: Iterable[Container], subject: str, timeout_s: int | None) -> Steps[None]:
    """Take as long as the memory of these containers needs, and no longer than the timeout."""
    now_ns = runtime.clock.now_ns
    needed_ns = sum(
        duration_ns(container.process.usage(now_ns).memory_bytes)
        for container in containers
        if container.process is not None
    )
    if timeout_s is not None and needed_ns > timeout_s * SECOND:
        yield Wait(After(timeout_s * SECOND))
        raise CriError(Reason.CHECKPOINT_TIMED_OUT, id=subject, timeout=timeout_s)
    yield Wait(After(needed_ns))


# -- files -------------------------------------------------------------------------------------------------------------
def _check_directory(runtime: Runtime, path: str, directory: str) -> None:
    """Refuse a directory that is not there; ``path`` is what the client named."""
    if not path.startswith("/"):
        raise CriError(Reason.CHECKPOINT_LOCATION_INVALID, path=path, detail="the path is not absolute")
    runtime.host_files.allow(directory)
    found = runtime.host_files.stat(directory)
    if found is None:
        raise CriError(Reason.CHECKPOINT_LOCATION_INVALID, path=path, detail="no such file or directory")
    if not found.is_directory:
        raise CriError(Reason.CHECKPOINT_LOCATION_INVALID, path=path, detail="not a directory")


def write_files(runtime: Runtime, files: Mapping[str, bytes]) -> Steps[None]:
    """Write files of any size; on an error, or when the call is cancelled, none of them is left.

    Raises:
        CriError: CHECKPOINT_LOCATION_INVALID with the operating system's words.
    """
    written: list[str] = []
    try:
        for path, content in files.items():
            written.append(path)
            if len(content) > DIRECT_BYTES:
                refusal = yield Ask("files", WriteFile(path, content))
                if refusal is not None:
                    raise refusal
            else:
                runtime.host_files.write(path, content, 0o600)
    except CriError as refusal:
        _remove(runtime, written)
        detail = refusal.facts.get("detail", refusal.reason.value)
        raise CriError(Reason.CHECKPOINT_LOCATION_INVALID, path=path, detail=detail) from refusal
    except BaseException:
        _remove(runtime, written)
        raise


def _remove(runtime: Runtime, paths: Iterable[str]) -> None:
    for path in paths:
        try:
            runtime.host_files.remove(path)
        except CriError:
            continue  # it could not be written either


# -- a pod -------------------------------------------------------------------------------------------------------------
@handles("CheckpointPod")
def checkpoint_pod(
    runtime: Runtime, context: Context, request: messages.CheckpointPodRequest
) -> Steps[messages.CheckpointPodResponse]:
    """Write one consistent cut of a pod into an existing, empty directory; all chosen containers pause together.

    Raises:
        CriError: SANDBOX_NOT_FOUND, SANDBOX_NOT_READY, CHECKPOINT_OPTION_UNKNOWN (there is no option),
            CHECKPOINT_LOCATION_EMPTY or _INVALID, CHECKPOINT_CONTAINERS_INVALID, CHECKPOINT_CONTAINER_NOT_RUNNING. The
            directory is empty then, and everything runs on.
    """
    sandbox = runtime.sandbox(request.pod_sandbox_id)
    if not sandbox.ready:
        raise CriError(Reason.SANDBOX_NOT_READY, id=sandbox.id)
    refuse_options(request.options)
    _check_output(runtime, sandbox, request.output_path)
    containers = _chosen(runtime, sandbox, request.container_ids)
    yield CHECKED
    with Pause(runtime, containers):
        yield from _capture(runtime, containers, sandbox.id, None)
        yield BEFORE_COMMIT
        for container in containers:
            _check_running(container)
        yield from write_files(runtime, _pod_files(runtime, sandbox, containers, request.output_path))
    stamp_ns = runtime.clock.stamp_ns()
    for container in containers:
        container.checkpointed_at_ns = stamp_ns
    return messages.CheckpointPodResponse()


def refuse_options(options: Mapping[str, str]) -> None:
    """Refuse every option: this runtime documents none."""
    for option in sorted(options):
        raise CriError(Reason.CHECKPOINT_OPTION_UNKNOWN, option=option)


def _check_output(runtime: Runtime, sandbox: PodSandbox, path: str) -> None:
    if not path:
        raise CriError(Reason.CHECKPOINT_LOCATION_EMPTY, id=sandbox.id)
    _check_directory(runtime, path, path)
    if runtime.host_files.entries(path):
        raise CriError(Reason.CHECKPOINT_LOCATION_INVALID, path=path, detail="directory not empty")


def _chosen(runtime: Runtime, sandbox: PodSandbox, ids: Iterable[str]) -> list[Container]:
    chosen: dict[str, Container] = {}
    for given in ids:
        container = runtime.container(given)
        if container.id in chosen:
            raise _invalid(sandbox, f"{container.id} is named twice")
        if container.sandbox is not sandbox:
            raise _invalid(sandbox, f"{container.id} belongs to sandbox {container.sandbox.id}")
        _check_running(container)
        chosen[container.id] = container
    if not chosen:
        raise _invalid(sandbox, "no container is named")
    return list(chosen.values())


def _invalid(sandbox: PodSandbox, detail: str) -> CriError:
    return CriError(Reason.CHECKPOINT_CONTAINERS_INVALID, id=sandbox.id, detail=detail)


def _pod_files(runtime: Runtime, sandbox: PodSandbox, containers: list[Container], directory: str) -> dict[str, bytes]:
    names = {container.container_name: f"container-{number}.tar" for number, container in enumerate(containers)}
    files = {
        posixpath.join(directory, names[container.container_name]): checkpoints.of_container(runtime, container)
        for container in containers
    }
    files[posixpath.join(directory, POD_FILE)] = checkpoints.of_pod(runtime, sandbox, names)
    return files
