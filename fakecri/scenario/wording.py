"""What is said of a value that does not fit a document: the remedy, and for an unknown name the likely one."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final, get_args

from pydantic import BaseModel

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pydantic_core import ErrorDetails

_EXPECTED: Final = {
    "string_type": "text",
    "int_type": "a whole number",
    "bool_type": "true or false",
    "list_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
}


def describe(model: type[BaseModel], path: tuple[int | str, ...], detail: ErrorDetails) -> str:
    """The message for one validation error; ``path`` is where it stands in a document of that model."""
    kind, context, given = detail["type"], detail.get("ctx", {}), detail["input"]
    match kind:
        case "extra_forbidden":
            return unknown("key", str(path[-1]), _keys_at(model, path[:-1]))
        case "missing":
            return f"key {path[-1]!r} is missing"
        case "literal_error" | "enum":
            allowed = [word.strip("'") for word in str(context["expected"]).replace(" or ", ", ").split(", ")]
            return unknown("value", str(given), allowed)
        case "value_error":
            return str(context["error"])
        case "too_short":
            return "must not be empty"
        case "string_too_short":
            return "must not be empty text"
    if kind in _EXPECTED:
        return f"must be {_EXPECTED[kind]}, not {_shown(given)}{_remedy(kind, given)}"
    return detail["msg"].lower()


def unknown(what: str, given: str, known: Iterable[str]) -> str:
    """Of a name that is not known: the one that was probably meant, else all there are."""
    names = sorted(known)
    likely = get_close_matches(given, names, n=1)
    if not likely:
        likely = [name for name in names if name.lower() == given.lower().replace("_", "").replace("-", "")]
    hint = f"did you mean {likely[0]!r}?" if likely else f"it is one of {', '.join(names)}"
    return f"unknown {what} {given!r}; {hint}"


def _keys_at(model: type[BaseModel], path: Iterable[int | str]) -> list[str]:
    """The keys that a document of this model may have at a path."""
    current: Any = model
    for part in path:
        if isinstance(part, int):
            continue
        for candidate in _models_in(current):
            fields = {field.alias or name: field.annotation for name, field in candidate.model_fields.items()}
            if part in fields:
                current = fields[part]
                break
    return [field.alias or name for candidate in _models_in(current) for name, field in candidate.model_fields.items()]


def _models_in(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for argument in get_args(annotation) for model in _models_in(argument)]


def _remedy(kind: str, given: Any) -> str:
    if kind == "string_type" and isinstance(given, (int, float)):
        return ": put it in quotes"
    if kind == "bool_type" and str(given).lower() in ("yes", "no", "on", "off"):
        return ", which is text in YAML 1.2"
    return ""


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    if value is None:
        return "nothing"
    return str(value).lower() if isinstance(value, bool) else repr(value)
