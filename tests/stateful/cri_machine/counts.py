"""What was exercised, how often: added up over every world that was driven."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from fakecri.base.reasons import Reason


@dataclass
class Counts:
    """Everything that the proof counts."""

    steps: int = 0
    #: Operation → how often it was chosen.
    operations: Counter[str] = field(default_factory=Counter)
    #: (RPC, gRPC code number) → calls that ended so; -1: cancelled.
    outcomes: Counter[tuple[str, int]] = field(default_factory=Counter)
    #: (RPC, reason) → refusals.
    reasons: Counter[tuple[str, Reason]] = field(default_factory=Counter)
    #: (table, state, input) → how often an entity in that state was given that input, whether the row exists or not.
    pairs: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    #: (RPC, place) → cancels there: the name of a point, or wait, ask, emit.
    cancels: Counter[tuple[str, str]] = field(default_factory=Counter)
    #: (RPC, point) → how often a call came by.
    points: Counter[tuple[str, str]] = field(default_factory=Counter)
    #: Invariant → how often it was looked at.
    checks: Counter[str] = field(default_factory=Counter)
