"""Where choices come from: a seeded generator, or Hypothesis, which can shrink them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, Protocol, TypeVar

from hypothesis import strategies as st

T = TypeVar("T")


class Pick(Protocol):
    """A source of choices."""

    def __call__(self, options: Sequence[T]) -> T:
        """One of the options."""

    def chance(self, percent: int) -> bool:
        """True in so many cases of a hundred."""


class Seeded:
    """Choices that follow from a seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def __call__(self, options: Sequence[T]) -> T:
        return options[int(self._random.random() * len(options))]

    def chance(self, percent: int) -> bool:
        """True in so many cases of a hundred."""
        return self._random.random() * 100 < percent


class Drawn:
    """Choices that Hypothesis makes; the first option and False are the simplest."""

    def __init__(self, draws: Any) -> None:
        self._draws = draws

    def __call__(self, options: Sequence[T]) -> T:
        if len(options) == 1:
            return options[0]
        return options[self._draws.draw(st.integers(0, len(options) - 1))]

    def chance(self, percent: int) -> bool:
        """True in so many cases of a hundred."""
        return bool(self._draws.draw(st.integers(0, 99)) >= 100 - percent)
