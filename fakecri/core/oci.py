"""The OCI runtime specification of a container and of a sandbox, as agents read it out of verbose ``info``.

Nothing is run from it: it is the one place that says, in OCI's words, what the config, the image and the node come to.
Source: opencontainers/runtime-spec 1.2 and what containerd 2.1 generates.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from fakecri.core import cgroups, processes
from fakecri.core.go_json import omit_empty
from fakecri.kernel.capabilities import CAPABILITIES
from fakecri.kernel.executables import DEFAULT_PATH
from fakecri.wire import messages

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from fakecri.core.container import Container
    from fakecri.core.runtime import Runtime
    from fakecri.core.sandbox import PodSandbox

OCI_VERSION: Final = "1.2.1"
#: What a container may do unless its config says otherwise (containerd, CRI-O and Docker agree on most of it).
DEFAULT_CAPABILITIES: Final = (
    "CAP_CHOWN",
    "CAP_DAC_OVERRIDE",
    "CAP_FSETID",
    "CAP_FOWNER",
    "CAP_MKNOD",
    "CAP_NET_RAW",
    "CAP_SETGID",
    "CAP_SETUID",
    "CAP_SETFCAP",
    "CAP_SETPCAP",
    "CAP_NET_BIND_SERVICE",
    "CAP_SYS_CHROOT",
    "CAP_KILL",
    "CAP_AUDIT_WRITE",
)
ALL_CAPABILITIES: Final = tuple(f"CAP_{name}" for name in CAPABILITIES)
_PROPAGATION: Final = {
    messages.PROPAGATION_PRIVATE: "rprivate",
    messages.PROPAGATION_HOST_TO_CONTAINER: "rslave",
    messages.PROPAGATION_BIDIRECTIONAL: "rshared",
}
_BASE_MOUNTS: Final[tuple[tuple[str, str, str, tuple[str, ...]], ...]] = (
    ("/proc", "proc", "proc", ("nosuid", "noexec", "nodev")),
    ("/dev", "tmpfs", "tmpfs", ("nosuid", "strictatime", "mode=755", "size=65536k")),
    ("/dev/pts", "devpts", "devpts", ("nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620", "gid=5")),
    ("/dev/mqueue", "mqueue", "mqueue", ("nosuid", "noexec", "nodev")),
    ("/sys", "sysfs", "sysfs", ("nosuid", "noexec", "nodev", "ro")),
    ("/sys/fs/cgroup", "cgroup", "cgroup", ("nosuid", "noexec", "nodev", "relatime", "ro")),
)


# -- containers --------------------------------------------------------------------------------------------------------
def container_spec(runtime: Runtime, container: Container) -> dict[str, Any]:
    """The specification of a container's process and its surroundings."""
    config = container.config()
    context = config.linux.security_context
    return {
        "ociVersion": OCI_VERSION,
        "process": _process(container, config),
        "root": omit_empty({"path": "rootfs", "readonly": context.readonly_rootfs}),
        "mounts": [*_base_mounts(), *map(_bind_mount, config.mounts)],
        "annotations": _container_annotations(container, config),
        "linux": _container_linux(runtime, container, config),
    }


def capabilities(context: messages.LinuxContainerSecurityContext) -> dict[str, list[str]]:
    """The capability sets that a security context comes to; names in the kernel's order."""
    held = set(ALL_CAPABILITIES if context.privileged else DEFAULT_CAPABILITIES)
    if not context.privileged:
        # Dropping all and adding one leaves the one: "ALL" first, single names after it (CRI's order of rules).
        added, dropped = map(_named, (context.capabilities.add_capabilities, context.capabilities.drop_capabilities))
        held = set(ALL_CAPABILITIES) if "CAP_ALL" in added else held
        held = set() if "CAP_ALL" in dropped else held
        held = (held | (added - {"CAP_ALL"})) - dropped
    sets = {name: _in_order(held) for name in ("bounding", "effective", "permitted")}
    ambient = _named(context.capabilities.add_ambient_capabilities)
    return {**sets, "inheritable": _in_order(ambient), "ambient": _in_order(ambient)} if ambient else sets


def _named(given: Iterable[str]) -> set[str]:
    return {"CAP_" + name.upper().removeprefix("CAP_") for name in given}


def _in_order(held: set[str]) -> list[str]:
    return [name for name in ALL_CAPABILITIES if name in held] + sorted(held.difference(ALL_CAPABILITIES))


