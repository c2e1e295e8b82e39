"""The ``info`` of verbose replies: JSON documents that ``crictl inspect`` prints and node agents parse.

Each key has one builder here; which keys a runtime shows, and in which order, is the personality's ``info_keys`` (all
of them where it does not say). A builder that answers ``ABSENT`` leaves its key out. Sources: containerd's
``internal/cri/types`` (SandboxInfo, ContainerInfo), CRI-O's ``container_status.go``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from fakecri.core import oci
from fakecri.core.catalogue_builtin import PAUSE_IMAGE
from fakecri.core.go_json import ZERO_TIME, dumps, omit_empty, struct, time_text
from fakecri.core.node import CgroupDriver, HandlerFault
from fakecri.wire import messages

if TYPE_CHECKING:
    from fakecri.core.container import Container
    from fakecri.core.runtime import Runtime
    from fakecri.core.sandbox import PodSandbox

#: What a builder answers when there is nothing to show.
ABSENT: Final = object()
SNAPSHOTTER: Final = "overlayfs"
SHIM: Final = "io.containerd.runc.v2"
GO_VERSION: Final = "go1.24.4"
CNI_CONFIG_DIRECTORY: Final = "/etc/cni/net.d"
CNI_PLUGIN_DIRECTORY: Final = "/opt/cni/bin"

ContainerKey = Callable[["Runtime", "Container"], Any]
SandboxKey = Callable[["Runtime", "PodSandbox"], Any]
StatusKey = Callable[["Runtime"], str]


# -- what a runtime handler runs ---------------------------------------------------------------------------------------
def _runtime_type(runtime: Runtime, sandbox: PodSandbox) -> str:
    """The shim that a sandbox's handler names."""
    for handler in runtime.node.runtime_handlers:
        if handler.name == sandbox.runtime_handler and handler.fault is HandlerFault.SHIM_MISSING:
            return handler.binary
    return SHIM


def _runtime_options(runtime: Runtime, sandbox: PodSandbox) -> dict[str, Any]:
    for handler in runtime.node.runtime_handlers:
        if handler.name == sandbox.runtime_handler and handler.fault is HandlerFault.OCI_BINARY_MISSING:
            return omit_empty({"binary_name": handler.binary, "systemd_cgroup": _systemd(runtime)})
    return omit_empty({"systemd_cgroup": _systemd(runtime)})


def _systemd(runtime: Runtime) -> bool:
    return runtime.node.cgroup_driver is CgroupDriver.SYSTEMD


# -- containers --------------------------------------------------------------------------------------------------------
def _checkpointed_at(runtime: Runtime, container: Container) -> str:
    return time_text(container.checkpointed_at_ns) if container.checkpointed_at_ns else ZERO_TIME


#: Key → builder, in containerd's order, then CRI-O's own.
CONTAINER_KEYS: Final[Mapping[str, ContainerKey]] = MappingProxyType(
    {
        "sandboxID": lambda runtime, container: container.sandbox.id,
        "pid": lambda runtime, container: container.pid,
        "removing": lambda runtime, container: False,
        "snapshotKey": lambda runtime, container: container.id,
        "snapshotter": lambda runtime, container: SNAPSHOTTER,
        "runtimeType": lambda runtime, container: _runtime_type(runtime, container.sandbox),
        "runtimeOptions": lambda runtime, container: _runtime_options(runtime, container.sandbox),
        "config": lambda runtime, container: struct(container.config()),
        "runtimeSpec": oci.container_spec,
        "privileged": lambda runtime, container: container.config().linux.security_context.privileged,
        "checkpointedAt": _checkpointed_at,
        "restored": lambda runtime, container: container.restored,
    }
)


def container_info(runtime: Runtime, container: Container) -> dict[str, str]:
    """``ContainerStatusResponse.info``: one JSON object under ``info``."""
    keys = runtime.behaviour.info_keys.get("ContainerStatus", tuple(CONTAINER_KEYS))
    return _document({key: CONTAINER_KEYS[key](runtime, container) for key in keys})


# -- pod sandboxes -----------------------------------------------------------------------------------------------------
def _network(runtime: Runtime, sandbox: PodSandbox) -> Any:
    """The result of the network plugin's set-up, as go-cni keeps it; nothing for host network."""
    if sandbox.host_network or not sandbox.network_namespace:
        return None
    gateways = {":" in gateway: gateway for gateway in runtime.network.gateways}
    addresses = [{"IP": address, "Gateway": gateways.get(":" in address, "")} for address in sandbox.addresses]
    mac = sandbox.id[:10]
    ethernet = {
        "IPConfigs": addresses,
        "Mac": ":".join(("0a", *(mac[at : at + 2] for at in range(0, 10, 2)))),
        "Sandbox": sandbox.network_namespace,
    }
    loopback = {
        "IPConfigs": [{"IP": "127.0.0.1", "Gateway": ""}, {"IP": "::1", "Gateway": ""}],
        "Mac": "00:00:00:00:00:00",
        "Sandbox": sandbox.network_namespace,
    }
    return {"Interfaces": {"eth0": ethernet, "lo": loopback}, "DNS": [{}, {}], "Routes": None}


