"""Version, Status, RuntimeConfig, UpdateRuntimeConfig."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fakecri.base.reasons import CriError, Reason
from fakecri.base.steps import BEFORE_COMMIT, CHECKED, Steps
from fakecri.core.info import status_info
from fakecri.core.rpc.registry import Context, handles
from fakecri.core.traits import Shown
from fakecri.kernel.network import parse_cidrs
from fakecri.wire import messages

if TYPE_CHECKING:
    from fakecri.core.node import RuntimeHandler
    from fakecri.core.runtime import Runtime

#: What every kubelet insists on (``kubeRuntimeAPIVersion``), whatever the client asked for.
KUBELET_API_VERSION: Final = "0.1.0"


@handles("Version")
def version(runtime: Runtime, context: Context, request: messages.VersionRequest) -> messages.VersionResponse:
    """Name and versions; ``runtime_api_version`` is that of the service which was asked."""
    return messages.VersionResponse(
        version=KUBELET_API_VERSION,
        runtime_name=runtime.node.runtime_name,
        runtime_version=runtime.node.runtime_version,
        runtime_api_version=context.view.api,
    )


@handles("Status")
def status(runtime: Runtime, context: Context, request: messages.StatusRequest) -> messages.StatusResponse:
    """Conditions, and the runtime handlers and features where the runtime reports them."""
    response = messages.StatusResponse()
    for name, (ready, reason, message) in runtime.conditions.items():
        response.status.conditions.add(type=name, status=ready, reason=reason, message=message)
    traits = runtime.traits
    if traits.runtime_handlers is Shown.YES:
        default = runtime.node.runtime_handlers[0]
        _add_handler(response, "", default)
        for handler in runtime.node.runtime_handlers:
            _add_handler(response, handler.name, handler)
    if traits.runtime_features is Shown.YES:
        response.features.supplemental_groups_policy = True
        response.features.user_namespaces_host_network = True
        response.features.mount_options = True
    if request.verbose:
        response.info.update(status_info(runtime))
    return response


def _add_handler(response: messages.StatusResponse, name: str, handler: RuntimeHandler) -> None:
    entry = response.runtime_handlers.add(name=name)
    if handler.fault is not None:  # what cannot be run cannot be asked for its features either
        return
    entry.features.recursive_read_only_mounts = handler.recursive_read_only_mounts
    entry.features.user_namespaces = handler.user_namespaces


@handles("RuntimeConfig")
def runtime_config(
    runtime: Runtime, context: Context, request: messages.RuntimeConfigRequest
) -> messages.RuntimeConfigResponse:
    """The cgroup driver; SYSTEMD is the enum's zero, so an empty reply would say systemd."""
    response = messages.RuntimeConfigResponse()
    response.linux.cgroup_driver = runtime.node.cgroup_driver.value
    return response


@handles("UpdateRuntimeConfig")
def update_runtime_config(
    runtime: Runtime, context: Context, request: messages.UpdateRuntimeConfigRequest
) -> Steps[messages.UpdateRuntimeConfigResponse]:
    """Move the pool of pod addresses to a new CIDR (two, joined by a comma, for dual stack); pods keep theirs.

    Raises:
        CriError: POD_CIDR_INVALID; the old pool stays.
    """
    text = request.runtime_config.network_config.pod_cidr
    cidrs = tuple(part.strip() for part in text.split(",")) if text else ()
    if cidrs:
        try:
            parse_cidrs(cidrs)
        except ValueError as error:
            raise CriError(Reason.POD_CIDR_INVALID, cidr=text, detail=str(error)) from error
    yield CHECKED
    yield BEFORE_COMMIT
    if cidrs:
        runtime.network.set_cidrs(cidrs)
    return messages.UpdateRuntimeConfigResponse()
