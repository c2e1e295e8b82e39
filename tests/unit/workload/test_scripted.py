"""Workloads that are told in advance."""

from __future__ import annotations

from itertools import islice
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakecri.clock import MILLISECOND, SECOND
from fakecri.kernel.curves import Curve, level
from fakecri.kernel.process import ProcessState
from fakecri.kernel.signals import Signal
from fakecri.workload.scripted import LogLine, ScriptedWorkload, SignalResponse


def start(node: Any, workload: ScriptedWorkload, **spec: Any) -> Any:
    return node.run("main", program=workload.program(), **spec)


def test_lines_come_at_their_times_in_order(node: Any) -> None:
    start(
        node,
        ScriptedWorkload(
            lines=(
                LogLine(2 * SECOND, "tick", every_ns=2 * SECOND, times=2),
                LogLine(SECOND, "once", descriptor=2),
                LogLine(4 * SECOND, "no end", newline=False),
            )
        ),
    )
    node.advance(20 * SECOND)
    assert node.output == [
        (SECOND, 2, b"once\n"),
        (2 * SECOND, 1, b"tick\n"),
        (4 * SECOND, 1, b"tick\n"),
        (4 * SECOND, 1, b"no end"),
    ]


def test_it_ends_when_it_is_told_to_with_its_code_and_message(node: Any) -> None:
    process = start(
        node,
        ScriptedWorkload(
            lines=(LogLine(0, "tick", every_ns=SECOND, times=None),),
            exit_after_ns=2500 * MILLISECOND,
            exit_code=3,
            termination_message="out of luck",
        ),
    )
    node.advance(10 * SECOND)
    assert (process.exit_code, process.finished_ns) == (3, 2500 * MILLISECOND)
    assert node.text() == b"tick\n" * 3
    assert node.files.contents == {"/dev/termination-log": b"out of luck"}


@pytest.mark.parametrize("number", [Signal.TERM, Signal.INT])
def test_it_answers_signals_as_told(node: Any, number: int) -> None:
    process = start(
        node,
        ScriptedWorkload(
            signals={
                Signal.TERM: SignalResponse(exit_code=7, after_ns=3 * SECOND, text="leaving"),
                Signal.INT: SignalResponse(exit_code=None),
                Signal.HUP: SignalResponse(exit_code=None, text="reloaded"),
            },
            termination_message="asked to",
        ),
        is_namespace_init=False,
    )
    node.advance(SECOND)
    node.signal(process, Signal.HUP)
    node.signal(process, number)
    node.advance(2 * SECOND)
    assert process.state is ProcessState.RUNNING
    node.advance(2 * SECOND)
    if number == Signal.TERM:
        assert (process.exit_code, process.finished_ns, node.text()) == (7, 4 * SECOND, b"reloaded\nleaving\n")
        assert node.files.contents == {"/dev/termination-log": b"asked to"}
    else:
        assert (process.ended, node.text()) == (False, b"reloaded\n")


def test_a_killed_one_leaves_no_message(node: Any) -> None:
    process = start(node, ScriptedWorkload(termination_message="never said"))
    node.advance(SECOND)
    node.signal(process, Signal.KILL)
    node.advance(SECOND)
    assert (process.exit_code, node.files.contents) == (137, {})


def test_its_usage_follows_its_curves(node: Any) -> None:
    memory = Curve(((0, 100), (10 * SECOND, 1100)))
    process = start(node, ScriptedWorkload(memory=memory, cpu=level(2000)))
    node.advance(5 * SECOND)
    usage = process.usage(node.clock.now_ns)
    assert (usage.memory_bytes, usage.cpu_ns) == (600, 10 * SECOND + process.spent_ns)


LINES = st.lists(
    st.builds(
        LogLine,
        at_ns=st.integers(0, 20),
        text=st.sampled_from("abc"),
        every_ns=st.integers(1, 5),
        times=st.one_of(st.none(), st.integers(0, 4)),
    ),
    max_size=4,
).map(tuple)


@given(LINES, st.integers(0, 30))
def test_going_on_at_an_age_leaves_out_exactly_what_was_said(lines: tuple[LogLine, ...], age: int) -> None:
    workload = ScriptedWorkload(lines=lines)
    whole = list(islice(workload.output(), 200))
    rest = list(islice(workload.output(age), 50))
    assert [said[0] for said in whole] == sorted(said[0] for said in whole)
    later = [said for said in whole if said[0] > age]
    # an endless line may have more than was taken of the whole
    assert rest[: len(later)] == later[: len(rest)]
    assert all(said[0] > age for said in rest)


def test_a_restored_one_goes_on(node: Any) -> None:
    workload = ScriptedWorkload(lines=(LogLine(0, "tick", every_ns=SECOND, times=None),), exit_after_ns=5 * SECOND)
    process = start(node, workload)
    node.advance(2500 * MILLISECOND)
    told = process.describe(node.clock.now_ns)
    node.signal(process, Signal.KILL)
    assert told["resumable"]
    again = start(node, workload, age_ns=told["age_ns"], spent_ns=told["spent_ns"])
    node.advance(10 * SECOND)
    assert node.text() == b"tick\n" * 6
    assert (again.exit_code, again.finished_ns) == (0, 5 * SECOND)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"at_ns": -1}, "not negative"),
        ({"every_ns": -1}, "not negative"),
        ({"descriptor": 3}, "descriptor is 1"),
        ({"times": None}, "positive every_ns"),
    ],
)
def test_a_bad_line_is_named(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=f"'text'.*{words}"):
        LogLine(**{"at_ns": 0, "text": "text", **wrong})
