"""What runs in an image that was made up for an unknown reference: a process that is there, and leaves when asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakecri.kernel.signals import Signal
from fakecri.workload.endings import exits
from fakecri.workload.registry import program

if TYPE_CHECKING:
    from fakecri.base.steps import Steps
    from fakecri.kernel.context import ProcessContext


@program("wait", memory_bytes=4 << 20, resumable=True)
def wait(context: ProcessContext) -> Steps[int]:
    """Wait, whatever the arguments, until SIGTERM, SIGINT or SIGQUIT, and exit 0."""
    exits(context, 0, Signal.TERM, Signal.INT, Signal.QUIT)
    return context.for_ever()
