"""The personalities that can be chosen by name."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from fakecri.personality.containerd import CONTAINERD_1_6, CONTAINERD_2_1, REFERENCE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fakecri.personality.model import Personality

DEFAULT: Final = REFERENCE
PERSONALITIES: Final[Mapping[str, Personality]] = MappingProxyType(
    {personality.name: personality for personality in (REFERENCE, CONTAINERD_1_6, CONTAINERD_2_1)}
)


def find(name: str) -> Personality:
    """The personality with this name.

    Raises:
        ValueError: there is none; the text lists those that exist.
    """
    if name not in PERSONALITIES:
        raise ValueError(f"unknown personality {name!r}: it is one of {', '.join(PERSONALITIES)}")
    return PERSONALITIES[name]
