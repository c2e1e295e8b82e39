"""Metrics: descriptors and samples that a kubelet can join, and the names that critest demands."""

from __future__ import annotations

import pytest

from fakecri.clock import SECOND
from fakecri.core.metric_rows import ROWS
from fakecri.core.node import CgroupDriver, Node
from fakecri.kernel.curves import level
from fakecri.wire import messages
from fakecri.workload.scripted import ScriptedWorkload

#: ``expectedMetricDescriptorNames`` of critest 1.37, by prefix.
DEMANDED = {
    "container_blkio_device": "usage_total",
    "container_cpu": "cfs_periods_total cfs_throttled_periods_total cfs_throttled_seconds_total system_seconds_total"
    " usage_seconds_total user_seconds_total",
    "container_file": "descriptors",
    "container_fs": "inodes_free inodes_total limit_bytes reads_bytes_total reads_total usage_bytes writes_bytes_total"
    " writes_total",
    "container_hugetlb": "max_usage_bytes usage_bytes",
    "container_last": "seen",
    "container_memory": "cache failcnt failures_total kernel_usage mapped_file max_usage_bytes rss swap usage_bytes"
    " working_set_bytes",
    "container_network": "receive_bytes_total receive_errors_total receive_packets_dropped_total receive_packets_total"
    " transmit_bytes_total transmit_errors_total transmit_packets_dropped_total transmit_packets_total",
    "container_oom": "events_total",
    "container_pressure": "cpu_stalled_seconds_total cpu_waiting_seconds_total io_stalled_seconds_total"
    " io_waiting_seconds_total memory_stalled_seconds_total memory_waiting_seconds_total",
    "container": "processes sockets start_time_seconds threads threads_max ulimits_soft",
    "container_spec": "cpu_period cpu_quota cpu_shares memory_limit_bytes memory_reservation_limit_bytes"
    " memory_swap_limit_bytes",
}
NAMES = {f"{prefix}_{name}" for prefix, names in DEMANDED.items() for name in names.split()}


def limited():
    resources = messages.LinuxContainerResources(
        cpu_period=100_000,
        cpu_quota=20_000,
        cpu_shares=512,
        memory_limit_in_bytes=64 << 20,
        unified={"memory.low": "4096"},
    )
    return messages.LinuxContainerConfig(resources=resources)


@pytest.fixture
def busy(client):
    """A container with limits that has worked for 100 s, and its pod."""
    program = ScriptedWorkload(cpu=level(400), memory_bytes=10 << 20).program()
    client.engine.runtime.workloads.append(lambda container: program)
    pod = client.run_pod(linux=messages.LinuxPodSandboxConfig(cgroup_parent="/kubepods/pod1"))
    container = client.run(pod, linux=limited())
    client.engine.advance(100 * SECOND)
    return pod, container


def samples(client, own_labels=()):
    """(name, values of a metric's own labels) → value, of the only pod and its only container."""
    (pod,) = client.ListPodSandboxMetrics().pod_metrics
    (container,) = pod.container_metrics
    return {
        (metric.name, *metric.label_values[6:]): metric.value.value for metric in (*pod.metrics, *container.metrics)
    }


def test_all_that_is_demanded_is_described(client) -> None:
    described = {row.name: row for row in client.ListMetricDescriptors().descriptors}
    assert len(NAMES) == 56
    assert set(described) >= NAMES
    assert all(row.help and row.label_keys for row in described.values())
    assert len(described) == len(ROWS)


def test_every_metric_has_a_sample_that_its_descriptor_explains(client, busy) -> None:
    pod_id, container_id = busy
    described = {row.name: row for row in client.ListMetricDescriptors().descriptors}
    (pod,) = client.ListPodSandboxMetrics().pod_metrics
    (container,) = pod.container_metrics
    assert (pod.pod_sandbox_id, container.container_id) == (pod_id, container_id)
    metrics = [*pod.metrics, *container.metrics]
    assert {metric.name for metric in metrics} == set(described)
    seen = set()
    for metric in metrics:
        keys = described[metric.name].label_keys
        assert len(metric.label_values) == len(keys), metric.name
        assert metric.HasField("value"), metric.name
        assert metric.timestamp >= client.engine.clock.wall_ns
        identity = (metric.name, *metric.label_values)
        assert identity not in seen, "Prometheus refuses a series that is there twice"
        seen.add(identity)


