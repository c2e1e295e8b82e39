"""What must hold at the moment at which a call ends: its effect is there, or only the residue of its row is.

Looked at inside the engine, before any other call can run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fakecri.base.reasons import CriError, Reason
from fakecri.core.states import ContainerInput, ContainerState, SandboxInput, SandboxState
from fakecri.wire.methods import METHODS

if TYPE_CHECKING:
    from cri_machine.world import Exchange, World

    from fakecri.record.call import Reply

#: What a StartContainer is refused for before it has begun.
NOT_BEGUN = {
    Reason.CONTAINER_ID_EMPTY,
    Reason.CONTAINER_ID_AMBIGUOUS,
    Reason.CONTAINER_NOT_FOUND,
    Reason.CONTAINER_BAD_STATE,
    Reason.CONTAINER_STARTING,
}
RESPONSES = {spec.name: spec.response for spec in METHODS.values()}


def at_the_end(world: World, exchange: Exchange, reply: Reply | None) -> None:
    """Look at a call that ends with this reply, or (None) by being cancelled."""
    if exchange.method not in RESPONSES or isinstance(exchange.request, bytes):
        assert not exchange.moves
        return
    if reply is not None and reply.ok:
        world.counts.checks["an effect is there when its call returns"] += 1
        look = EFFECTS.get(exchange.method)
        if look is not None:
            look(world, exchange, RESPONSES[exchange.method].FromString(reply.body))
        return
    world.counts.checks["a failed call leaves only the residue of its row"] += 1
    only_residue(world, exchange, reply)


# -- effects -----------------------------------------------------------------------------------------------------------
def _pod_runs(world: World, exchange: Exchange, response: Any) -> None:
    request = exchange.request
    pod = world.runtime.sandboxes.get(response.pod_sandbox_id)
    assert pod is not None
    shares = world.runtime.traits.duplicate_name.name == "RETURN_EXISTING"
    assert pod.ready or shares
    assert pod.pod_name == request.config.metadata.name
    world.pods.append(pod.id)


def _found(find: Any, given: str) -> Any:
    """The object that an id means now; None when it is gone or unknown."""
    try:
        return find(given)
    except CriError:
        return None


def _pod_stopped(world: World, exchange: Exchange, response: Any) -> None:
    request = exchange.request
    pod = _found(world.runtime.sandbox, request.pod_sandbox_id)
    if pod is not None and len(request.pod_sandbox_id) == 64:
        assert pod.state is SandboxState.NOTREADY
        assert not any(container.running for container in pod.containers)


def _pod_gone(world: World, exchange: Exchange, response: Any) -> None:
    request = exchange.request
    if len(request.pod_sandbox_id) == 64:
        assert request.pod_sandbox_id not in world.runtime.sandboxes
        assert not any(one.sandbox.id == request.pod_sandbox_id for one in world.runtime.containers)


def _created(world: World, exchange: Exchange, response: Any) -> None:
    request = exchange.request
    container = world.runtime.containers.get(response.container_id)
    assert container is not None
    shares = world.runtime.traits.duplicate_container_name.name == "RETURN_EXISTING"
    assert container.state is ContainerState.CREATED or shares
    assert container.container_name == request.config.metadata.name
    world.containers.append(container.id)


def _started(world: World, exchange: Exchange, response: Any) -> None:
    request = exchange.request
    container = _found(world.runtime.container, request.container_id)
    if container is not None and len(request.container_id) == 64:
        assert container.state is ContainerState.RUNNING
        assert container.process is not None
        assert not container.log_path or container.log_path in world.logs.paths


def _stopped(world: World, exchange: Exchange, response: Any) -> None:
    request = exchange.request
    container = _found(world.runtime.container, request.container_id)
    if container is not None and len(request.container_id) == 64:
        assert container.state in (ContainerState.CREATED, ContainerState.EXITED)


def _removed(world: World, exchange: Exchange, response: Any) -> None:
    request = exchange.request
    if len(request.container_id) == 64:
        assert request.container_id not in world.runtime.containers


def _updated(world: World, exchange: Exchange, response: Any) -> None:
    request = exchange.request
    container = _found(world.runtime.container, request.container_id)
    if container is not None and request.linux.cpu_shares:
        assert container.resources().cpu_shares == request.linux.cpu_shares


def _pulled(world: World, exchange: Exchange, response: Any) -> None:
    request = exchange.request
    text = request.image.image
    image = world.runtime.images.resolve(f"docker.io/library/{text}" if text.startswith("sha256:") else text)
    assert image is not None
    assert response.image_ref in (image.id, *image.repo_digests)


def _image_gone(world: World, exchange: Exchange, response: Any) -> None:
    request = exchange.request
    whole = world.runtime.traits.remove_image_scope.name == "ALL_NAMES"
    named = ":" in request.image.image  # what looks like an id may mean another image now
    if whole and named and not exchange.was_held:  # while it is held a pull may bring another
        assert _found(world.runtime.images.resolve, request.image.image) is None


def _restored(world: World, exchange: Exchange, response: Any) -> None:
    pod = world.runtime.sandboxes.get(response.pod_sandbox_id)
    assert pod is not None
    assert pod.ready
    for made in response.restored_containers:
        container = world.runtime.containers.get(made.container_id)
        assert container in pod.containers
        assert container.state is ContainerState.CREATED
        assert container.container_name == made.name
        world.containers.append(container.id)
    world.pods.append(pod.id)


EFFECTS = {
    "RunPodSandbox": _pod_runs,
    "StopPodSandbox": _pod_stopped,
    "RemovePodSandbox": _pod_gone,
    "CreateContainer": _created,
    "StartContainer": _started,
    "StopContainer": _stopped,
    "RemoveContainer": _removed,
    "UpdateContainerResources": _updated,
    "PullImage": _pulled,
    "RemoveImage": _image_gone,
    "RestorePod": _restored,
}


# -- residues ----------------------------------------------------------------------------------------------------------
def only_residue(world: World, exchange: Exchange, reply: Reply | None) -> None:
    """The moves that a failed or cancelled call made itself are those that its row allows."""
    inputs = [moved.given for moved in exchange.moves]
    look = RESIDUES.get(exchange.method)
    if look is None:
        assert inputs == [], f"{exchange.method} failed with {exchange.reason} and left {inputs}"
    else:
        look(world, exchange, reply, inputs)


def _start_residue(world: World, exchange: Exchange, reply: Reply | None, inputs: list[Any]) -> None:
    if reply is None or exchange.reason in NOT_BEGUN:
        assert inputs == []
        return
    if not inputs:  # it went with its pod while the call was held
        assert exchange.request.container_id not in world.runtime.containers
        return
    assert inputs == [ContainerInput.START_FAILED], (exchange.reason, inputs)
    container = exchange.moves[0].entity
    assert container.state is ContainerState.EXITED
    assert (container.exit_code, container.reason, container.message) == (128, "StartError", reply.text)
    assert container.started_at_ns == 0
    assert container.finished_at_ns > 0
    assert container.process is None


def _run_residue(world: World, exchange: Exchange, reply: Reply | None, inputs: list[Any]) -> None:
    row = world.runtime.behaviour.sandbox_table[SandboxState.ABSENT, SandboxInput.RUN]
    if exchange.reason is Reason.NETWORK_NOT_READY and row.residue is not None:
        assert inputs == [row.residue]
        assert not exchange.moves[0].entity.addresses
    else:
        assert inputs == []


def _stop_pod_residue(world: World, exchange: Exchange, reply: Reply | None, inputs: list[Any]) -> None:
    """What was ended on the way stays ended; the pod itself has moved only when its network could not be torn down."""
    of_pod = [given for given in inputs if isinstance(given, SandboxInput)]
    torn = exchange.reason is Reason.NETWORK_TEARDOWN_FAILED
    assert of_pod == ([SandboxInput.STOP] if torn else [])
    assert {given for given in inputs if isinstance(given, ContainerInput)} <= {ContainerInput.STOP}


def _remove_pod_residue(world: World, exchange: Exchange, reply: Reply | None, inputs: list[Any]) -> None:
    """A removal stops first: a pod that could not be removed may be stopped."""
    of_pod = [given for given in inputs if isinstance(given, SandboxInput)]
    assert of_pod in ([], [SandboxInput.STOP])
    assert {given for given in inputs if isinstance(given, ContainerInput)} <= {ContainerInput.STOP}


def _stop_residue(world: World, exchange: Exchange, reply: Reply | None, inputs: list[Any]) -> None:
    """A stop that ends early has asked to stop, and no more."""
    assert inputs in ([], [ContainerInput.STOP])


def _restore_residue(world: World, exchange: Exchange, reply: Reply | None, inputs: list[Any]) -> None:
    """Whatever was made is gone again."""
    for moved in exchange.moves:
        assert moved.entity.state.name == "ABSENT"


RESIDUES = {
    "StartContainer": _start_residue,
    "RunPodSandbox": _run_residue,
    "StopPodSandbox": _stop_pod_residue,
    "RemovePodSandbox": _remove_pod_residue,
    "StopContainer": _stop_residue,
    "RestorePod": _restore_residue,
}
