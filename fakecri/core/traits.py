"""Closed switches: how runtimes differ where no wording and no table row can say it.

Every trait is an enumeration (or a plain number) read in exactly one function of core; a personality sets it as data.
A difference that needs another algorithm is a *named strategy* out of a registered set (``Strategies``). Order of
checks and rows of state tables are content of their own. Nothing here knows a runtime's name.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated

from fakecri.core import states

if TYPE_CHECKING:
    from collections.abc import Mapping


class OnUnknown(Enum):
    """What a Stop or Remove of an id (RemoveImage: a reference) that is not there answers."""

    OK = "ok"
    NOT_FOUND = "not found"


class OnDuplicateName(Enum):
    """RunPodSandbox and CreateContainer with a name that is taken."""

    REFUSE = "refuse"
    RETURN_EXISTING = "answer the id of the object that holds the name"


class ListOrder(Enum):
    """Order of the entries of a List reply."""

    OLDEST_FIRST = "oldest first"
    NEWEST_FIRST = "newest first"
    ROTATED = "starts at another entry each time, as a Go map does"


class EmptyLabelSelector(Enum):
    """Whether a selector with an empty value matches an object that lacks the label."""

    NEEDS_LABEL = "no"
    MATCHES_MISSING = "yes"


class RunningOnSandboxStop(Enum):
    """What StopPodSandbox does to running containers."""

    KILL = "SIGKILL at once"
    GRACEFUL = "stop signal, a grace period, then SIGKILL"


class RunningOnRemove(Enum):
    """RemoveContainer of a running container."""

    KILL = "SIGKILL, then remove"
    GRACEFUL = "stop signal, a grace period, SIGKILL, then remove"
    REFUSE = "refuse"


class CreateInStoppedSandbox(Enum):
    """CreateContainer in a sandbox that is not ready."""

    REFUSE = "refuse"
    ALLOW = "create; its start will fail"


class MissingCommandFails(Enum):
    """Which call reports a command that is not in the image."""

    AT_START = "StartContainer"
    AT_CREATE = "CreateContainer"


class AddressAfterStop(Enum):
    """Whether a stopped sandbox still shows its addresses."""

    DROPPED = "dropped"
    KEPT = "kept"


class StatusesInSandboxStatus(Enum):
    """``PodSandboxStatusResponse.containers_statuses`` and ``timestamp``."""

    NEVER = "never"
    WITH_EVENTS = "when pod events are on"


class SandboxLabels(Enum):
    """Labels of a sandbox in its status and lists."""

    AS_GIVEN = "as given"
    WITH_RUNTIME_LABELS = "with io.kubernetes.container.name=POD and the pod's identity"


class ImageListFilter(Enum):
    """ListImages with a filter."""

    HONOURED = "honoured"
    IGNORED = "ignored"


class RemoveImageScope(Enum):
    """RemoveImage by a name of an image that has several."""

    ALL_NAMES = "the image goes with all its names"
    ONE_NAME = "only that name goes"


class ImageInUse(Enum):
    """RemoveImage of an image that a container uses."""

    ALLOW = "removed; containers keep running"
    REFUSE = "refused"


class OnInvalidReference(Enum):
    """ImageStatus, RemoveImage and an image filter with a malformed reference."""

    UNKNOWN_IMAGE = "as for an image that is not there"
    REFUSE = "refuse"


class UppercaseHost(Enum):
    """A reference whose first component has capitals, such as ``UPPER/name``."""

    HOST = "that component is a registry host (distribution 2.8.2 and newer)"
    PATH = "it is part of the path, whose case is then refused"


class ImageSpecShown(Enum):
    """``Image.spec``."""

    NEVER = "unset"
    WHEN_ANNOTATED = "set when the image has annotations"
    ALWAYS = "set, empty without annotations"


class PullReference(Enum):
    """What PullImage returns as ``image_ref``."""

    ID = "image id"
    REPO_DIGEST = "repository digest"


class ImageIdForm(Enum):
    """How an image id is written."""

    SHA256 = "sha256:<hex>"
    BARE = "<hex>"


class PresetDigests(Enum):
    """Whether an image present at start has repository digests (pulled) or none (imported)."""

    PULLED = "pulled"
    IMPORTED = "imported"


class StatusImageName(Enum):
    """``ContainerStatus.image.image``."""

    FIRST_TAG = "first tag of the image, else as given"
    AS_GIVEN = "as given"


class ListImageReference(Enum):
    """``Container.image_ref`` in lists."""

    ID = "image id"
    REPO_DIGEST = "repository digest, else id"


class StoppedContainerStats(Enum):
    """ContainerStats of a container that has exited."""

    REFUSE = "refuse"
    EMPTY = "an empty message"


class CreatedContainerStats(Enum):
    """ContainerStats of a container that has not started."""

    REFUSE = "refuse"
    ZEROES = "every figure, at zero"


class ListedContainerStats(Enum):
    """Which containers ListContainerStats and a sandbox's own stats show."""

    ALL = "all; one without a process has attributes and writable layer only"
    ALIVE = "created and running ones"


