"""A loop that looks for a file, as many containers' start scripts have it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakecri.workload.registry import program

if TYPE_CHECKING:
    from fakecri.base.steps import Steps
    from fakecri.kernel.context import ProcessContext


@program("poll", memory_bytes=640 << 10, resumable=True)
def poll(context: ProcessContext) -> Steps[int]:
    """Look for a file without a rest until it is there, print its path, exit 0: ``poll PATH``."""
    if len(context.argv) != 2:
        context.complain("usage: poll PATH")
        return 2
    path = context.argv[1]
    while not context.exists(path):
        yield from context.command()
    context.print(path)
    return 0
