"""``fakecri serve``: one runtime on a unix socket, until SIGTERM or SIGINT."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click


@click.command("serve")
@click.option(
    "--socket", type=click.Path(path_type=Path), help="Socket to listen on.  [default: a private one, printed]"
)
@click.option("--image-socket", type=click.Path(path_type=Path), help="A second socket, for clients of ImageService.")
@click.option("--api", help="API versions to serve: v1, v1alpha2 or v1,v1alpha2.  [default: the personality's]")
@click.option(
    "--level", help="CRI release whose RPCs and fields are visible, 1.17 to 1.37.  [default: the personality's]"
)
@click.option("--personality", default="reference", show_default=True, help="The runtime to simulate.")
@click.option(
    "--images",
    type=click.Path(path_type=Path),
    multiple=True,
    metavar="FILE",
    help="Document with more images, registries and runtime handlers; may be given several times.",
)
@click.option("--pod-cidr", default="127.88.0.0/16", show_default=True, metavar="CIDR[,CIDR6]", help="Pods' addresses.")
@click.option(
    "--root", type=click.Path(path_type=Path), help="Directory of the runtime's own.  [default: a private one]"
)
@click.option("--seed", type=int, default=0, show_default=True, help="Ids, addresses and order follow from it.")
@click.option("--clock", default="real", show_default=True, metavar="real|autojump|rate=N", help="How time passes.")
@click.option("--runtime-handlers", metavar="NAME,…", help="Handlers that pods may ask for, the default first.")
@click.option("--cgroup-driver", type=click.Choice(["cgroupfs", "systemd"]), default="cgroupfs", show_default=True)
@click.option("--no-events", is_flag=True, help="Answer GetContainerEvents as a runtime with events switched off.")
@click.option("--no-host-files", is_flag=True, help="Keep log files and the like in memory, off the disk.")
@click.option("--unknown-command", type=click.Choice(["wait", "fail"]), default="wait", show_default=True)
@click.option("--unknown-images", type=click.Choice(["pull", "fail"]), default="pull", show_default=True)
@click.option("--ready-fd", type=click.IntRange(min=1), metavar="N", help="Gets one JSON line once the socket listens.")
@click.option("--log-format", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option("-v", "--verbose", count=True, help="A line per call, with its outcome and duration.")
def command(**options: Any) -> None:
    """Serve a simulated container runtime on a unix socket. Ctrl-C or SIGTERM ends it."""
    from fakecri.cli.serving import Setting, serve

    serve(Setting(**options))
