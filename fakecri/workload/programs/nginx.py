"""An nginx that serves nobody yet: its signals, its memory, its life."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakecri.kernel.curves import level
from fakecri.kernel.signals import Signal
from fakecri.workload.endings import exits
from fakecri.workload.registry import program

if TYPE_CHECKING:
    from fakecri.base.steps import Steps
    from fakecri.kernel.context import ProcessContext


@program("nginx", memory_bytes=8 << 20, cpu=level(1), resumable=True)
def nginx(context: ProcessContext) -> Steps[int]:
    """Wait until SIGTERM, SIGINT (fast) or SIGQUIT (graceful), and exit 0. It opens no port."""
    exits(context, 0, Signal.TERM, Signal.INT, Signal.QUIT)
    return context.for_ever()
