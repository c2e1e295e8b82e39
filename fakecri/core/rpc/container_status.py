"""ContainerStatus, ListContainers, StreamContainers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakecri.base.steps import Emit, Steps
from fakecri.core import status
from fakecri.core.info import container_info
from fakecri.core.rpc.registry import Context, Pieces, entry, handles
from fakecri.core.selection import ordered, plain_order, select
from fakecri.core.store import Miss
from fakecri.wire import messages

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fakecri.core.container import Container
    from fakecri.core.pieces import PieceTable
    from fakecri.core.runtime import Runtime

#: Entries in one message of a stream.
BATCH = 1000
#: ``ListContainersResponse.containers`` and ``StreamContainersResponse.containers``.
ENTRIES_FIELD = 1


@handles("ContainerStatus")
def container_status(
    runtime: Runtime, context: Context, request: messages.ContainerStatusRequest
) -> messages.ContainerStatusResponse:
    """One container's status."""
    container = runtime.container(request.container_id)
    response = messages.ContainerStatusResponse(status=status.container_status(runtime, container))
    if request.verbose:
        response.info.update(container_info(runtime, container))
    return response


def _table(runtime: Runtime, context: Context) -> PieceTable[Container]:
    view = context.view

    def encode(container: Container) -> bytes:
        item = status.container_item(runtime, container)
        view.clear(item)
        return entry(ENTRIES_FIELD, item.SerializeToString(deterministic=True))

    return runtime.containers.pieces(view, encode)


def containers_of(runtime: Runtime, id_or_prefix: str) -> Iterable[Container]:
    """The containers of one sandbox, oldest first; an unknown or ambiguous id has none."""
    found = runtime.sandboxes.find(id_or_prefix)
    return () if isinstance(found, Miss) else found.containers


def _selected(runtime: Runtime, wanted: messages.ContainerFilter) -> list[Container]:
    state = wanted.state.state if wanted.HasField("state") else None
    found = select(
        runtime,
        runtime.containers,
        id_filter=wanted.id,
        labels=wanted.label_selector,
        more=None if state is None else lambda container: int(container.state) == state,
        among=containers_of(runtime, wanted.pod_sandbox_id) if wanted.pod_sandbox_id else None,
    )
    return ordered(runtime, "containers", found)


@handles("ListContainers")
def list_containers(runtime: Runtime, context: Context, request: messages.ListContainersRequest) -> Pieces:
    """Containers in any state that pass the filter; no filter means all."""
    table = _table(runtime, context)
    if not request.filter.ByteSize() and plain_order(runtime):
        return Pieces(table.all())
    return Pieces(table.some(_selected(runtime, request.filter)))


@handles("StreamContainers")
def stream_containers(runtime: Runtime, context: Context, request: messages.StreamContainersRequest) -> Steps[None]:
    """The same as the list, in batches; no message at all when nothing matches."""
    pieces = _table(runtime, context).each(_selected(runtime, request.filter))
    for start in range(0, len(pieces), BATCH):
        yield Emit(Pieces(b"".join(pieces[start : start + BATCH])))
