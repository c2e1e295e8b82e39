"""What a simulated process can execute: a named body, with the memory and idle CPU that it declares.

A body is called with the process's context. It returns its exit code, at once or as a generator of steps. It keeps
what matters in ``context.memory`` and in the process's age, so that a resumable one can be put down and taken up.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from fakecri.base.steps import Steps
    from fakecri.kernel.context import ProcessContext
    from fakecri.kernel.curves import Curve

Body: TypeAlias = "Callable[[ProcessContext], Steps[int] | int]"
#: Runs inside the process when the signal arrives; may itself take steps, and may raise ``Exit``.
SignalHandler: TypeAlias = "Callable[[int], Steps[None] | None]"


class Exit(Exception):
    """Raised inside a program (also by a signal handler) to end its process with ``code``."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class Files(Protocol):
    """The files that a process sees at its own paths: its image's, and what is mounted over them."""

    def exists(self, path: str) -> bool:
        """Whether anything is at the path now."""

    def read(self, path: str) -> bytes | None:
        """A file's content (its first 64 KiB when it lies on the host); None when there is no such file."""

    def write(self, path: str, content: bytes) -> None:
        """Replace or create a file.

        Raises:
            OSError: as the operating system would refuse (read-only mount, no such directory).
        """


_NO_SIGNALS: Final[Mapping[int, int]] = MappingProxyType({})


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """One executable thing."""

    name: str
    #: None: the program only rests until a signal ends it, and then costs nothing while it does.
    body: Body | None
    #: One sentence for people who look for a program.
    summary: str = ""
    #: Resident memory of one process that runs it.
    memory_bytes: int = 1 << 20
    #: Memory (bytes) as a function of the process's age in ns, where it is not constant.
    memory: Curve | None = None
    #: CPU use (millicores) as a function of the process's age in ns, beyond what its commands cost.
    cpu: Curve | None = None
    #: Whether the body, started in a process that is already old, goes on where a process of that age would be.
    resumable: bool = False
    #: Signals on which a program without a body ends of itself, and the exit code of each.
    exits_on: Mapping[int, int] = field(default_factory=lambda: _NO_SIGNALS)
