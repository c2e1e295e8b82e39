"""RestorePod: a sandbox and its containers, CREATED, from what CheckpointPod wrote; all of it or nothing."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING, Any, Final, TypeVar

from fakecri.base.ports import ReadFile
from fakecri.base.reasons import CriError, Reason
from fakecri.base.steps import BEFORE_COMMIT, CHECKED, After, Ask, Point, Steps, Wait
from fakecri.core import checkpoints
from fakecri.core.checkpoints import ContainerCheckpoint, PodCheckpoint, Unreadable
from fakecri.core.rpc.checkpoint import POD_FILE, duration_ns, refuse_options
from fakecri.core.rpc.registry import HANDLERS, Context, handles
from fakecri.core.rpc.sandbox_run import sandbox_name
from fakecri.wire import messages

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fakecri.core.container import Container
    from fakecri.core.runtime import Runtime

T = TypeVar("T")
#: No checkpoint file is read beyond this.
READ_LIMIT_BYTES: Final = 64 << 20


@handles("RestorePod")
def restore_pod(
    runtime: Runtime, context: Context, request: messages.RestorePodRequest
) -> Steps[messages.RestorePodResponse]:
    """Make the pod anew under its restore-time config; StartContainer then goes on where each container was.

    Raises:
        CriError: CHECKPOINT_OPTION_UNKNOWN, CHECKPOINT_LOCATION_EMPTY, CHECKPOINT_UNREADABLE, CHECKPOINT_MISMATCH; and
            what RunPodSandbox and CreateContainer raise. Nothing is left then.
    """
    refuse_options(request.options)
    if not request.checkpoint_path:
        raise CriError(Reason.CHECKPOINT_LOCATION_EMPTY, id=request.config.metadata.name)
    pod, containers = yield from _load(runtime, request.checkpoint_path)
    wanted = _matched(runtime, request, pod, containers)
    _check_sandbox(runtime, request)
    yield CHECKED
    yield Wait(After(sum(duration_ns(_memory(one)) for one in containers.values())))
    yield BEFORE_COMMIT
    _check_sandbox(runtime, request)
    pairs = [(config, containers[config.metadata.name]) for config in wanted]
    return (yield from _make(runtime, context, request, pairs))


def _memory(checkpoint: ContainerCheckpoint) -> int:
    """What is loaded: the files that the container had written (its memory is only described)."""
    return sum(len(content) for content in checkpoint.layer.values())


def _check_sandbox(runtime: Runtime, request: messages.RestorePodRequest) -> None:
    """Refuse a name that is taken, whatever RunPodSandbox makes of it: what is restored is a pod of its own."""
    if request.HasField("config"):
        name = sandbox_name(request.config)
        owner = runtime.sandboxes.name_owner(name)
        if owner is not None:
            raise CriError(Reason.SANDBOX_NAME_RESERVED, name=name, owner=owner)


# -- reading -----------------------------------------------------------------------------------------------------------
def _load(runtime: Runtime, directory: str) -> Steps[tuple[PodCheckpoint, dict[str, ContainerCheckpoint]]]:
    """The pod and, by name, its containers."""
    runtime.host_files.allow(directory)
    path = posixpath.join(directory, POD_FILE)
    content = yield from _read(path)
    try:
        pod = checkpoints.read_pod(content)
        containers: dict[str, ContainerCheckpoint] = {}
        for name, file in pod.files.items():
            path = posixpath.join(directory, posixpath.basename(file))
            content = yield from _read(path)
            containers[name] = checkpoints.read_container(content)
    except Unreadable as problem:
        raise CriError(Reason.CHECKPOINT_UNREADABLE, path=path, detail=str(problem)) from problem
    return pod, containers


def _read(path: str) -> Steps[bytes]:
    answer = yield Ask("files", ReadFile(path, READ_LIMIT_BYTES))
    if isinstance(answer, CriError):
        raise CriError(Reason.CHECKPOINT_UNREADABLE, path=path, detail=answer.facts.get("detail", "")) from answer
    if answer is None:
        raise CriError(Reason.CHECKPOINT_UNREADABLE, path=path, detail="no such file or directory")
    assert isinstance(answer, bytes)
    return answer


# -- matching ----------------------------------------------------------------------------------------------------------
def _matched(
    runtime: Runtime,
    request: messages.RestorePodRequest,
    pod: PodCheckpoint,
    containers: dict[str, ContainerCheckpoint],
) -> list[messages.ContainerConfig]:
    """The restore-time configs, one for each container of the checkpoint.

    Raises:
        CriError: CHECKPOINT_MISMATCH; names, a process or the runtime handler differ.
    """
    path = request.checkpoint_path
    names = [config.metadata.name for config in request.container_configs]
    if not names:
        raise CriError(Reason.CHECKPOINT_MISMATCH, path=path, detail="no container config is given")
    if len(set(names)) < len(names) or "" in names:
        raise CriError(Reason.CHECKPOINT_MISMATCH, path=path, detail="container names are empty or not unique")
    if set(names) != set(containers):
        detail = f"it holds {_listed(containers)}, the request names {_listed(names)}"
        raise CriError(Reason.CHECKPOINT_MISMATCH, path=path, detail=detail)
    if _handler(runtime, pod.runtime_handler) != _handler(runtime, request.runtime_handler):
        detail = f"it was taken under runtime handler {pod.runtime_handler!r}, not {request.runtime_handler!r}"
        raise CriError(Reason.CHECKPOINT_MISMATCH, path=path, detail=detail)
    for config in request.container_configs:
        image = runtime.images.resolve(config.image.image) if config.image.image else None
        difference = checkpoints.mismatch(containers[config.metadata.name], config, image.digest if image else None)
        if difference:
            raise CriError(Reason.CHECKPOINT_MISMATCH, path=path, detail=difference)
    return list(request.container_configs)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))


def _handler(runtime: Runtime, name: str) -> str:
    """The handler that a name means: the empty one is the default's."""
    return name or runtime.node.runtime_handlers[0].name


