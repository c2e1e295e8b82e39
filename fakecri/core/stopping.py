"""How a running container is brought to its end: stop signal, grace, SIGKILL; shared by every RPC that needs it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakecri.base.steps import At, Steps, Wait
from fakecri.core.states import ContainerInput, ContainerState
from fakecri.core.strategies import GRACES
from fakecri.core.traits import RunningOnSandboxStop
from fakecri.kernel.signals import Signal

if TYPE_CHECKING:
    from fakecri.core.container import Container
    from fakecri.core.rpc.registry import Context
    from fakecri.core.runtime import Runtime


def stops_gracefully(runtime: Runtime) -> bool:
    """Whether StopPodSandbox lets running containers end of themselves."""
    return runtime.traits.running_on_sandbox_stop is RunningOnSandboxStop.GRACEFUL


def grace_ns(runtime: Runtime, context: Context) -> int:
    """The grace that a call without a timeout of its own gives, by the personality's strategy."""
    return GRACES[runtime.behaviour.strategies.get("grace", "ten-seconds")](context.grace_ns)


def ask_to_stop(runtime: Runtime, container: Container) -> None:
    """Apply STOP: what has not run stays as it is, what is lost counts as ended now, what runs can be ended.

    Raises:
        CriError: CONTAINER_BAD_STATE by the table.
    """
    if container.state is ContainerState.UNKNOWN:
        container.finished_at_ns = runtime.clock.stamp_ns()
    runtime.move_container(container, ContainerInput.STOP)


def end_container(runtime: Runtime, container: Container, grace: int) -> Steps[None]:
    """End a running container, and return once it is EXITED.

    The stop signal is sent once, however often the container is stopped; after ``grace`` ns follows SIGKILL, at once
    when it is 0 or less. Cancelled in between, the container keeps running and the next call begins anew.
    """
    deadline_ns = runtime.clock.now_ns + grace
    if grace > 0:
        send_stop_signal(runtime, container)
    while container.running and runtime.clock.now_ns < deadline_ns:
        yield Wait(container.exited, At(deadline_ns))
    while container.running:
        signal_container(runtime, container, Signal.KILL)
        yield Wait(container.exited)
    if container.state is ContainerState.UNKNOWN:  # lost on the way
        ask_to_stop(runtime, container)


def send_stop_signal(runtime: Runtime, container: Container) -> None:
    """Ask a running container to end, once in its life."""
    if not container.stop_signalled:
        container.stop_signalled = True
        signal_container(runtime, container, container.stop_signal)


def signal_container(runtime: Runtime, container: Container, number: int) -> None:
    """Send a signal from outside to a container's first process, if it still lives."""
    if container.process is not None and not container.process.ended:
        runtime.machine.signal(container.process, number)
