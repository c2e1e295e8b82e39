"""The machine under Hypothesis: every operation is a rule, every invariant is looked at after every step.

What this finds it shrinks; ``soak.py`` goes further with the same operations, and counts.
"""

from __future__ import annotations

import os
from typing import Any

from cri_machine.counts import Counts
from cri_machine.drive import do
from cri_machine.invariants import at_rest, check
from cri_machine.operations import OPERATIONS
from cri_machine.pick import Drawn
from cri_machine.settings import SETTINGS
from cri_machine.world import World
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

FULL = os.environ.get("FAKECRI_TESTS") == "full"


class Machine(RuleBasedStateMachine):
    """One runtime, driven by drawn choices."""

    def __init__(self) -> None:
        super().__init__()
        self.world: World | None = None

    @initialize(name=st.sampled_from(sorted(SETTINGS)), seed=st.integers(0, 7))
    def begin(self, name: str, seed: int) -> None:
        """Choose a runtime."""
        self.world = World(SETTINGS[name], seed, Counts())

    @invariant()
    def every_invariant_holds(self) -> None:
        """All of them, each time."""
        if self.world is not None:
            check(self.world)

    def teardown(self) -> None:
        """Whatever was done can be brought to rest, and leaves nothing."""
        if self.world is not None:
            self.world.close()
            at_rest(self.world)


def _rule_for(name: str) -> Any:
    def apply(self: Machine, draws: Any) -> None:
        assert self.world is not None
        do(self.world, Drawn(draws), name)

    apply.__name__ = name
    apply.__doc__ = OPERATIONS[name].__doc__
    return rule(draws=st.data())(apply)


for operation in OPERATIONS:
    if not operation.startswith(("sweep", "use_up")):  # those go through lists of their own
        setattr(Machine, operation, _rule_for(operation))

Machine.TestCase.settings = settings(
    max_examples=600 if FULL else 120,
    stateful_step_count=50,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
TestMachine = Machine.TestCase
