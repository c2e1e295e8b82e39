"""``true`` of POSIX."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakecri.workload.registry import program

if TYPE_CHECKING:
    from fakecri.kernel.context import ProcessContext


@program("true", memory_bytes=640 << 10)
def true_(context: ProcessContext) -> int:
    """Succeed, whatever the arguments."""
    return 0