def test_labels_say_whose_it_is(client, busy) -> None:
    pod_id, container_id = busy
    (pod,) = client.ListPodSandboxMetrics().pod_metrics
    keys = client.ListMetricDescriptors().descriptors[0].label_keys[:6]
    of_pod = dict(zip(keys, pod.metrics[0].label_values, strict=False))
    of_container = dict(zip(keys, pod.container_metrics[0].metrics[0].label_values, strict=False))
    assert of_container == {
        "id": f"/kubepods/pod1/{container_id}",
        "name": container_id,
        "image": "docker.io/library/busybox:1.36",
        "namespace": "default",
        "pod": "pod",
        "container": "main",
    }
    assert (of_pod["name"], of_pod["container"]) == (pod_id, "POD")


def test_a_systemd_group_is_a_scope_in_nested_slices(make_client) -> None:
    client = make_client(node=Node(cgroup_driver=CgroupDriver.SYSTEMD))
    parent = "kubepods-besteffort-pod1.slice"
    container = client.run(client.run_pod(linux=messages.LinuxPodSandboxConfig(cgroup_parent=parent)))
    (pod,) = client.ListPodSandboxMetrics().pod_metrics
    assert pod.container_metrics[0].metrics[0].label_values[0] == (
        f"/kubepods.slice/kubepods-besteffort.slice/{parent}/cri-containerd-{container}.scope"
    )


def test_values_agree_with_stats_and_limits(client, busy) -> None:
    _, container = busy
    shown = client.ContainerStats(container_id=container).stats
    found = samples(client)
    assert found["container_cpu_usage_seconds_total", "total"] == 40
    assert found["container_cpu_user_seconds_total",] + found["container_cpu_system_seconds_total",] == 40
    assert found["container_memory_working_set_bytes",] == shown.memory.working_set_bytes.value
    assert found["container_memory_rss",] == shown.memory.rss_bytes.value == 10 << 20
    assert found["container_pressure_cpu_stalled_seconds_total",] == shown.cpu.psi.Full.Total // SECOND > 0
    assert found["container_cpu_cfs_periods_total",] == 1000
    assert 0 < found["container_cpu_cfs_throttled_periods_total",] <= 1000
    assert found["container_spec_cpu_quota",] == 20_000
    assert found["container_spec_cpu_shares",] == 512
    assert found["container_spec_memory_limit_bytes",] == 64 << 20
    assert found["container_spec_memory_reservation_limit_bytes",] == 4096
    assert found["container_start_time_seconds",] == client.status(container).started_at // SECOND
    assert found["container_last_seen",] == client.engine.clock.wall_ns // SECOND
    assert found["container_memory_failures_total", "pgfault", "container"] == shown.memory.page_faults.value
    assert found["container_network_receive_bytes_total", "eth0"] > 0


def test_who_has_no_samples(client) -> None:
    pods = [client.run_pod(name) for name in ("one", "two")]
    client.create(pods[0], "created")
    client.StopPodSandbox(pod_sandbox_id=pods[1])
    (pod,) = client.ListPodSandboxMetrics().pod_metrics
    assert pod.pod_sandbox_id == pods[0]
    assert not pod.container_metrics


def test_a_quota_is_absent_where_there_is_none(client) -> None:
    client.run(client.run_pod())
    assert ("container_spec_cpu_quota",) not in samples(client)


def test_the_stream_agrees_with_the_list(client) -> None:
    assert client.streamed("StreamPodSandboxMetrics") == []
    for name in ("one", "two"):
        client.run(client.run_pod(name), pod_config=client.pod_config(name))
    listed = [pod.pod_sandbox_id for pod in client.ListPodSandboxMetrics().pod_metrics]
    streamed = client.streamed("StreamPodSandboxMetrics")
    assert [pod.pod_sandbox_id for message in streamed for pod in message.pod_sandbox_metrics] == listed
