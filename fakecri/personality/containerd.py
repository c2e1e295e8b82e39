"""The containerd family: the project's own reference runtime, containerd 1.6 and containerd 2.1.

The rule: ``reference`` answers as containerd 2.1.9 where that was measured, and has everything that newer releases of
CRI have besides; the two real ones are what was measured of containerd 1.6.20 (Debian 12) and 2.1.9 (Debian sid), each
written as its difference from a relative.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from fakecri.base.reasons import Code, Reason
from fakecri.core.states import Move, SandboxInput, SandboxState
from fakecri.core.traits import (
    CreateInStoppedSandbox,
    ImageListFilter,
    ImageSpecShown,
    ListOrder,
    ListStatsWithStopped,
    OnUnknown,
    PresetDigests,
    Shown,
    StatusesInSandboxStatus,
    SwapFigures,
    Unimplemented,
    UppercaseHost,
)
from fakecri.personality import containerd_pulls, containerd_words, go_grpc
from fakecri.personality.containerd_pulls import PULL, RESOLVE_FAILURES
from fakecri.personality.containerd_words import (
    CONTAINER_TASK_FAILURES,
    RUNC,
    SANDBOX_TASK_FAILURES,
    SHIM_TASK,
    TASK,
    UPDATE,
)
from fakecri.personality.model import Form, Personality, derive, over
from fakecri.wire.levels import NEWEST, Level

REFERENCE: Final = Personality(
    name="reference",
    summary="containerd 2.1's answers with every RPC and field of the newest CRI",
    runtime_name="fakecri",
    runtime_version="0.1.0",
    apis=frozenset({"v1", "v1alpha2"}),
    level=NEWEST,
    forms=MappingProxyType({**go_grpc.FORMS, **containerd_words.FORMS, **containerd_pulls.FORMS}),
    wrappers=MappingProxyType({**containerd_words.WRAPPERS, **containerd_pulls.WRAPPERS}),
)

_STREAMS: Final = (
    "StreamPodSandboxes",
    "StreamContainers",
    "StreamContainerStats",
    "StreamPodSandboxStats",
    "StreamPodSandboxMetrics",
    "StreamImages",
)

CONTAINERD_2_1: Final = derive(
    REFERENCE,
    name="containerd-2.1",
    summary="containerd 2.1.9 as Debian sid packages it",
    runtime_name="containerd",
    runtime_version="2.1.9",
    apis=frozenset({"v1"}),
    level=Level(1, 32),
    traits={
        "create_in_stopped_sandbox": CreateInStoppedSandbox.ALLOW,
        "image_list_filter": ImageListFilter.IGNORED,
        "list_order": ListOrder.ROTATED,
        "preset_digests": PresetDigests.IMPORTED,
        "statuses_in_sandbox_status": StatusesInSandboxStatus.NEVER,
        "swap_figures": SwapFigures.ABSENT,
        "pressure_figures": Shown.NO,
        "status_image_id": Shown.NO,
        "status_stop_signal": Shown.NO,
        "single_stats_nano_cores": Shown.NO,
        "network_timestamp": Shown.NO,
        "container_filesystems": Shown.NO,
        "image_spec": ImageSpecShown.NEVER,
    },
    behaviour={
        "conditions": ("RuntimeReady", "NetworkReady", "ContainerdHasNoDeprecationWarnings"),
        "strategies": {"events": "backlog"},
        "unimplemented": {
            "ListMetricDescriptors": Unimplemented.NOT_WRITTEN,
            "ListPodSandboxMetrics": Unimplemented.NOT_WRITTEN,
            "UpdatePodSandboxResources": Unimplemented.UNKNOWN,
            "CheckpointPod": Unimplemented.UNKNOWN,
            "RestorePod": Unimplemented.UNKNOWN,
            **dict.fromkeys(_STREAMS, Unimplemented.UNKNOWN),
        },
        "info_keys": {
            "PodSandboxStatus": (
                "pid",
                "processStatus",
                "netNamespaceClosed",
                "image",
                "snapshotKey",
                "snapshotter",
                "runtimeType",
                "runtimeOptions",
                "config",
                "runtimeSpec",
                "cniResult",
                "sandboxMetadata",
            ),
            "ContainerStatus": (
                "sandboxID",
                "pid",
                "removing",
                "snapshotKey",
                "snapshotter",
                "runtimeType",
                "runtimeOptions",
                "config",
                "runtimeSpec",
            ),
        },
    },
)


def _then_unknown(prefix: str) -> str:
    """1.6 hands errors of its own services through gRPC's kinds once more, and those without one gain a tail."""
    return f"{prefix}{{cause}}: unknown"


_NO_PREFIX: Final = Form(Code.UNKNOWN, "Prefix can't be empty")
_STATUS: Final = Form(
    Code.UNKNOWN,
    "pulling from host {host} failed with status code [manifests {reference}]: {status} {status_text}",
)

