"""The node, the images and the host's files that the options of ``serve`` describe."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fakecri.core.catalogue_builtin import builtin_catalogue
from fakecri.core.node import CgroupDriver, Node, RuntimeHandler, UnknownCommand, UnknownImages

if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextlib import ExitStack
    from pathlib import Path

    from fakecri.base.ports import HostFiles, LogFiles
    from fakecri.cli.serving import Setting
    from fakecri.core.catalogue import Catalogue
    from fakecri.engine import Port


@dataclass(frozen=True)
class World:
    """What an engine is put into. ``host_roots`` is None when nothing touches the host's files."""

    node: Node
    catalogue: Catalogue
    host_files: HostFiles | None = None
    log_files: LogFiles | None = None
    ports: Mapping[str, Port] | None = None
    host_roots: tuple[str, ...] | None = None


def world(setting: Setting, root: Path, stack: ExitStack) -> World:
    """Read the files that the setting names, and open the host's.

    Raises:
        ValueError: a setting or a document is wrong; the text names the place.
    """
    catalogue = builtin_catalogue()
    node = Node(
        cgroup_driver=CgroupDriver[setting.cgroup_driver.upper()],
        pod_cidrs=_names(setting.pod_cidr, "--pod-cidr"),
        pod_events=not setting.no_events,
        image_fs_path=str(root),
        unknown_command=UnknownCommand(setting.unknown_command),
        unknown_images=UnknownImages(setting.unknown_images),
        **_handlers(setting),
    )
    return World(node, catalogue)


def _handlers(setting: Setting) -> dict[str, Any]:
    if setting.runtime_handlers is None:
        return {}
    names = _names(setting.runtime_handlers, "--runtime-handlers")
    return {"runtime_handlers": tuple(RuntimeHandler(name) for name in names)}


def _names(text: str, option: str) -> tuple[str, ...]:
    names = tuple(part.strip() for part in text.split(","))
    if not all(names) or len(set(names)) < len(names):
        raise ValueError(
            f"{option} {text!r} has an empty or a repeated entry: separate different ones by single commas"
        )
    return names
