"""The machine's time, and how virtual time follows it.

The rule: no other module of the package reads the machine's clock. It is read with ``clock_gettime_ns``, bound as a
default argument, so that neither a patched ``time.monotonic`` nor a frozen ``time.time`` in a test reaches the server.
"""

from __future__ import annotations

import asyncio
import re
import threading
import time
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from fakecri.clock import MILLISECOND, SECOND

if TYPE_CHECKING:
    from collections.abc import Callable

    from fakecri.engine import Engine

DEFAULT_QUIET_NS: Final = 20 * MILLISECOND
# Late CPU work is run in slices of at most this much real time, so that calls come in between.
_SLICE_NS: Final = MILLISECOND
_WORK_PIECES: Final = 8
# epoll cannot sleep for longer than this in one go; a timer further away is armed again.
_LONGEST_SLEEP_S: Final = 3600.0


def monotonic_ns(_read: Callable[[int], int] = time.clock_gettime_ns, _clock: int = time.CLOCK_MONOTONIC) -> int:
    """The machine's monotonic time in ns."""
    return _read(_clock)


def wall_ns(_read: Callable[[int], int] = time.clock_gettime_ns, _clock: int = time.CLOCK_REALTIME) -> int:
    """The machine's Unix time in ns."""
    return _read(_clock)


class ServiceLoop(asyncio.SelectorEventLoop):
    """An event loop whose own time cannot be frozen."""

    def time(self, _read: Callable[[int], float] = time.clock_gettime, _clock: int = time.CLOCK_MONOTONIC) -> float:
        """Seconds on the machine's monotonic clock."""
        return _read(_clock)


class Flow(Enum):
    """How virtual time moves while a server runs."""

    REAL = "real"
    """At the machine's rate."""
    RATE = "rate"
    """At a multiple of the machine's rate."""
    AUTOJUMP = "autojump"
    """At the machine's rate, and on to the next timer while a call waits and nothing else happens."""
    HOLD = "hold"
    """Only when somebody advances it."""


@dataclass(frozen=True, slots=True)
class ClockMode:
    """How virtual time follows real time.

    ``rate`` is virtual ns per real ns; ``quiet_ns`` is how long (real) no call may have come, no message left and no
    call ended before time jumps.
    """

    flow: Flow
    rate: Fraction = Fraction(1)
    quiet_ns: int = DEFAULT_QUIET_NS

    @classmethod
    def parse(cls, text: str) -> ClockMode:
        """The mode that ``real``, ``rate=N``, ``autojump``, ``autojump=20ms`` or ``hold`` names.

        Raises:
            ValueError: none of these, or a rate or span that is not positive.
        """
        name, equals, value = text.partition("=")
        if text in ("real", "autojump", "hold"):
            return cls(Flow(text))
        if name == "rate" and equals:
            if not re.fullmatch(r"[0-9]{1,6}(\.[0-9]{1,6})?", value) or Fraction(value) == 0:
                raise ValueError(f"clock rate {value!r} is not a positive number: write rate=60 or rate=0.5")
            return cls(Flow.RATE, rate=Fraction(value))
        if name == "autojump" and equals:
            return cls(Flow.AUTOJUMP, quiet_ns=_span_ns(value))
        raise ValueError(f"unknown clock {text!r}: it is real, rate=N, autojump, autojump=20ms or hold")

    def __str__(self) -> str:
        if self.flow is Flow.RATE:
            return f"rate={float(self.rate):g}"
        if self.flow is Flow.AUTOJUMP and self.quiet_ns != DEFAULT_QUIET_NS:
            return f"autojump={self.quiet_ns / MILLISECOND:g}ms"
        return str(self.flow.value)


def _span_ns(text: str) -> int:
    found = re.fullmatch(r"([0-9]{1,6}(?:\.[0-9]{1,6})?)(ms|s)", text)
    span = int(Fraction(found[1]) * (MILLISECOND if found[2] == "ms" else SECOND)) if found else 0
    if span <= 0:
        raise ValueError(f"{text!r} is not a span of real time: write autojump=20ms or autojump=1s")
    return span