class StoppedSandboxStats(Enum):
    """PodSandboxStats of a sandbox that is not ready."""

    REFUSE = "refuse"
    EMPTY = "attributes, empty linux part"


class ListStatsWithStopped(Enum):
    """ListPodSandboxStats while one sandbox is not ready."""

    FAIL = "a list without a filter fails; a filtered one leaves it out"
    SKIP = "it is left out"
    LIST = "it is listed without figures"


class SandboxFigures(Enum):
    """What ``LinuxPodSandboxStats`` of a ready sandbox holds."""

    ALL = "cpu, memory, network, processes, io, containers"
    NETWORK = "network and containers"


class FirstInterface(Enum):
    """``NetworkUsage.default_interface`` of a pod with its own network."""

    ETHERNET = "eth0, and no other interface"
    LOOPBACK = "lo, with eth0 among the interfaces"


class AvailableWithoutLimit(Enum):
    """``MemoryUsage.available_bytes`` where memory has no limit."""

    ZERO = "0"
    UNLIMITED = "the kernel's largest limit less the working set"


class StoppedContainerCalls(Enum):
    """A call about a container that has ended."""

    ALLOW = "allowed"
    REFUSE = "refused"


class SwapFigures(Enum):
    """``ContainerStats.swap``."""

    FILLED = "filled"
    ABSENT = "absent"


class Shown(Enum):
    """Whether a runtime fills a part of a reply."""

    YES = "yes"
    NO = "no"


class OnClientGone(Enum):
    """Whether a mutating call goes on when its client is gone."""

    ABORT = "abort"
    CONTINUE = "continue"


class Unimplemented(Enum):
    """How a runtime answers an RPC that it does not have."""

    UNKNOWN = "the method is not in its API at all"
    NOT_WRITTEN = "the method is in its API but not written"


