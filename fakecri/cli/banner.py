"""What ``serve`` says once it listens: where it is, how to point clients at it, what it may touch."""

from __future__ import annotations

import ipaddress
import json
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from fakecri import __version__
from fakecri.service.host_files import SYSTEM_TREES
from fakecri.service.socket import DIALABLE_BYTES

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Facts:
    """A running server, for whoever started it."""

    personality: str
    apis: tuple[str, ...]
    level: str
    socket: Path
    image_socket: Path
    pod_cidrs: tuple[str, ...]
    cgroup_driver: str
    clock: str
    seed: int
    #: Whether paths of the host that clients name are used, or kept in memory.
    host_files: bool
    #: The runtime's own directory.
    root: Path
    pid: int

    def as_json(self) -> dict[str, Any]:
        """One object; the endpoints are what clients take."""
        return {
            "version": __version__,
            "endpoint": f"unix://{self.socket}",
            "image_endpoint": f"unix://{self.image_socket}",
            "socket": str(self.socket),
            "image_socket": str(self.image_socket),
            "personality": self.personality,
            "api": list(self.apis),
            "level": self.level,
            "pod_cidr": list(self.pod_cidrs),
            "clock": self.clock,
            "seed": self.seed,
            "host_files": self.host_files,
            "root": str(self.root),
            "pid": self.pid,
        }


def show(facts: Facts, log_format: str) -> None:
    """Print it, as text or as one JSON line."""
    if log_format == "json":
        click.echo(json.dumps({"message": "serving", **facts.as_json()}))
        return
    for line in lines(facts):
        click.echo(line)


def lines(facts: Facts) -> list[str]:
    """The text, line by line."""
    endpoint, image_endpoint = f"unix://{facts.socket}", f"unix://{facts.image_socket}"
    config = ["fakecri", "kubelet-config", "--socket", str(facts.socket)]
    if facts.cgroup_driver != "cgroupfs":
        config += ["--cgroup-driver", facts.cgroup_driver]
    text = [
        f"fakecri {__version__}: {facts.personality}, CRI {' and '.join(facts.apis)} at level {facts.level}",
        f"  listening   {endpoint}",
        *([f"              {image_endpoint} (images)"] if facts.image_socket != facts.socket else []),
        f"  crictl      crictl --runtime-endpoint {endpoint} --image-endpoint {image_endpoint} info",
        f"  kubelet     {shlex.join(config)} > kubelet.yaml",
        "              (a kubelet before 1.27 takes --container-runtime-endpoint instead; add --kubelet 1.25)",
        f"  pods        {', '.join(facts.pod_cidrs)}",
        *[f"              for the host to reach them: {command}" for command in _routes(facts.pod_cidrs)],
        f"  clock, seed {facts.clock}, {facts.seed}",
        *_labelled("host files", _host_files(facts)),
    ]
    if len(str(facts.socket).encode()) > DIALABLE_BYTES:
        text.append(
            f"  note        the socket's path is longer than {DIALABLE_BYTES} bytes: most clients cannot dial it"
        )
    return text


def _host_files(facts: Facts) -> list[str]:
    if not facts.host_files:
        return ["none: logs and mounted files are kept in memory"]
    return [
        f"the runtime's own: {facts.root}",
        "log directories and mounts' sources that clients name, and what lies below them (--no-host-files: none)",
        f"never changed: {' '.join(SYSTEM_TREES)}",
    ]


def _labelled(label: str, texts: list[str]) -> list[str]:
    return [f"  {label if number == 0 else '':12}{text}" for number, text in enumerate(texts)]


def _routes(cidrs: tuple[str, ...]) -> list[str]:
    """What makes the host answer for addresses outside 127.0.0.0/8, which it always does."""
    networks = [ipaddress.ip_network(cidr, strict=False) for cidr in cidrs]
    return [
        f"ip {'-6 ' if network.version == 6 else ''}route add local {network} dev lo"
        for network in networks
        if not network.is_loopback
    ]
