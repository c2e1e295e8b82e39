"""How commands print lists: a table for people, JSON for programs; both from the same rows."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

F = TypeVar("F", bound="Callable[..., Any]")
_GAP: Final = "   "


def output_option(command: F) -> F:
    """``--output table|json``."""
    return click.option(
        "-o",
        "--output",
        type=click.Choice(["table", "json"]),
        default="table",
        show_default=True,
        help="Form of the output.",
    )(command)


def show(rows: Sequence[Mapping[str, Any]], output: str, columns: Sequence[str]) -> None:
    """Print rows. JSON has every key; the table has the named columns, in that order."""
    click.echo(json.dumps(list(rows), indent=2) if output == "json" else table(rows, columns))


def table(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> str:
    """Columns as wide as their widest cell, under a head line."""
    lines = [[column.upper().replace("_", " ") for column in columns]]
    lines += [[_cell(row[column]) for column in columns] for row in rows]
    widths = [max(map(len, cells)) for cells in zip(*lines, strict=True)]
    return "\n".join(
        _GAP.join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (list, tuple)):
        return ", ".join(map(str, value)) or "-"
    return str(value) if value not in (None, "") else "-"
