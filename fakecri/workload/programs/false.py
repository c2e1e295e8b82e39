"""``false`` of POSIX."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakecri.workload.registry import program

if TYPE_CHECKING:
    from fakecri.kernel.context import ProcessContext


@program("false", memory_bytes=640 << 10)
def false_(context: ProcessContext) -> int:
    """Fail with exit code 1, whatever the arguments."""
    return 1
