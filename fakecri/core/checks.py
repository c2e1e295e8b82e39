"""Ordered named checks: what a mutating RPC verifies before anything changes, in an order that is data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fakecri.core.runtime import Runtime

Check = Callable[["Runtime", Any], None]


def run_checks(runtime: Runtime, method: str, checks: Mapping[str, Check], subject: Any) -> None:
    """Run a method's checks on a subject in the personality's order, else in the order of ``checks``.

    The first that raises ``CriError`` ends the call. A personality may leave a check out by not naming it.

    Raises:
        KeyError: a personality names a check that the method does not have.
    """
    order = runtime.behaviour.check_orders.get(method)
    for name in checks if order is None else order:
        checks[name](runtime, subject)
