"""Ordered named checks: what a mutating RPC verifies before anything changes, in an order that is data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fakecri.core.runtime import Runtime

Check = Callable[["Runtime", Any], None]


def run_checks(
    runtime: Runtime, method: str, checks: Mapping[str, Check], subject: Any, default_order: tuple[str, ...]
) -> None:
    """Run a method's checks on a subject in the personality's order, else in the default one.

    The first that raises ``CriError`` ends the call; a check that an order does not name is not run.

    Raises:
        KeyError: an order names a check that the method does not have.
    """
    for name in runtime.behaviour.check_orders.get(method, default_order):
        checks[name](runtime, subject)
