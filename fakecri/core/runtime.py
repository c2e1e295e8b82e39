"""The simulated runtime: its stores, its time, its rules. Handlers are functions over this object.

All changes of state go through ``move_sandbox`` and ``move_container``: table row, visible change, event, in that
order and at once, so a list read between two steps never shows half a move.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fakecri.base.reasons import CriError, Reason
from fakecri.core import event_messages, states
from fakecri.core.events import EventLog
from fakecri.core.store import Miss, Store
from fakecri.kernel.network import HostPorts, PodNetwork

if TYPE_CHECKING:
    from collections.abc import Callable

    from fakecri.base.ids import Ids
    from fakecri.base.ports import HostFiles, LogFiles
    from fakecri.base.steps import Steps
    from fakecri.base.tasks import OnStep, Task, Tasks
    from fakecri.clock import VirtualClock
    from fakecri.core.container import Container
    from fakecri.core.image import Image, ImageStore
    from fakecri.core.node import Node
    from fakecri.core.sandbox import PodSandbox
    from fakecri.core.states import ContainerInput, Move, SandboxInput
    from fakecri.core.traits import Behaviour, Traits
    from fakecri.kernel.machine import Machine
    from fakecri.kernel.process import ProcessSpec
    from fakecri.kernel.program import Program

_SANDBOX_MISSES = {Miss.EMPTY: Reason.SANDBOX_ID_EMPTY, Miss.AMBIGUOUS: Reason.SANDBOX_ID_AMBIGUOUS}
_CONTAINER_MISSES = {Miss.EMPTY: Reason.CONTAINER_ID_EMPTY, Miss.AMBIGUOUS: Reason.CONTAINER_ID_AMBIGUOUS}


class Runtime:
    """One container runtime on one node."""

    def __init__(
        self,
        *,
        clock: VirtualClock,
        tasks: Tasks,
        ids: Ids,
        behaviour: Behaviour,
        node: Node,
        images: ImageStore,
        machine: Machine,
        host_files: HostFiles,
        log_files: LogFiles,
    ) -> None:
        self.clock = clock
        self.tasks = tasks
        self.ids = ids
        self.behaviour = behaviour
        self.traits: Traits = behaviour.traits
        self.node = node
        self.images = images
        images.listeners.append(self._image_changed)
        self.machine = machine
        self.host_files = host_files
        self.log_files = log_files
        self.network = PodNetwork(node.pod_cidrs)
        self.host_ports = HostPorts()
        self.sandboxes: Store[PodSandbox] = Store()
        self.containers: Store[Container] = Store()
        self.events = EventLog(behaviour.strategies.get("events", "broadcast"), queue_limit=node.event_queue_limit)
        #: What ``Status`` reports; a test or a fault may set them. Each is (ready, reason, message).
        self.conditions: dict[str, tuple[bool, str, str]] = dict.fromkeys(behaviour.conditions, (True, "", ""))
        #: What every sandbox's own process is; made with the first.
        self.pause: ProcessSpec | None = None
        #: How often each table row was used, for the proof that all of them are.
        self.moves: dict[tuple[Any, Any], int] = {}

        #: Set by the engine: the personality's text for a refusal by a method (a failed start is told in a status).
        self.word: Callable[[str, CriError], str] = lambda method, error: str(error)
        #: Asked in order when a container starts: the program to run instead of what its image has there, or None.
        self.workloads: list[Callable[[Container], Program | None]] = []
        #: Set by the engine: how a background task's Ask is answered, and where its failure goes.
        self.on_background_step: OnStep | None = None
        self.on_background_failure: Callable[[BaseException], None] | None = None

    def background(self, steps: Steps[None]) -> None:
        """Run steps that no call waits for; what they raise is recorded as a failure of the server."""
        assert self.on_background_step is not None
        self.tasks.spawn(steps, self._background_done, self.on_background_step)

    def _background_done(self, task: Task, value: None, error: BaseException | None) -> None:
        if error is not None:
            if self.on_background_failure is None:
                raise error
            self.on_background_failure(error)

    # -- looking up ------------------------------------------------------------------------------------------------
    def sandbox(self, id_or_prefix: str, unknown: Reason = Reason.SANDBOX_NOT_FOUND) -> PodSandbox:
        """The sandbox with this id or unique prefix.

        Raises:
            CriError: SANDBOX_ID_EMPTY, SANDBOX_ID_AMBIGUOUS, or ``unknown``; the fact is ``id`` as given.
        """
        found = self.sandboxes.find(id_or_prefix)
        if isinstance(found, Miss):
            raise CriError(_SANDBOX_MISSES.get(found, unknown), id=id_or_prefix)
        return found

    def container(self, id_or_prefix: str, unknown: Reason = Reason.CONTAINER_NOT_FOUND) -> Container:
        """The container with this id or unique prefix.

        Raises:
            CriError: CONTAINER_ID_EMPTY, CONTAINER_ID_AMBIGUOUS, or ``unknown``; the fact is ``id`` as given.
        """
        found = self.containers.find(id_or_prefix)
        if isinstance(found, Miss):
            raise CriError(_CONTAINER_MISSES.get(found, unknown), id=id_or_prefix)
        return found

    # -- changing --------------------------------------------------------------------------------------------------
    def move_sandbox(self, sandbox: PodSandbox, given: SandboxInput) -> Move:
        """Apply an input to a sandbox: state, store and events.

        Raises:
            CriError: SANDBOX_BAD_STATE when the table has no such row; nothing has changed.
        """
        before = sandbox.state
        move = states.apply(self.behaviour.sandbox_table, sandbox, given)
        self._count(before, given)
        if before is states.SandboxState.ABSENT:
            self.sandboxes.add(sandbox)
        elif move.to is states.SandboxState.ABSENT:
            self.sandboxes.remove(sandbox)
        elif move.to is not before:
            self.sandboxes.touch(sandbox)
        for event in move.emits:
            self._emit(event, sandbox.id, sandbox)
        return move

    def move_container(self, container: Container, given: ContainerInput) -> Move:
        """Apply an input to a container: state, store, its sandbox's members, waiters and events.

        Raises:
            CriError: CONTAINER_BAD_STATE when the table has no such row; nothing has changed.
        """
        before = container.state
        move = states.apply(self.behaviour.container_table, container, given)
        self._count(before, given)
        if before is states.ContainerState.ABSENT:
            self.containers.add(container)
            container.sandbox.containers = (*container.sandbox.containers, container)
        elif move.to is states.ContainerState.ABSENT:
            self.containers.remove(container)
            container.sandbox.containers = tuple(one for one in container.sandbox.containers if one is not container)
        elif move.to is not before:
            self.containers.touch(container)
        if before is states.ContainerState.RUNNING and move.to is not before:
            container.fire_exited()
        for event in move.emits:
            self._emit(event, container.id, container.sandbox)
        return move

    def _image_changed(self, image: Image) -> None:
        """An image's version is part of its users' version: their list entries show its names or digests."""
        for container in self.containers:
            if container.image is image:
                self.containers.touch(container)

    def _emit(self, event: states.EventType, object_id: str, sandbox: PodSandbox) -> None:
        stamp_ns = self.clock.stamp_ns()
        message = event_messages.build(self, event, object_id, sandbox, stamp_ns) if self.events.wanted else None
        self.events.append(event, object_id, stamp_ns, message, self.clock.now_ns)

    def _count(self, before: states.State, given: states.Input) -> None:
        pair = (before, given)
        self.moves[pair] = self.moves.get(pair, 0) + 1
