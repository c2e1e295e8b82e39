"""An Apache that serves nobody yet: its signals, its memory, its life."""

from __future__ import annotations

from fakecri.kernel.curves import level
from fakecri.kernel.signals import Signal
from fakecri.workload.registry import resting

resting(
    "httpd-foreground",
    summary="Rest until SIGTERM, SIGINT (fast) or SIGWINCH (graceful), and exit 0. It opens no port.",
    memory_bytes=12 << 20,
    cpu=level(1),
    exits_on=dict.fromkeys((Signal.TERM, Signal.INT, Signal.WINCH), 0),
)
