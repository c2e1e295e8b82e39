"""PodSandboxStats, ListPodSandboxStats, StreamPodSandboxStats: a pod's group with its network and its containers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakecri.base.reasons import CriError, Reason
from fakecri.base.steps import Emit, Steps
from fakecri.core.rpc.registry import Context, handles
from fakecri.core.rpc.stats_container import BATCH, listed_stats, shows_single_rate
from fakecri.core.selection import ordered, select
from fakecri.core.stats_messages import sandbox_stats
from fakecri.core.traits import ListStatsWithStopped, StoppedSandboxStats
from fakecri.wire import messages

if TYPE_CHECKING:
    from fakecri.core.runtime import Runtime
    from fakecri.core.sandbox import PodSandbox


def _stats(runtime: Runtime, sandbox: PodSandbox, stamp_ns: int, *, rate: bool) -> messages.PodSandboxStats:
    containers = listed_stats(runtime, sandbox.containers, stamp_ns, rate=rate)
    return sandbox_stats(runtime, sandbox, containers, stamp_ns, rate=rate)


@handles("PodSandboxStats")
def pod_sandbox_stats(
    runtime: Runtime, context: Context, request: messages.PodSandboxStatsRequest
) -> messages.PodSandboxStatsResponse:
    """One sandbox's figures now; ``linux`` is always there (a kubelet dereferences it).

    Raises:
        CriError: SANDBOX_NOT_FOUND; STATS_OF_STOPPED_SANDBOX where the runtime has none of one that is not ready.
    """
    sandbox = runtime.sandbox(request.pod_sandbox_id)
    if not sandbox.ready and _refuses_stopped(runtime):
        raise CriError(Reason.STATS_OF_STOPPED_SANDBOX, id=sandbox.id)
    rate = shows_single_rate(runtime)
    return messages.PodSandboxStatsResponse(stats=_stats(runtime, sandbox, runtime.clock.stamp_ns(), rate=rate))


def _refuses_stopped(runtime: Runtime) -> bool:
    return runtime.traits.stopped_sandbox_stats is StoppedSandboxStats.REFUSE


def _listed(runtime: Runtime, sandboxes: list[PodSandbox], *, filtered: bool) -> list[PodSandbox]:
    """Those that a list shows, by what the runtime does about one that is not ready."""
    on_stopped = runtime.traits.list_stats_with_stopped
    if on_stopped is ListStatsWithStopped.FAIL and not filtered:
        for sandbox in sandboxes:
            if not sandbox.ready:
                raise CriError(Reason.STATS_OF_STOPPED_SANDBOX, id=sandbox.id)
    if on_stopped is ListStatsWithStopped.LIST:
        return sandboxes
    return [sandbox for sandbox in sandboxes if sandbox.ready]


def _selected(
    runtime: Runtime, request: messages.ListPodSandboxStatsRequest | messages.StreamPodSandboxStatsRequest
) -> list[messages.PodSandboxStats]:
    wanted = request.filter
    found = select(runtime, runtime.sandboxes, id_filter=wanted.id, labels=wanted.label_selector)
    shown = _listed(runtime, ordered(runtime, "sandbox stats", found), filtered=request.HasField("filter"))
    stamp_ns = runtime.clock.stamp_ns()
    rate = shows_single_rate(runtime)
    return [_stats(runtime, sandbox, stamp_ns, rate=rate) for sandbox in shown]


@handles("ListPodSandboxStats")
def list_pod_sandbox_stats(
    runtime: Runtime, context: Context, request: messages.ListPodSandboxStatsRequest
) -> messages.ListPodSandboxStatsResponse:
    """Sandboxes that pass the filter.

    Raises:
        CriError: STATS_OF_STOPPED_SANDBOX where one that is not ready fails the whole list.
    """
    return messages.ListPodSandboxStatsResponse(stats=_selected(runtime, request))


@handles("StreamPodSandboxStats")
def stream_pod_sandbox_stats(
    runtime: Runtime, context: Context, request: messages.StreamPodSandboxStatsRequest
) -> Steps[None]:
    """The same as the list, in batches; no message at all when nothing matches."""
    found = _selected(runtime, request)
    for start in range(0, len(found), BATCH):
        yield Emit(messages.StreamPodSandboxStatsResponse(pod_sandbox_stats=found[start : start + BATCH]))
