"""CreateContainer: check, reserve the name, commit. Nothing runs yet."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from fakecri.base.reasons import CriError, Reason
from fakecri.base.steps import BEFORE_COMMIT, CHECKED, RESERVED, Steps, Wait
from fakecri.core import processes
from fakecri.core.checks import Check, run_checks
from fakecri.core.container import Container
from fakecri.core.resources import applied
from fakecri.core.rpc.registry import Context, handles
from fakecri.core.sandbox import encoded
from fakecri.core.states import ContainerInput, ContainerState, SandboxState
from fakecri.core.stop_signals import stop_signal
from fakecri.core.traits import CreateInStoppedSandbox, MissingCommandFails, OnDuplicateName
from fakecri.core.users import resolve_user
from fakecri.kernel.capabilities import CAPABILITIES
from fakecri.kernel.executables import SpawnError
from fakecri.wire import messages

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fakecri.core.image import Image
    from fakecri.core.runtime import Runtime
    from fakecri.core.sandbox import PodSandbox


@dataclass(slots=True)
class Wanted:
    """What a CreateContainer call asks for, on its way to becoming a container."""

    id: str
    request: messages.CreateContainerRequest
    config: messages.ContainerConfig
    name: str = ""
    sandbox: PodSandbox | None = None
    image: Image | None = None


def container_name(config: messages.ContainerConfig, sandbox_config: messages.PodSandboxConfig) -> str:
    """The runtime's internal name: ``name_podname_namespace_uid_attempt`` (containerd)."""
    pod = sandbox_config.metadata
    return f"{config.metadata.name}_{pod.name}_{pod.namespace}_{pod.uid}_{config.metadata.attempt}"


# -- checks ------------------------------------------------------------------------------------------------------------
def _sandbox(runtime: Runtime, wanted: Wanted) -> None:
    wanted.sandbox = runtime.sandbox(wanted.request.pod_sandbox_id, Reason.CONTAINER_SANDBOX_NOT_FOUND)


def _sandbox_running(runtime: Runtime, wanted: Wanted) -> None:
    allowed = runtime.traits.create_in_stopped_sandbox is CreateInStoppedSandbox.ALLOW
    if wanted.sandbox is not None and not wanted.sandbox.ready and not allowed:
        raise CriError(Reason.CONTAINER_SANDBOX_NOT_RUNNING, id=wanted.sandbox.id)


def _config(runtime: Runtime, wanted: Wanted) -> None:
    if not wanted.request.HasField("config"):
        raise CriError(Reason.CONTAINER_CONFIG_MISSING)


def _metadata(runtime: Runtime, wanted: Wanted) -> None:
    if not wanted.config.HasField("metadata"):
        raise CriError(Reason.CONTAINER_METADATA_MISSING)


def _sandbox_config(runtime: Runtime, wanted: Wanted) -> None:
    if not wanted.request.sandbox_config.HasField("metadata"):
        raise CriError(Reason.CONTAINER_SANDBOX_CONFIG_MISSING)


def _name(runtime: Runtime, wanted: Wanted) -> None:
    if not wanted.config.metadata.name:
        raise CriError(Reason.CONTAINER_NAME_EMPTY)


def _name_free(runtime: Runtime, wanted: Wanted) -> None:
    owner = runtime.containers.name_owner(wanted.name)
    if owner is not None and not _answers_existing(runtime):
        raise CriError(Reason.CONTAINER_NAME_RESERVED, name=wanted.name, owner=owner)


def _answers_existing(runtime: Runtime) -> bool:
    return runtime.traits.duplicate_container_name is OnDuplicateName.RETURN_EXISTING


def _image(runtime: Runtime, wanted: Wanted) -> None:
    reference = wanted.config.image.image
    if not reference:
        raise CriError(Reason.CONTAINER_IMAGE_EMPTY)
    wanted.image = runtime.images.resolve(reference)
    if wanted.image is None:
        raise CriError(Reason.CONTAINER_IMAGE_NOT_FOUND, image=reference)


def _user_specified_image(runtime: Runtime, wanted: Wanted) -> None:
    if not wanted.config.image.user_specified_image:
        raise CriError(Reason.CONTAINER_USER_IMAGE_MISSING)


def _user(runtime: Runtime, wanted: Wanted) -> None:
    if wanted.image is not None:
        resolve_user(wanted.config.linux.security_context, wanted.image, wanted.id)


def _command(runtime: Runtime, wanted: Wanted) -> None:
    if wanted.image is None:
        return
    argv = processes.argv(wanted.config, wanted.image)
    if not argv:
        raise CriError(Reason.NO_COMMAND, id=wanted.id)
    if runtime.traits.missing_command_fails is MissingCommandFails.AT_CREATE:
        try:
            processes.check_executable(wanted.config, wanted.image)
        except SpawnError as error:
            raise processes.spawn_refusal(wanted.id, error) from error


def _container_paths(runtime: Runtime, wanted: Wanted) -> None:
    if any(not mount.container_path for mount in wanted.config.mounts):
        raise CriError(Reason.MOUNT_CONTAINER_PATH_EMPTY, id=wanted.id)


