"""The programs that exist: each is one decorated function in its own module of ``fakecri.workload.programs``."""

from __future__ import annotations

from inspect import getdoc
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from fakecri.kernel.program import Program

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, MutableMapping

    from fakecri.kernel.curves import Curve
    from fakecri.kernel.program import Body

REGISTERED: Final[dict[str, Program]] = {}


def resting(
    *names: str,
    summary: str,
    memory_bytes: int,
    exits_on: Mapping[int, int],
    cpu: Curve | None = None,
    registered: MutableMapping[str, Program] = REGISTERED,
) -> None:
    """Register a program that only rests until a signal ends it; ``exits_on`` maps signal numbers to exit codes.

    Raises:
        ValueError: as ``program``.
    """
    signals = MappingProxyType(dict(exits_on))
    for name in _checked(names, memory_bytes, registered):
        registered[name] = Program(
            name, None, summary=summary, memory_bytes=memory_bytes, cpu=cpu, resumable=True, exits_on=signals
        )


def _checked(names: tuple[str, ...], memory_bytes: int, registered: MutableMapping[str, Program]) -> tuple[str, ...]:
    if not names:
        raise ValueError("a program needs a name")
    if memory_bytes <= 0:
        raise ValueError(f"program {names[0]}: memory_bytes must be positive, not {memory_bytes}")
    for name in names:
        if name in registered:
            raise ValueError(f"two programs are named {name!r}: {registered[name].body!r} is there already")
    return names


def program(
    *names: str,
    memory_bytes: int,
    cpu: Curve | None = None,
    resumable: bool = False,
    registered: MutableMapping[str, Program] = REGISTERED,
) -> Callable[[Body], Body]:
    """Register a body under its names; images give it paths.

    ``cpu`` is what it uses (millicores by age in ns) beyond its commands. ``resumable`` promises that the body goes on
    where it was when its process is started at an age.

    Raises:
        ValueError: a name is taken or none is given, or the memory is not positive.
    """
    _checked(names, memory_bytes, registered)

    def register(body: Body) -> Body:
        summary = (getdoc(body) or "").strip().split("\n\n")[0]
        for name in names:
            registered[name] = Program(
                name, body, summary=summary, memory_bytes=memory_bytes, cpu=cpu, resumable=resumable
            )
        return body

    return register
