"""What a long run must have reached: every refusal of every RPC, every pair of the tables, every place to cancel.

The lists are written out, not gathered from a run: what is here and was not reached fails, and so does what was
reached and is not here. A reason that no RPC has a row for must be among ``UNREACHABLE``, with why.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from cri_machine.counts import Counts
from cri_machine.settings import SETTINGS

from fakecri.base.reasons import Reason
from fakecri.core.rpc.registry import HANDLERS
from fakecri.core.states import ContainerInput, ContainerState, SandboxInput, SandboxState
from fakecri.core.traits import Unimplemented
from fakecri.wire.methods import METHODS

_R = Reason

# -- places to cancel --------------------------------------------------------------------------------------------------
_ALL_POINTS = ("checked", "reserved", "before_commit")
_TWO_POINTS = ("checked", "before_commit")
STREAMS: Final = tuple(sorted(spec.name for spec in METHODS.values() if spec.name.startswith("Stream")))
#: RPC → where it can stand still: its points by name; wait, ask, emit.
CANCELS: Final[Mapping[str, frozenset[str]]] = {
    method: frozenset(places)
    for method, places in {
        "RunPodSandbox": (*_ALL_POINTS, "wait"),
        "StopPodSandbox": (*_TWO_POINTS, "wait"),
        "RemovePodSandbox": (*_TWO_POINTS, "wait"),
        "CreateContainer": (*_ALL_POINTS, "wait"),
        "StartContainer": (*_TWO_POINTS, "ask"),
        "StopContainer": ("checked", "wait"),
        "RemoveContainer": (*_TWO_POINTS, "wait"),
        "UpdateContainerResources": _TWO_POINTS,
        "ReopenContainerLog": ("checked", "ask"),
        "UpdatePodSandboxResources": _TWO_POINTS,
        "UpdateRuntimeConfig": _TWO_POINTS,
        "PullImage": (*_ALL_POINTS, "wait"),
        "RemoveImage": _ALL_POINTS,
        "CheckpointContainer": (*_TWO_POINTS, "wait"),
        "CheckpointPod": (*_TWO_POINTS, "wait"),
        "RestorePod": (*_TWO_POINTS, "wait", "ask"),
        "GetContainerEvents": ("wait", "emit"),
        **dict.fromkeys(STREAMS, ("emit",)),
    }.items()
}
CANCELS_UNREACHABLE: Final[Mapping[tuple[str, str], str]] = {
    ("CheckpointContainer", "ask"): "an archive of these containers is below 64 KiB: it is written at once",
    ("CheckpointPod", "ask"): "as CheckpointContainer",
}

# -- refusals ----------------------------------------------------------------------------------------------------------
_POD_IDS = (_R.SANDBOX_ID_EMPTY, _R.SANDBOX_ID_AMBIGUOUS, _R.SANDBOX_NOT_FOUND)
_CONTAINER_IDS = (_R.CONTAINER_ID_EMPTY, _R.CONTAINER_ID_AMBIGUOUS, _R.CONTAINER_NOT_FOUND)
#: Where strict runtimes refuse malformed references.
_REFERENCES = (_R.IMAGE_REFERENCE_INVALID, _R.IMAGE_REFERENCE_UPPERCASE, _R.IMAGE_REFERENCE_TOO_LONG)
_RESOLVES = (_R.IMAGE_ID_AMBIGUOUS, *_REFERENCES)
_OF_A_POD = (
    _R.SANDBOX_CONFIG_MISSING,
    _R.SANDBOX_METADATA_MISSING,
    _R.SANDBOX_NAME_EMPTY,
    _R.SANDBOX_NAMESPACE_EMPTY,
    _R.SANDBOX_UID_EMPTY,
    _R.SANDBOX_NAME_RESERVED,
    _R.LOG_DIRECTORY_RELATIVE,
    _R.USERNS_INVALID,
    _R.HOSTNAME_TOO_LONG,
    _R.SYSCTL_INVALID,
    _R.NETWORK_NOT_READY,
    _R.NO_ADDRESS_LEFT,
    _R.HOST_PORT_TAKEN,
)
_OF_A_CONTAINER = (
    _R.CONTAINER_NAME_RESERVED,
    _R.CONTAINER_IMAGE_EMPTY,
    _R.CONTAINER_IMAGE_NOT_FOUND,
    _R.CONTAINER_USER_IMAGE_MISSING,
    _R.MOUNT_HOST_PATH_EMPTY,
    _R.MOUNT_CONTAINER_PATH_EMPTY,
    _R.MOUNT_IMAGE_NOT_FOUND,
    _R.DEVICE_MISSING,
    _R.SECCOMP_PROFILE_MISSING,
    _R.CAPABILITY_UNKNOWN,
    _R.PATH_REFUSED,
    *_RESOLVES,
)
_COMMANDS = (_R.COMMAND_NOT_FOUND, _R.COMMAND_NOT_EXECUTABLE, _R.WORKING_DIRECTORY_INVALID)
_CHECKPOINTS = (_R.CHECKPOINT_LOCATION_EMPTY, _R.CHECKPOINT_LOCATION_INVALID, _R.CHECKPOINT_CONTAINER_NOT_RUNNING)

#: RPC → what it can refuse for, besides what every RPC can (see ``expected_reasons``).
REASONS: Final[Mapping[str, tuple[Reason, ...]]] = {
    "RunPodSandbox": (*_OF_A_POD, _R.RUNTIME_HANDLER_UNKNOWN, _R.OCI_RUNTIME_MISSING, _R.SHIM_MISSING),
    "StopPodSandbox": (*_POD_IDS, _R.NETWORK_TEARDOWN_FAILED),
    "RemovePodSandbox": (*_POD_IDS[:2], _R.NETWORK_TEARDOWN_FAILED),
    "PodSandboxStatus": _POD_IDS,
    "PodSandboxStats": (*_POD_IDS, _R.STATS_OF_STOPPED_SANDBOX),
    "ListPodSandboxStats": (_R.STATS_OF_STOPPED_SANDBOX,),
    "UpdatePodSandboxResources": _POD_IDS,
    "CreateContainer": (
        *_POD_IDS[:2],
        _R.CONTAINER_SANDBOX_NOT_FOUND,
        _R.CONTAINER_SANDBOX_NOT_RUNNING,
        _R.CONTAINER_CONFIG_MISSING,
        _R.CONTAINER_METADATA_MISSING,
        _R.CONTAINER_SANDBOX_CONFIG_MISSING,
        _R.CONTAINER_NAME_EMPTY,
        *_OF_A_CONTAINER,
        _R.NO_COMMAND,
        *_COMMANDS,
        _R.USER_UNKNOWN,
        _R.GROUP_WITHOUT_USER,
    ),
    "StartContainer": (
        *_CONTAINER_IDS,
        _R.CONTAINER_BAD_STATE,
        _R.CONTAINER_STARTING,
        _R.START_IN_STOPPED_SANDBOX,
        _R.LOG_UNWRITABLE,
        *_COMMANDS,
    ),
    "StopContainer": _CONTAINER_IDS,
    "RemoveContainer": (*_CONTAINER_IDS, _R.CONTAINER_BAD_STATE, _R.CONTAINER_STARTING),
    "ContainerStatus": _CONTAINER_IDS,
    "ContainerStats": (*_CONTAINER_IDS, _R.STATS_OF_STOPPED_CONTAINER),
    "UpdateContainerResources": (*_CONTAINER_IDS, _R.CONTAINER_NOT_RUNNING, _R.MEMORY_LIMIT_BELOW_USAGE),
    "ReopenContainerLog": (*_CONTAINER_IDS, _R.CONTAINER_NOT_RUNNING, _R.LOG_UNWRITABLE),
    "UpdateRuntimeConfig": (_R.POD_CIDR_INVALID,),
    "GetContainerEvents": (_R.SUBSCRIBER_TOO_SLOW,),
    "ImageStatus": (_R.IMAGE_REFERENCE_EMPTY, *_RESOLVES),
    "ListImages": _RESOLVES,
    "StreamImages": _RESOLVES,
    "RemoveImage": (_R.IMAGE_REFERENCE_EMPTY, *_RESOLVES, _R.IMAGE_NOT_FOUND, _R.IMAGE_IN_USE),
    "PullImage": (
        _R.IMAGE_REFERENCE_EMPTY,
        *_REFERENCES,
        _R.IMAGE_REFERENCE_IS_ID,
        _R.IMAGE_NOT_IN_REGISTRY,
        _R.REGISTRY_UNAUTHORIZED,
        _R.REGISTRY_BAD_CREDENTIALS,
        _R.REGISTRY_FORBIDDEN,
        _R.REGISTRY_FAILED,
        _R.REGISTRY_UNREACHABLE,
        _R.REGISTRY_HOST_UNKNOWN,
        _R.REGISTRY_AUTH_MALFORMED,
        _R.IMAGE_DIGEST_MISMATCH,
    ),
    "CheckpointContainer": (*_CONTAINER_IDS, *_CHECKPOINTS),
    "CheckpointPod": (
        *_POD_IDS,
        *_CONTAINER_IDS,
        *_CHECKPOINTS,
        _R.SANDBOX_NOT_READY,
        _R.CHECKPOINT_OPTION_UNKNOWN,
        _R.CHECKPOINT_CONTAINERS_INVALID,
    ),
    "RestorePod": (
        _R.CHECKPOINT_OPTION_UNKNOWN,
        _R.CHECKPOINT_LOCATION_EMPTY,
        _R.CHECKPOINT_UNREADABLE,
        _R.CHECKPOINT_MISMATCH,
        *_OF_A_POD,
        *_OF_A_CONTAINER,
    ),
}
#: Reasons without a row above, and why nothing here can bring them about.
UNREACHABLE: Final[Mapping[Reason, str]] = {
    _R.MALFORMED_METHOD: "paths are not a matter of RPCs: tests/rpc/test_bad_input.py",
    _R.FIELD_NOT_UTF8: "raised before a handler runs: tests/rpc/test_levels.py",
    _R.REQUEST_TOO_LARGE: "16 MiB: tests/service/test_door.py",
    _R.RESPONSE_TOO_LARGE: "16 MiB: tests/service/test_door.py",
    _R.CLIENT_GONE: "worded in the door",
    _R.DEADLINE: "worded in the door",
    _R.UNFORESEEN: "an invariant: it never happens",
    _R.SANDBOX_BAD_STATE: "handlers ask the sandbox table only for inputs that it has",
    _R.APPARMOR_PROFILE_MISSING: "policies come later",
    _R.RESOURCES_INVALID: "no runtime here refuses resources",
    _R.CHECKPOINT_TIMED_OUT: "these containers use too little memory to take a second: tests/rpc/test_checkpoint.py",
}


def expected_reasons() -> dict[str, set[Reason]]:
    """All refusals by RPC: those above, and those that follow from what an RPC is."""
    expected = {method: set(REASONS.get(method, ())) for method in HANDLERS}
    for spec in METHODS.values():
        if spec.name not in HANDLERS:
            expected[spec.name] = {_R.METHOD_NOT_IMPLEMENTED}
            continue
        expected[spec.name].add(_R.UNDECODABLE)
        if spec.mutating:
            expected[spec.name].add(_R.SHUTTING_DOWN)  # what a rule fails calls with
    absent = {Unimplemented.UNKNOWN: _R.UNKNOWN_METHOD, Unimplemented.NOT_WRITTEN: _R.METHOD_NOT_IMPLEMENTED}
    for setting in SETTINGS.values():
        for method, how in setting.personality.behaviour.unimplemented.items():
            expected[method].add(absent[how])
    expected["NoSuch"] = {_R.UNKNOWN_METHOD, _R.UNKNOWN_SERVICE}
    for method in ("Exec", "ListPodSandbox"):  # asked for in versions that are not served
        expected[method].add(_R.UNKNOWN_SERVICE)
    return expected


# -- pairs -------------------------------------------------------------------------------------------------------------
def expected_pairs() -> set[tuple[str, str, str]]:
    """Every state with every input of its table, whether there is a row or not."""
    sandbox = {("sandbox", state.name, given.name) for state in SandboxState for given in SandboxInput}
    return sandbox | {("container", state.name, given.name) for state in ContainerState for given in ContainerInput}


# -- comparing ---------------------------------------------------------------------------------------------------------
def differences(counts: Counts) -> list[str]:
    """What was not reached, and what was but should not have been."""
    return [
        *_reason_differences(counts),
        *(f"pair never exercised: {pair}" for pair in sorted(expected_pairs() - set(counts.pairs))),
        *_cancel_differences(counts),
    ]


def _reason_differences(counts: Counts) -> Iterator[str]:
    expected = {(method, reason) for method, reasons in expected_reasons().items() for reason in reasons}
    for method, reason in sorted(expected - set(counts.reasons)):
        yield f"refusal never seen: {method} {reason.name}"
    for method, reason in sorted(set(counts.reasons) - expected):
        yield f"unexpected refusal: {method} {reason.name} (add it to the table, or mend what raises it)"
    named = {reason for _, reason in expected} | set(UNREACHABLE)
    for reason in sorted(set(Reason) - named):
        yield f"reason that no RPC has: {reason.name} (add a row, or say why it cannot be reached)"


def _cancel_differences(counts: Counts) -> Iterator[str]:
    expected = {(method, place) for method, places in CANCELS.items() for place in places}
    for method, place in sorted(expected - set(counts.cancels)):
        yield f"never cancelled: {method} at {place}"
    for method, place in sorted(set(counts.cancels) - expected):
        yield f"cancelled at an unexpected place: {method} at {place}"
    for method, point in sorted(set(counts.points) - expected):
        yield f"point that the table lacks: {method} at {point}"
