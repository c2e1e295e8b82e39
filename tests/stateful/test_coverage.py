"""The long way: everything that can be reached is, and nothing happens that the tables do not name."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import soak
from cri_machine.counts import Counts
from cri_machine.expected import CANCELS, REASONS, UNREACHABLE, differences
from cri_machine.operations import OPERATIONS
from cri_machine.report import written
from cri_machine.settings import SETTINGS

from fakecri.base.reasons import Reason
from fakecri.core.rpc.registry import HANDLERS

#: One worker goes the way, once, and may take its time.
pytestmark = [pytest.mark.timeout(900), pytest.mark.xdist_group("soak")]
SEED = 1
FULL = os.environ.get("FAKECRI_TESTS") == "full"
STEPS = 100_000 if FULL else 15_000
REPORT = Path(__file__).with_name("REPORT.md")


@pytest.fixture(scope="module")
def counts() -> Counts:
    """What was seen on the way; each step kept its invariants."""
    return soak.soak(STEPS, SEED)


def test_everything_is_reached_and_nothing_else_happens(counts) -> None:
    assert counts.steps == STEPS
    assert differences(counts) == []


def test_every_operation_and_every_invariant_had_its_turn(counts) -> None:
    assert set(counts.operations) == set(OPERATIONS)
    assert all(counts.checks.values())
    assert len(counts.checks) >= 18


def test_every_rpc_succeeded_too(counts) -> None:
    succeeded = {method for method, code in counts.outcomes if code == 0}
    endless = {"GetContainerEvents"}
    assert set(HANDLERS) - endless <= succeeded
    assert {method for method, code in counts.outcomes if code == -1} >= endless


def test_a_gap_is_noticed(counts) -> None:
    lacking = Counts(reasons=counts.reasons.copy(), pairs=counts.pairs.copy(), cancels=counts.cancels.copy())
    del lacking.reasons["RunPodSandbox", Reason.SHIM_MISSING]
    del lacking.pairs["container", "CREATED", "START"]
    del lacking.cancels["StopContainer", "wait"]
    lacking.reasons["Version", Reason.NO_COMMAND] += 1
    lacking.points["Version", "checked"] += 1
    assert len(differences(lacking)) == 5


def test_the_tables_speak_of_what_exists() -> None:
    assert set(REASONS) <= set(HANDLERS)
    assert set(CANCELS) <= set(HANDLERS)
    assert all(UNREACHABLE.values())
    assert not set(UNREACHABLE) & {reason for reasons in REASONS.values() for reason in reasons}


def test_the_report_that_is_kept_is_of_a_whole_run_that_found_nothing(counts) -> None:
    if FULL:
        REPORT.write_text(written(counts, SEED, differences(counts)))
    kept = REPORT.read_text()
    assert "Everything that must be reached was, and nothing else happened." in kept
    assert kept.startswith("# Report of the driven machine\n\n100000 steps")
    assert f"over {len(SETTINGS)} runtimes" in kept
