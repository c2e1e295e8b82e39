"""How sandboxes and containers are shown: status messages and list entries.

What the client sent is echoed from its own message; what the runtime adds is filled from the entity. Nothing here
depends on the time of reading, so a list entry can be kept until its object changes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakecri.core.states import SandboxState
from fakecri.core.stop_signals import cri_signal
from fakecri.core.traits import (
    AddressAfterStop,
    ListImageReference,
    SandboxLabels,
    Shown,
    StatusImageName,
)
from fakecri.wire import messages

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fakecri.core.container import Container
    from fakecri.core.runtime import Runtime
    from fakecri.core.sandbox import PodSandbox


# -- pod sandboxes -----------------------------------------------------------------------------------------------------
def _shown_sandbox_state(sandbox: PodSandbox) -> int:
    """A sandbox that is just being removed is shown as not ready."""
    return int(SandboxState.READY if sandbox.state is SandboxState.READY else SandboxState.NOTREADY)


def _sandbox_labels(runtime: Runtime, sandbox: PodSandbox, given: Mapping[str, str]) -> dict[str, str]:
    labels = dict(given)
    if runtime.traits.sandbox_labels is SandboxLabels.WITH_RUNTIME_LABELS:
        labels["io.kubernetes.container.name"] = "POD"
        labels["io.kubernetes.pod.name"] = sandbox.pod_name
        labels["io.kubernetes.pod.namespace"] = sandbox.namespace
        labels["io.kubernetes.pod.uid"] = sandbox.uid
    return labels


def sandbox_status(runtime: Runtime, sandbox: PodSandbox) -> messages.PodSandboxStatus:
    """``runtime.v1.PodSandboxStatus``; ``network`` is always present, empty for host network (kubelet 1.20)."""
    config = sandbox.config()
    status = messages.PodSandboxStatus(
        id=sandbox.id,
        metadata=config.metadata,
        state=_shown_sandbox_state(sandbox),
        created_at=sandbox.created_at_ns,
        annotations=config.annotations,
        labels=_sandbox_labels(runtime, sandbox, config.labels),
        runtime_handler=sandbox.runtime_handler,
    )
    status.network.SetInParent()
    if sandbox.addresses:
        status.network.ip = sandbox.addresses[0]
        for address in sandbox.addresses[1:]:
            status.network.additional_ips.add(ip=address)
    status.linux.namespaces.options.CopyFrom(config.linux.security_context.namespace_options)
    return status


def sandbox_item(runtime: Runtime, sandbox: PodSandbox) -> messages.PodSandbox:
    """``runtime.v1.PodSandbox``, a list entry."""
    config = sandbox.config()
    return messages.PodSandbox(
        id=sandbox.id,
        metadata=config.metadata,
        state=_shown_sandbox_state(sandbox),
        created_at=sandbox.created_at_ns,
        labels=_sandbox_labels(runtime, sandbox, config.labels),
        annotations=config.annotations,
        runtime_handler=sandbox.runtime_handler,
    )


def drop_addresses(runtime: Runtime, sandbox: PodSandbox) -> None:
    """Give a stopped sandbox's addresses back, and stop showing them where the runtime does so."""
    runtime.network.release(sandbox.id)
    if runtime.traits.address_after_stop is AddressAfterStop.DROPPED:
        sandbox.addresses = ()


# -- containers --------------------------------------------------------------------------------------------------------
def _image_reference(container: Container) -> str:
    """First repository digest of the image, else its id: what ContainerStatus shows (containerd, CRI-O)."""
    digests = container.image.repo_digests
    return digests[0] if digests else container.image.id


def _status_image(runtime: Runtime, container: Container, given: messages.ImageSpec) -> messages.ImageSpec:
    """``ContainerStatus.image``: the image's first tag and nothing else, or as the client gave it."""
    if runtime.traits.status_image_name is StatusImageName.FIRST_TAG and container.image.repo_tags:
        return messages.ImageSpec(image=min(container.image.repo_tags))
    return given


def container_status(runtime: Runtime, container: Container) -> messages.ContainerStatus:
    """``runtime.v1.ContainerStatus``: the config's parts echoed, times in unix ns."""
    config = container.config()
    status = messages.ContainerStatus(
        id=container.id,
        metadata=config.metadata,
        state=max(0, int(container.state)),
        created_at=container.created_at_ns,
        started_at=container.started_at_ns,
        finished_at=container.finished_at_ns,
        exit_code=container.exit_code,
        image_ref=_image_reference(container),
        reason=container.reason,
        message=container.message,
        labels=config.labels,
        annotations=config.annotations,
        mounts=config.mounts,
        log_path=container.log_path,
    )
    status.image.CopyFrom(_status_image(runtime, container, config.image))
    status.resources.linux.CopyFrom(container.resources())
    _add_newer_fields(runtime, container, status)
    return status


def _add_newer_fields(runtime: Runtime, container: Container, status: messages.ContainerStatus) -> None:
    traits = runtime.traits
    if _shows_image_id(runtime):
        status.image_id = container.image.id
    if traits.status_user is Shown.YES:
        status.user.linux.CopyFrom(container.user())
    if traits.status_stop_signal is Shown.YES:
        status.stop_signal = cri_signal(container.stop_signal)


def container_item(runtime: Runtime, container: Container) -> messages.Container:
    """``runtime.v1.Container``, a list entry: the image as given, its id as the reference."""
    config = container.config()
    item = messages.Container(
        id=container.id,
        pod_sandbox_id=container.sandbox.id,
        metadata=config.metadata,
        image=config.image,
        image_ref=_list_image_reference(runtime, container),
        state=int(container.state),
        created_at=container.created_at_ns,
        labels=config.labels,
        annotations=config.annotations,
    )
    if _shows_image_id(runtime):
        item.image_id = container.image.id
    return item


def _shows_image_id(runtime: Runtime) -> bool:
    return runtime.traits.status_image_id is Shown.YES


def _list_image_reference(runtime: Runtime, container: Container) -> str:
    if runtime.traits.list_image_reference is ListImageReference.ID:
        return container.image.id
    return _image_reference(container)
