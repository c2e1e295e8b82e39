"""A program that ends with the exit code that its argument says; no real image has it, described ones may."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakecri.workload.registry import program

if TYPE_CHECKING:
    from fakecri.kernel.context import ProcessContext


@program("exit", memory_bytes=640 << 10)
def exit_(context: ProcessContext) -> int:
    """End with exit code N (0-255, larger ones modulo 256): ``exit [N]``; 2 when N is no number."""
    if len(context.argv) < 2:
        return 0
    code = context.argv[1]
    if not (code.isascii() and code.isdigit()):
        context.complain(f"exit: Illegal number: {code}")
        return 2
    return int(code) & 0xFF
