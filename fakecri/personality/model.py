"""What a personality is: one real runtime's words and ways, as frozen data.

The rule: core raises facts (``CriError``), never words, and a personality turns reason and method into a gRPC code and
a text. Everything else in which runtimes differ is data that core reads (``Behaviour``: traits, table rows, check
orders, named strategies, absent RPCs). A new runtime is a new value made with ``derive``; nothing ever asks a
personality for its name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

from fakecri.base.reasons import Code, CriError, Reason
from fakecri.core import states
from fakecri.core.traits import Behaviour

if TYPE_CHECKING:
    from fakecri.wire.levels import Level

#: A reason, and the method in which a form holds; None means every method without a row of its own.
Key: TypeAlias = tuple[Reason, str | None]
V = TypeVar("V")
_NOTHING: Final[Mapping[Any, Any]] = MappingProxyType({})


class WordingError(RuntimeError):
    """A mistake in the project itself: a refusal without a form, or without a fact that its form needs."""


@dataclass(frozen=True, slots=True)
class Form:
    """A gRPC code and a text, in which ``{name}`` is a fact of the refusal and ``{method}`` the RPC's name."""

    code: Code
    text: str


@dataclass(frozen=True, slots=True)
class Personality:
    """How one runtime behaves and words its errors.

    A refusal is worded by the form of (reason, method), else of (reason, None); then, if there is one, by the wrapper
    that is found in the same way, in whose text ``{cause}`` is the form's text. A wrapper says in which step of which
    call a refusal came up, as Go's ``fmt.Errorf("…: %w")`` does, so that a form is written once.
    """

    name: str
    #: One sentence for people who choose one.
    summary: str
    #: ``VersionResponse.runtime_name`` and ``runtime_version``.
    runtime_name: str
    runtime_version: str
    #: API versions that are served unless the user says otherwise.
    apis: frozenset[str]
    #: The CRI release whose RPCs and fields are visible unless the user says otherwise.
    level: Level
    forms: Mapping[Key, Form]
    wrappers: Mapping[Key, str] = field(default_factory=lambda: _NOTHING)
    behaviour: Behaviour = field(default_factory=Behaviour)


def most_specific(table: Mapping[Key, V], reason: Reason, method: str | None) -> V | None:
    """The row for a reason in a method, else the row for the reason in any method, else None."""
    found = table.get((reason, method))
    return table.get((reason, None)) if found is None else found


def word(personality: Personality, method: str | None, error: CriError) -> tuple[int, str]:
    """The gRPC code, as a plain number, and the text by which this runtime reports a refusal.

    Raises:
        WordingError: no form for the reason, or the error lacks a fact that the form names.
    """
    form = most_specific(personality.forms, error.reason, method)
    if form is None:
        raise WordingError(f"personality {personality.name} has no form for {error.reason.name}: add one to its forms")
    facts = {"method": method or ""} | {name: _shown(fact) for name, fact in error.facts.items()}
    text = _filled(personality, method, error, form.text, facts)
    wrapper = most_specific(personality.wrappers, error.reason, method)
    if wrapper is not None:
        text = _filled(personality, method, error, wrapper, facts | {"cause": text})
    return int(form.code), text


def _filled(personality: Personality, method: str | None, error: CriError, text: str, facts: dict[str, Any]) -> str:
    try:
        return text.format_map(facts)
    except KeyError as missing:
        given = ", ".join(error.facts) or "none"
        raise WordingError(
            f"personality {personality.name} words {error.reason.name} in {method} with the fact {missing.args[0]!r},"
            f" which the error does not bring (it has: {given}): add it where the error is raised"
        ) from missing


def _shown(fact: object) -> object:
    """A fact as a text shows it: a collection as its members, side by side."""
    return ", ".join(map(str, fact)) if isinstance(fact, (tuple, list, set, frozenset)) else fact


def over(reasons: Iterable[Reason], by_method: Mapping[str | None, V]) -> dict[Key, V]:
    """The same rows for several reasons: what a look-up or a step has in common, whatever goes wrong in it."""
    return {(reason, method): row for reason in reasons for method, row in by_method.items()}


def derive(
    base: Personality,
    *,
    name: str,
    summary: str,
    forms: Mapping[Key, Form | None] = _NOTHING,
    wrappers: Mapping[Key, str | None] = _NOTHING,
    traits: Mapping[str, Any] = _NOTHING,
    sandbox_rows: Mapping[tuple[states.State, states.Input], states.Move | None] = _NOTHING,
    container_rows: Mapping[tuple[states.State, states.Input], states.Move | None] = _NOTHING,
    behaviour: Mapping[str, Any] = _NOTHING,
    **identity: Any,
) -> Personality:
    """A relative of a personality: what is named here replaces or adds, None takes away, the rest is inherited.

    ``traits`` are fields of ``Traits``. ``behaviour`` holds fields of ``Behaviour``: a mapping there is merged into
    the base's, any other value replaces it. ``identity`` are the plain fields of ``Personality``.

    Raises:
        TypeError: a field that does not exist.
    """
    merged_behaviour = replace(
        base.behaviour,
        traits=replace(base.behaviour.traits, **traits),
        sandbox_table=states.override(base.behaviour.sandbox_table, sandbox_rows),
        container_table=states.override(base.behaviour.container_table, container_rows),
        **{key: _onto(getattr(base.behaviour, key), value) for key, value in behaviour.items()},
    )
    return replace(
        base,
        name=name,
        summary=summary,
        forms=_merged(base.forms, forms),
        wrappers=_merged(base.wrappers, wrappers),
        behaviour=merged_behaviour,
        **identity,
    )


def _onto(ours: Any, changed: Any) -> Any:
    return MappingProxyType({**ours, **changed}) if isinstance(changed, Mapping) else changed


def _merged(base: Mapping[Key, V], changes: Mapping[Key, V | None]) -> Mapping[Key, V]:
    merged = {**base, **changes}
    return MappingProxyType({key: row for key, row in merged.items() if row is not None})
