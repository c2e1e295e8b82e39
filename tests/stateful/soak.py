"""Drives the machine for a long way and says what it saw.

``python tests/stateful/soak.py --steps 100000 [--seed N] [--report FILE]`` exits with 1, and says why, when an
invariant breaks, when something that must be reached was not, or when something happened that nobody expected.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
import traceback
from pathlib import Path

from cri_machine.counts import Counts
from cri_machine.drive import step
from cri_machine.expected import differences
from cri_machine.invariants import at_rest, check
from cri_machine.pick import Seeded
from cri_machine.report import written
from cri_machine.settings import SETTINGS, Setting
from cri_machine.world import World

#: Steps in one world before it is put away.
WORLD_STEPS = 250
#: One step of so many is followed by the costlier invariants.
EVERYTHING_EACH = 25


def drive(setting: Setting, seed: int, steps: int, counts: Counts) -> None:
    """One world from its beginning to rest."""
    world = World(setting, seed, counts)
    pick = Seeded(seed)
    try:
        for number in range(steps):
            step(world, pick)
            check(world, everything=number % EVERYTHING_EACH == 0)
        world.close()
        at_rest(world)
    except BaseException:
        print(f"setting {setting.name!r}, seed {seed}, after {sum(counts.operations.values())} steps", file=sys.stderr)
        raise


def soak(steps: int, seed: int) -> Counts:
    """So many steps, over all settings in turn."""
    counts = Counts()
    for number, setting in zip(itertools.count(), itertools.cycle(SETTINGS.values()), strict=False):
        if counts.steps >= steps:
            return counts
        drive(setting, seed * 1_000_003 + number, min(WORLD_STEPS, steps - counts.steps), counts)
    raise AssertionError("unreachable")


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--report", type=Path, help="write what was seen to this file")
    chosen = parser.parse_args()
    began = time.monotonic()
    try:
        counts = soak(chosen.steps, chosen.seed)
    except AssertionError:
        traceback.print_exc()
        return 1
    wrong = differences(counts)
    if chosen.report is not None:
        chosen.report.write_text(written(counts, chosen.seed, wrong))
    print(f"{counts.steps} steps, {sum(counts.checks.values())} checks in {time.monotonic() - began:.0f} s")
    for line in wrong:
        print(line, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
