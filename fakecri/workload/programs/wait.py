"""What runs in an image that was made up for an unknown reference: a process that is there, and leaves when asked."""

from __future__ import annotations

from fakecri.kernel.signals import Signal
from fakecri.workload.registry import resting

resting(
    "wait",
    summary="Rest, whatever the arguments, until SIGTERM, SIGINT or SIGQUIT, and exit 0.",
    memory_bytes=4 << 20,
    exits_on=dict.fromkeys((Signal.TERM, Signal.INT, Signal.QUIT), 0),
)
