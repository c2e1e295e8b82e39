"""``fakecri levels``: the CRI releases that can be served, and what each brought."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from fakecri.cli.output import output_option, show

if TYPE_CHECKING:
    from fakecri.wire.levels import Level


@click.command("levels")
@output_option
def command(output: str) -> None:
    """List the levels for `serve --level`: a level is a Kubernetes release, and what came later does not exist."""
    from fakecri.wire.levels import LEVELS

    every = sorted({level for levels in LEVELS.values() for level in levels})
    show([_row(level) for level in every], output, ("level", "apis", "rpcs", "new_rpcs"))


def _row(level: Level) -> dict[str, Any]:
    from fakecri.wire.levels import LEVELS, RELEASES

    apis = [api for api, levels in LEVELS.items() if level in levels]
    newest = RELEASES[apis[0]]
    rpcs = {name: since for service in newest.rpcs.values() for name, since in service.items()}
    fields = [
        f"{message}.{name}"
        for message, row in newest.fields.items()
        for name, since in row.items()
        if since == level > newest.first
    ]
    return {
        "level": str(level),
        "apis": sorted(apis),
        "rpcs": sum(since <= level for since in rpcs.values()),
        "new_rpcs": sorted(name for name, since in rpcs.items() if since == level > newest.first),
        "new_fields": sorted(fields),
    }
