"""What a container's and a sandbox's control group would count: figures as functions of processes, limits and time.

Nothing is remembered between two readings, so any number of readers at any pace, and a replay, see the same numbers;
counters never go down. The one thing kept is what CPU limits had cost up to their last change (``Settled``), written by
the change itself. The RPCs know ``Figures`` alone: a better model of memory, swap or pressure replaces functions here.

The model. CPU and anonymous memory are the processes' own. The first process reads an eighth of its image from disk at
500 MB/s when it starts; what it read stays in the page cache until a memory limit pushes it out, and a quarter of it is
active. Each process costs 48 KiB of kernel memory. Memory beyond the limit goes to swap, as far as that is allowed. A
CPU quota below one processor stretches work in proportion; besides, a 64th of all CPU time is spent waiting for a
processor. The writable layer holds a directory for every mount point.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Final

from fakecri.clock import SECOND
from fakecri.core.states import ContainerState

if TYPE_CHECKING:
    from fakecri.core.container import Container
    from fakecri.core.runtime import Runtime
    from fakecri.core.sandbox import PodSandbox
    from fakecri.kernel.process import Process
    from fakecri.wire import messages

PAGE: Final = 4096
#: What one read from disk fetches at least.
READ_AHEAD: Final = 128 << 10
KERNEL_BYTES_PER_PROCESS: Final = 48 << 10
READ_NS_PER_BYTE: Final = 2
#: Over how long ``usage_nano_cores`` is taken.
RATE_WINDOW_NS: Final = 10 * SECOND
#: The windows of PSI's averages, in seconds.
PRESSURE_WINDOWS: Final = (10, 60, 300)
#: Directories that every runtime makes in a writable layer: /, /dev, /etc, /proc, /sys and two below /dev.
LAYER_INODES: Final = 7
#: One in so many ns of CPU time was waited for.
CPU_WAIT_SHARE: Final = 64
#: CPU time that one page fault costs.
FAULT_NS: Final = 100_000
DEFAULT_PERIOD_US: Final = 100_000


@dataclass(frozen=True, slots=True)
class Pressure:
    """Pressure stall information: ns in all, and percent over the last 10, 60 and 300 s."""

    some_ns: int = 0
    full_ns: int = 0
    some_percent: tuple[float, float, float] = (0.0, 0.0, 0.0)
    full_percent: tuple[float, float, float] = (0.0, 0.0, 0.0)

    def __add__(self, other: Pressure) -> Pressure:
        return Pressure(
            self.some_ns + other.some_ns,
            self.full_ns + other.full_ns,
            _percents(self.some_percent, other.some_percent),
            _percents(self.full_percent, other.full_percent),
        )


def _percents(ours: tuple[float, float, float], theirs: tuple[float, float, float]) -> tuple[float, float, float]:
    first, second, third = (min(100.0, one + other) for one, other in zip(ours, theirs, strict=True))
    return (first, second, third)


@dataclass(frozen=True, slots=True)
class Throttling:
    """What a CPU quota has cost: ns and enforcement periods."""

    periods: int = 0
    throttled_periods: int = 0
    throttled_ns: int = 0

    def __add__(self, other: Throttling) -> Throttling:
        return Throttling(
            self.periods + other.periods,
            self.throttled_periods + other.throttled_periods,
            self.throttled_ns + other.throttled_ns,
        )


@dataclass(frozen=True, slots=True)
class Settled:
    """Throttling up to the moment when limits changed, and CPU time and clock (ns) then."""

    throttling: Throttling
    cpu_ns: int
    at_ns: int


@dataclass(frozen=True, slots=True)
class Figures:
    """One reading of a control group. Times are ns, sizes bytes; the sum of two readings is that of both together."""

    cpu_ns: int = 0
    nano_cores: int = 0
    rss_bytes: int = 0
    cache_bytes: int = 0
    active_cache_bytes: int = 0
    kernel_bytes: int = 0
    peak_bytes: int = 0
    swap_bytes: int = 0
    swap_available_bytes: int = 0
    page_faults: int = 0
    major_page_faults: int = 0
    read_bytes: int = 0
    reads: int = 0
    out_of_memory_kills: int = 0
    processes: int = 0
    throttling: Throttling = Throttling()
    cpu_pressure: Pressure = Pressure()
    memory_pressure: Pressure = Pressure()
    io_pressure: Pressure = Pressure()

    @property
    def usage_bytes(self) -> int:
        """All memory that is charged to the group."""
        return self.rss_bytes + self.cache_bytes + self.kernel_bytes

    @property
    def working_set_bytes(self) -> int:
        """Charged memory without inactive page cache."""
        return self.rss_bytes + self.active_cache_bytes + self.kernel_bytes

    def __add__(self, other: Figures) -> Figures:
        return Figures(**{field.name: getattr(self, field.name) + getattr(other, field.name) for field in _FIELDS})


_FIELDS: Final = fields(Figures)


# -- containers --------------------------------------------------------------------------------------------------------
def container_figures(runtime: Runtime, container: Container) -> Figures | None:
    """What a running container's group counts now; None for one that has no processes."""
    process = container.process
    if process is None or container.state is not ContainerState.RUNNING:
        return None
    now_ns = runtime.clock.now_ns
    limits = container.resources()
    usage = process.usage(now_ns)
    read_bytes = container.image.size_bytes // 8
    kernel_bytes = usage.processes * KERNEL_BYTES_PER_PROCESS
    rss, cache, swap = _split(usage.memory_bytes, read_bytes, kernel_bytes, limits, runtime.node.swap_bytes)
    age_ns = process.age_ns(now_ns)
    rate = recent_nano_cores(process, now_ns, RATE_WINDOW_NS)
    throttling = _throttling(container, process, now_ns, limits)
    return Figures(
        cpu_ns=usage.cpu_ns,
        nano_cores=rate,
        rss_bytes=rss,
        cache_bytes=cache,
        active_cache_bytes=cache // 4,
        kernel_bytes=kernel_bytes,
        peak_bytes=_peak(process, now_ns) - usage.memory_bytes + rss + cache + kernel_bytes,
        swap_bytes=swap,
        swap_available_bytes=_swap_allowance(limits, runtime.node.swap_bytes) - swap,
        page_faults=read_bytes // PAGE + usage.cpu_ns // FAULT_NS,
        major_page_faults=read_bytes // READ_AHEAD,
        read_bytes=read_bytes,
        reads=-(-read_bytes // READ_AHEAD),
        out_of_memory_kills=int(container.reason == "OOMKilled"),
        processes=usage.processes,
        throttling=throttling,
        cpu_pressure=_cpu_pressure(process, now_ns, usage.cpu_ns, throttling, limits),
        memory_pressure=_start_pressure(read_bytes * READ_NS_PER_BYTE // 8, age_ns),
        io_pressure=_start_pressure(read_bytes * READ_NS_PER_BYTE, age_ns),
    )


def _peak(process: Process, now_ns: int) -> int:
    """The most memory that the processes of a tree wanted at any time, each for itself."""
    total = 0
    for member in (process, *process.descendants()):
        age_ns = member.age_ns(now_ns)
        known = [member.own_usage(now_ns).memory_bytes]
        if member.resident_bytes is None and member.program.memory is not None:
            known += [value for time_ns, value in member.program.memory.points if time_ns <= age_ns]
        total += max(known)
    return total


def layer_inodes(container: Container) -> int:
    """Inodes of the writable layer; each holds one block of ``PAGE`` bytes."""
    return LAYER_INODES + len(container.config().mounts)


def settle(container: Container, now_ns: int) -> None:
    """Keep what the limits in force have cost so far: to be called just before they change."""
    process = container.process
    if process is not None:
        cost = _throttling(container, process, now_ns, container.resources())
        container.settled = Settled(cost, process.usage(now_ns).cpu_ns, now_ns)


def _split(
    wanted: int, read_bytes: int, kernel_bytes: int, limits: messages.LinuxContainerResources, node_swap: int
) -> tuple[int, int, int]:
    """Anonymous memory, page cache and swap, of what the processes want and what they have read."""
    limit = limits.memory_limit_in_bytes
    if limit <= 0:
        return wanted, read_bytes, 0
    swap = min(max(0, wanted + kernel_bytes - limit), _swap_allowance(limits, node_swap))
    rss = wanted - swap
    return rss, max(0, min(read_bytes, limit - rss - kernel_bytes)), swap


def _swap_allowance(limits: messages.LinuxContainerResources, node_swap: int) -> int:
    """Swap that a group may use: ``memory_swap_limit_in_bytes`` counts memory and swap; negative means any amount."""
    both, memory = limits.memory_swap_limit_in_bytes, limits.memory_limit_in_bytes
    if memory <= 0 or both < 0:
        return node_swap
    return min(node_swap, max(0, both - memory))


def recent_nano_cores(process: Process, now_ns: int, window_ns: int) -> int:
    """CPU use of a process tree in billionths of a core: its curves over the window, its commands over its life."""
    age_ns = max(1, process.age_ns(now_ns))
    span_ns = min(window_ns, age_ns)
    used_ns = process.usage(now_ns).cpu_ns
    rate = 0
    for member in (process, *process.descendants()):
        curve = member.program.cpu
        if curve is not None:
            until_ns = member.age_ns(now_ns)
            area = curve.area_until(until_ns)
            used_ns -= area // 1000
            rate += (area - curve.area_until(max(0, until_ns - span_ns))) * SECOND // (1000 * span_ns)
    return rate + max(0, used_ns) * SECOND // age_ns


def _throttling(
    container: Container, process: Process, now_ns: int, limits: messages.LinuxContainerResources
) -> Throttling:
    """What the quota in force has cost since it was set, added to what earlier ones did."""
    before = container.settled or Settled(Throttling(), 0, process.started_ns)
    quota_us, period_us = limits.cpu_quota, limits.cpu_period or DEFAULT_PERIOD_US
    if quota_us <= 0:
        return before.throttling
    cpu_ns = process.usage(now_ns).cpu_ns - before.cpu_ns
    periods = (now_ns - before.at_ns) // (period_us * 1000)
    if quota_us >= period_us:
        return before.throttling + Throttling(periods)
    return before.throttling + Throttling(
        periods,
        min(periods, cpu_ns // (quota_us * 1000)),
        min(now_ns - before.at_ns, cpu_ns * (period_us - quota_us) // quota_us),
    )


def _cpu_pressure(
    process: Process, now_ns: int, cpu_ns: int, throttling: Throttling, limits: messages.LinuxContainerResources
) -> Pressure:
    quota_us, period_us = limits.cpu_quota, limits.cpu_period or DEFAULT_PERIOD_US
    stall = (period_us - quota_us) / quota_us if 0 < quota_us < period_us else 0.0
    rates = [recent_nano_cores(process, now_ns, seconds * SECOND) / SECOND for seconds in PRESSURE_WINDOWS]
    waiting = tuple(min(100.0, round(100 * rate * (stall + 1 / CPU_WAIT_SHARE), 2)) for rate in rates)
    throttled = tuple(min(100.0, round(100 * rate * stall, 2)) for rate in rates)
    return Pressure(
        throttling.throttled_ns + cpu_ns // CPU_WAIT_SHARE,
        throttling.throttled_ns,
        (waiting[0], waiting[1], waiting[2]),
        (throttled[0], throttled[1], throttled[2]),
    )


def _start_pressure(total_ns: int, age_ns: int) -> Pressure:
    """A stall that begins with the process and lasts ``total_ns``: all of it waits, so some is full."""
    stalled_ns = min(total_ns, age_ns)
    percent = tuple(
        round(min(100.0, 100 * stalled_ns / max(1, min(age_ns, seconds * SECOND))), 2)
        if age_ns < seconds * SECOND
        else 0.0
        for seconds in PRESSURE_WINDOWS
    )
    averages = (percent[0], percent[1], percent[2])
    return Pressure(stalled_ns, stalled_ns, averages, averages)


# -- pod sandboxes -----------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Traffic:
    """What one network interface has carried since it is there."""

    name: str
    received_bytes: int = 0
    received_packets: int = 0
    sent_bytes: int = 0
    sent_packets: int = 0


def sandbox_own_figures(runtime: Runtime, sandbox: PodSandbox) -> Figures:
    """What the sandbox's own process counts."""
    process = sandbox.process
    if process is None:
        return Figures()
    now_ns = runtime.clock.now_ns
    usage = process.usage(now_ns)
    return Figures(
        cpu_ns=usage.cpu_ns,
        nano_cores=recent_nano_cores(process, now_ns, RATE_WINDOW_NS),
        rss_bytes=usage.memory_bytes,
        kernel_bytes=usage.processes * KERNEL_BYTES_PER_PROCESS,
        page_faults=usage.cpu_ns // FAULT_NS,
        processes=usage.processes,
        cpu_pressure=Pressure(some_ns=usage.cpu_ns // CPU_WAIT_SHARE),
    )


def sandbox_figures(runtime: Runtime, sandbox: PodSandbox) -> Figures:
    """The pod's group: its own process and all running containers."""
    total = sandbox_own_figures(runtime, sandbox)
    for container in sandbox.containers:
        figures = container_figures(runtime, container)
        if figures is not None:
            total += figures
    return total


def traffic(runtime: Runtime, sandbox: PodSandbox) -> tuple[Traffic, Traffic]:
    """Loopback and eth0 of a pod's own network: neighbours find each other at start and every 30 s, per address."""
    process = sandbox.process
    age_s = process.age_ns(runtime.clock.now_ns) // SECOND if process is not None else 0
    packets = len(sandbox.addresses) * (8 + age_s // 30)
    return Traffic("lo"), Traffic("eth0", packets * 86, packets, packets * 70, packets)