def _process(container: Container, config: messages.ContainerConfig) -> dict[str, Any]:
    context = config.linux.security_context
    user = container.user()
    environment = dict(processes.Environment(container.config_bytes, container.image))
    if config.tty:
        environment.setdefault("TERM", "xterm")
    return omit_empty(
        {
            "terminal": config.tty,
            "user": {
                "uid": user.uid,
                "gid": user.gid,
                "additionalGids": list(user.supplemental_groups),
            },
            "args": list(processes.argv(config, container.image)),
            "env": [_text(f"{name}={value}") for name, value in environment.items()],
            "cwd": processes.working_directory(config, container.image),
            "capabilities": capabilities(context),
            "noNewPrivileges": context.no_new_privs,
            "apparmorProfile": _profile(context.apparmor, context.apparmor_profile, "cri-containerd.apparmor.d"),
            "oomScoreAdj": container.resources().oom_score_adj,
        }
    )


def _text(value: str) -> str:
    """Bytes that are not UTF-8 as Go's JSON shows them: U+FFFD."""
    return value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _profile(profile: messages.SecurityProfile, older: str, default: str) -> str:
    """An AppArmor profile's name; ``older`` is the deprecated text form of the same."""
    if profile.ByteSize() and profile.profile_type == messages.SecurityProfile.Localhost:
        return profile.localhost_ref.removeprefix("localhost/")
    if older.startswith("localhost/"):
        return older.removeprefix("localhost/")
    if profile.profile_type == messages.SecurityProfile.Unconfined or older == "unconfined":
        return ""
    return default if older or profile.ByteSize() else ""


def _base_mounts() -> list[dict[str, Any]]:
    return [
        {"destination": destination, "type": kind, "source": source, "options": list(options)}
        for destination, kind, source, options in _BASE_MOUNTS
    ]


def _bind_mount(mount: messages.Mount) -> dict[str, Any]:
    writable = "ro" if mount.readonly else "rw"
    access = "rro" if mount.recursive_read_only else writable
    return omit_empty(
        {
            "destination": mount.container_path,
            "type": "bind",
            "source": mount.host_path or mount.image.image,
            "options": ["rbind", _PROPAGATION.get(mount.propagation, "rprivate"), access, *mount.mount_options],
            "uidMappings": _id_mappings(mount.uidMappings),
            "gidMappings": _id_mappings(mount.gidMappings),
        }
    )


def _id_mappings(mappings: Iterable[messages.IDMapping]) -> list[dict[str, int]]:
    return [{"containerID": one.container_id, "hostID": one.host_id, "size": one.length} for one in mappings]


def _container_annotations(container: Container, config: messages.ContainerConfig) -> dict[str, str]:
    sandbox = container.sandbox
    own = {
        "io.kubernetes.cri.container-name": container.container_name,
        "io.kubernetes.cri.container-type": "container",
        "io.kubernetes.cri.image-name": container.image_name,
        **_sandbox_identity(sandbox),
    }
    return dict(sorted({**config.annotations, **own}.items()))


def _sandbox_identity(sandbox: PodSandbox) -> dict[str, str]:
    return {
        "io.kubernetes.cri.sandbox-id": sandbox.id,
        "io.kubernetes.cri.sandbox-name": sandbox.pod_name,
        "io.kubernetes.cri.sandbox-namespace": sandbox.namespace,
        "io.kubernetes.cri.sandbox-uid": sandbox.uid,
    }


def _container_linux(runtime: Runtime, container: Container, config: messages.ContainerConfig) -> dict[str, Any]:
    context = config.linux.security_context
    options = context.namespace_options
    users = options.userns_options
    return omit_empty(
        {
            "uidMappings": _id_mappings(users.uids),
            "gidMappings": _id_mappings(users.gids),
            "resources": resources(container.resources(), config.devices),
            "cgroupsPath": cgroups.container_path(runtime.node.cgroup_driver, container, spec=True),
            "namespaces": _namespaces(options, container.sandbox.pid, own_mounts=True),
            "devices": [
                {"path": device.container_path, "type": "c", "major": 0, "minor": 0} for device in config.devices
            ],
            "seccomp": _seccomp(context),
            "maskedPaths": list(context.masked_paths),
            "readonlyPaths": list(context.readonly_paths),
        }
    )