# -- making ------------------------------------------------------------------------------------------------------------
def _make(
    runtime: Runtime,
    context: Context,
    request: messages.RestorePodRequest,
    wanted: list[tuple[messages.ContainerConfig, ContainerCheckpoint]],
) -> Steps[messages.RestorePodResponse]:
    """Sandbox and containers through the handlers that make any other; removed again when one fails."""
    response = messages.RestorePodResponse()
    run = messages.RunPodSandboxRequest(runtime_handler=request.runtime_handler)
    if request.HasField("config"):
        run.config.CopyFrom(request.config)
    made = yield from _within("RunPodSandbox", runtime, context, run)
    response.pod_sandbox_id = made.pod_sandbox_id
    try:
        for config, checkpoint in wanted:
            create = messages.CreateContainerRequest(
                pod_sandbox_id=response.pod_sandbox_id, config=config, sandbox_config=request.config
            )
            created = yield from _within("CreateContainer", runtime, context, create)
            container = runtime.container(created.container_id)
            if container.sandbox.id != response.pod_sandbox_id:  # where a taken name is answered with its holder
                raise CriError(Reason.CONTAINER_NAME_RESERVED, name=container.name, owner=container.id)
            _give_state(container, checkpoint)
            response.restored_containers.add(name=config.metadata.name, container_id=created.container_id)
    except BaseException:
        _undo(runtime, context, response.pod_sandbox_id)
        raise
    return response


def _give_state(container: Container, checkpoint: ContainerCheckpoint) -> None:
    container.restored = True
    container.resumes = checkpoint.resumes
    container.restored_layer = checkpoint.layer


def _within(method: str, runtime: Runtime, context: Context, request: Any) -> Steps[Any]:
    """Another RPC's steps as part of this call: a rule meets the points of the call alone."""
    steps = HANDLERS[method].handler(runtime, context, request)
    answer: Any = None
    try:
        while True:
            step = steps.send(answer)
            answer = None if isinstance(step, Point) else (yield step)
    except StopIteration as stop:
        return stop.value
    finally:
        steps.close()


def _undo(runtime: Runtime, context: Context, sandbox_id: str) -> None:
    """Remove a pod none of whose containers has run: that takes no time."""
    request = messages.RemovePodSandboxRequest(pod_sandbox_id=sandbox_id)
    for step in HANDLERS["RemovePodSandbox"].handler(runtime, context, request):
        assert isinstance(step, Point), f"removing a pod that never ran waits for {step!r}"
