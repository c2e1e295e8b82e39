"""Sizes and durations as people write them in documents: ``4Mi``, ``250ms``, ``1m30s``."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Final

_SIZE_UNITS: Final = {
    "": 1,
    "k": 10**3,
    "M": 10**6,
    "G": 10**9,
    "Ki": 1 << 10,
    "Mi": 1 << 20,
    "Gi": 1 << 30,
}
_TIME_UNITS: Final = {
    "ns": 1,
    "us": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
}
_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?)(Ki|Mi|Gi|k|M|G|)")
_SPAN = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ns|us|ms|s|m|h)")


def parse_size(text: str) -> int:
    """A Kubernetes quantity in bytes.

    Raises:
        ValueError: not a number with an optional unit.
    """
    match = _SIZE.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a size; write a number of bytes, or such as 500k, 4Mi, 1.5Gi")
    return int(Decimal(match[1]) * _SIZE_UNITS[match[2]])


def parse_duration(text: str) -> int:
    """A duration as Go writes it, in ns.

    Raises:
        ValueError: not one or more numbers with a unit each.
    """
    if not re.fullmatch(rf"(?:{_SPAN.pattern})+", text):
        raise ValueError(f"{text!r} is not a duration; write a number with a unit, such as 250ms, 5s, 1m30s")
    return int(sum(Decimal(number) * _TIME_UNITS[unit] for number, unit in _SPAN.findall(text)))
