"""The state tables of pod sandbox and container: the only place where a state changes.

A row is ``(state, input) → Move``. A pair without a row is a refusal and changes nothing. A move may name a *residue*:
the input that is applied instead when the call that asked for the move fails after it began (a failed start leaves
EXITED/128/StartError in containerd; most leave nothing). A personality overrides rows, never code. The diagrams in the
documentation are drawn from these tables.

States are CRI's (``PodSandboxState``, ``ContainerState``), with ABSENT before creation and after removal.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, IntEnum
from types import MappingProxyType
from typing import Any, Final, Protocol, TypeAlias

from fakecri.base.reasons import CriError, Reason


class SandboxState(IntEnum):
    """``runtime.v1.PodSandboxState`` and the state of not being there."""

    READY = 0
    NOTREADY = 1
    ABSENT = -1


class ContainerState(IntEnum):
    """``runtime.v1.ContainerState`` and the state of not being there."""

    CREATED = 0
    RUNNING = 1
    EXITED = 2
    UNKNOWN = 3
    ABSENT = -1


class EventType(IntEnum):
    """``runtime.v1.ContainerEventType``."""

    CREATED = 0
    STARTED = 1
    STOPPED = 2
    DELETED = 3


class SandboxInput(Enum):
    """What can happen to a pod sandbox."""

    RUN = "RunPodSandbox succeeds"
    NETWORK_FAILED = "the network set-up of RunPodSandbox fails"
    STOP = "StopPodSandbox"
    DIE = "the sandbox process dies"
    REMOVE = "RemovePodSandbox"


class ContainerInput(Enum):
    """What can happen to a container."""

    CREATE = "CreateContainer succeeds"
    START = "StartContainer succeeds"
    START_FAILED = "StartContainer fails to run the process"
    STOP = "StopContainer"
    EXIT = "the main process ends"
    LOSE = "the runtime loses track of the process"
    REMOVE = "RemoveContainer"


State: TypeAlias = SandboxState | ContainerState
Input: TypeAlias = SandboxInput | ContainerInput


@dataclass(frozen=True, slots=True)
class Move:
    """One row: the state it leads to, the events it emits in order, and what a failed attempt leaves."""

    to: State
    emits: tuple[EventType, ...] = ()
    residue: Input | None = None


Table: TypeAlias = Mapping[tuple[State, Input], Move]

_S, _SI = SandboxState, SandboxInput
_C, _CI = ContainerState, ContainerInput

#: containerd 2.1.9 where measured.
SANDBOX: Final[Table] = MappingProxyType(
    {
        (_S.ABSENT, _SI.RUN): Move(_S.READY, emits=(EventType.CREATED, EventType.STARTED)),
        (_S.READY, _SI.STOP): Move(_S.NOTREADY, emits=(EventType.STOPPED,)),
        (_S.READY, _SI.DIE): Move(_S.NOTREADY, emits=(EventType.STOPPED,)),
        (_S.NOTREADY, _SI.STOP): Move(_S.NOTREADY),
        (_S.NOTREADY, _SI.REMOVE): Move(_S.ABSENT, emits=(EventType.DELETED,)),
    }
)

CONTAINER: Final[Table] = MappingProxyType(
    {
        (_C.ABSENT, _CI.CREATE): Move(_C.CREATED, emits=(EventType.CREATED,)),
        (_C.CREATED, _CI.START): Move(_C.RUNNING, emits=(EventType.STARTED,), residue=_CI.START_FAILED),
        (_C.CREATED, _CI.START_FAILED): Move(_C.EXITED),
        (_C.CREATED, _CI.STOP): Move(_C.CREATED),
        (_C.CREATED, _CI.REMOVE): Move(_C.ABSENT, emits=(EventType.DELETED,)),
        (_C.RUNNING, _CI.STOP): Move(_C.RUNNING),
        (_C.RUNNING, _CI.EXIT): Move(_C.EXITED, emits=(EventType.STOPPED,)),
        (_C.RUNNING, _CI.LOSE): Move(_C.UNKNOWN, emits=(EventType.STOPPED,)),
        (_C.EXITED, _CI.STOP): Move(_C.EXITED),
        (_C.EXITED, _CI.REMOVE): Move(_C.ABSENT, emits=(EventType.DELETED,)),
        (_C.UNKNOWN, _CI.STOP): Move(_C.EXITED, emits=(EventType.STOPPED,)),
        (_C.UNKNOWN, _CI.REMOVE): Move(_C.ABSENT, emits=(EventType.DELETED,)),
    }
)

#: The refusal that an absent pair raises, by the kind of input.
REFUSALS: Final[Mapping[type[Input], Reason]] = MappingProxyType(
    {SandboxInput: Reason.SANDBOX_BAD_STATE, ContainerInput: Reason.CONTAINER_BAD_STATE}
)


class Stateful(Protocol):
    """What the tables govern: an entity with an id and a state."""

    id: str
    state: Any


def look_up(table: Table, entity: Stateful, given: Input) -> Move:
    """The row for an entity's state and an input; changes nothing.

    Raises:
        CriError: there is no such row; the facts are ``id``, ``state`` and ``input``.
    """
    move = table.get((entity.state, given))
    if move is None:
        raise CriError(REFUSALS[type(given)], id=entity.id, state=entity.state.name, input=given.name)
    return move


def apply(table: Table, entity: Stateful, given: Input) -> Move:
    """Make the move; the one place in the project that assigns a state.

    Raises:
        CriError: there is no such row, and nothing has changed.
    """
    move = look_up(table, entity, given)
    entity.state = move.to
    return move


def override(base: Table, rows: Mapping[tuple[State, Input], Move | None]) -> Table:
    """A table with rows replaced, added, or (None) taken away."""
    merged = {**base, **rows}
    return MappingProxyType({pair: move for pair, move in merged.items() if move is not None})
