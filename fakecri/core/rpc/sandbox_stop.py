"""StopPodSandbox, RemovePodSandbox, UpdatePodSandboxResources."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakecri.base.reasons import CriError, Reason
from fakecri.base.steps import BEFORE_COMMIT, CHECKED, Steps
from fakecri.core import processes
from fakecri.core.rpc.registry import Context, handles
from fakecri.core.sandbox import PodSandbox, encoded
from fakecri.core.states import ContainerInput, ContainerState, SandboxInput, SandboxState
from fakecri.core.status import drop_addresses
from fakecri.core.stopping import ask_to_stop, end_container, grace_ns, send_stop_signal, stops_gracefully
from fakecri.core.traits import OnUnknown
from fakecri.wire import messages

if TYPE_CHECKING:
    from fakecri.core.runtime import Runtime


def _sandbox_to_stop(runtime: Runtime, id_or_prefix: str) -> PodSandbox | None:
    try:
        return runtime.sandbox(id_or_prefix)
    except CriError as error:
        if error.reason is Reason.SANDBOX_NOT_FOUND and runtime.traits.stop_unknown_sandbox is OnUnknown.OK:
            return None
        raise


@handles("StopPodSandbox")
def stop_pod_sandbox(
    runtime: Runtime, context: Context, request: messages.StopPodSandboxRequest
) -> Steps[messages.StopPodSandboxResponse]:
    """End every running container and the sandbox's own process, give network and ports back; idempotent.

    Raises:
        CriError: SANDBOX_NOT_FOUND where the runtime refuses unknown ids; NETWORK_TEARDOWN_FAILED when the network
            is not ready (the sandbox is NOTREADY then).
    """
    sandbox = _sandbox_to_stop(runtime, request.pod_sandbox_id)
    yield CHECKED
    if sandbox is not None and sandbox.state is not SandboxState.ABSENT:
        yield from stop_sandbox(runtime, context, sandbox)
    return messages.StopPodSandboxResponse()


def stop_sandbox(runtime: Runtime, context: Context, sandbox: PodSandbox) -> Steps[None]:
    """What StopPodSandbox does to a sandbox that exists."""
    yield from _end_containers(runtime, context, sandbox)
    yield BEFORE_COMMIT
    yield from _end_containers(runtime, context, sandbox)  # another call may have started one meanwhile
    if sandbox.state is SandboxState.ABSENT:  # removed meanwhile
        return
    was_ready = sandbox.ready
    processes.end_sandbox(runtime, sandbox)
    runtime.host_ports.release(sandbox.id)
    runtime.move_sandbox(sandbox, SandboxInput.STOP)
    had_network = bool(sandbox.addresses)
    drop_addresses(runtime, sandbox)
    runtime.sandboxes.touch(sandbox)
    if was_ready and had_network and not runtime.conditions["NetworkReady"][0]:
        raise CriError(Reason.NETWORK_TEARDOWN_FAILED, id=sandbox.id)


def _end_containers(runtime: Runtime, context: Context, sandbox: PodSandbox) -> Steps[None]:
    """End what runs, all of it within one grace period."""
    grace = grace_ns(runtime, context) if stops_gracefully(runtime) else 0
    deadline_ns = runtime.clock.now_ns + grace
    while running := [container for container in sandbox.containers if container.running]:
        for container in running if grace > 0 else ():
            send_stop_signal(runtime, container)
        for container in running:
            yield from end_container(runtime, container, deadline_ns - runtime.clock.now_ns)
    for container in sandbox.containers:
        if container.state is ContainerState.UNKNOWN or stops_gracefully(runtime):
            ask_to_stop(runtime, container)


@handles("RemovePodSandbox")
def remove_pod_sandbox(
    runtime: Runtime, context: Context, request: messages.RemovePodSandboxRequest
) -> Steps[messages.RemovePodSandboxResponse]:
    """Stop the sandbox if it still runs, remove its containers, then itself; an unknown id is no error."""
    try:
        sandbox = runtime.sandbox(request.pod_sandbox_id)
    except CriError as error:
        if error.reason is Reason.SANDBOX_NOT_FOUND:
            return messages.RemovePodSandboxResponse()
        raise
    yield CHECKED
    if sandbox.state is SandboxState.READY or any(one.running for one in sandbox.containers):
        yield from stop_sandbox(runtime, context, sandbox)
    yield BEFORE_COMMIT
    for container in sandbox.containers:
        runtime.move_container(container, ContainerInput.REMOVE)
    if sandbox.state is not SandboxState.ABSENT:
        runtime.host_ports.release(sandbox.id)
        drop_addresses(runtime, sandbox)
        runtime.move_sandbox(sandbox, SandboxInput.REMOVE)
    return messages.RemovePodSandboxResponse()


@handles("UpdatePodSandboxResources")
def update_pod_sandbox_resources(
    runtime: Runtime, context: Context, request: messages.UpdatePodSandboxResourcesRequest
) -> Steps[messages.UpdatePodSandboxResourcesResponse]:
    """Keep the pod's overhead and resources (KEP-1287); verbose status shows them."""
    sandbox = runtime.sandbox(request.pod_sandbox_id)
    yield CHECKED
    yield BEFORE_COMMIT
    if request.HasField("overhead"):
        sandbox.overhead_bytes = encoded(request.overhead)
    if request.HasField("resources"):
        sandbox.linux_resources_bytes = encoded(request.resources)
    return messages.UpdatePodSandboxResourcesResponse()
