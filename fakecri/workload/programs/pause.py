"""The pod's own process: it holds the pod's namespaces and does nothing.

Source: kubernetes/build/pause/linux/pause.c.
"""

from __future__ import annotations

from fakecri.kernel.signals import Signal
from fakecri.workload.registry import resting

resting(
    "pause",
    summary="Rest until SIGINT or SIGTERM, and exit 0.",
    memory_bytes=512 << 10,
    exits_on=dict.fromkeys((Signal.INT, Signal.TERM), 0),
)
