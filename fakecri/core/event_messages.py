"""What an event says: the pod as it was at that moment, all its containers included."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakecri.core import status
from fakecri.core.rpc.registry import Pieces
from fakecri.wire import messages

if TYPE_CHECKING:
    from fakecri.core.runtime import Runtime
    from fakecri.core.sandbox import PodSandbox
    from fakecri.core.states import EventType
    from fakecri.wire.levels import View


class EventMessage:
    """A ``ContainerEventResponse`` as it was when the event happened, encoded once for each view."""

    __slots__ = ("_encoded", "message")

    def __init__(self, message: messages.ContainerEventResponse) -> None:
        self.message = message
        self._encoded: dict[View, Pieces] = {}

    def pieces(self, view: View) -> Pieces:
        """The encoded message as a view shows it; a hundred subscribers share one encoding."""
        found = self._encoded.get(view)
        if found is None:
            shown = self.message
            if not view.full:
                shown = messages.ContainerEventResponse()
                shown.CopyFrom(self.message)
                view.clear(shown)
            found = self._encoded[view] = Pieces(shown.SerializeToString(deterministic=True))
        return found


def build(runtime: Runtime, event: EventType, object_id: str, sandbox: PodSandbox, stamp_ns: int) -> EventMessage:
    """The message of one event; ``object_id`` is the sandbox's own id for events of the pod.

    The kubelet replaces its cached pod status by ``containers_statuses``, so all containers of the pod are in it, in
    any state (KEP-3386).
    """
    message = messages.ContainerEventResponse(
        container_id=object_id, container_event_type=int(event), created_at=stamp_ns
    )
    message.pod_sandbox_status.CopyFrom(status.sandbox_status(runtime, sandbox))
    message.containers_statuses.extend(status.container_status(runtime, container) for container in sandbox.containers)
    return EventMessage(message)
