"""``fakecri``: finds the command, and turns whatever a user can put right into a line and exit code 2."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

import click

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Command → (module that defines ``command``, what the overview says of it).
COMMANDS: Final[dict[str, tuple[str, str]]] = {
    "serve": ("fakecri.cli.serve", "Serve a simulated container runtime on a unix socket."),
    "images": ("fakecri.cli.images", "List the images that can be pulled by name."),
    "programs": ("fakecri.cli.programs", "List what a container can run."),
    "levels": ("fakecri.cli.levels", "List the CRI releases that can be served."),
    "personalities": ("fakecri.cli.personalities", "List the container runtimes that can be simulated."),
    "kubelet-config": ("fakecri.cli.kubelet_config", "Print a KubeletConfiguration that works here."),
    "version": ("fakecri.cli.version", "Print the version."),
}

#: The exit code of everything that the user can put right.
USAGE: Final = 2
INTERRUPTED: Final = 130


class _Commands(click.Group):
    """Imports a command's module when that command is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Every command, in the order of the overview."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of a name."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(COMMANDS[cmd_name][0]).command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The overview, without importing any command."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, summary) in COMMANDS.items()])


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]}, no_args_is_help=False)
def cli() -> None:
    """A complete simulated Kubernetes container runtime (CRI) for tests."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the answer is the process's exit code."""
    try:
        outcome = cli.main(args=arguments, prog_name="fakecri", standalone_mode=False)
    except click.ClickException as error:
        click.echo(f"fakecri: {error.format_message().strip()}", err=True)
        return USAGE
    except click.Abort:
        return INTERRUPTED
    return outcome if isinstance(outcome, int) else 0
