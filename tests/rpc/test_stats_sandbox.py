"""PodSandboxStats and its lists: the sum of a pod, its network, and what a pod that is not ready shows."""

from __future__ import annotations

import pytest

from fakecri.base.reasons import Code
from fakecri.clock import SECOND
from fakecri.core.traits import (
    FirstInterface,
    ListStatsWithStopped,
    SandboxFigures,
    SandboxLabels,
    StoppedSandboxStats,
)
from fakecri.personality.model import derive
from fakecri.personality.registry import PERSONALITIES
from fakecri.wire import messages


def personality(**traits):
    return derive(PERSONALITIES["reference"], name="other", summary="as the test wants it", traits=traits)


def stats(client, pod):
    return client.PodSandboxStats(pod_sandbox_id=pod).stats


def test_a_pod_is_its_own_process_and_its_containers(client) -> None:
    pod = client.run_pod(labels={"a": "1"}, annotations={"b": "2"})
    alone = stats(client, pod)
    containers = [client.run(pod, name) for name in ("one", "two")]
    client.engine.advance(SECOND)
    shown = stats(client, pod)
    assert shown.attributes.id == pod
    assert shown.attributes.metadata.uid == "uid-pod"
    assert dict(shown.attributes.labels) == {"a": "1"}
    assert dict(shown.attributes.annotations) == {"b": "2"}
    parts = shown.linux.containers
    assert [part.attributes.id for part in parts] == containers
    assert alone.linux.process.process_count.value == 1
    assert shown.linux.process.process_count.value == 3
    for read in (
        lambda linux: linux.cpu.usage_core_nano_seconds.value,
        lambda linux: linux.memory.rss_bytes.value,
        lambda linux: linux.memory.usage_bytes.value,
        lambda linux: linux.io.psi.Some.Total,
    ):
        assert read(shown.linux) == read(alone.linux) + sum(read(part) for part in parts)


def test_the_pods_own_limit_says_what_is_available(client) -> None:
    limit = messages.LinuxContainerResources(memory_limit_in_bytes=1 << 28)
    pod = client.run_pod(linux=messages.LinuxPodSandboxConfig(resources=limit))
    memory = stats(client, pod).linux.memory
    assert memory.available_bytes.value == (1 << 28) - memory.working_set_bytes.value
    update = messages.LinuxContainerResources(memory_limit_in_bytes=1 << 29)
    client.UpdatePodSandboxResources(pod_sandbox_id=pod, resources=update)
    memory = stats(client, pod).linux.memory
    assert memory.available_bytes.value == (1 << 29) - memory.working_set_bytes.value


def test_network_counts_up_and_is_absent_on_the_hosts(client) -> None:
    pod = client.run_pod()
    before = stats(client, pod).linux.network
    client.engine.advance(90 * SECOND)
    after = stats(client, pod).linux.network
    assert after.default_interface.name == "eth0"
    assert after.default_interface.rx_bytes.value > before.default_interface.rx_bytes.value > 0
    assert after.default_interface.tx_bytes.value > before.default_interface.tx_bytes.value > 0
    assert after.timestamp > before.timestamp
    context = messages.LinuxSandboxSecurityContext(namespace_options=messages.NamespaceOption(network=messages.NODE))
    host = client.run_pod("host", linux=messages.LinuxPodSandboxConfig(security_context=context))
    assert not stats(client, host).linux.HasField("network")


def test_a_pod_that_is_not_ready_is_refused_and_skipped(client) -> None:
    pods = [client.run_pod(name) for name in ("one", "two")]
    client.StopPodSandbox(pod_sandbox_id=pods[0])
    refusal = client.refused("PodSandboxStats", pod_sandbox_id=pods[0])
    assert refusal.code != Code.OK
    assert pods[0] in refusal.text
    assert [entry.attributes.id for entry in client.ListPodSandboxStats().stats] == [pods[1]]


@pytest.mark.parametrize("on_stopped", ListStatsWithStopped)
def test_a_list_with_one_that_is_not_ready(make_client, on_stopped) -> None:
    client = make_client(
        personality=personality(list_stats_with_stopped=on_stopped, stopped_sandbox_stats=StoppedSandboxStats.EMPTY)
    )
    one, two = client.run_pod("one"), client.run_pod("two")
    client.StopPodSandbox(pod_sandbox_id=one)
    alone = stats(client, one)
    assert alone.HasField("linux")
    assert not alone.linux.ListFields()
    if on_stopped is ListStatsWithStopped.FAIL:
        assert one in client.refused("ListPodSandboxStats").text
        return
    listed = client.ListPodSandboxStats().stats
    expected = [one, two] if on_stopped is ListStatsWithStopped.LIST else [two]
    assert [entry.attributes.id for entry in listed] == expected
    assert all(entry.HasField("linux") for entry in listed), "a kubelet dereferences linux"


def test_filters_and_the_stream(client) -> None:
    one = client.run_pod("one", labels={"app": "x"})
    two = client.run_pod("two", labels={"app": "y"})

    def shown(**wanted):
        filter_ = messages.PodSandboxStatsFilter(**wanted)
        found = [entry.attributes.id for entry in client.ListPodSandboxStats(filter=filter_).stats]
        streamed = client.streamed("StreamPodSandboxStats", filter=filter_)
        assert [entry.attributes.id for message in streamed for entry in message.pod_sandbox_stats] == found
        return found

    assert shown() == [one, two]
    assert shown(id=two[:13]) == [two]
    assert shown(label_selector={"app": "x"}) == [one]
    assert shown(label_selector={"app": "x"}, id=two) == []
    assert shown(id="ffff") == []


def test_what_another_runtime_shows(make_client) -> None:
    client = make_client(
        personality=personality(
            sandbox_figures=SandboxFigures.NETWORK,
            first_interface=FirstInterface.LOOPBACK,
            sandbox_labels=SandboxLabels.WITH_RUNTIME_LABELS,
        )
    )
    pod = client.run_pod()
    container = client.run(pod)
    shown = stats(client, pod)
    assert shown.attributes.labels["io.kubernetes.container.name"] == "POD"
    assert not shown.linux.HasField("cpu")
    assert not shown.linux.HasField("process")
    assert shown.linux.network.default_interface.name == "lo"
    assert [interface.name for interface in shown.linux.network.interfaces] == ["eth0"]
    assert [entry.attributes.id for entry in shown.linux.containers] == [container]


def test_bad_ids(client) -> None:
    assert client.refused("PodSandboxStats").code == Code.UNKNOWN
    assert client.refused("PodSandboxStats", pod_sandbox_id="f" * 64).code == Code.NOT_FOUND
