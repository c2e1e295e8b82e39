"""Nothing of a personality is there for show: take away any row, form or trait, and some call has another outcome.

Each mutant is one personality with one thing changed; the script of ``conftest.py`` is played on it, and at least one
call must bring something else. Forms and wrappers need no playing again: the refusals that the script meets are put
into words once more. What no call can notice is named here, with its reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from enum import Enum
from types import MappingProxyType
from typing import Any

import pytest

from fakecri.base.reasons import Code, CriError, Reason
from fakecri.core.rpc import container_create, image_pull, sandbox_run
from fakecri.core.rpc.registry import HANDLERS
from fakecri.core.states import ContainerInput, ContainerState, Move, SandboxInput, SandboxState
from fakecri.core.traits import (
    ImageInUse,
    ListStatsWithStopped,
    OnInvalidReference,
    OnUnknown,
    RunningOnRemove,
    StoppedContainerCalls,
    Traits,
)
from fakecri.personality.model import Form, Personality, WordingError, derive, word
from fakecri.personality.registry import PERSONALITIES

REFERENCE = PERSONALITIES["reference"]
#: Personality → the relative that it is written as a difference from.
RELATIVES = {"containerd-2.1": REFERENCE, "containerd-1.6": PERSONALITIES["containerd-2.1"]}

#: Reason → why the script cannot meet it.
NOT_MET = {
    Reason.CLIENT_GONE: "told to nobody: the client is gone",
    Reason.DEADLINE: "the client's own library says it",
    Reason.UNFORESEEN: "a mistake in the project",
    Reason.SHUTTING_DOWN: "the door's",
    Reason.REQUEST_TOO_LARGE: "16 MiB: tests/service/test_door.py sends them",
    Reason.RESPONSE_TOO_LARGE: "16 MiB: tests/service/test_door.py lists them",
    Reason.APPARMOR_PROFILE_MISSING: "no check raises it yet",
    Reason.RESOURCES_INVALID: "no check raises it yet",
    Reason.CHECKPOINT_TIMED_OUT: "needs a container of several GiB",
}

Observe = Callable[[Personality], dict[str, str]]


def changed(personality: Personality, **behaviour: Any) -> Personality:
    return replace(personality, behaviour=replace(personality.behaviour, **behaviour))


# -- mutants of what core reads ----------------------------------------------------------------------------------------
def trait_mutants(personality: Personality) -> Iterator[tuple[str, Personality]]:
    """Every trait, set to each of its other values."""
    ours = personality.behaviour.traits
    for field in fields(Traits):
        value = getattr(ours, field.name)
        assert isinstance(value, Enum), f"{field.name}: how are other values of it found?"
        for other in type(value):
            if other is not value:
                yield f"{field.name}: {other.name}", changed(personality, traits=replace(ours, **{field.name: other}))


def row_mutants(personality: Personality) -> Iterator[tuple[str, Personality]]:
    """Every table row taken away, and every row without its events or its residue."""
    for name in ("sandbox_table", "container_table"):
        table = getattr(personality.behaviour, name)
        for pair, move in table.items():
            label = f"{name}: {pair[0].name} {pair[1].name}"
            less = {key: row for key, row in table.items() if key != pair}
            yield f"{label} taken away", changed(personality, **{name: MappingProxyType(less)})
            for part, nothing in (("emits", ()), ("residue", None)):
                if getattr(move, part):
                    row = replace(move, **{part: nothing})
                    other = MappingProxyType({**table, pair: row})
                    yield f"{label} without {part}", changed(personality, **{name: other})


def reverted(child: Personality, base: Personality) -> Iterator[tuple[str, Personality]]:
    """Everything in which a relative differs, one after the other set back to the base's."""
    ours, theirs = child.behaviour, base.behaviour
    for field in fields(Traits):
        if getattr(ours.traits, field.name) is not getattr(theirs.traits, field.name):
            traits = replace(ours.traits, **{field.name: getattr(theirs.traits, field.name)})
            yield field.name, changed(child, traits=traits)
    for part in ("sandbox_table", "container_table", "check_orders", "strategies", "unimplemented", "info_keys"):
        mine, other = getattr(ours, part), getattr(theirs, part)
        for key in mine.keys() | other.keys():
            if mine.get(key) != other.get(key):
                table = {**mine, key: other.get(key)}
                kept = MappingProxyType({name: value for name, value in table.items() if value is not None})
                yield f"{part}: {key}", changed(child, **{part: kept})
    for part in ("conditions",):
        if getattr(ours, part) != getattr(theirs, part):
            yield part, changed(child, **{part: getattr(theirs, part)})
    for part in ("runtime_name", "runtime_version"):
        if getattr(child, part) != getattr(base, part):
            yield part, replace(child, **{part: getattr(base, part)})


