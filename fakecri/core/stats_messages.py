"""Figures as CRI shows them: ``ContainerStats``, ``PodSandboxStats``, and what runtimes leave out of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fakecri.core import stats, status
from fakecri.core.traits import (
    AvailableWithoutLimit,
    FirstInterface,
    SandboxFigures,
    Shown,
    SwapFigures,
)
from fakecri.wire import messages

if TYPE_CHECKING:
    from fakecri.core.container import Container
    from fakecri.core.runtime import Runtime
    from fakecri.core.sandbox import PodSandbox
    from fakecri.core.stats import Figures, Pressure, Traffic

#: What ``memory.limit_in_bytes`` reads where nothing was set: the largest multiple of a page (cgroup v1).
UNLIMITED: Final = (1 << 63) - stats.PAGE


def _without_limit(runtime: Runtime) -> int:
    """What counts as the limit of memory without one, for ``available_bytes``."""
    return UNLIMITED if runtime.traits.available_without_limit is AvailableWithoutLimit.UNLIMITED else 0


def _fill_pressure(message: messages.PsiStats, pressure: Pressure) -> None:
    for part, total_ns, percent in (
        (message.Some, pressure.some_ns, pressure.some_percent),
        (message.Full, pressure.full_ns, pressure.full_percent),
    ):
        part.Total = total_ns
        part.Avg10, part.Avg60, part.Avg300 = percent


def _fill_cpu(message: messages.CpuUsage, figures: Figures, stamp_ns: int, *, rate: bool) -> None:
    message.timestamp = stamp_ns
    message.usage_core_nano_seconds.value = figures.cpu_ns
    if rate:
        message.usage_nano_cores.value = figures.nano_cores


def _fill_memory(runtime: Runtime, message: messages.MemoryUsage, figures: Figures, stamp_ns: int, limit: int) -> None:
    message.timestamp = stamp_ns
    message.working_set_bytes.value = figures.working_set_bytes
    message.available_bytes.value = max(0, (limit or _without_limit(runtime)) - figures.working_set_bytes)
    message.usage_bytes.value = figures.usage_bytes
    message.rss_bytes.value = figures.rss_bytes
    message.page_faults.value = figures.page_faults
    message.major_page_faults.value = figures.major_page_faults


def _shows_pressure(runtime: Runtime) -> bool:
    return runtime.traits.pressure_figures is Shown.YES


def _shows_swap(runtime: Runtime) -> bool:
    return runtime.traits.swap_figures is SwapFigures.FILLED


def container_stats(
    runtime: Runtime, container: Container, figures: Figures | None, stamp_ns: int, *, rate: bool = True
) -> messages.ContainerStats:
    """``runtime.v1.ContainerStats``; without figures, the attributes and the writable layer."""
    config = container.config()
    message = messages.ContainerStats()
    message.attributes.id = container.id
    message.attributes.metadata.CopyFrom(config.metadata)
    message.attributes.labels.update(config.labels)
    message.attributes.annotations.update(config.annotations)
    inodes = stats.layer_inodes(container)
    message.writable_layer.timestamp = stamp_ns
    message.writable_layer.fs_id.mountpoint = runtime.node.image_fs_path
    message.writable_layer.used_bytes.value = inodes * stats.PAGE
    message.writable_layer.inodes_used.value = inodes
    if figures is None:
        return message
    _fill_cpu(message.cpu, figures, stamp_ns, rate=rate)
    _fill_memory(runtime, message.memory, figures, stamp_ns, container.resources().memory_limit_in_bytes)
    if _shows_swap(runtime):
        message.swap.timestamp = stamp_ns
        message.swap.swap_available_bytes.value = figures.swap_available_bytes
        message.swap.swap_usage_bytes.value = figures.swap_bytes
    if _shows_pressure(runtime):
        message.io.timestamp = stamp_ns
        _fill_pressure(message.cpu.psi, figures.cpu_pressure)
        _fill_pressure(message.memory.psi, figures.memory_pressure)
        _fill_pressure(message.io.psi, figures.io_pressure)
    return message


def sandbox_stats(
    runtime: Runtime,
    sandbox: PodSandbox,
    containers: list[messages.ContainerStats],
    stamp_ns: int,
    *,
    rate: bool = True,
) -> messages.PodSandboxStats:
    """``runtime.v1.PodSandboxStats``; of a sandbox that is not ready, the attributes and an empty linux part."""
    item = status.sandbox_item(runtime, sandbox)
    message = messages.PodSandboxStats()
    message.attributes.id = sandbox.id
    message.attributes.metadata.CopyFrom(item.metadata)
    message.attributes.labels.update(item.labels)
    message.attributes.annotations.update(item.annotations)
    message.linux.SetInParent()
    if not sandbox.ready:
        return message
    if not sandbox.host_network:
        _fill_network(runtime, message.linux.network, sandbox, stamp_ns)
    message.linux.containers.extend(containers)
    if runtime.traits.sandbox_figures is SandboxFigures.ALL:
        _fill_group(runtime, message.linux, sandbox, stamp_ns, rate=rate)
    return message


def _fill_group(
    runtime: Runtime, message: messages.LinuxPodSandboxStats, sandbox: PodSandbox, stamp_ns: int, *, rate: bool
) -> None:
    figures = stats.sandbox_figures(runtime, sandbox)
    _fill_cpu(message.cpu, figures, stamp_ns, rate=rate)
    _fill_memory(runtime, message.memory, figures, stamp_ns, _memory_limit(sandbox))
    message.process.timestamp = stamp_ns
    message.process.process_count.value = figures.processes
    if _shows_pressure(runtime):
        message.io.timestamp = stamp_ns
        _fill_pressure(message.cpu.psi, figures.cpu_pressure)
        _fill_pressure(message.memory.psi, figures.memory_pressure)
        _fill_pressure(message.io.psi, figures.io_pressure)


def _memory_limit(sandbox: PodSandbox) -> int:
    """The pod's own limit, bytes: as configured or as updated; 0 for none."""
    if sandbox.linux_resources_bytes:
        return messages.LinuxContainerResources.FromString(sandbox.linux_resources_bytes).memory_limit_in_bytes
    return sandbox.config().linux.resources.memory_limit_in_bytes


def _fill_network(runtime: Runtime, message: messages.NetworkUsage, sandbox: PodSandbox, stamp_ns: int) -> None:
    loopback, ethernet = stats.traffic(runtime, sandbox)
    first, others = _interfaces(runtime, loopback, ethernet)
    if runtime.traits.network_timestamp is Shown.YES:
        message.timestamp = stamp_ns
    _fill_interface(message.default_interface, first)
    for interface in others:
        _fill_interface(message.interfaces.add(), interface)


def _interfaces(runtime: Runtime, loopback: Traffic, ethernet: Traffic) -> tuple[Traffic, tuple[Traffic, ...]]:
    """The default interface, and those listed beside it."""
    if runtime.traits.first_interface is FirstInterface.LOOPBACK:
        return loopback, (ethernet,)
    return ethernet, ()


def _fill_interface(message: messages.NetworkInterfaceUsage, interface: Traffic) -> None:
    message.name = interface.name
    message.rx_bytes.value = interface.received_bytes
    message.rx_errors.value = 0
    message.tx_bytes.value = interface.sent_bytes
    message.tx_errors.value = 0
