"""``fakecri version``."""

from __future__ import annotations

import json

import click

from fakecri.cli.output import output_option


@click.command("version")
@output_option
def command(output: str) -> None:
    """Print the version, and which releases of CRI it speaks."""
    from fakecri import __version__
    from fakecri.wire.levels import RELEASES

    if output == "json":
        apis = {api: {"first": str(table.first), "last": str(table.last)} for api, table in RELEASES.items()}
        click.echo(json.dumps({"version": __version__, "cri": apis}, indent=2))
    else:
        spoken = ", ".join(f"{api} {table.first}-{table.last}" for api, table in RELEASES.items())
        click.echo(f"fakecri {__version__} (CRI {spoken})")
