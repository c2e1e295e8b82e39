"""What the simulated node is set up with: values that a door, a fixture or a scenario chooses before the start."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


class HandlerFault(Enum):
    """Why every sandbox of a runtime handler fails to start."""

    OCI_BINARY_MISSING = "the OCI runtime's binary is not installed"
    SHIM_MISSING = "the shim's binary is not installed"


@dataclass(frozen=True, slots=True)
class RuntimeHandler:
    """One entry of the runtime's handler table; the default handler also answers to the empty name."""

    name: str
    recursive_read_only_mounts: bool = True
    user_namespaces: bool = True
    fault: HandlerFault | None = None
    #: OCI binary or shim type that a fault's text names.
    binary: str = ""


class CgroupDriver(Enum):
    """``runtime.v1.CgroupDriver``."""

    SYSTEMD = 0
    CGROUPFS = 1


class UnknownCommand(Enum):
    """What an image made up for an unknown reference does with a command that nobody described."""

    WAIT = "wait"
    FAIL = "fail"


class UnknownImages(Enum):
    """Whether a well-formed reference that nobody described can be pulled."""

    PULL = "pull"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Node:
    """Settings of the runtime and its node. Sizes are bytes."""

    runtime_name: str = "fakecri"
    runtime_version: str = "0.1.0"
    cgroup_driver: CgroupDriver = CgroupDriver.CGROUPFS
    #: One CIDR per address family, the primary family first.
    pod_cidrs: tuple[str, ...] = ("127.88.0.0/16",)
    runtime_handlers: tuple[RuntimeHandler, ...] = (RuntimeHandler("runc"),)
    pod_events: bool = True
    event_queue_limit: int = 1024
    #: A host directory that exists: what ImageFsInfo names.
    image_fs_path: str = "/"
    memory_bytes: int = 8 << 30
    #: Swap space of the node; 0: it has none.
    swap_bytes: int = 0
    processors: int = 4
    unknown_command: UnknownCommand = UnknownCommand.WAIT
    unknown_images: UnknownImages = UnknownImages.PULL
    annotations: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
