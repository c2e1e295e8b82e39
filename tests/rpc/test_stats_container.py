"""ContainerStats and its lists: figures that depend on process, limits and time alone, and what runtimes leave out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakecri.base.reasons import Code
from fakecri.clock import MILLISECOND, SECOND
from fakecri.core.node import Node
from fakecri.core.traits import (
    AvailableWithoutLimit,
    CreatedContainerStats,
    ListedContainerStats,
    Shown,
    StoppedContainerStats,
    SwapFigures,
)
from fakecri.kernel.curves import Curve, level
from fakecri.personality.model import derive
from fakecri.personality.registry import PERSONALITIES
from fakecri.wire import messages
from fakecri.workload.scripted import ScriptedWorkload

MIB = 1 << 20


def personality(**traits):
    return derive(PERSONALITIES["reference"], name="other", summary="as the test wants it", traits=traits)


def limits(**resources):
    return messages.LinuxContainerConfig(resources=messages.LinuxContainerResources(**resources))


def works(client, **script):
    """Every container started from now on runs this."""
    program = ScriptedWorkload(**script).program()
    client.engine.runtime.workloads.append(lambda container: program)


def stats(client, container):
    return client.ContainerStats(container_id=container).stats


def without_times(message):
    """The figures, with every timestamp cleared."""
    for part in (message.cpu, message.memory, message.writable_layer, message.swap, message.io):
        part.timestamp = 0
    return message


@pytest.fixture
def pod(client):
    return client.run_pod()


# -- figures -----------------------------------------------------------------------------------------------------------
def test_cpu_follows_the_workload_to_the_nanosecond(client, pod) -> None:
    works(client, cpu=Curve(((0, 0), (10 * SECOND, 2000))))
    container = client.run(pod)
    client.engine.advance(5 * SECOND)
    shown = stats(client, container)
    # 0 → 1000 millicores over five seconds is 2.5 s of CPU, besides what starting cost
    start_cost = 100_000
    assert shown.cpu.usage_core_nano_seconds.value == 2_500 * MILLISECOND + start_cost
    client.engine.advance(25 * SECOND)
    shown = stats(client, container)
    assert shown.cpu.usage_nano_cores.value == pytest.approx(2 * SECOND, rel=0.001)


def test_two_readers_see_the_same_whatever_their_pace(client, pod) -> None:
    works(client, cpu=Curve(((0, 100), (7 * SECOND, 900))), memory=Curve(((0, MIB), (60 * SECOND, 64 * MIB))))
    often = client.run(pod, "often", linux=limits(cpu_quota=20_000, cpu_period=100_000))
    seldom = client.run(pod, "seldom", linux=limits(cpu_quota=20_000, cpu_period=100_000))
    for _ in range(40):
        stats(client, often)
        client.engine.advance(SECOND // 2)
    one, other = without_times(stats(client, often)), without_times(stats(client, seldom))
    one.attributes.Clear()
    other.attributes.Clear()
    assert one == other


def test_timestamps_rise_even_when_time_stands_still(client, pod) -> None:
    container = client.run(pod)
    stamps = [stats(client, container).cpu.timestamp for _ in range(5)]
    stamps += [client.ListContainerStats().stats[0].cpu.timestamp for _ in range(5)]
    assert stamps == sorted(set(stamps))
    assert stamps[0] >= client.engine.clock.wall_ns


@given(steps=st.lists(st.tuples(st.integers(0, 20 * SECOND), st.integers(0, 200_000)), min_size=1, max_size=8))
def test_counters_never_go_down_whatever_the_limits_become(module_client, steps) -> None:
    client = module_client
    client.pull()
    client.engine.runtime.workloads[:] = []
    works(
        client, cpu=Curve(((0, 0), (9 * SECOND, 1500), (40 * SECOND, 10))), memory=Curve(((0, 9 * MIB), (SECOND, MIB)))
    )
    pod = client.run_pod(f"pod-{client.engine.runtime.ids.token('test')}")
    container = client.run(pod, linux=limits(cpu_quota=30_000, cpu_period=100_000))
    before: tuple[int, ...] = ()
    for delta_ns, quota in steps:
        client.engine.advance(delta_ns)
        now = counters(client, container)
        assert all(one >= other for one, other in zip(now, before, strict=bool(before)))
        before = now
        change = messages.LinuxContainerResources(cpu_quota=quota, cpu_period=100_000)
        client.UpdateContainerResources(container_id=container, linux=change)
        assert counters(client, container) == before, "a change of limits costs nothing by itself"
    client.RemovePodSandbox(pod_sandbox_id=pod)


def counters(client, container):
    shown = stats(client, container)
    samples = [
        metric.value.value
        for pod in client.ListPodSandboxMetrics().pod_metrics
        for one in pod.container_metrics
        if one.container_id == container
        for metric in one.metrics
        if metric.metric_type == messages.COUNTER
    ]
    return (
        shown.cpu.usage_core_nano_seconds.value,
        shown.cpu.psi.Some.Total,
        shown.cpu.psi.Full.Total,
        shown.memory.psi.Some.Total,
        shown.io.psi.Full.Total,
        shown.memory.page_faults.value,
        shown.memory.major_page_faults.value,
        *samples,
    )


def test_memory_adds_up(client, pod) -> None:
    works(client, memory_bytes=20 * MIB)
    container = client.run(pod, linux=limits(memory_limit_in_bytes=64 * MIB))
    memory = stats(client, container).memory
    assert memory.rss_bytes.value == 20 * MIB
    assert memory.rss_bytes.value < memory.working_set_bytes.value < memory.usage_bytes.value <= 64 * MIB
    assert memory.available_bytes.value == 64 * MIB - memory.working_set_bytes.value


def test_a_limit_pushes_page_cache_out_and_an_update_shows_at_once(client, pod) -> None:
    works(client, memory_bytes=2 * MIB)
    container = client.run(pod)
    free = stats(client, container).memory
    change = messages.LinuxContainerResources(memory_limit_in_bytes=2 * MIB + 100_000)
    client.UpdateContainerResources(container_id=container, linux=change)
    tight = stats(client, container).memory
    assert tight.usage_bytes.value == 2 * MIB + 100_000 < free.usage_bytes.value
    assert tight.available_bytes.value == 2 * MIB + 100_000 - tight.working_set_bytes.value


def test_memory_beyond_the_limit_is_swapped_as_far_as_allowed(make_client) -> None:
    client = make_client(node=Node(swap_bytes=1 << 30))
    works(client, memory_bytes=80 * MIB)
    pod = client.run_pod()
    swapping = client.run(pod, linux=limits(memory_limit_in_bytes=64 * MIB, memory_swap_limit_in_bytes=96 * MIB))
    shown = stats(client, swapping)
    assert shown.memory.rss_bytes.value + shown.swap.swap_usage_bytes.value == 80 * MIB
    assert 16 * MIB <= shown.swap.swap_usage_bytes.value < 17 * MIB
    assert shown.swap.swap_available_bytes.value == 32 * MIB - shown.swap.swap_usage_bytes.value
    unlimited = client.run(pod, "free")
    assert stats(client, unlimited).swap.swap_available_bytes.value == 1 << 30


def test_a_quota_below_the_demand_is_felt_as_pressure(client, pod) -> None:
    works(client, cpu=level(500))
    held = client.run(pod, "held", linux=limits(cpu_quota=50_000, cpu_period=100_000))
    free = client.run(pod, "free")
    client.engine.advance(20 * SECOND)
    tight, loose = stats(client, held).cpu.psi, stats(client, free).cpu.psi
    assert tight.Full.Total == pytest.approx(10 * SECOND, rel=0.001), "10 s of work at half a core wait as long again"
    assert loose.Full.Total == 0
    assert tight.Some.Avg10 == pytest.approx(50.78, abs=0.1)
    assert 0 < loose.Some.Avg10 < 1


def test_start_is_felt_as_io_pressure_that_passes(client, pod) -> None:
    container = client.run(pod)
    client.engine.advance(SECOND)
    young = stats(client, container).io.psi
    client.engine.advance(400 * SECOND)
    old = stats(client, container).io.psi
    assert young.Full.Total == old.Full.Total > 0
    assert young.Full.Avg10 > 0 == old.Full.Avg10


def test_writable_layer_names_a_host_directory_and_counts_mount_points(make_client) -> None:
    client = make_client(node=Node(image_fs_path="/var/lib/images"))
    pod = client.run_pod()
    bare = stats(client, client.run(pod, "bare")).writable_layer
    mount = messages.Mount(container_path="/extra", host_path="/srv")
    mounted = stats(client, client.run(pod, "mounted", mounts=[mount])).writable_layer
    assert bare.fs_id.mountpoint == "/var/lib/images"
    assert mounted.inodes_used.value == bare.inodes_used.value + 1
    assert mounted.used_bytes.value == bare.used_bytes.value + 4096


# -- who has figures ---------------------------------------------------------------------------------------------------
def test_one_that_does_not_run_is_refused(client, pod) -> None:
    created = client.create(pod, "created")
    exited = client.run(pod, "exited", command=["true"])
    client.engine.advance(SECOND)
    for container in (created, exited):
        refusal = client.refused("ContainerStats", container_id=container)
        assert (refusal.code, refusal.text) == (Code.UNKNOWN, "unexpected metrics response: []")


def test_other_runtimes_show_zeroes_and_nothing(make_client) -> None:
    client = make_client(
        personality=personality(
            created_container_stats=CreatedContainerStats.ZEROES,
            stopped_container_stats=StoppedContainerStats.EMPTY,
            listed_container_stats=ListedContainerStats.ALIVE,
            available_without_limit=AvailableWithoutLimit.UNLIMITED,
        )
    )
    pod = client.run_pod()
    created = client.create(pod, "created")
    exited = client.run(pod, "exited", command=["true"])
    client.engine.advance(SECOND)
    shown = stats(client, created)
    assert shown.attributes.id == created
    assert shown.cpu.HasField("usage_core_nano_seconds")
    assert shown.cpu.usage_core_nano_seconds.value == 0
    assert shown.memory.available_bytes.value == (1 << 63) - 4096
    assert stats(client, exited) == messages.ContainerStats()
    assert [entry.attributes.id for entry in client.ListContainerStats().stats] == [created]


def test_a_list_shows_all_with_attributes_and_the_layer_of_those_without_process(client, pod) -> None:
    names = ("created", "exited", "running")
    created = client.create(pod, "created", labels={"a": "1"}, annotations={"b": "2"})
    exited = client.run(pod, "exited", command=["true"])
    running = client.run(pod, "running")
    client.engine.advance(SECOND)
    listed = {entry.attributes.id: entry for entry in client.ListContainerStats().stats}
    assert {listed[one].attributes.metadata.name for one in (created, exited, running)} == set(names)
    assert dict(listed[created].attributes.labels) == {"a": "1"}
    assert dict(listed[created].attributes.annotations) == {"b": "2"}
    for one in (created, exited):
        assert not listed[one].HasField("cpu")
        assert not listed[one].HasField("memory")
        assert listed[one].writable_layer.used_bytes.value > 0
    assert listed[running].HasField("cpu")


def test_filters_are_anded_and_the_stream_agrees_with_the_list(client, pod) -> None:
    other = client.run_pod("other")
    one = client.run(pod, "one", labels={"app": "x"})
    two = client.run(pod, "two", labels={"app": "x"})
    three = client.run(other, "three", labels={"app": "y"})

    def shown(**wanted):
        filter_ = messages.ContainerStatsFilter(**wanted)
        listed = client.ListContainerStats(filter=filter_).stats
        streamed = client.streamed("StreamContainerStats", filter=filter_)
        found = [entry.attributes.id for entry in listed]
        assert [entry.attributes.id for message in streamed for entry in message.container_stats] == found
        return found

    assert shown() == [one, two, three]
    assert shown(id=one[:13]) == [one]
    assert shown(pod_sandbox_id=other) == [three]
    assert shown(label_selector={"app": "x"}) == [one, two]
    assert shown(label_selector={"app": "x"}, pod_sandbox_id=other) == []
    assert shown(id="ffff") == shown(pod_sandbox_id="ffff") == []


def test_bad_ids(client, pod) -> None:
    assert client.refused("ContainerStats").code == Code.UNKNOWN
    refusal = client.refused("ContainerStats", container_id="f" * 64)
    assert (refusal.code, refusal.text) == (Code.NOT_FOUND, "failed to find container: not found")


def test_parts_that_a_runtime_does_not_fill(make_client) -> None:
    client = make_client(
        personality=personality(
            swap_figures=SwapFigures.ABSENT, pressure_figures=Shown.NO, single_stats_nano_cores=Shown.NO
        )
    )
    container = client.run(client.run_pod())
    shown = stats(client, container)
    assert not shown.HasField("swap")
    assert not shown.HasField("io")
    assert not shown.cpu.HasField("psi")
    assert not shown.memory.HasField("psi")
    assert not shown.cpu.HasField("usage_nano_cores")
    assert client.ListContainerStats().stats[0].cpu.HasField("usage_nano_cores")
