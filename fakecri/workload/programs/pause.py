"""The pod's own process: it holds the pod's namespaces. Source: Kubernetes' ``build/pause/linux/pause.c``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakecri.kernel.signals import Signal
from fakecri.workload.endings import exits
from fakecri.workload.registry import program

if TYPE_CHECKING:
    from fakecri.base.steps import Steps
    from fakecri.kernel.context import ProcessContext


@program("pause", memory_bytes=512 << 10, resumable=True)
def pause(context: ProcessContext) -> Steps[int]:
    """Wait until SIGINT or SIGTERM, and exit 0."""
    exits(context, 0, Signal.INT, Signal.TERM)
    return context.for_ever()
