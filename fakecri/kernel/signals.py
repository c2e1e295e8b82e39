"""Signals as Linux numbers and names them (x86-64), and what each does to a process that set nothing for it.

Source: signal(7). Real-time signals run from 34 (glibc takes 32 and 33) to 64 and all terminate.
"""

from __future__ import annotations

import re
from enum import Enum, IntEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping


class Signal(IntEnum):
    """The standard signals; real-time ones are plain integers from ``SIGRTMIN`` to ``SIGRTMAX``."""

    HUP = 1
    INT = 2
    QUIT = 3
    ILL = 4
    TRAP = 5
    ABRT = 6
    BUS = 7
    FPE = 8
    KILL = 9
    USR1 = 10
    SEGV = 11
    USR2 = 12
    PIPE = 13
    ALRM = 14
    TERM = 15
    STKFLT = 16
    CHLD = 17
    CONT = 18
    STOP = 19
    TSTP = 20
    TTIN = 21
    TTOU = 22
    URG = 23
    XCPU = 24
    XFSZ = 25
    VTALRM = 26
    PROF = 27
    WINCH = 28
    IO = 29
    PWR = 30
    SYS = 31


SIGRTMIN: Final = 34
SIGRTMAX: Final = 64

_ALIASES: Final = {"IOT": Signal.ABRT, "POLL": Signal.IO, "CLD": Signal.CHLD, "RTMIN": SIGRTMIN, "RTMAX": SIGRTMAX}
_REAL_TIME: Final = re.compile(r"(RTMIN(?:\+|PLUS)|RTMAX(?:-|MINUS))([0-9]{1,2})")


class DefaultAction(Enum):
    """What the kernel does when a process neither handles nor ignores a signal."""

    TERMINATE = "terminate"
    CORE = "terminate and dump core"
    IGNORE = "ignore"
    STOP = "stop"
    CONTINUE = "continue"


_ACTIONS: Final[Mapping[int, DefaultAction]] = {
    **dict.fromkeys(
        (
            Signal.QUIT,
            Signal.ILL,
            Signal.TRAP,
            Signal.ABRT,
            Signal.BUS,
            Signal.FPE,
            Signal.SEGV,
            Signal.XCPU,
            Signal.XFSZ,
            Signal.SYS,
        ),
        DefaultAction.CORE,
    ),
    **dict.fromkeys((Signal.CHLD, Signal.URG, Signal.WINCH), DefaultAction.IGNORE),
    **dict.fromkeys((Signal.STOP, Signal.TSTP, Signal.TTIN, Signal.TTOU), DefaultAction.STOP),
    Signal.CONT: DefaultAction.CONTINUE,
}

#: No process can handle, ignore or block these two.
UNBLOCKABLE: Final = frozenset({int(Signal.KILL), int(Signal.STOP)})


class UnknownSignal(ValueError):
    """A name or number that is no signal; ``given`` is what was asked for."""

    def __init__(self, given: str | int) -> None:
        super().__init__(
            f"unknown signal {given!r}: give a name such as SIGTERM or SIGRTMIN+3, or a number 1-31, 34-64"
        )
        self.given = given


def is_signal(number: int) -> bool:
    """Whether a process can be sent this number."""
    return Signal.HUP <= number <= Signal.SYS or SIGRTMIN <= number <= SIGRTMAX


def default_action(number: int) -> DefaultAction:
    """What ``number`` does by default."""
    return _ACTIONS.get(number, DefaultAction.TERMINATE)


def parse_signal(text: str) -> int:
    """The number of ``SIGTERM``, ``TERM``, ``sigterm``, ``15``, ``SIGRTMIN+3`` or CRI's ``SIGRTMINPLUS3``.

    Raises:
        UnknownSignal: the text is neither.
    """
    name = text.strip().upper().removeprefix("SIG")
    number = 0
    if name.isascii() and name.isdigit():
        number = int(name)
    elif name in Signal.__members__:
        number = Signal[name]
    elif name in _ALIASES:
        number = _ALIASES[name]
    elif found := _REAL_TIME.fullmatch(name):
        offset = int(found[2])
        number = SIGRTMIN + offset if found[1].startswith("RTMIN") else SIGRTMAX - offset
        number = number if SIGRTMIN <= number <= SIGRTMAX else 0
    if not is_signal(number):
        raise UnknownSignal(text)
    return int(number)


def signal_name(number: int) -> str:
    """``SIGTERM`` for 15, ``SIGRTMIN+3`` for 37, ``SIGRTMAX-2`` for 62: as bash's ``kill -l`` prints them.

    Raises:
        UnknownSignal: there is no such signal.
    """
    if not is_signal(number):
        raise UnknownSignal(number)
    if number <= Signal.SYS:
        return f"SIG{Signal(number).name}"
    if number <= (SIGRTMIN + SIGRTMAX) // 2:
        return f"SIGRTMIN+{number - SIGRTMIN}" if number > SIGRTMIN else "SIGRTMIN"
    return f"SIGRTMAX-{SIGRTMAX - number}" if number < SIGRTMAX else "SIGRTMAX"
