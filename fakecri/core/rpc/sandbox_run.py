"""RunPodSandbox: check, reserve the name, set up network and process, commit."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from fakecri.base.reasons import CriError, Reason
from fakecri.base.steps import BEFORE_COMMIT, CHECKED, RESERVED, Steps, Wait
from fakecri.core import processes, states
from fakecri.core.checks import Check, run_checks
from fakecri.core.node import HandlerFault, RuntimeHandler
from fakecri.core.rpc.registry import Context, handles
from fakecri.core.sandbox import PodSandbox
from fakecri.core.states import SandboxInput, SandboxState
from fakecri.core.traits import OnDuplicateName
from fakecri.kernel.network import HostPortTaken, PoolExhausted
from fakecri.wire import messages

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fakecri.core.runtime import Runtime

#: ``HOST_NAME_MAX`` of Linux.
HOSTNAME_LIMIT: Final = 64
#: First parts of the sysctls that a network or IPC namespace has of its own; others are the node's.
NAMESPACED_SYSCTLS: Final = ("net.", "kernel.shm", "kernel.msg", "kernel.sem", "fs.mqueue.")


@dataclass(slots=True)
class Wanted:
    """What a RunPodSandbox call asks for, on its way to becoming a sandbox."""

    id: str
    name: str
    config: messages.PodSandboxConfig
    handler_name: str
    given: bool
    handler: RuntimeHandler | None = None


def sandbox_name(config: messages.PodSandboxConfig) -> str:
    """The runtime's internal name, unique on the node: ``name_namespace_uid_attempt`` (containerd)."""
    metadata = config.metadata
    return f"{metadata.name}_{metadata.namespace}_{metadata.uid}_{metadata.attempt}"


# -- checks, in the default order --------------------------------------------------------------------------------------
def _config(runtime: Runtime, wanted: Wanted) -> None:
    if not wanted.given:
        raise CriError(Reason.SANDBOX_CONFIG_MISSING)


def _metadata(runtime: Runtime, wanted: Wanted) -> None:
    if not wanted.config.HasField("metadata"):
        raise CriError(Reason.SANDBOX_METADATA_MISSING)


def _pod_name(runtime: Runtime, wanted: Wanted) -> None:
    if not wanted.config.metadata.name:
        raise CriError(Reason.SANDBOX_NAME_EMPTY)


def _namespace(runtime: Runtime, wanted: Wanted) -> None:
    if not wanted.config.metadata.namespace:
        raise CriError(Reason.SANDBOX_NAMESPACE_EMPTY)


def _uid(runtime: Runtime, wanted: Wanted) -> None:
    if not wanted.config.metadata.uid:
        raise CriError(Reason.SANDBOX_UID_EMPTY)


def _name_free(runtime: Runtime, wanted: Wanted) -> None:
    owner = runtime.sandboxes.name_owner(wanted.name)
    if owner is not None and not _answers_existing(runtime):
        raise CriError(Reason.SANDBOX_NAME_RESERVED, name=wanted.name, owner=owner)


def _answers_existing(runtime: Runtime) -> bool:
    return runtime.traits.duplicate_name is OnDuplicateName.RETURN_EXISTING


def _handler(runtime: Runtime, wanted: Wanted) -> None:
    known = {handler.name: handler for handler in runtime.node.runtime_handlers}
    known[""] = runtime.node.runtime_handlers[0]
    found = known.get(wanted.handler_name)
    if found is None:
        raise CriError(Reason.RUNTIME_HANDLER_UNKNOWN, id=wanted.id, handler=wanted.handler_name, known=sorted(known))
    wanted.handler = found


def _log_directory(runtime: Runtime, wanted: Wanted) -> None:
    path = wanted.config.log_directory
    if path and not path.startswith("/"):
        raise CriError(Reason.LOG_DIRECTORY_RELATIVE, id=wanted.id, path=path)


def _hostname(runtime: Runtime, wanted: Wanted) -> None:
    if len(wanted.config.hostname) > HOSTNAME_LIMIT:
        raise CriError(Reason.HOSTNAME_TOO_LONG, id=wanted.id, hostname=wanted.config.hostname)


def _sysctls(runtime: Runtime, wanted: Wanted) -> None:
    for name, value in sorted(wanted.config.linux.sysctls.items()):
        if not name.replace("/", ".").startswith(NAMESPACED_SYSCTLS):
            raise CriError(Reason.SYSCTL_INVALID, id=wanted.id, name=name, value=value)


def _user_namespace(runtime: Runtime, wanted: Wanted) -> None:
    options = wanted.config.linux.security_context.namespace_options
    if not options.HasField("userns_options") or options.userns_options.mode != messages.POD:
        return
    uids, gids = options.userns_options.uids, options.userns_options.gids
    if len(uids) != 1 or len(gids) != 1:
        raise CriError(Reason.USERNS_INVALID, id=wanted.id, detail="exactly one uid and one gid mapping is needed")
    if uids[0] != gids[0]:
        raise CriError(Reason.USERNS_INVALID, id=wanted.id, detail="uid and gid mappings differ")
    if uids[0].length == 0:
        raise CriError(Reason.USERNS_INVALID, id=wanted.id, detail="the mapping's length is 0")
    if options.network == messages.NODE or options.pid == messages.NODE or options.ipc == messages.NODE:
        raise CriError(Reason.USERNS_INVALID, id=wanted.id, detail="the node's namespaces cannot be shared")


