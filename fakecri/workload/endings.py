"""Signal handlers that end a program."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakecri.kernel.program import Exit

if TYPE_CHECKING:
    from fakecri.kernel.context import ProcessContext
    from fakecri.kernel.program import SignalHandler


def _exit_handler(code: int) -> SignalHandler:
    def handle(number: int) -> None:
        raise Exit(code)

    return handle


#: Shared, since most processes of a node exit 0 when asked to.
_GRACEFUL = _exit_handler(0)


def exits(context: ProcessContext, code: int, *numbers: int) -> None:
    """Make the process end with ``code`` on each of the signals."""
    handler = _GRACEFUL if code == 0 else _exit_handler(code)
    for number in numbers:
        context.on_signal(number, handler)
