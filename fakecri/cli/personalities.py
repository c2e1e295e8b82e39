"""``fakecri personalities``: the container runtimes that can be simulated."""

from __future__ import annotations

import click

from fakecri.cli.output import output_option, show


@click.command("personalities")
@output_option
def command(output: str) -> None:
    """List the names for `serve --personality`, with the API versions and the level that each serves by itself."""
    from fakecri.personality.registry import DEFAULT, PERSONALITIES

    rows = [
        {
            "name": each.name,
            "default": each is DEFAULT,
            "runtime": f"{each.runtime_name} {each.runtime_version}",
            "apis": sorted(each.apis),
            "level": str(each.level),
            "summary": each.summary,
        }
        for each in PERSONALITIES.values()
    ]
    show(rows, output, ("name", "runtime", "apis", "level", "summary"))
