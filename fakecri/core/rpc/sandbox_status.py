"""PodSandboxStatus, ListPodSandbox, StreamPodSandboxes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakecri.base.steps import Emit, Steps
from fakecri.core import status
from fakecri.core.info import sandbox_info
from fakecri.core.rpc.registry import Context, Pieces, entry, handles
from fakecri.core.selection import ordered, plain_order, select
from fakecri.core.traits import StatusesInSandboxStatus
from fakecri.wire import messages

if TYPE_CHECKING:
    from fakecri.core.pieces import PieceTable
    from fakecri.core.runtime import Runtime
    from fakecri.core.sandbox import PodSandbox

#: Entries in one message of a stream.
BATCH = 1000
#: ``ListPodSandboxResponse.items`` and ``StreamPodSandboxesResponse.pod_sandboxes``.
ENTRIES_FIELD = 1


@handles("PodSandboxStatus")
def pod_sandbox_status(
    runtime: Runtime, context: Context, request: messages.PodSandboxStatusRequest
) -> messages.PodSandboxStatusResponse:
    """One sandbox's status; ``timestamp`` (unix ns) and container statuses when pod events are on (KEP-3386)."""
    sandbox = runtime.sandbox(request.pod_sandbox_id)
    response = messages.PodSandboxStatusResponse(status=status.sandbox_status(runtime, sandbox))
    if request.verbose:
        response.info.update(sandbox_info(runtime, sandbox))
    if runtime.node.pod_events and _shows_containers(runtime):
        response.timestamp = runtime.clock.stamp_ns()
        response.containers_statuses.extend(
            status.container_status(runtime, container) for container in sandbox.containers
        )
    return response


def _shows_containers(runtime: Runtime) -> bool:
    return runtime.traits.statuses_in_sandbox_status is StatusesInSandboxStatus.WITH_EVENTS


def _table(runtime: Runtime, context: Context) -> PieceTable[PodSandbox]:
    view = context.view

    def encode(sandbox: PodSandbox) -> bytes:
        item = status.sandbox_item(runtime, sandbox)
        view.clear(item)
        return entry(ENTRIES_FIELD, item.SerializeToString(deterministic=True))

    return runtime.sandboxes.pieces(view, encode)


def _selected(runtime: Runtime, wanted: messages.PodSandboxFilter) -> list[PodSandbox]:
    state = wanted.state.state if wanted.HasField("state") else None
    found = select(
        runtime,
        runtime.sandboxes,
        id_filter=wanted.id,
        labels=wanted.label_selector,
        more=None if state is None else lambda sandbox: int(sandbox.state) == state,
    )
    return ordered(runtime, "sandboxes", found)


@handles("ListPodSandbox")
def list_pod_sandbox(runtime: Runtime, context: Context, request: messages.ListPodSandboxRequest) -> Pieces:
    """Sandboxes that pass the filter; no filter means all."""
    table = _table(runtime, context)
    if not request.filter.ByteSize() and plain_order(runtime):
        return Pieces(table.all())
    return Pieces(table.some(_selected(runtime, request.filter)))


@handles("StreamPodSandboxes")
def stream_pod_sandboxes(
    runtime: Runtime, context: Context, request: messages.StreamPodSandboxesRequest
) -> Steps[None]:
    """The same as the list, in batches; no message at all when nothing matches (CRI-O 1.36, measured)."""
    pieces = _table(runtime, context).each(_selected(runtime, request.filter))
    for start in range(0, len(pieces), BATCH):
        yield Emit(Pieces(b"".join(pieces[start : start + BATCH])))
