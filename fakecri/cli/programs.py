"""``fakecri programs``: what a container can run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from fakecri.cli.output import output_option, show

if TYPE_CHECKING:
    from fakecri.kernel.program import Program


@click.command("programs")
@output_option
def command(output: str) -> None:
    """List the simulated programs: images give them paths, and a path that is not there fails as on a real node."""
    from fakecri.workload.programs import PROGRAMS

    show([_row(PROGRAMS[name]) for name in sorted(PROGRAMS)], output, ("name", "memory_kib", "what_it_does"))


def _row(program: Program) -> dict[str, Any]:
    return {
        "name": program.name,
        "memory_kib": program.memory_bytes >> 10,
        "resumable": program.resumable,
        "what_it_does": " ".join(program.summary.split()),
    }
