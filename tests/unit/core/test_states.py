"""The state tables: every (state, input) pair moves as its row says, or refuses and leaves the state untouched."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

import pytest

from fakecri.base.reasons import CriError, Reason
from fakecri.core import states
from fakecri.core.states import ContainerInput, ContainerState, EventType, Move, SandboxInput, SandboxState
from fakecri.wire import messages

SANDBOX_PAIRS = list(product(SandboxState, SandboxInput))
CONTAINER_PAIRS = list(product(ContainerState, ContainerInput))

#: (state, input) → state: what CRI and containerd make of each pair, written down beside the table on purpose.
SANDBOX_MOVES = {
    ("ABSENT", "RUN"): "READY",
    ("READY", "STOP"): "NOTREADY",
    ("READY", "DIE"): "NOTREADY",
    ("NOTREADY", "STOP"): "NOTREADY",
    ("NOTREADY", "REMOVE"): "ABSENT",
}
CONTAINER_MOVES = {
    ("ABSENT", "CREATE"): "CREATED",
    ("CREATED", "START"): "RUNNING",
    ("CREATED", "START_FAILED"): "EXITED",
    ("CREATED", "STOP"): "CREATED",
    ("CREATED", "REMOVE"): "ABSENT",
    ("RUNNING", "STOP"): "RUNNING",
    ("RUNNING", "EXIT"): "EXITED",
    ("RUNNING", "LOSE"): "UNKNOWN",
    ("EXITED", "STOP"): "EXITED",
    ("EXITED", "REMOVE"): "ABSENT",
    ("UNKNOWN", "STOP"): "EXITED",
    ("UNKNOWN", "REMOVE"): "ABSENT",
}


@dataclass
class Thing:
    """An entity that the tables govern."""

    state: Any
    id: str = "thing"


def name(value: Any) -> str:
    return str(value.name)


@pytest.mark.parametrize(("state", "given"), SANDBOX_PAIRS, ids=name)
def test_every_pair_of_a_sandbox(state: SandboxState, given: SandboxInput) -> None:
    expected = SANDBOX_MOVES.get((state.name, given.name))
    check_pair(states.SANDBOX, state, given, expected, Reason.SANDBOX_BAD_STATE)


@pytest.mark.parametrize(("state", "given"), CONTAINER_PAIRS, ids=name)
def test_every_pair_of_a_container(state: ContainerState, given: ContainerInput) -> None:
    expected = CONTAINER_MOVES.get((state.name, given.name))
    check_pair(states.CONTAINER, state, given, expected, Reason.CONTAINER_BAD_STATE)


def check_pair(table: states.Table, state: Any, given: Any, expected: str | None, refusal: Reason) -> None:
    thing = Thing(state)
    if expected is None:
        for act in (states.look_up, states.apply):
            with pytest.raises(CriError) as caught:
                act(table, thing, given)
            assert caught.value.reason is refusal
            assert caught.value.facts == {"id": "thing", "state": state.name, "input": given.name}
            assert thing.state is state
        return
    looked_up = states.look_up(table, thing, given)
    assert thing.state is state, "looking up changes nothing"
    assert states.apply(table, thing, given) is looked_up
    assert thing.state.name == expected
    assert type(thing.state) is type(state)


@pytest.mark.parametrize("table", [states.SANDBOX, states.CONTAINER], ids=["sandbox", "container"])
def test_a_residue_is_a_row_of_the_same_state(table: states.Table) -> None:
    residues = [(state, move.residue) for (state, _), move in table.items() if move.residue is not None]
    assert all(pair in table for pair in residues)


def test_a_failed_start_is_the_only_failure_that_leaves_anything() -> None:
    with_residue = {
        (state, given): move.residue
        for table in (states.SANDBOX, states.CONTAINER)
        for (state, given), move in table.items()
        if move.residue is not None
    }
    assert with_residue == {(ContainerState.CREATED, ContainerInput.START): ContainerInput.START_FAILED}


@pytest.mark.parametrize(
    ("table", "absent"),
    [(states.SANDBOX, SandboxState.ABSENT), (states.CONTAINER, ContainerState.ABSENT)],
    ids=["sandbox", "container"],
)
def test_coming_and_going_and_only_they_are_told_as_created_and_deleted(table: states.Table, absent: Any) -> None:
    for (state, _), move in table.items():
        assert (EventType.CREATED in move.emits) is (state is absent)
        assert (EventType.DELETED in move.emits) is (move.to is absent)


def test_leaving_running_is_told_as_stopped_once() -> None:
    for (state, _), move in states.CONTAINER.items():
        left_running = state is ContainerState.RUNNING and move.to is not ContainerState.RUNNING
        if left_running:
            assert move.emits == (EventType.STOPPED,)
        assert (EventType.STARTED in move.emits) is (move.to is ContainerState.RUNNING and state is not move.to)


def test_every_state_is_reachable_and_nothing_is_a_dead_end() -> None:
    for table, kind in ((states.SANDBOX, SandboxState), (states.CONTAINER, ContainerState)):
        reached = {move.to for move in table.values()}
        left = {state for (state, _), move in table.items() if move.to is not state}
        assert reached == set(kind) == left


def test_states_and_events_have_the_numbers_of_the_api() -> None:
    for state in SandboxState:
        if state is not SandboxState.ABSENT:
            assert getattr(messages, f"SANDBOX_{state.name}") == state
    for container_state in ContainerState:
        if container_state is not ContainerState.ABSENT:
            assert getattr(messages, f"CONTAINER_{container_state.name}") == container_state
    for event in EventType:
        assert getattr(messages, f"CONTAINER_{event.name}_EVENT") == event


def test_the_tables_are_read_only() -> None:
    with pytest.raises(TypeError):
        states.SANDBOX[(SandboxState.READY, SandboxInput.RUN)] = Move(SandboxState.READY)  # type: ignore[index]


def test_an_override_replaces_adds_and_takes_away_rows_and_leaves_the_base() -> None:
    before = dict(states.CONTAINER)
    kept_running = Move(ContainerState.RUNNING, emits=(EventType.STOPPED,))
    table = states.override(
        states.CONTAINER,
        {
            (ContainerState.RUNNING, ContainerInput.STOP): kept_running,
            (ContainerState.RUNNING, ContainerInput.REMOVE): Move(ContainerState.ABSENT),
            (ContainerState.UNKNOWN, ContainerInput.STOP): None,
        },
    )
    assert table[(ContainerState.RUNNING, ContainerInput.STOP)] is kept_running
    assert table[(ContainerState.RUNNING, ContainerInput.REMOVE)].to is ContainerState.ABSENT
    with pytest.raises(CriError):
        states.apply(table, Thing(ContainerState.UNKNOWN), ContainerInput.STOP)
    assert dict(states.CONTAINER) == before
    assert len(table) == len(before)
