"""A workload as plain values: what it logs and when, what it uses, how it ends. Scenarios and tests write these.

Everything is a function of the process's age, so a scripted workload that is put down by a checkpoint goes on.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from heapq import merge
from itertools import count, islice
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from fakecri.kernel.process import Disposition
from fakecri.kernel.program import Exit, Program

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from fakecri.base.steps import Steps
    from fakecri.kernel.context import ProcessContext
    from fakecri.kernel.curves import Curve
    from fakecri.kernel.program import SignalHandler

TERMINATION_MESSAGE_PATH: Final = "/dev/termination-log"
_NO_SIGNALS: Final[Mapping[int, SignalResponse]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class LogLine:
    """Output at an age (ns): once, or ``times`` times (None: for ever), ``every_ns`` apart."""

    at_ns: int
    text: str
    descriptor: int = 1
    every_ns: int = 0
    times: int | None = 1
    #: False: the text does not end a line.
    newline: bool = True

    def __post_init__(self) -> None:
        if self.at_ns < 0 or self.every_ns < 0:
            raise ValueError(f"log line {self.text!r}: times are ns since the start and not negative")
        if self.descriptor not in (1, 2):
            raise ValueError(f"log line {self.text!r}: descriptor is 1 (stdout) or 2 (stderr), not {self.descriptor}")
        if self.times is None and self.every_ns == 0:
            raise ValueError(f"log line {self.text!r}: to be repeated for ever it needs a positive every_ns")


@dataclass(frozen=True, slots=True)
class SignalResponse:
    """What the workload does on a signal: nothing (``exit_code`` None), or end after a while."""

    exit_code: int | None = 0
    after_ns: int = 0
    #: Printed when the signal comes.
    text: str = ""


@dataclass(frozen=True, slots=True)
class ScriptedWorkload:
    """A container's first process, told in advance."""

    name: str = "scripted"
    lines: tuple[LogLine, ...] = ()
    #: When it ends by itself; None: never.
    exit_after_ns: int | None = None
    exit_code: int = 0
    #: Signal number → response; others have their default action.
    signals: Mapping[int, SignalResponse] = field(default_factory=lambda: _NO_SIGNALS)
    memory_bytes: int = 1 << 20
    #: Bytes, and millicores, by age in ns.
    memory: Curve | None = None
    cpu: Curve | None = None
    #: Written to ``termination_message_path`` when it ends by itself or by a response.
    termination_message: str = ""
    termination_message_path: str = TERMINATION_MESSAGE_PATH

    def program(self) -> Program:
        """The program to give to ``ProcessSpec(program=…)``."""
        return Program(
            self.name, self._run, memory_bytes=self.memory_bytes, memory=self.memory, cpu=self.cpu, resumable=True
        )

    def output(self, after_ns: int | None = None) -> Iterator[tuple[int, int, bytes]]:
        """(age ns, descriptor, bytes) in order of time, then of ``lines``; those later than ``after_ns`` alone."""
        begin_ns = -1 if after_ns is None else after_ns
        ordered = [_occurrences(line, position, begin_ns) for position, line in enumerate(self.lines)]
        for at_ns, position in merge(*ordered):
            line = self.lines[position]
            yield at_ns, line.descriptor, line.text.encode() + (b"\n" if line.newline else b"")

    def _run(self, context: ProcessContext) -> Steps[int]:
        for number, response in self.signals.items():
            context.on_signal(number, self._responder(context, response))
        resumed_ns = context.process.spec.age_ns
        for at_ns, descriptor, text in self.output(resumed_ns or None):
            if self.exit_after_ns is not None and at_ns > self.exit_after_ns:
                break
            yield from context.until_age(at_ns)
            context.write(descriptor, text)
        if self.exit_after_ns is None:
            yield from context.for_ever()
        else:
            yield from context.until_age(self.exit_after_ns)
        self._say_last(context)
        return self.exit_code

    def _responder(self, context: ProcessContext, response: SignalResponse) -> SignalHandler | Disposition:
        if response.exit_code is None and not response.text:
            return Disposition.IGNORE

        def respond(number: int) -> Steps[None]:
            if response.text:
                context.print(response.text)
            if response.exit_code is not None:
                if response.after_ns:
                    yield from context.sleep(response.after_ns)
                self._say_last(context)
                raise Exit(response.exit_code)

        return respond

    def _say_last(self, context: ProcessContext) -> None:
        if self.termination_message:
            context.write_file(self.termination_message_path, self.termination_message.encode())


def _occurrences(line: LogLine, position: int, after_ns: int) -> Iterator[tuple[int, int]]:
    missed = 0
    if after_ns >= line.at_ns:
        missed = (after_ns - line.at_ns) // line.every_ns + 1 if line.every_ns else line.times or 0
    left = None if line.times is None else max(line.times - missed, 0)
    return ((line.at_ns + line.every_ns * turn, position) for turn in islice(count(missed), left))