def _installed(runtime: Runtime, wanted: Wanted) -> None:
    handler = wanted.handler
    if handler is None or handler.fault is None:
        return
    reason = {
        HandlerFault.OCI_BINARY_MISSING: Reason.OCI_RUNTIME_MISSING,
        HandlerFault.SHIM_MISSING: Reason.SHIM_MISSING,
    }[handler.fault]
    raise CriError(reason, id=wanted.id, handler=handler.name, binary=handler.binary, runtime_type=handler.binary)


#: Every check of RunPodSandbox. Those that the default order leaves out are some personality's.
CHECKS: Final[Mapping[str, Check]] = MappingProxyType(
    {
        "config": _config,
        "metadata": _metadata,
        "name": _pod_name,
        "namespace": _namespace,
        "uid": _uid,
        "name_free": _name_free,
        "handler": _handler,
        "log_directory": _log_directory,
        "user_namespace": _user_namespace,
        "hostname": _hostname,
        "sysctls": _sysctls,
        "installed": _installed,
    }
)
#: containerd 2.1.9: empty names and relative log directories are taken.
DEFAULT_ORDER: Final = (
    "config",
    "metadata",
    "name_free",
    "handler",
    "user_namespace",
    "hostname",
    "sysctls",
    "installed",
)


@handles("RunPodSandbox")
def run_pod_sandbox(
    runtime: Runtime, context: Context, request: messages.RunPodSandboxRequest
) -> Steps[messages.RunPodSandboxResponse]:
    """Make a sandbox that is READY, with its addresses and its own process, when the call returns.

    Raises:
        CriError: one of the checks', NETWORK_NOT_READY, NO_ADDRESS_LEFT or HOST_PORT_TAKEN. The name is free again,
            unless the table's RUN row names a residue for a failed network.
    """
    wanted = Wanted(
        id=runtime.ids.hex64("sandbox"),
        name=sandbox_name(request.config),
        config=request.config,
        handler_name=request.runtime_handler,
        given=request.HasField("config"),
    )
    run_checks(runtime, "RunPodSandbox", CHECKS, wanted, DEFAULT_ORDER)
    yield CHECKED
    while (owner := runtime.sandboxes.name_owner(wanted.name)) is not None:
        if not _answers_existing(runtime):  # taken while this call was held
            raise CriError(Reason.SANDBOX_NAME_RESERVED, name=wanted.name, owner=owner)
        if owner in runtime.sandboxes:
            return messages.RunPodSandboxResponse(pod_sandbox_id=owner)
        yield Wait(runtime.sandboxes.released)
    runtime.sandboxes.reserve(wanted.name, wanted.id)
    sandbox = PodSandbox(wanted.id, wanted.name, request.config, request.runtime_handler)
    try:
        yield RESERVED
        if sandbox.log_directory:
            runtime.host_files.allow(sandbox.log_directory)
        _set_up(runtime, sandbox, request.config)
        yield BEFORE_COMMIT
        sandbox.created_at_ns = runtime.clock.stamp_ns()
        processes.start_sandbox(runtime, sandbox)
        runtime.move_sandbox(sandbox, SandboxInput.RUN)
    finally:
        if sandbox.state is SandboxState.ABSENT:
            _undo(runtime, sandbox)
    return messages.RunPodSandboxResponse(pod_sandbox_id=sandbox.id)


def _set_up(runtime: Runtime, sandbox: PodSandbox, config: messages.PodSandboxConfig) -> None:
    """Network namespace, addresses and host ports."""
    ports = tuple(
        (messages.Protocol.Name(mapping.protocol), mapping.host_port, mapping.host_ip)
        for mapping in config.port_mappings
        if mapping.host_port > 0
    )
    if sandbox.host_network:
        return
    if not runtime.conditions["NetworkReady"][0]:
        _leave_residue(runtime, sandbox)
        raise CriError(Reason.NETWORK_NOT_READY, id=sandbox.id)
    sandbox.network_namespace = f"/var/run/netns/cni-{runtime.ids.token('netns')}"
    try:
        sandbox.addresses = runtime.network.allocate(sandbox.id)
    except PoolExhausted as error:
        raise CriError(Reason.NO_ADDRESS_LEFT, id=sandbox.id, cidr=error.cidr) from error
    try:
        runtime.host_ports.reserve(sandbox.id, ports)
    except HostPortTaken as error:
        raise CriError(Reason.HOST_PORT_TAKEN, id=sandbox.id, port=error.port, protocol=error.protocol) from error
    sandbox.host_ports = ports


def _leave_residue(runtime: Runtime, sandbox: PodSandbox) -> None:
    """Where the RUN row says so, a failed network leaves the sandbox in the list (containerd 1.6 and 1.7)."""
    residue = states.look_up(runtime.behaviour.sandbox_table, sandbox, SandboxInput.RUN).residue
    if residue is not None:
        assert isinstance(residue, SandboxInput)
        sandbox.created_at_ns = runtime.clock.stamp_ns()
        runtime.move_sandbox(sandbox, residue)


def _undo(runtime: Runtime, sandbox: PodSandbox) -> None:
    processes.end_sandbox(runtime, sandbox)
    runtime.network.release(sandbox.id)
    runtime.host_ports.release(sandbox.id)
    runtime.sandboxes.release(sandbox.name, sandbox.id)
