"""ContainerStats, ListContainerStats, StreamContainerStats: one container's control group, or those of many."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakecri.base.reasons import CriError, Reason
from fakecri.base.steps import Emit, Steps
from fakecri.core import stats
from fakecri.core.rpc.registry import Context, handles
from fakecri.core.selection import ordered, select
from fakecri.core.states import ContainerState
from fakecri.core.stats_messages import container_stats
from fakecri.core.store import Miss
from fakecri.core.traits import CreatedContainerStats, ListedContainerStats, Shown, StoppedContainerStats
from fakecri.wire import messages

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fakecri.core.container import Container
    from fakecri.core.runtime import Runtime
    from fakecri.core.stats import Figures

#: Entries in one message of a stream.
BATCH = 1000


@handles("ContainerStats")
def container_stats_(
    runtime: Runtime, context: Context, request: messages.ContainerStatsRequest
) -> messages.ContainerStatsResponse:
    """One container's figures now.

    Raises:
        CriError: CONTAINER_NOT_FOUND; STATS_OF_STOPPED_CONTAINER where the runtime has none of one that does not run.
    """
    container = runtime.container(request.container_id)
    figures = stats.container_figures(runtime, container)
    if figures is None:
        figures = _without_process(runtime, container)
        if figures is None:
            return messages.ContainerStatsResponse(stats=messages.ContainerStats())
    rate = shows_single_rate(runtime)
    return messages.ContainerStatsResponse(
        stats=container_stats(runtime, container, figures, runtime.clock.stamp_ns(), rate=rate)
    )


def shows_single_rate(runtime: Runtime) -> bool:
    """Whether ``usage_nano_cores`` is filled in replies about one object."""
    return runtime.traits.single_stats_nano_cores is Shown.YES


def _without_process(runtime: Runtime, container: Container) -> Figures | None:
    """Zeroes for a container that has not started; None where an exited one's reply is empty."""
    if container.state is ContainerState.CREATED:
        if _refuses_created(runtime):
            raise CriError(Reason.STATS_OF_STOPPED_CONTAINER, id=container.id)
        return stats.Figures()
    if _refuses_exited(runtime):
        raise CriError(Reason.STATS_OF_STOPPED_CONTAINER, id=container.id)
    return None


def _refuses_created(runtime: Runtime) -> bool:
    return runtime.traits.created_container_stats is CreatedContainerStats.REFUSE


def _refuses_exited(runtime: Runtime) -> bool:
    return runtime.traits.stopped_container_stats is StoppedContainerStats.REFUSE


def listed_stats(
    runtime: Runtime, containers: Iterable[Container], stamp_ns: int, *, rate: bool = True
) -> list[messages.ContainerStats]:
    """The entries that a list has for these containers."""
    alive_only = runtime.traits.listed_container_stats is ListedContainerStats.ALIVE
    return [
        container_stats(runtime, container, stats.container_figures(runtime, container), stamp_ns, rate=rate)
        for container in containers
        if not alive_only or container.state in (ContainerState.CREATED, ContainerState.RUNNING)
    ]


def _selected(runtime: Runtime, wanted: messages.ContainerStatsFilter) -> list[messages.ContainerStats]:
    among: Iterable[Container] | None = None
    if wanted.pod_sandbox_id:
        sandbox = runtime.sandboxes.find(wanted.pod_sandbox_id)
        among = () if isinstance(sandbox, Miss) else sandbox.containers
    found = select(runtime, runtime.containers, id_filter=wanted.id, labels=wanted.label_selector, among=among)
    return listed_stats(runtime, ordered(runtime, "container stats", found), runtime.clock.stamp_ns())


@handles("ListContainerStats")
def list_container_stats(
    runtime: Runtime, context: Context, request: messages.ListContainerStatsRequest
) -> messages.ListContainerStatsResponse:
    """Containers that pass the filter, in any state; attributes are always there (a kubelet dereferences them)."""
    return messages.ListContainerStatsResponse(stats=_selected(runtime, request.filter))


@handles("StreamContainerStats")
def stream_container_stats(
    runtime: Runtime, context: Context, request: messages.StreamContainerStatsRequest
) -> Steps[None]:
    """The same as the list, in batches; no message at all when nothing matches."""
    found = _selected(runtime, request.filter)
    for start in range(0, len(found), BATCH):
        yield Emit(messages.StreamContainerStatsResponse(container_stats=found[start : start + BATCH]))
