"""``fakecri kubelet-config``: a configuration with which a kubelet runs on the simulated runtime."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click

# The release in which the endpoint moved from the command line into the file, and the one that refuses cgroup v1.
_ENDPOINT_IN_FILE: Final = (1, 27)
_CGROUP_V1_REFUSED: Final = (1, 35)

_COMMON: Final = """\
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
staticPodPath: {manifests}
cgroupDriver: {cgroup_driver}
# the pods are simulated: no cgroups are made for them, and nothing is taken from the node's
cgroupsPerQOS: false
enforceNodeAllocatable: []
failSwapOn: false
authentication:
  anonymous: {{enabled: true}}
  webhook: {{enabled: false}}
authorization:
  mode: AlwaysAllow
port: 20250
readOnlyPort: 20255
healthzPort: 20248
fileCheckFrequency: 1s
"""


@click.command("kubelet-config")
@click.option(
    "--kubelet",
    type=click.Choice(["1.25", "1.37"]),
    default="1.37",
    show_default=True,
    help="The kubelet's release.",
)
@click.option(
    "--socket",
    type=click.Path(path_type=Path),
    help="The socket that `serve` listens on.  [default: where `serve` listens by itself]",
)
@click.option(
    "--manifests",
    type=click.Path(path_type=Path),
    default=Path("/etc/kubernetes/manifests"),
    show_default=True,
    help="Directory of static pods' manifests.",
)
@click.option(
    "--cgroup-driver",
    type=click.Choice(["cgroupfs", "systemd"]),
    default="cgroupfs",
    show_default=True,
    help="As given to `serve`.",
)
def command(kubelet: str, socket: Path | None, manifests: Path, cgroup_driver: str) -> None:
    """Print a KubeletConfiguration for a kubelet without an API server, with the command to start it."""
    from fakecri.cli.places import usual_socket

    path = (socket or usual_socket()).absolute()
    major, minor = kubelet.split(".")
    click.echo(configuration((int(major), int(minor)), path, manifests.absolute(), cgroup_driver), nl=False)


def configuration(release: tuple[int, int], socket: Path, manifests: Path, cgroup_driver: str) -> str:
    """The file's text, with the command line as a comment on top."""
    flags = ["--config=FILE", "--root-dir=DIR", "--cert-dir=DIR/pki"]
    text = _COMMON.format(manifests=manifests, cgroup_driver=cgroup_driver)
    if release >= _CGROUP_V1_REFUSED:
        text += "failCgroupV1: false\n"
    if release >= _ENDPOINT_IN_FILE:
        text += f"containerRuntimeEndpoint: unix://{socket}\n"
    else:
        flags += ["--container-runtime=remote", f"--container-runtime-endpoint=unix://{socket}"]
    return f"# start it as root, in private namespaces: kubelet {' '.join(flags)}\n{text}"
