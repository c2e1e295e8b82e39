"""Ordered checks: core's order by default, a personality's order where it names one."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from fakecri.base.reasons import CriError, Reason
from fakecri.core.checks import Check, run_checks
from fakecri.core.traits import Behaviour


@pytest.fixture
def ran() -> list[tuple[str, Any]]:
    return []


@pytest.fixture
def checks(ran: list[tuple[str, Any]]) -> dict[str, Check]:
    def passing(name: str) -> Check:
        return lambda runtime, subject: ran.append((name, subject))

    def refusing(runtime: Any, subject: Any) -> None:
        raise CriError(Reason.CONTAINER_NAME_EMPTY)

    return {"first": passing("first"), "second": passing("second"), "name": refusing, "last": passing("last")}


def runtime(**orders: tuple[str, ...]) -> Any:
    return SimpleNamespace(behaviour=Behaviour(check_orders=orders))


def test_checks_run_in_cores_order_until_one_refuses(checks: dict[str, Check], ran: list[tuple[str, Any]]) -> None:
    with pytest.raises(CriError) as caught:
        run_checks(runtime(), "CreateContainer", checks, "request", tuple(checks))
    assert caught.value.reason is Reason.CONTAINER_NAME_EMPTY
    assert ran == [("first", "request"), ("second", "request")]


def test_a_personality_reorders_and_leaves_out(checks: dict[str, Check], ran: list[tuple[str, Any]]) -> None:
    run_checks(runtime(CreateContainer=("last", "first")), "CreateContainer", checks, "request", tuple(checks))
    assert [name for name, _ in ran] == ["last", "first"]


def test_an_order_counts_for_its_own_method_only(checks: dict[str, Check], ran: list[tuple[str, Any]]) -> None:
    with pytest.raises(CriError):
        run_checks(runtime(RunPodSandbox=()), "CreateContainer", checks, "request", tuple(checks))
    assert [name for name, _ in ran] == ["first", "second"]


def test_an_empty_order_means_no_checks(checks: dict[str, Check], ran: list[tuple[str, Any]]) -> None:
    run_checks(runtime(CreateContainer=()), "CreateContainer", checks, "request", tuple(checks))
    assert ran == []


def test_a_check_that_does_not_exist_is_named(checks: dict[str, Check]) -> None:
    with pytest.raises(KeyError, match="nmae"):
        run_checks(runtime(CreateContainer=("nmae",)), "CreateContainer", checks, "request", tuple(checks))
