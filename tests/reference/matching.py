"""Expectations of cases.yaml against a reply as protobuf JSON: paths into it, and what a value must be."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Mapping
from typing import Any

#: Unix ns from which on a timestamp can be a real one.
OLDEST_NS = 1_600_000_000 * 10**9
#: What Go's zero time is in unix ns.
GO_ZERO_TIME_NS = "-6795364578871345152"
NAMED = re.compile(r"\$\{(\w+)(?::(\d+))?\}")

_KINDS: Mapping[str, Callable[[Any], Any]] = {
    "ns": lambda value: int(value) > OLDEST_NS,
    "ns?": lambda value: int(value) > OLDEST_NS,
    "int": lambda value: int(value) >= 0,
    "str": lambda value: isinstance(value, str) and value != "",
    "hex64": lambda value: re.fullmatch("[0-9a-f]{64}", value),
    "sha256": lambda value: re.fullmatch("sha256:[0-9a-f]{64}", value),
    "ipv4": lambda value: re.fullmatch(r"\d+\.\d+\.\d+\.\d+", value),
    "uint64value": lambda value: set(value) <= {"value"},
    "go-zero-time": lambda value: value == GO_ZERO_TIME_NS,
}


def filled(text: str, names: Mapping[str, str]) -> str:
    """A text with ${NAME} and ${NAME:digits} replaced by ids."""
    return NAMED.sub(lambda match: names[match[1]][: int(match[2]) if match[2] else None], text)


def pattern(text: str, names: Mapping[str, str]) -> str:
    """A regular expression with ids put in; a name that stands for no id yet is any id."""

    def quoted(match: re.Match[str]) -> str:
        return re.escape(filled(match[0], names)) if match[1] in names else "[0-9a-f]+"

    return NAMED.sub(quoted, text)


def at(message: Any, path: str) -> Any:
    """What stands at a path (``a.b``, ``a[0].b``, ``a[*].b``, ``a.*``: keys, ``x#len``, ``x#keys``), or None."""
    path, _, measure = path.partition("#")
    value = _walk(message, re.findall(r"[^.\[\]]+|\[\*\]|\[\d+\]", path))
    if measure == "len":
        if value is None:
            return 0
        return len(base64.b64decode(value)) if isinstance(value, str) else len(value)
    if measure == "keys":
        return sorted(json.loads(value)) if value else None
    return value


def _walk(value: Any, parts: list[str]) -> Any:
    if not parts:
        return value
    first, rest = parts[0], parts[1:]
    if first == "[*]":
        return [_walk(one, rest) for one in value or []]
    if first == "*":
        return sorted(value) if value else []
    if first.startswith("["):
        index = int(first[1:-1])
        return _walk(value[index], rest) if value and len(value) > index else None
    return _walk(value.get(first), rest) if isinstance(value, dict) else None


def mismatch(want: Any, value: Any, names: Mapping[str, str]) -> str | None:
    """None when a value is as wanted, else why not."""
    if isinstance(want, str) and want.startswith("<") and want.endswith(">"):
        return _kind_mismatch(want, value, names)
    if isinstance(want, dict) and set(want) == {"set"}:
        return _set_mismatch(want["set"], value, names)
    if isinstance(want, dict):
        if not isinstance(value, dict):
            return f"want {want}, got {value!r}"
        for key in sorted(set(want) | set(value)):
            if key not in want:
                return f"unexpected {key}={value[key]!r}"
            why = mismatch(want[key], value.get(key), names)
            if why:
                return f"{key}: {why}"
        return None
    if isinstance(want, list):
        if not isinstance(value, list) or len(want) != len(value):
            return f"want {want}, got {value!r}"
        return next((why for one, two in zip(want, value, strict=True) if (why := mismatch(one, two, names))), None)
    wanted = filled(want, names) if isinstance(want, str) else want
    return None if wanted == value else f"want {wanted!r}, got {value!r}"


def _kind_mismatch(want: str, value: Any, names: Mapping[str, str]) -> str | None:
    kind = want[1:-1]
    if kind == "absent":
        return None if value in (None, "", 0, False) else f"want absent, got {value!r}"
    if kind == "all-images" or (kind == "ns?" and value is None):
        return None
    if value is None:
        return f"want {want}, got nothing"
    if kind.startswith("re:"):
        return None if re.search(pattern(kind[3:], names), value) else f"want {want}, got {value!r}"
    return None if _KINDS[kind](value) else f"want {want}, got {value!r}"


def _set_mismatch(wanted: list[Any], value: Any, names: Mapping[str, str]) -> str | None:
    if not isinstance(value, list) or len(value) != len(wanted):
        return f"want the set {wanted}, got {value}"
    left = list(value)
    for want in wanted:
        found = next((index for index, one in enumerate(left) if mismatch(want, one, names) is None), None)
        if found is None:
            return f"want the set {wanted}, got {value}"
        del left[found]
    return None
