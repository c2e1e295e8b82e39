"""Every refusal has words in every personality, and they need no more than the facts that it brings."""

from __future__ import annotations

import ast
from pathlib import Path
from string import Formatter

import pytest

import fakecri
from fakecri.base.reasons import FACTS, Code, CriError, Reason
from fakecri.personality.model import Form, WordingError, derive, most_specific, over, word
from fakecri.personality.registry import PERSONALITIES, find
from fakecri.wire.methods import METHODS

SOURCES = sorted(Path(fakecri.__file__).parent.rglob("*.py"))
METHOD_NAMES = {spec.name for spec in METHODS.values()}
every_personality = pytest.mark.parametrize("personality", PERSONALITIES.values(), ids=list(PERSONALITIES))


def fields(text: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(text) if name is not None}


def invented(reason: Reason) -> CriError:
    return CriError(reason, **{fact: f"<{fact}>" for fact in FACTS.get(reason, ())})


@every_personality
@pytest.mark.parametrize("reason", Reason)
def test_every_reason_has_words_made_of_its_own_facts(personality, reason):
    allowed = {*FACTS.get(reason, ()), "method"}
    rows = {key: form.text for key, form in personality.forms.items() if key[0] is reason}
    assert (reason, None) in rows
    for key, text in rows.items():
        assert fields(text) <= allowed, key
    for key, text in personality.wrappers.items():
        if key[0] is reason:
            assert fields(text) <= allowed | {"cause"}, key
            assert "cause" in fields(text), key
    for method in METHOD_NAMES:
        code, text = word(personality, method, invented(reason))
        assert code != Code.OK
        assert text


@every_personality
def test_rows_name_methods_that_exist(personality):
    named = {method for _, method in (*personality.forms, *personality.wrappers) if method is not None}
    named |= set(personality.behaviour.unimplemented) | set(personality.behaviour.info_keys)
    named |= set(personality.behaviour.check_orders)
    assert named <= METHOD_NAMES


def test_facts_are_named_for_every_reason_that_any_form_words_by_them():
    for personality in PERSONALITIES.values():
        for (reason, _), form in personality.forms.items():
            assert fields(form.text) - {"method"} <= set(FACTS.get(reason, ()))


def raised() -> list[tuple[str, Reason, set[str]]]:
    """Every ``CriError(Reason.X, fact=…)`` of the package with literal facts: where, reason, facts."""
    found = []
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text())):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "CriError"):
                continue
            first = node.args[0] if node.args else None
            literal = isinstance(first, ast.Attribute) and isinstance(first.value, ast.Name)
            if literal and first.value.id == "Reason" and all(keyword.arg for keyword in node.keywords):
                names = {keyword.arg for keyword in node.keywords}
                found.append((f"{path.name}:{node.lineno}", Reason[first.attr], names))
    return found


def test_every_refusal_that_is_raised_brings_its_facts():
    calls = raised()
    assert len(calls) > 20
    lacking = [
        f"{where}: {reason.name} lacks {sorted(missing)}"
        for where, reason, names in calls
        if (missing := set(FACTS.get(reason, ())) - names)
    ]
    assert not lacking


REFERENCE = PERSONALITIES["reference"]


def test_the_row_for_the_method_wins_over_the_row_for_all():
    forms = {
        (Reason.NO_COMMAND, None): Form(Code.UNKNOWN, "any {id}"),
        (Reason.NO_COMMAND, "CreateContainer"): Form(Code.ABORTED, "create {id} in {method}"),
    }
    ours = derive(REFERENCE, name="ours", summary="", forms=forms, wrappers={(Reason.NO_COMMAND, None): None})
    error = CriError(Reason.NO_COMMAND, id="a")
    assert word(ours, "CreateContainer", error) == (Code.ABORTED, "create a in CreateContainer")
    assert word(ours, "StartContainer", error) == (Code.UNKNOWN, "any a")
    assert word(ours, None, error) == (Code.UNKNOWN, "any a")


def test_a_wrapper_goes_around_the_form_and_can_be_taken_away_for_one_method():
    wrappers = {(Reason.NO_COMMAND, None): "step {id}: {cause}", (Reason.NO_COMMAND, "StartContainer"): "{cause}"}
    ours = derive(REFERENCE, name="ours", summary="", wrappers=wrappers)
    error = CriError(Reason.NO_COMMAND, id="a{b}")
    assert word(ours, "CreateContainer", error)[1] == "step a{b}: no command specified"
    assert word(ours, "StartContainer", error)[1] == "no command specified"


def test_collections_are_shown_by_their_members():
    forms = {(Reason.IMAGE_IN_USE, None): Form(Code.UNKNOWN, "{containers}")}
    ours = derive(REFERENCE, name="ours", summary="", forms=forms)
    error = CriError(Reason.IMAGE_IN_USE, image="i", containers=("a", "b"), container="a")
    assert word(ours, "RemoveImage", error)[1] == "a, b"


def test_a_missing_fact_is_a_mistake_that_names_reason_fact_and_personality():
    with pytest.raises(WordingError, match=r"reference words DEVICE_MISSING in CreateContainer with the fact 'path'"):
        word(REFERENCE, "CreateContainer", CriError(Reason.DEVICE_MISSING, id="a"))


def test_a_reason_without_a_form_is_a_mistake_that_says_so():
    ours = derive(REFERENCE, name="ours", summary="", forms={(Reason.DEADLINE, None): None})
    with pytest.raises(WordingError, match="ours has no form for DEADLINE"):
        word(ours, "Version", CriError(Reason.DEADLINE))


def test_a_relative_inherits_what_it_does_not_name():
    ours = derive(REFERENCE, name="ours", summary="s", behaviour={"check_orders": {"Version": ("a",)}})
    again = derive(ours, name="again", summary="s", behaviour={"check_orders": {"Status": ()}}, runtime_version="9")
    assert dict(again.behaviour.check_orders) == {"Version": ("a",), "Status": ()}
    assert (again.runtime_name, again.runtime_version) == (REFERENCE.runtime_name, "9")
    assert again.behaviour.traits == REFERENCE.behaviour.traits
    assert most_specific(again.forms, Reason.DEADLINE, None) is most_specific(REFERENCE.forms, Reason.DEADLINE, None)


def test_a_field_that_does_not_exist_is_refused():
    with pytest.raises(TypeError, match="list_ordre"):
        derive(REFERENCE, name="ours", summary="", traits={"list_ordre": 1})
    with pytest.raises(AttributeError, match="tables"):
        derive(REFERENCE, name="ours", summary="", behaviour={"tables": ()})


def test_over_repeats_rows_for_each_reason():
    rows = over((Reason.DEADLINE, Reason.CLIENT_GONE), {None: "a", "Version": "b"})
    assert rows[(Reason.CLIENT_GONE, "Version")] == "b"
    assert len(rows) == 4


def test_personalities_are_found_by_name():
    assert find("reference") is REFERENCE
    with pytest.raises(ValueError, match=r"unknown personality 'docker': it is one of reference, containerd-1\.6"):
        find("docker")