@dataclass(frozen=True, slots=True)
class Traits:
    """One runtime's switches; the defaults are the ``reference`` personality's.

    What a trait decides is said by its kind, or, where kinds are shared, by the text beside it.
    """

    duplicate_name: Annotated[OnDuplicateName, "RunPodSandbox with a name that is taken."] = OnDuplicateName.REFUSE
    duplicate_container_name: Annotated[OnDuplicateName, "CreateContainer with a name that is taken."] = (
        OnDuplicateName.REFUSE
    )
    stop_unknown_container: Annotated[OnUnknown, "StopContainer of an id that is not there."] = OnUnknown.OK
    stop_unknown_sandbox: Annotated[OnUnknown, "StopPodSandbox of an id that is not there."] = OnUnknown.OK
    remove_unknown_container: Annotated[OnUnknown, "RemoveContainer of an id that is not there."] = OnUnknown.OK
    list_order: ListOrder = ListOrder.OLDEST_FIRST
    empty_label_selector: EmptyLabelSelector = EmptyLabelSelector.NEEDS_LABEL
    running_on_sandbox_stop: RunningOnSandboxStop = RunningOnSandboxStop.KILL
    running_on_remove: RunningOnRemove = RunningOnRemove.KILL
    create_in_stopped_sandbox: CreateInStoppedSandbox = CreateInStoppedSandbox.REFUSE
    missing_command_fails: MissingCommandFails = MissingCommandFails.AT_START
    address_after_stop: AddressAfterStop = AddressAfterStop.DROPPED
    statuses_in_sandbox_status: StatusesInSandboxStatus = StatusesInSandboxStatus.WITH_EVENTS
    sandbox_labels: SandboxLabels = SandboxLabels.AS_GIVEN
    image_list_filter: ImageListFilter = ImageListFilter.HONOURED
    remove_image_scope: RemoveImageScope = RemoveImageScope.ALL_NAMES
    image_in_use: ImageInUse = ImageInUse.ALLOW
    invalid_reference: OnInvalidReference = OnInvalidReference.UNKNOWN_IMAGE
    uppercase_host: UppercaseHost = UppercaseHost.HOST
    remove_unknown_image: Annotated[OnUnknown, "RemoveImage of an image that is not there."] = OnUnknown.OK
    image_spec: ImageSpecShown = ImageSpecShown.WHEN_ANNOTATED
    image_pinned: Annotated[Shown, "``Image.pinned``."] = Shown.YES
    pull_reference: PullReference = PullReference.ID
    image_id_form: ImageIdForm = ImageIdForm.SHA256
    preset_digests: PresetDigests = PresetDigests.PULLED
    status_image_name: StatusImageName = StatusImageName.FIRST_TAG
    list_image_reference: ListImageReference = ListImageReference.ID
    stopped_container_stats: StoppedContainerStats = StoppedContainerStats.REFUSE
    created_container_stats: CreatedContainerStats = CreatedContainerStats.REFUSE
    listed_container_stats: ListedContainerStats = ListedContainerStats.ALL
    stopped_sandbox_stats: StoppedSandboxStats = StoppedSandboxStats.REFUSE
    list_stats_with_stopped: ListStatsWithStopped = ListStatsWithStopped.SKIP
    sandbox_figures: SandboxFigures = SandboxFigures.ALL
    first_interface: FirstInterface = FirstInterface.ETHERNET
    available_without_limit: AvailableWithoutLimit = AvailableWithoutLimit.ZERO
    swap_figures: SwapFigures = SwapFigures.FILLED
    pressure_figures: Annotated[Shown, "``psi`` and ``io`` in stats of containers and pods."] = Shown.YES
    update_of_exited: Annotated[StoppedContainerCalls, "UpdateContainerResources of a container that has ended."] = (
        StoppedContainerCalls.ALLOW
    )
    status_image_id: Annotated[Shown, "``image_id`` in ContainerStatus and in lists."] = Shown.YES
    status_user: Annotated[Shown, "``ContainerStatus.user``."] = Shown.YES
    status_stop_signal: Annotated[Shown, "``ContainerStatus.stop_signal``."] = Shown.YES
    runtime_handlers: Annotated[Shown, "``StatusResponse.runtime_handlers``."] = Shown.YES
    runtime_features: Annotated[Shown, "``StatusResponse.features``."] = Shown.YES
    single_stats_nano_cores: Annotated[
        Shown, "``usage_nano_cores`` in ContainerStats and PodSandboxStats; lists always have it."
    ] = Shown.YES
    network_timestamp: Annotated[Shown, "``NetworkUsage.timestamp`` of a pod's figures."] = Shown.YES
    container_filesystems: Annotated[Shown, "``ImageFsInfoResponse.container_filesystems``."] = Shown.YES
    on_client_gone: OnClientGone = OnClientGone.ABORT


@dataclass(frozen=True, slots=True)
class Behaviour:
    """All of a personality that core reads: traits, table rows, check orders, strategies, what is not there.

    ``check_orders`` maps a method to the names of its checks in the order to run them (a method that is absent keeps
    core's own order); ``strategies`` maps a strategy's kind to the registered name to use. ``conditions`` are the types
    that Status reports, all true at the start. ``info_keys`` maps a method to the keys that its verbose ``info`` has
    (for sandbox, container and image: the keys of the JSON document at ``info["info"]``); a method that is absent
    shows every key that core can fill. ``message_limit_bytes`` is the largest request or reply, in bytes (16 MiB in
    containerd, 80 MiB in CRI-O; measured).
    """

    traits: Traits = field(default_factory=Traits)
    sandbox_table: states.Table = field(default_factory=lambda: states.SANDBOX)
    container_table: states.Table = field(default_factory=lambda: states.CONTAINER)
    check_orders: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))
    strategies: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    unimplemented: Mapping[str, Unimplemented] = field(default_factory=lambda: MappingProxyType({}))
    conditions: tuple[str, ...] = ("RuntimeReady", "NetworkReady")
    message_limit_bytes: int = 16 << 20
    info_keys: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))