def _seccomp(context: messages.LinuxContainerSecurityContext) -> dict[str, Any]:
    """The profile's frame; which calls a profile allows is not modelled here."""
    if context.privileged or not context.HasField("seccomp"):
        return {}
    if context.seccomp.profile_type == messages.SecurityProfile.Unconfined:
        return {}
    return {"defaultAction": "SCMP_ACT_ERRNO", "architectures": ["SCMP_ARCH_X86_64"]}


def resources(limits: messages.LinuxContainerResources, devices: Iterable[messages.Device] = ()) -> dict[str, Any]:
    """``linux.resources``: limits as in force, and which devices are allowed."""
    allowed = [{"allow": True, "type": "c", "access": device.permissions or "rwm"} for device in devices]
    memory = omit_empty({"limit": limits.memory_limit_in_bytes, "swap": limits.memory_swap_limit_in_bytes})
    cpu = omit_empty(
        {
            "shares": limits.cpu_shares,
            "quota": limits.cpu_quota,
            "period": limits.cpu_period,
            "cpus": limits.cpuset_cpus,
            "mems": limits.cpuset_mems,
        }
    )
    return omit_empty(
        {
            "devices": [{"allow": False, "access": "rwm"}, *allowed],
            "memory": memory,
            "cpu": cpu,
            "hugepageLimits": [{"pageSize": one.page_size, "limit": one.limit} for one in limits.hugepage_limits],
            "unified": dict(sorted(limits.unified.items())),
        }
    )


def _namespaces(options: messages.NamespaceOption, pid: int, *, own_mounts: bool) -> list[dict[str, str]]:
    """Namespaces in OCI's words; those that the pod's containers share are joined by the sandbox process's path."""

    def shared(kind: str, name: str) -> dict[str, str]:
        return omit_empty({"type": kind, "path": f"/proc/{pid}/ns/{name}" if own_mounts and pid else ""})

    found: list[dict[str, str]] = []
    if options.pid != messages.NODE:
        found.append(shared("pid", "pid") if options.pid == messages.POD else {"type": "pid"})
    if options.ipc != messages.NODE:
        found.append(shared("ipc", "ipc"))
    if options.network != messages.NODE:
        found += [shared("uts", "uts"), shared("network", "net")]
    found.append({"type": "mount"})
    if options.HasField("userns_options") and options.userns_options.mode == messages.POD:
        found.append(shared("user", "user"))
    return found


# -- sandboxes ---------------------------------------------------------------------------------------------------------
def sandbox_spec(runtime: Runtime, sandbox: PodSandbox) -> dict[str, Any]:
    """The specification of the sandbox's own process."""
    config = sandbox.config()
    context = config.linux.security_context
    namespaces = _namespaces(context.namespace_options, 0, own_mounts=False)
    for namespace in namespaces:
        if namespace["type"] == "network" and sandbox.network_namespace:
            namespace["path"] = sandbox.network_namespace
    return omit_empty(
        {
            "ociVersion": OCI_VERSION,
            "process": {
                "user": {"uid": context.run_as_user.value or 65535, "gid": context.run_as_group.value or 65535},
                "args": [processes.PAUSE],
                "env": [f"PATH={DEFAULT_PATH}"],
                "cwd": "/",
                "capabilities": capabilities(messages.LinuxContainerSecurityContext()),
                "noNewPrivileges": True,
                "oomScoreAdj": -998,
            },
            "root": {"path": "rootfs", "readonly": True},
            "hostname": "" if sandbox.host_network else config.hostname,
            "mounts": _base_mounts(),
            "annotations": _sandbox_annotations(sandbox, config.annotations),
            "linux": omit_empty(
                {
                    "sysctl": dict(sorted(config.linux.sysctls.items())),
                    "resources": {"devices": [{"allow": False, "access": "rwm"}], "cpu": {"shares": 2}},
                    "cgroupsPath": cgroups.sandbox_path(runtime.node.cgroup_driver, sandbox, spec=True),
                    "namespaces": namespaces,
                }
            ),
        }
    )


def _sandbox_annotations(sandbox: PodSandbox, given: Mapping[str, str]) -> dict[str, str]:
    own = {
        "io.kubernetes.cri.container-type": "sandbox",
        "io.kubernetes.cri.sandbox-log-directory": sandbox.log_directory,
        **_sandbox_identity(sandbox),
    }
    return dict(sorted({**given, **own}.items()))
