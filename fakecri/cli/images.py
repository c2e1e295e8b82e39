"""``fakecri images``: the images that can be pulled by name."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fakecri.cli.output import output_option, show

if TYPE_CHECKING:
    from fakecri.core.catalogue import ImageSource


@click.command("images")
@click.option(
    "--images",
    type=click.Path(path_type=Path),
    multiple=True,
    metavar="FILE",
    help="Document with more images, as for `serve`; may be given several times.",
)
@output_option
def command(images: tuple[Path, ...], output: str) -> None:
    """List the described images. Any other well-formed name can be pulled too, unless `serve` is told otherwise."""
    from fakecri.cli.world import images_and_handlers

    try:
        catalogue, _ = images_and_handlers(images)
    except ValueError as error:
        raise click.ClickException(str(error)) from error
    rows = [_row(source) for source in catalogue.sources]
    show(rows, output, ("name", "size_mb", "user", "command", "at_start"))


def _row(source: ImageSource) -> dict[str, Any]:
    return {
        "name": source.names[0],
        "names": list(source.names),
        "id": source.id,
        "size_bytes": source.size_bytes,
        "size_mb": f"{source.size_bytes / 1e6:.1f}",
        "user": source.config.user,
        "command": " ".join((*source.config.entrypoint, *source.config.command)),
        "stop_signal": source.config.stop_signal,
        "at_start": source.at_start,
        "pinned": source.pinned,
    }
