"""Putting a runtime together: every part made once, in the order of the house, from plain settings.

Doors, fixtures and scenarios call ``build_engine``; nothing else knows how the parts fit.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from fakecri.base.ids import Ids
from fakecri.base.tasks import Tasks
from fakecri.clock import DEFAULT_EPOCH_NS, VirtualClock
from fakecri.core.catalogue_builtin import builtin_catalogue
from fakecri.core.image import ImageStore
from fakecri.core.node import Node
from fakecri.core.runtime import Runtime
from fakecri.engine import Engine, Port
from fakecri.kernel.file_port import file_port
from fakecri.kernel.host_twin import TwinHostFiles, TwinLogFiles
from fakecri.kernel.machine import Machine
from fakecri.personality.registry import PERSONALITIES
from fakecri.record.recorder import Recorder
from fakecri.wire.levels import Level, View, view
from fakecri.workload.programs import PROGRAMS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fakecri.base.ports import HostFiles, LogFiles
    from fakecri.core.catalogue import Catalogue
    from fakecri.personality.model import Personality

SERVICES = ("RuntimeService", "ImageService")
#: The first level that v1 has; older ones are served as v1alpha2 alone.
FIRST_V1 = Level(1, 20)


def visible(level: Level) -> dict[str, View]:
    """API version → what it shows at a level; a level before 1.20 has no v1."""
    apis = ("v1", "v1alpha2") if level >= FIRST_V1 else ("v1alpha2",)
    return {api: view(api, level) for api in apis}


def served_apis(personality: Personality, views: Mapping[str, View], apis: frozenset[str] | None) -> frozenset[str]:
    """The API versions to serve: as asked, else the personality's own as far as the level has them.

    Raises:
        ValueError: a version that does not exist, or not at this level; the text says what to do.
    """
    if apis is None:
        return personality.apis & views.keys() or frozenset(views)
    for api in sorted(apis):
        if api not in ("v1", "v1alpha2"):
            raise ValueError(f"unknown API version {api!r}: it is v1 or v1alpha2")
        if api not in views:
            raise ValueError(f"{api} begins with level {FIRST_V1}: serve v1alpha2 alone, or choose a newer level")
    return apis


def _named(personality: str | Personality) -> Personality:
    if not isinstance(personality, str):
        return personality
    if personality not in PERSONALITIES:
        raise ValueError(f"unknown personality {personality!r}: it is one of {', '.join(PERSONALITIES)}")
    return PERSONALITIES[personality]


def build_engine(
    *,
    personality: str | Personality = "reference",
    node: Node | None = None,
    catalogue: Catalogue | None = None,
    level: Level | None = None,
    apis: frozenset[str] | None = None,
    seed: int = 0,
    epoch_ns: int = DEFAULT_EPOCH_NS,
    host_files: HostFiles | None = None,
    log_files: LogFiles | None = None,
    ports: Mapping[str, Port] | None = None,
    kept_calls: int | None = None,
) -> Engine:
    """An engine with one runtime of its own.

    Without ``host_files`` and ``log_files`` both are in memory, one file system. A real ``log_files`` comes with its
    ``logs`` port in ``ports``, where ``files`` may be given too (else ``host_files`` answers it at once).
    ``epoch_ns`` is the wall time (unix ns) at virtual time 0.

    Raises:
        ValueError: an unknown personality, or an API version that cannot be served.
    """
    personality = _named(personality)
    views = visible(level if level is not None else personality.level)
    served = served_apis(personality, views, apis)
    node = replace(node or Node(), runtime_name=personality.runtime_name, runtime_version=personality.runtime_version)
    clock, ids = VirtualClock(epoch_ns), Ids(seed)
    tasks = Tasks(clock)
    files = host_files or TwinHostFiles()
    twin_logs = TwinLogFiles(files if isinstance(files, TwinHostFiles) else None)
    runtime = Runtime(
        clock=clock,
        tasks=tasks,
        ids=ids,
        behaviour=personality.behaviour,
        node=node,
        images=ImageStore(catalogue or builtin_catalogue(), personality.behaviour, ids, node),
        machine=Machine(clock, tasks, ids, PROGRAMS),
        host_files=files,
        log_files=log_files if log_files is not None else twin_logs,
    )
    return Engine(
        runtime,
        personality,
        views=views,
        served=dict.fromkeys(SERVICES, served),
        ports={"files": file_port(files), **(ports if ports is not None else {"logs": twin_logs.port})},
        recorder=Recorder(kept_calls),
    )
