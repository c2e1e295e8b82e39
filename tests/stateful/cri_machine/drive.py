"""One step: an operation chosen by weight, out of all that there are."""

from __future__ import annotations

from typing import Final

from cri_machine import sweeps
from cri_machine.operations import OPERATIONS, WEIGHTS
from cri_machine.pick import Pick
from cri_machine.world import World

assert sweeps.__doc__, "imported for the operations that it registers"

#: Each operation as often as it weighs.
POOL: Final = [name for name, weight in WEIGHTS.items() for _ in range(weight)]
MOST_OPEN: Final = 12


def step(world: World, pick: Pick) -> None:
    """Do one thing; what hangs about for too long is made to end."""
    name = pick(POOL)
    if len(world.open) > MOST_OPEN:
        name = pick(("release_a_call", "cancel_a_call", "let_time_pass", "answer_a_log", "read_a_stream"))
    do(world, pick, name)


def do(world: World, pick: Pick, name: str) -> None:
    """Do a certain thing."""
    world.counts.steps += 1
    world.counts.operations[name] += 1
    OPERATIONS[name](world, pick)