def survivors(observe: Observe, personality: Personality, mutants: Iterator[tuple[str, Personality]]) -> list[str]:
    """Names of mutants of which no call tells."""
    normal = observe(personality)
    return [name for name, mutant in mutants if observe(mutant) == normal]


def test_the_script_brings_the_same_twice(observe):
    for personality in PERSONALITIES.values():
        outcomes = observe(personality)
        assert observe(personality) == outcomes
        assert outcomes["failures"] == ""


def test_every_trait_is_noticed(observe):
    assert survivors(observe, REFERENCE, trait_mutants(REFERENCE)) == []


def test_every_row_is_noticed(observe):
    assert survivors(observe, REFERENCE, row_mutants(REFERENCE)) == []


@pytest.mark.parametrize("name", RELATIVES)
def test_every_difference_from_a_relative_is_noticed(observe, name):
    personality = PERSONALITIES[name]
    assert survivors(observe, personality, reverted(personality, RELATIVES[name])) == []


# -- mutants of words --------------------------------------------------------------------------------------------------
def strict(personality: Personality) -> Personality:
    """A relative that refuses whatever core can refuse, in the same words."""
    orders = {
        "RunPodSandbox": tuple(sandbox_run.CHECKS),
        "CreateContainer": tuple(container_create.CHECKS),
        "PullImage": tuple(image_pull.CHECKS),
    }
    traits = {
        "image_in_use": ImageInUse.REFUSE,
        "list_stats_with_stopped": ListStatsWithStopped.FAIL,
        "invalid_reference": OnInvalidReference.REFUSE,
        "remove_unknown_image": OnUnknown.NOT_FOUND,
        "running_on_remove": RunningOnRemove.REFUSE,
        "update_of_exited": StoppedContainerCalls.REFUSE,
        "stop_unknown_container": OnUnknown.NOT_FOUND,
        "stop_unknown_sandbox": OnUnknown.NOT_FOUND,
        "remove_unknown_container": OnUnknown.NOT_FOUND,
    }
    return derive(
        personality,
        name=personality.name,
        summary="",
        traits=traits,
        behaviour={"check_orders": orders},
        sandbox_rows={(SandboxState.NOTREADY, SandboxInput.STOP): None},
        container_rows={(ContainerState.CREATED, ContainerInput.STOP): None},
    )


def worded(personality: Personality, method: str | None, error: CriError) -> object:
    try:
        return word(personality, method, error)
    except WordingError:
        return None


def word_mutants(personality: Personality, base: Personality | None) -> Iterator[tuple[str, Reason, Personality]]:
    """Every form and wrapper taken away, every form with another code; of a relative only those that differ."""
    for kind in ("forms", "wrappers"):
        ours, theirs = getattr(personality, kind), getattr(base, kind) if base else {}
        for key in ours.keys() | theirs.keys():
            reason, method = key
            if ours.get(key) == theirs.get(key) or (method is not None and method not in HANDLERS):
                continue
            label = f"{kind}: {reason.name} in {method}"
            changed_rows = {one: row for one, row in {**ours, key: theirs.get(key)}.items() if row is not None}
            yield label, reason, replace(personality, **{kind: changed_rows})
            if kind == "forms":
                form = ours[key]
                recoded = Form(Code((form.code + 1) % len(Code)), form.text)
                yield f"{label}, code", reason, replace(personality, forms={**ours, key: recoded})


@pytest.mark.parametrize("personality", PERSONALITIES.values(), ids=list(PERSONALITIES))
def test_every_form_and_wrapper_is_noticed(observe, refusals, personality):
    for variant in (personality, strict(personality)):
        observe(variant)
    met = {(method, error.reason): (method, error) for method, error in refusals}
    normal = {key: worded(personality, *refusal) for key, refusal in met.items()}
    unnoticed = [
        label
        for label, reason, mutant in word_mutants(personality, RELATIVES.get(personality.name))
        if reason not in NOT_MET
        and all(worded(mutant, *met[key]) == text for key, text in normal.items() if key[1] is reason)
    ]
    assert unnoticed == []
    assert not {reason for _, reason in met} & NOT_MET.keys(), "the script meets these: take them out of NOT_MET"


def test_a_row_that_does_nothing_would_be_found(observe):
    """The search itself: a mutant that is no mutant survives, and a real one does not."""
    twin = changed(REFERENCE, container_table=MappingProxyType(dict(REFERENCE.behaviour.container_table)))
    kept = Move(ContainerState.EXITED)
    pair = (ContainerState.CREATED, ContainerInput.STOP)
    other = changed(REFERENCE, container_table={**REFERENCE.behaviour.container_table, pair: kept})
    assert survivors(observe, REFERENCE, iter([("twin", twin), ("other", other)])) == ["twin"]