def _mounts(runtime: Runtime, wanted: Wanted) -> None:
    for mount in wanted.config.mounts:
        if mount.HasField("image"):
            if runtime.images.resolve(mount.image.image) is None:
                raise CriError(Reason.MOUNT_IMAGE_NOT_FOUND, id=wanted.id, image=mount.image.image)
        elif not mount.host_path:
            raise CriError(Reason.MOUNT_HOST_PATH_EMPTY, id=wanted.id)


def _devices(runtime: Runtime, wanted: Wanted) -> None:
    for device in wanted.config.devices:
        runtime.host_files.allow(device.host_path)
        if runtime.host_files.stat(device.host_path) is None:
            raise CriError(Reason.DEVICE_MISSING, id=wanted.id, path=device.host_path)


def _seccomp(runtime: Runtime, wanted: Wanted) -> None:
    profile = wanted.config.linux.security_context.seccomp
    runtime.host_files.allow(profile.localhost_ref)
    missing = runtime.host_files.stat(profile.localhost_ref) is None if profile.localhost_ref else True
    if profile.profile_type == messages.SecurityProfile.Localhost and missing:
        raise CriError(Reason.SECCOMP_PROFILE_MISSING, id=wanted.id, profile=profile.localhost_ref)


def _capabilities(runtime: Runtime, wanted: Wanted) -> None:
    asked = wanted.config.linux.security_context.capabilities
    for name in (*asked.add_capabilities, *asked.drop_capabilities, *asked.add_ambient_capabilities):
        if name.upper().removeprefix("CAP_") not in (*CAPABILITIES, "ALL"):
            raise CriError(Reason.CAPABILITY_UNKNOWN, id=wanted.id, capability=name)


#: Every check of CreateContainer. Those that the default order leaves out are some personality's.
CHECKS: Final[Mapping[str, Check]] = MappingProxyType(
    {
        "sandbox": _sandbox,
        "sandbox_running": _sandbox_running,
        "config": _config,
        "metadata": _metadata,
        "sandbox_config": _sandbox_config,
        "name": _name,
        "name_free": _name_free,
        "image": _image,
        "user_specified_image": _user_specified_image,
        "user": _user,
        "command": _command,
        "container_paths": _container_paths,
        "mounts": _mounts,
        "devices": _devices,
        "seccomp": _seccomp,
        "capabilities": _capabilities,
    }
)
#: containerd 2.1.9's order; empty names, empty container paths and unknown capabilities are taken.
DEFAULT_ORDER: Final = (
    "sandbox",
    "sandbox_running",
    "config",
    "metadata",
    "sandbox_config",
    "name_free",
    "image",
    "command",
    "mounts",
    "devices",
    "seccomp",
    "user",
)


@handles("CreateContainer")
def create_container(
    runtime: Runtime, context: Context, request: messages.CreateContainerRequest
) -> Steps[messages.CreateContainerResponse]:
    """Make a container that is CREATED when the call returns.

    Host paths of mounts that are not there are made as directories, as every runtime does.

    Raises:
        CriError: one of the checks'; the name is free again.
    """
    config = request.config
    wanted = Wanted(
        id=runtime.ids.hex64("container"),
        request=request,
        config=config,
        name=container_name(config, request.sandbox_config),
    )
    run_checks(runtime, "CreateContainer", CHECKS, wanted, DEFAULT_ORDER)
    yield CHECKED
    while (owner := runtime.containers.name_owner(wanted.name)) is not None:
        if not _answers_existing(runtime):  # taken while this call was held
            raise CriError(Reason.CONTAINER_NAME_RESERVED, name=wanted.name, owner=owner)
        if owner in runtime.containers:
            return messages.CreateContainerResponse(container_id=owner)
        yield Wait(runtime.containers.released)
    assert wanted.sandbox is not None
    assert wanted.image is not None
    container = Container(wanted.id, wanted.name, wanted.sandbox, config, wanted.image)
    runtime.containers.reserve(wanted.name, wanted.id)
    try:
        yield RESERVED
        _make_mount_sources(runtime, config)
        yield BEFORE_COMMIT
        if wanted.sandbox.state is SandboxState.ABSENT:  # removed while this call was held
            raise CriError(Reason.CONTAINER_SANDBOX_NOT_FOUND, id=wanted.sandbox.id)
        _sandbox_running(runtime, wanted)
        _fill(runtime, container, request)
        runtime.move_container(container, ContainerInput.CREATE)
    finally:
        if container.state is ContainerState.ABSENT:
            runtime.containers.release(wanted.name, wanted.id)
    return messages.CreateContainerResponse(container_id=container.id)


def _make_mount_sources(runtime: Runtime, config: messages.ContainerConfig) -> None:
    for mount in config.mounts:
        runtime.host_files.allow(mount.host_path)
        if mount.host_path and runtime.host_files.stat(mount.host_path) is None:
            runtime.host_files.make_directories(mount.host_path)


def _fill(runtime: Runtime, container: Container, request: messages.CreateContainerRequest) -> None:
    config = request.config
    directory = request.sandbox_config.log_directory or container.sandbox.log_directory
    if config.log_path and directory:
        runtime.host_files.allow(directory)
        container.log_path = f"{directory.rstrip('/')}/{config.log_path.lstrip('/')}"
    container.stop_signal = stop_signal(config, container.image.stop_signal)
    container.resources_bytes = encoded(applied(config.linux.resources))
    container.created_at_ns = runtime.clock.stamp_ns()