CONTAINERD_1_6: Final = derive(
    CONTAINERD_2_1,
    name="containerd-1.6",
    summary="containerd 1.6.20 as Debian 12 packages it; serves both API versions",
    runtime_version="1.6.20~ds1",
    apis=frozenset({"v1", "v1alpha2"}),
    level=Level(1, 25),
    forms={
        (Reason.MALFORMED_METHOD, None): Form(Code.RESOURCE_EXHAUSTED, 'malformed method name: "{path}"'),
        (Reason.SANDBOX_NAME_RESERVED, None): Form(
            Code.UNKNOWN, 'failed to reserve sandbox name "{name}": name "{name}" is reserved for "{owner}"'
        ),
        (Reason.CONTAINER_NAME_RESERVED, None): Form(
            Code.UNKNOWN, 'failed to reserve container name "{name}": name "{name}" is reserved for "{owner}"'
        ),
        (Reason.SANDBOX_ID_EMPTY, None): _NO_PREFIX,
        (Reason.CONTAINER_ID_EMPTY, None): _NO_PREFIX,
        (Reason.CONTAINER_SANDBOX_NOT_RUNNING, None): Form(
            Code.NOT_FOUND,
            "failed to get sandbox container task: no running task found: task {id} not found: not found",
        ),
        (Reason.STATS_OF_STOPPED_SANDBOX, None): Form(
            Code.UNKNOWN, 'failed to get pod sandbox stats since sandbox container "{id}" is not in ready state'
        ),
        (Reason.IMAGE_REFERENCE_UPPERCASE, None): Form(
            Code.UNKNOWN, "invalid reference format: repository name must be lowercase"
        ),
        (Reason.REGISTRY_UNAUTHORIZED, None): _STATUS,
        (Reason.REGISTRY_BAD_CREDENTIALS, None): _STATUS,
        (Reason.REGISTRY_FORBIDDEN, None): _STATUS,
        (Reason.REGISTRY_FAILED, None): _STATUS,
        (Reason.REGISTRY_AUTH_MALFORMED, None): Form(Code.UNKNOWN, "{detail}"),
    },
    wrappers={
        (Reason.RUNTIME_HANDLER_UNKNOWN, None): "failed to get sandbox runtime: {cause}",
        (Reason.CONTAINER_IMAGE_NOT_FOUND, None): None,
        **over(SANDBOX_TASK_FAILURES, {None: _then_unknown(SHIM_TASK)}),
        **over(CONTAINER_TASK_FAILURES, {None: _then_unknown(f"{SHIM_TASK}{RUNC}")}),
        (Reason.SHIM_MISSING, None): _then_unknown(TASK),
        (Reason.USERNS_INVALID, None): None,
        (Reason.MEMORY_LIMIT_BELOW_USAGE, "UpdateContainerResources"): _then_unknown(UPDATE),
        **over(RESOLVE_FAILURES, {None: f'{PULL}failed to resolve reference "{{image}}": {{cause}}'}),
    },
    traits={
        "create_in_stopped_sandbox": CreateInStoppedSandbox.REFUSE,
        "stop_unknown_container": OnUnknown.NOT_FOUND,
        "stop_unknown_sandbox": OnUnknown.NOT_FOUND,
        "list_stats_with_stopped": ListStatsWithStopped.FAIL,
        "single_stats_nano_cores": Shown.YES,
        "status_user": Shown.NO,
        "runtime_handlers": Shown.NO,
        "runtime_features": Shown.NO,
        "image_pinned": Shown.NO,
        "uppercase_host": UppercaseHost.PATH,
    },
    sandbox_rows={
        # A sandbox whose network could not be set up, and therefore not be torn down either, stays in the list.
        (SandboxState.ABSENT, SandboxInput.RUN): Move(
            SandboxState.READY,
            emits=REFERENCE.behaviour.sandbox_table[(SandboxState.ABSENT, SandboxInput.RUN)].emits,
            residue=SandboxInput.NETWORK_FAILED,
        ),
        (SandboxState.ABSENT, SandboxInput.NETWORK_FAILED): Move(SandboxState.NOTREADY),
    },
    behaviour={
        "conditions": ("RuntimeReady", "NetworkReady"),
        "unimplemented": {
            "GetContainerEvents": Unimplemented.NOT_WRITTEN,
            "CheckpointContainer": Unimplemented.NOT_WRITTEN,
            "ListMetricDescriptors": Unimplemented.UNKNOWN,
            "ListPodSandboxMetrics": Unimplemented.UNKNOWN,
            "RuntimeConfig": Unimplemented.UNKNOWN,
        },
        "info_keys": {
            "PodSandboxStatus": (
                "pid",
                "processStatus",
                "netNamespaceClosed",
                "image",
                "snapshotKey",
                "snapshotter",
                "runtimeHandler",
                "runtimeType",
                "runtimeOptions",
                "config",
                "runtimeSpec",
                "cniResult",
            ),
        },
    },
)