def _sandbox_metadata(runtime: Runtime, sandbox: PodSandbox) -> dict[str, Any]:
    return {
        "ID": sandbox.id,
        "Name": sandbox.name,
        "Config": struct(sandbox.config()),
        "NetNSPath": sandbox.network_namespace,
        "IP": sandbox.addresses[0] if sandbox.addresses else "",
        "AdditionalIPs": list(sandbox.addresses[1:]) or None,
        "RuntimeHandler": sandbox.runtime_handler,
        "CNIResult": _network(runtime, sandbox),
        "ProcessLabel": "",
    }


def _changed_resources(encoded: bytes) -> Any:
    return struct(messages.LinuxContainerResources.FromString(encoded)) if encoded else ABSENT


#: Key → builder, in containerd's order.
SANDBOX_KEYS: Final[Mapping[str, SandboxKey]] = MappingProxyType(
    {
        "pid": lambda runtime, sandbox: sandbox.pid,
        "processStatus": lambda runtime, sandbox: "running" if sandbox.pid else "deleted",
        "netNamespaceClosed": lambda runtime, sandbox: not sandbox.host_network and not sandbox.ready,
        "image": lambda runtime, sandbox: PAUSE_IMAGE,
        "snapshotKey": lambda runtime, sandbox: sandbox.id,
        "snapshotter": lambda runtime, sandbox: SNAPSHOTTER,
        "runtimeHandler": lambda runtime, sandbox: sandbox.runtime_handler,
        "runtimeType": _runtime_type,
        "runtimeOptions": _runtime_options,
        "config": lambda runtime, sandbox: struct(sandbox.config()),
        "runtimeSpec": oci.sandbox_spec,
        "cniResult": _network,
        "sandboxMetadata": _sandbox_metadata,
        "overhead": lambda runtime, sandbox: _changed_resources(sandbox.overhead_bytes),
        "resources": lambda runtime, sandbox: _changed_resources(sandbox.linux_resources_bytes),
    }
)


def sandbox_info(runtime: Runtime, sandbox: PodSandbox) -> dict[str, str]:
    """``PodSandboxStatusResponse.info``: one JSON object under ``info``."""
    keys = runtime.behaviour.info_keys.get("PodSandboxStatus", tuple(SANDBOX_KEYS))
    return _document({key: SANDBOX_KEYS[key](runtime, sandbox) for key in keys})


def _document(shown: dict[str, Any]) -> dict[str, str]:
    document = {key: value for key, value in shown.items() if value is not ABSENT}
    return {"info": dumps(document)} if document else {}


# -- the runtime -------------------------------------------------------------------------------------------------------
def _runtime_config(runtime: Runtime) -> str:
    """The runtime's own settings, in the shape of containerd's CRI plugin."""
    node = runtime.node
    handlers = {
        handler.name: {"runtimeType": SHIM, "options": {"SystemdCgroup": _systemd(runtime)}, "snapshotter": ""}
        for handler in node.runtime_handlers
    }
    return dumps(
        {
            "containerd": {
                "snapshotter": SNAPSHOTTER,
                "defaultRuntimeName": node.runtime_handlers[0].name,
                "runtimes": handlers,
            },
            "cni": {"binDir": CNI_PLUGIN_DIRECTORY, "confDir": CNI_CONFIG_DIRECTORY, "maxConfNum": 1},
            "sandboxImage": PAUSE_IMAGE,
            "rootDir": node.image_fs_path,
            "enableCDI": True,
        }
    )


def _cni_config(runtime: Runtime) -> str:
    networks = [
        {"Config": {"Name": "cni-loopback", "CNIVersion": "1.0.0"}, "IFName": "lo"},
        {
            "Config": {"Name": "fakecri", "CNIVersion": "1.0.0", "Ranges": list(runtime.network.cidrs)},
            "IFName": "eth0",
        },
    ]
    ready = runtime.conditions["NetworkReady"][0]
    return dumps(
        {
            "PluginDirs": [CNI_PLUGIN_DIRECTORY],
            "PluginConfDir": CNI_CONFIG_DIRECTORY,
            "PluginMaxConfNum": 1,
            "Prefix": "eth",
            "Networks": networks if ready else networks[:1],
        }
    )


def _cni_load_status(runtime: Runtime) -> str:
    """``OK``, or why there is no network: what NetworkReady says."""
    ready, _, message = runtime.conditions["NetworkReady"]
    return "OK" if ready else message


#: Key → builder; values are strings, most of them JSON.
STATUS_KEYS: Final[Mapping[str, StatusKey]] = MappingProxyType(
    {
        "config": _runtime_config,
        "golang": lambda runtime: dumps(GO_VERSION),
        "cniconfig": _cni_config,
        "lastCNILoadStatus": _cni_load_status,
        "lastCNILoadStatus.default": _cni_load_status,
    }
)


def status_info(runtime: Runtime) -> dict[str, str]:
    """``StatusResponse.info``: one string under each key."""
    keys = runtime.behaviour.info_keys.get("Status", tuple(STATUS_KEYS))
    return {key: STATUS_KEYS[key](runtime) for key in keys}
