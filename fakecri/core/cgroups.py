"""Names of control groups: where a pod's and a container's would lie, under either cgroup driver.

With ``cgroupfs`` a group is a path below the pod's ``cgroup_parent``; with ``systemd`` the parent is a slice, nested by
its dashes, and a container's group is a scope in it. ``spec=True`` gives the form that an OCI specification holds
(systemd: ``slice:prefix:name``), else the path below the control group file system.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fakecri.core.node import CgroupDriver

if TYPE_CHECKING:
    from fakecri.core.container import Container
    from fakecri.core.sandbox import PodSandbox

#: Parent of pods whose config names none (containerd).
_NO_PARENT: Final = "k8s.io"
_SCOPE_PREFIX: Final = "cri-containerd"


def sandbox_parent(driver: CgroupDriver, sandbox: PodSandbox) -> str:
    """The pod's own group: the one that holds all its containers; its ``cgroup_parent``."""
    parent = sandbox.config().linux.cgroup_parent
    if driver is CgroupDriver.SYSTEMD:
        return _slice_path(parent.rpartition("/")[2] or "system.slice")
    return "/" + (parent or _NO_PARENT).strip("/")


def sandbox_path(driver: CgroupDriver, sandbox: PodSandbox, *, spec: bool = False) -> str:
    """The group of the sandbox's own process."""
    return _path(driver, sandbox, sandbox.id, spec)


def container_path(driver: CgroupDriver, container: Container, *, spec: bool = False) -> str:
    """The group of a container."""
    return _path(driver, container.sandbox, container.id, spec)


def _path(driver: CgroupDriver, sandbox: PodSandbox, name: str, spec: bool) -> str:
    if driver is CgroupDriver.CGROUPFS:
        return f"{sandbox_parent(driver, sandbox)}/{name}"
    if spec:
        parent = sandbox.config().linux.cgroup_parent.rpartition("/")[2] or "system.slice"
        return f"{parent}:{_SCOPE_PREFIX}:{name}"
    return f"{sandbox_parent(driver, sandbox)}/{_SCOPE_PREFIX}-{name}.scope"


def _slice_path(name: str) -> str:
    """``a-b.slice`` lies in ``a.slice``: systemd nests slices by the dashes of their names."""
    parts = name.removesuffix(".slice").split("-")
    return "".join(f"/{'-'.join(parts[: count + 1])}.slice" for count in range(len(parts)))
