"""``sleep`` as busybox 1.36 has it: units, fractions, several arguments, infinity."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import TYPE_CHECKING, Final

from fakecri.workload.registry import program

if TYPE_CHECKING:
    from fakecri.base.steps import Steps
    from fakecri.kernel.context import ProcessContext

_UNITS_NS: Final = {"s": 10**9, "": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9, "d": 86400 * 10**9}
_NUMBER: Final = re.compile(r"(?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,2})?)(?P<unit>[smhd]?)")
_ENDLESS: Final = re.compile(r"inf(inity)?[smhd]?", re.IGNORECASE)


def parse_duration_ns(text: str) -> int | None:
    """Ns that ``text`` stands for, rounded down; None for an infinite time.

    Raises:
        ValueError: the text is no duration.
    """
    if _ENDLESS.fullmatch(text):
        return None
    found = _NUMBER.fullmatch(text)
    if found is None:
        raise ValueError(f"invalid number '{text}'")
    return int(Decimal(found["number"]) * _UNITS_NS[found["unit"]])


@program("sleep", memory_bytes=640 << 10, resumable=True)
def sleep(context: ProcessContext) -> Steps[int]:
    """Wait for the sum of the arguments: ``sleep N[smhd]...``; a bad one is exit code 1."""
    if len(context.argv) < 2:
        context.complain("sleep: missing operand")
        return 1
    total_ns: int | None = 0
    for argument in context.argv[1:]:
        try:
            duration_ns = parse_duration_ns(argument)
        except ValueError as error:
            context.complain(f"sleep: {error}")
            return 1
        total_ns = None if total_ns is None or duration_ns is None else total_ns + duration_ns
    if total_ns is None:
        yield from context.for_ever()
    else:
        yield from context.until_age(total_ns)
    return 0
