"""The metrics of containers and pods, as a table: name, help, kind, labels, and what each shows.

Names, labels and kinds are cAdvisor's, as far as a kubelet 1.37 serves them with CRI-O (critest 1.37 demands them all);
values are whole numbers (``Metric.value`` holds no fraction), seconds rounded down. A row's figures come from
``core.stats`` alone. Network rows belong to the pod, all others to its containers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fakecri.clock import SECOND
from fakecri.core import stats
from fakecri.core.metrics import Row, Sample, Samples, Subject
from fakecri.wire import messages

if TYPE_CHECKING:
    from collections.abc import Callable

COUNTER: Final = messages.COUNTER
GAUGE: Final = messages.GAUGE
#: The block device that file systems and images are said to lie on.
DEVICE: Final = "/dev/vda"
#: A container's open files and the like: three standard streams per process.
DESCRIPTORS_PER_PROCESS: Final = 3
#: Soft limit of open files that every runtime's service unit passes on.
OPEN_FILES_LIMIT: Final = 1_048_576
#: What the file system of containers is said to hold.
FILESYSTEM_BYTES: Final = 100 << 30
FILESYSTEM_INODES: Final = 6_553_600
#: Kernel default of ``cpu.shares``.
DEFAULT_SHARES: Final = 1024


def _figure(name: str, help_: str, kind: int, value: Callable[[Subject], int]) -> Row:
    return Row(name, help_, kind, lambda subject: [((), value(subject))])


def _on_device(name: str, help_: str, kind: int, value: Callable[[Subject], int]) -> Row:
    return Row(name, help_, kind, lambda subject: [((DEVICE,), value(subject))], ("device",))


def _pressure(resource: str, read: Callable[[stats.Figures], stats.Pressure]) -> tuple[Row, Row]:
    prefix = f"container_pressure_{resource}"
    return (
        _figure(
            f"{prefix}_stalled_seconds_total",
            f"Total time in which no task of the container could run for want of {resource}, in seconds.",
            COUNTER,
            lambda subject: read(subject.figures).full_ns // SECOND,
        ),
        _figure(
            f"{prefix}_waiting_seconds_total",
            f"Total time in which some task of the container waited for {resource}, in seconds.",
            COUNTER,
            lambda subject: read(subject.figures).some_ns // SECOND,
        ),
    )


def _inodes(subject: Subject) -> int:
    return stats.layer_inodes(subject.container) if subject.container is not None else 0


def _started_s(subject: Subject) -> int:
    return subject.container.started_at_ns // SECOND if subject.container is not None else 0


def _memory_failures(subject: Subject) -> list[Sample]:
    figures = subject.figures
    return [
        ((failure, scope), count)
        for scope in ("container", "hierarchy")
        for failure, count in (("pgfault", figures.page_faults), ("pgmajfault", figures.major_page_faults))
    ]


def _blkio(subject: Subject) -> list[Sample]:
    return [
        ((DEVICE, "253", "0", "Read"), subject.figures.read_bytes),
        ((DEVICE, "253", "0", "Write"), _inodes(subject) * stats.PAGE),
    ]


def _limit(read: Callable[[messages.LinuxContainerResources], int]) -> Callable[[Subject], int]:
    """A limit as cAdvisor shows it: 0 where there is none."""
    return lambda subject: max(0, read(subject.limits))


def _quota(subject: Subject) -> list[Sample]:
    """Absent without a quota, as in cAdvisor."""
    return [((), subject.limits.cpu_quota)] if subject.limits.cpu_quota > 0 else []


def _interface(read: Callable[[stats.Traffic], int]) -> Samples:
    def samples(subject: Subject) -> list[Sample]:
        if subject.sandbox.host_network:
            return []
        _, ethernet = stats.traffic(subject.runtime, subject.sandbox)
        return [((ethernet.name,), read(ethernet))]

    return samples


def _network(direction: str, word: str, read: dict[str, Callable[[stats.Traffic], int]]) -> tuple[Row, ...]:
    return tuple(
        Row(
            f"container_network_{direction}_{what}_total",
            f"Cumulative count of {what.replace('_', ' ')} while {word}.",
            COUNTER,
            _interface(value),
            ("interface",),
        )
        for what, value in read.items()
    )


_CPU: Final = (
    _figure(
        "container_cpu_user_seconds_total",
        "Cumulative CPU time in user mode, in seconds.",
        COUNTER,
        lambda subject: subject.figures.cpu_ns * 3 // 4 // SECOND,
    ),
    _figure(
        "container_cpu_system_seconds_total",
        "Cumulative CPU time in the kernel, in seconds.",
        COUNTER,
        lambda subject: subject.figures.cpu_ns // 4 // SECOND,
    ),
    Row(
        "container_cpu_usage_seconds_total",
        "Cumulative CPU time over all processors, in seconds.",
        COUNTER,
        lambda subject: [(("total",), subject.figures.cpu_ns // SECOND)],
        ("cpu",),
    ),
    _figure(
        "container_cpu_cfs_periods_total",
        "Enforcement periods of the CPU quota that have passed.",
        COUNTER,
        lambda subject: subject.figures.throttling.periods,
    ),
    _figure(
        "container_cpu_cfs_throttled_periods_total",
        "Enforcement periods in which the container was held back.",
        COUNTER,
        lambda subject: subject.figures.throttling.throttled_periods,
    ),
    _figure(
        "container_cpu_cfs_throttled_seconds_total",
        "Time for which the container was held back, in seconds.",
        COUNTER,
        lambda subject: subject.figures.throttling.throttled_ns // SECOND,
    ),
)
_MEMORY: Final = (
    _figure("container_memory_cache", "Page cache in bytes.", GAUGE, lambda subject: subject.figures.cache_bytes),
    _figure("container_memory_rss", "Anonymous memory in bytes.", GAUGE, lambda subject: subject.figures.rss_bytes),
    _figure(
        "container_memory_kernel_usage",
        "Kernel memory in bytes.",
        GAUGE,
        lambda subject: subject.figures.kernel_bytes,
    ),
    _figure(
        "container_memory_mapped_file",
        "Mapped files in bytes.",
        GAUGE,
        lambda subject: subject.figures.active_cache_bytes,
    ),
    _figure("container_memory_swap", "Swap in use, in bytes.", GAUGE, lambda subject: subject.figures.swap_bytes),
    _figure(
        "container_memory_failcnt",
        "How often memory ran into its limit and nothing could be freed.",
        COUNTER,
        lambda subject: subject.figures.out_of_memory_kills,
    ),
    _figure(
        "container_memory_usage_bytes",
        "All memory charged to the container, in bytes.",
        GAUGE,
        lambda subject: subject.figures.usage_bytes,
    ),
    _figure(
        "container_memory_max_usage_bytes",
        "The most memory ever charged, in bytes.",
        GAUGE,
        lambda subject: subject.figures.peak_bytes,
    ),
    _figure(
        "container_memory_working_set_bytes",
        "Memory that cannot be freed without cost, in bytes.",
        GAUGE,
        lambda subject: subject.figures.working_set_bytes,
    ),
    Row(
        "container_memory_failures_total",
        "Cumulative count of page faults.",
        COUNTER,
        _memory_failures,
        ("failure_type", "scope"),
    ),
    _figure(
        "container_oom_events_total",
        "Processes killed for want of memory.",
        COUNTER,
        lambda subject: subject.figures.out_of_memory_kills,
    ),
    Row(
        "container_hugetlb_usage_bytes", "Huge pages in use, in bytes.", GAUGE, lambda _: [(("2Mi",), 0)], ("pagesize",)
    ),
    Row(
        "container_hugetlb_max_usage_bytes",
        "The most huge pages ever in use, in bytes.",
        GAUGE,
        lambda _: [(("2Mi",), 0)],
        ("pagesize",),
    ),
)
_DISK: Final = (
    _on_device(
        "container_fs_inodes_free",
        "Inodes that are free on the file system.",
        GAUGE,
        lambda subject: FILESYSTEM_INODES - subject.runtime.images.inodes_used - _inodes(subject),
    ),
    _on_device("container_fs_inodes_total", "Inodes of the file system.", GAUGE, lambda subject: FILESYSTEM_INODES),
    _on_device(
        "container_fs_limit_bytes",
        "Bytes that the container may fill on the file system.",
        GAUGE,
        lambda subject: FILESYSTEM_BYTES,
    ),
    _on_device(
        "container_fs_usage_bytes",
        "Bytes that the container fills on the file system.",
        GAUGE,
        lambda subject: _inodes(subject) * stats.PAGE,
    ),
    _on_device(
        "container_fs_reads_bytes_total",
        "Cumulative count of bytes read.",
        COUNTER,
        lambda subject: subject.figures.read_bytes,
    ),
    _on_device(
        "container_fs_reads_total",
        "Cumulative count of reads.",
        COUNTER,
        lambda subject: subject.figures.reads,
    ),
    _on_device(
        "container_fs_writes_bytes_total",
        "Cumulative count of bytes written.",
        COUNTER,
        lambda subject: _inodes(subject) * stats.PAGE,
    ),
    _on_device("container_fs_writes_total", "Cumulative count of writes.", COUNTER, _inodes),
    Row(
        "container_blkio_device_usage_total",
        "Bytes that went through a block device.",
        COUNTER,
        _blkio,
        ("device", "major", "minor", "operation"),
    ),
)
_PROCESSES: Final = (
    _figure("container_processes", "Processes now.", GAUGE, lambda subject: subject.figures.processes),
    _figure("container_threads", "Threads now.", GAUGE, lambda subject: subject.figures.processes),
    _figure("container_threads_max", "The most threads allowed; 0 for no limit.", GAUGE, lambda _: 0),
    _figure(
        "container_file_descriptors",
        "Open file descriptors.",
        GAUGE,
        lambda subject: subject.figures.processes * DESCRIPTORS_PER_PROCESS,
    ),
    _figure("container_sockets", "Open sockets.", GAUGE, lambda _: 0),
    Row(
        "container_ulimits_soft",
        "Soft limits of the first process.",
        GAUGE,
        lambda _: [(("max_open_files",), OPEN_FILES_LIMIT)],
        ("ulimit",),
    ),
    _figure(
        "container_last_seen",
        "When the container was last seen, in unix seconds.",
        GAUGE,
        lambda subject: subject.runtime.clock.wall_ns // SECOND,
    ),
    _figure("container_start_time_seconds", "When the container started, in unix seconds.", GAUGE, _started_s),
)
_SPEC: Final = (
    _figure(
        "container_spec_cpu_period",
        "Enforcement period of the CPU quota, in µs.",
        GAUGE,
        lambda subject: subject.limits.cpu_period or stats.DEFAULT_PERIOD_US,
    ),
    Row("container_spec_cpu_quota", "CPU quota in µs per period.", GAUGE, _quota),
    _figure(
        "container_spec_cpu_shares",
        "CPU shares.",
        GAUGE,
        lambda subject: subject.limits.cpu_shares or DEFAULT_SHARES,
    ),
    _figure(
        "container_spec_memory_limit_bytes",
        "Memory limit in bytes; 0 for none.",
        GAUGE,
        _limit(lambda limits: limits.memory_limit_in_bytes),
    ),
    _figure(
        "container_spec_memory_swap_limit_bytes",
        "Limit of memory and swap together, in bytes; 0 for none.",
        GAUGE,
        _limit(lambda limits: limits.memory_swap_limit_in_bytes),
    ),
    _figure(
        "container_spec_memory_reservation_limit_bytes",
        "Memory that is left alone under pressure, in bytes; 0 for none.",
        GAUGE,
        _limit(lambda limits: int(limits.unified.get("memory.low", "0") or 0)),
    ),
)
#: Rows that every running container has.
CONTAINER_ROWS: Final[tuple[Row, ...]] = (
    *_CPU,
    *_MEMORY,
    *_DISK,
    *_PROCESSES,
    *_SPEC,
    *_pressure("cpu", lambda figures: figures.cpu_pressure),
    *_pressure("memory", lambda figures: figures.memory_pressure),
    *_pressure("io", lambda figures: figures.io_pressure),
)
#: Rows that every pod with a network of its own has.
POD_ROWS: Final[tuple[Row, ...]] = (
    *_network(
        "receive",
        "receiving",
        {
            "bytes": lambda interface: interface.received_bytes,
            "packets": lambda interface: interface.received_packets,
            "packets_dropped": lambda _: 0,
            "errors": lambda _: 0,
        },
    ),
    *_network(
        "transmit",
        "sending",
        {
            "bytes": lambda interface: interface.sent_bytes,
            "packets": lambda interface: interface.sent_packets,
            "packets_dropped": lambda _: 0,
            "errors": lambda _: 0,
        },
    ),
)
ROWS: Final[tuple[Row, ...]] = tuple(sorted((*CONTAINER_ROWS, *POD_ROWS), key=lambda row: row.name))
