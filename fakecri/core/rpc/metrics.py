"""ListMetricDescriptors, ListPodSandboxMetrics, StreamPodSandboxMetrics: the table of ``core.metric_rows``, sampled.

A kubelet reads the descriptors once and drops samples without one, or whose label values are more or fewer than the
descriptor's keys; so both sides come from one row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakecri.base.steps import Emit, Steps
from fakecri.core import metric_rows, stats
from fakecri.core.metrics import Row, Subject
from fakecri.core.rpc.registry import Context, handles
from fakecri.core.selection import ordered
from fakecri.wire import messages

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fakecri.core.runtime import Runtime
    from fakecri.core.sandbox import PodSandbox

#: Pods in one message of a stream.
BATCH = 200


@handles("ListMetricDescriptors")
def list_metric_descriptors(
    runtime: Runtime, context: Context, request: messages.ListMetricDescriptorsRequest
) -> messages.ListMetricDescriptorsResponse:
    """Every metric that may be sampled, by name."""
    return messages.ListMetricDescriptorsResponse(
        descriptors=[
            messages.MetricDescriptor(name=row.name, help=row.help, label_keys=row.label_keys)
            for row in metric_rows.ROWS
        ]
    )


def _samples(rows: Iterable[Row], subject: Subject, stamp_ns: int) -> list[messages.Metric]:
    base = subject.labels()
    return [
        messages.Metric(
            name=row.name,
            timestamp=stamp_ns,
            metric_type=row.kind,
            label_values=(*base, *own),
            value=messages.UInt64Value(value=value),
        )
        for row in rows
        for own, value in row.samples(subject)
    ]


def _pod(runtime: Runtime, sandbox: PodSandbox, stamp_ns: int) -> messages.PodSandboxMetrics:
    own = stats.sandbox_own_figures(runtime, sandbox)
    pod = Subject(runtime, sandbox, None, own, messages.LinuxContainerResources())
    message = messages.PodSandboxMetrics(
        pod_sandbox_id=sandbox.id, metrics=_samples(metric_rows.POD_ROWS, pod, stamp_ns)
    )
    for container in sandbox.containers:
        figures = stats.container_figures(runtime, container)
        if figures is not None:
            subject = Subject(runtime, sandbox, container, figures, container.resources())
            message.container_metrics.add(
                container_id=container.id, metrics=_samples(metric_rows.CONTAINER_ROWS, subject, stamp_ns)
            )
    return message


def _pods(runtime: Runtime) -> list[messages.PodSandboxMetrics]:
    """One entry for every ready sandbox; its running containers in it. Stamps are unix ns."""
    stamp_ns = runtime.clock.stamp_ns()
    ready = [sandbox for sandbox in runtime.sandboxes if sandbox.ready]
    return [_pod(runtime, sandbox, stamp_ns) for sandbox in ordered(runtime, "metrics", ready)]


@handles("ListPodSandboxMetrics")
def list_pod_sandbox_metrics(
    runtime: Runtime, context: Context, request: messages.ListPodSandboxMetricsRequest
) -> messages.ListPodSandboxMetricsResponse:
    """A sample of every metric for every ready pod."""
    return messages.ListPodSandboxMetricsResponse(pod_metrics=_pods(runtime))


@handles("StreamPodSandboxMetrics")
def stream_pod_sandbox_metrics(
    runtime: Runtime, context: Context, request: messages.StreamPodSandboxMetricsRequest
) -> Steps[None]:
    """The same as the list, in batches; no message at all without a pod."""
    found = _pods(runtime)
    for start in range(0, len(found), BATCH):
        yield Emit(messages.StreamPodSandboxMetricsResponse(pod_sandbox_metrics=found[start : start + BATCH]))
