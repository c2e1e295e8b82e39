"""The programs that exist: each is one decorated function in its own module of ``fakecri.workload.programs``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fakecri.kernel.program import Program

if TYPE_CHECKING:
    from collections.abc import Callable, MutableMapping

    from fakecri.kernel.curves import Curve
    from fakecri.kernel.program import Body

REGISTERED: Final[dict[str, Program]] = {}


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
    if not names:
        raise ValueError("a program needs a name")
    if memory_bytes <= 0:
        raise ValueError(f"program {names[0]}: memory_bytes must be positive, not {memory_bytes}")

    def register(body: Body) -> Body:
        for name in names:
            if name in registered:
                raise ValueError(f"two programs are named {name!r}: {registered[name].body!r} and {body!r}")
            registered[name] = Program(name, body, memory_bytes=memory_bytes, cpu=cpu, resumable=resumable)
        return body

    return register