class TimeDriver:
    """Moves one engine's virtual time, from one event loop.

    ``now_ns`` is the engine's ``time_source``: it is read, under the engine's lock, whenever anybody comes in, so a
    call never sees a stale time. This driver's own part is to wake when the next timer is due, to run late work in
    slices between which calls come first, and to jump.
    """

    def __init__(
        self,
        engine: Engine,
        mode: ClockMode,
        loop: asyncio.AbstractEventLoop,
        *,
        read_ns: Callable[[], int] = monotonic_ns,
    ) -> None:
        self._engine = engine
        self._mode = mode
        self._loop = loop
        self._read_ns = read_ns
        self._flows = mode.flow is not Flow.HOLD
        self._jumps = mode.flow is Flow.AUTOJUMP
        self._seen_ns = read_ns()
        self._carry = 0
        self._busy_ns = self._seen_ns
        self._thread = 0
        self._handle: asyncio.TimerHandle | asyncio.Handle | None = None
        self._armed_for: tuple[int | None, int | None] | None = None
        self._told = False
        self._running = False

    @property
    def mode(self) -> ClockMode:
        """How time moves."""
        return self._mode

    def start(self) -> None:
        """Let time flow from now on. Called in the loop's thread."""
        self._thread = threading.get_ident()
        self._seen_ns = self._busy_ns = self._read_ns()
        self._running = True
        self._engine.time_source = self._now_ns
        self._engine.on_due_changed = self._due_changed
        self._tick()

    def stop(self) -> None:
        """Let virtual time stand where it is. Called in the loop's thread."""
        self._running = False
        self._engine.time_source = None
        self._engine.on_due_changed = None
        self._disarm()

    def touch(self) -> None:
        """Something was exchanged with a client: a call came, a message left, or a call ended. No jump for a while."""
        if self._jumps:
            self._busy_ns = self._read_ns()

    # -- flow ------------------------------------------------------------------------------------------------------
    def _now_ns(self) -> int:
        """Virtual time now: where the clock stands plus what has flowed since it was last looked at."""
        seen_ns = self._read_ns()
        elapsed_ns, self._seen_ns = seen_ns - self._seen_ns, seen_ns
        if not self._flows:
            return self._engine.clock.now_ns
        rate = self._mode.rate
        flowed, self._carry = divmod(elapsed_ns * rate.numerator + self._carry, rate.denominator)
        return self._engine.clock.now_ns + flowed

    def _due_changed(self) -> None:
        """Timers may have changed, in any thread: look again, once, however many changes come at once."""
        if self._told or not self._running:
            return
        if threading.get_ident() != self._thread:
            self._told = True
            self._loop.call_soon_threadsafe(self._look_again)
        elif self._wanted() != self._armed_for:  # most calls change nothing, and cost no turn of the loop
            self._told = True
            self._loop.call_soon(self._look_again)

    def _look_again(self) -> None:
        self._told = False
        if self._running:
            self._arm(late=False)

    def _wanted(self) -> tuple[int | None, int | None]:
        """What decides when to wake: the next timer, and the time that a call waits for where that makes time jump."""
        return self._engine.next_due_ns(), self._engine.waiting_until_ns() if self._jumps else None

    # -- waking ----------------------------------------------------------------------------------------------------
    def _tick(self) -> None:
        self._handle = self._armed_for = None
        if not self._running:
            return
        engine, told = self._engine, self._told
        self._told = True  # what this tick itself changes is looked at below
        started_ns = self._read_ns()
        while True:
            target_ns = self._jump_target_ns()
            late = engine.advance_to(target_ns, _WORK_PIECES)
            if not (late or target_ns) or self._read_ns() - started_ns >= _SLICE_NS:
                break
        self._told = told
        self._arm(late)

    def _jump_target_ns(self) -> int:
        """Where to jump to; 0, which moves nothing, unless a call waits for the clock and clients are quiet."""
        if not self._jumps or self._read_ns() - self._busy_ns < self._mode.quiet_ns:
            return 0
        waiting_ns = self._engine.waiting_until_ns()
        due_ns = self._engine.next_due_ns()
        return min(waiting_ns, due_ns) if waiting_ns is not None and due_ns is not None else 0

    def _arm(self, late: bool) -> None:
        if late:
            self._disarm()
            self._handle = self._loop.call_soon(self._tick)
            return
        wanted = self._wanted()
        if wanted == self._armed_for:
            return
        self._disarm()
        self._armed_for = wanted
        delay_ns = self._delay_ns(*wanted)
        if delay_ns is not None:
            self._handle = self._loop.call_later(min(delay_ns / SECOND, _LONGEST_SLEEP_S), self._tick)

    def _delay_ns(self, due_ns: int | None, waiting_ns: int | None) -> int | None:
        """Real ns until something is to be done; None when only somebody else can bring that."""
        if due_ns is None:
            return None
        left_ns = due_ns - self._engine.clock.now_ns
        real_ns = self._read_ns()
        delay_ns = None
        if left_ns <= 0:
            delay_ns = 0
        elif self._flows:
            delay_ns = max(0, -(-left_ns * self._mode.rate.denominator // self._mode.rate.numerator))
            delay_ns = max(0, delay_ns - (real_ns - self._seen_ns))
        if waiting_ns is not None and delay_ns is not None:
            delay_ns = min(delay_ns, max(0, self._busy_ns + self._mode.quiet_ns - real_ns))
        return delay_ns

    def _disarm(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
        self._handle = self._armed_for = None
