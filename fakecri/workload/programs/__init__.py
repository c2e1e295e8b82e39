"""Every program that a simulated process can execute, by name. A module in this package adds one by being there."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from fakecri.workload.registry import REGISTERED

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fakecri.kernel.program import Program

for _module in sorted(found.name for found in iter_modules(__path__)):
    import_module(f"{__name__}.{_module}")

PROGRAMS: Final[Mapping[str, Program]] = MappingProxyType(REGISTERED)
