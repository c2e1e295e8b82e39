"""An endless loop, to see what a busy container does to a node and its runtime."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakecri.workload.registry import program

if TYPE_CHECKING:
    from fakecri.base.steps import Steps
    from fakecri.kernel.context import ProcessContext


@program("spin", memory_bytes=640 << 10, resumable=True)
def spin(context: ProcessContext) -> Steps[int]:
    """Run commands without a rest, for ever: ``while :; do :; done``."""
    while True:
        yield from context.command()
