"""The node and the images that the options of ``serve`` describe."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakecri.core.catalogue_builtin import builtin_catalogue
from fakecri.core.node import CgroupDriver, Node, RuntimeHandler, UnknownCommand, UnknownImages

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from fakecri.cli.serving import Setting
    from fakecri.core.catalogue import Catalogue


def node(setting: Setting, root: Path, described: tuple[RuntimeHandler, ...]) -> Node:
    """The node; ``described`` are the runtime handlers that documents have.

    Raises:
        ValueError: a setting is malformed.
    """
    return Node(
        cgroup_driver=CgroupDriver[setting.cgroup_driver.upper()],
        pod_cidrs=_names(setting.pod_cidr, "--pod-cidr"),
        runtime_handlers=_handlers(setting.runtime_handlers, described),
        pod_events=not setting.no_events,
        image_fs_path=str(root),
        unknown_command=UnknownCommand(setting.unknown_command),
        unknown_images=UnknownImages(setting.unknown_images),
    )


def images_and_handlers(files: Sequence[Path]) -> tuple[Catalogue, tuple[RuntimeHandler, ...]]:
    """The built-in images and what documents add to them, and the runtime handlers that documents describe.

    Raises:
        ValueError: a document is wrong; a line per problem, each with file, line and column.
    """
    if not files:
        return builtin_catalogue(), ()
    from fakecri.scenario.compile import load_world
    from fakecri.scenario.load import ScenarioError

    try:
        added = load_world(files)
    except ScenarioError as error:
        raise ValueError(str(error)) from error
    return added.catalogue(), added.handlers()


def _handlers(text: str | None, described: tuple[RuntimeHandler, ...]) -> tuple[RuntimeHandler, ...]:
    """Those that the option names, else those that documents describe, else the usual one."""
    if text is None:
        return described or Node().runtime_handlers
    known = {handler.name: handler for handler in described}
    return tuple(known.get(name, RuntimeHandler(name)) for name in _names(text, "--runtime-handlers"))


def _names(text: str, option: str) -> tuple[str, ...]:
    names = tuple(part.strip() for part in text.split(","))
    if not all(names) or len(set(names)) < len(names):
        raise ValueError(
            f"{option} {text!r} has an empty or a repeated entry: separate different ones by single commas"
        )
    return names
