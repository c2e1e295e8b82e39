"""Why a call was refused: facts, never words.

Core raises ``CriError(Reason.X, fact=…)``. A personality later turns (reason, method) into a gRPC code and a text, and
only the door knows gRPC itself; so one refusal reads as containerd's, CRI-O's or iSulad's without a line of core.
"""

from __future__ import annotations

from enum import IntEnum, StrEnum, auto
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping


class Code(IntEnum):
    """gRPC status codes, by number, so that pure layers need no gRPC."""

    OK = 0
    CANCELLED = 1
    UNKNOWN = 2
    INVALID_ARGUMENT = 3
    DEADLINE_EXCEEDED = 4
    NOT_FOUND = 5
    ALREADY_EXISTS = 6
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    ABORTED = 10
    OUT_OF_RANGE = 11
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14
    DATA_LOSS = 15
    UNAUTHENTICATED = 16


class Reason(StrEnum):
    """The closed set of refusals; ``FACTS`` names what comes with each."""

    # transport and routing
    MALFORMED_METHOD = auto()
    UNKNOWN_SERVICE = auto()
    UNKNOWN_METHOD = auto()
    METHOD_NOT_IMPLEMENTED = auto()
    UNDECODABLE = auto()
    FIELD_NOT_UTF8 = auto()
    REQUEST_TOO_LARGE = auto()
    RESPONSE_TOO_LARGE = auto()
    CLIENT_GONE = auto()
    DEADLINE = auto()
    UNFORESEEN = auto()
    SHUTTING_DOWN = auto()

    # pod sandboxes: id is the runtime's full id where it is known, else what the client sent
    SANDBOX_CONFIG_MISSING = auto()
    SANDBOX_METADATA_MISSING = auto()
    SANDBOX_NAME_EMPTY = auto()
    SANDBOX_NAMESPACE_EMPTY = auto()
    SANDBOX_UID_EMPTY = auto()
    SANDBOX_NAME_RESERVED = auto()
    SANDBOX_ID_EMPTY = auto()
    SANDBOX_ID_AMBIGUOUS = auto()
    SANDBOX_NOT_FOUND = auto()
    SANDBOX_NOT_READY = auto()
    SANDBOX_BAD_STATE = auto()
    RUNTIME_HANDLER_UNKNOWN = auto()
    OCI_RUNTIME_MISSING = auto()
    SHIM_MISSING = auto()
    NETWORK_NOT_READY = auto()
    NETWORK_TEARDOWN_FAILED = auto()
    NO_ADDRESS_LEFT = auto()
    HOST_PORT_TAKEN = auto()
    SYSCTL_INVALID = auto()
    HOSTNAME_TOO_LONG = auto()
    LOG_DIRECTORY_RELATIVE = auto()
    POD_CIDR_INVALID = auto()
    USERNS_INVALID = auto()

    # containers
    CONTAINER_CONFIG_MISSING = auto()
    CONTAINER_METADATA_MISSING = auto()
    CONTAINER_NAME_EMPTY = auto()
    CONTAINER_SANDBOX_CONFIG_MISSING = auto()
    CONTAINER_SANDBOX_NOT_FOUND = auto()
    CONTAINER_SANDBOX_NOT_RUNNING = auto()  # create in a stopped pod
    CONTAINER_NAME_RESERVED = auto()
    CONTAINER_ID_EMPTY = auto()
    CONTAINER_ID_AMBIGUOUS = auto()
    CONTAINER_NOT_FOUND = auto()
    CONTAINER_BAD_STATE = auto()
    CONTAINER_STARTING = auto()
    CONTAINER_NOT_RUNNING = auto()
    CONTAINER_IMAGE_EMPTY = auto()
    CONTAINER_IMAGE_NOT_FOUND = auto()
    CONTAINER_USER_IMAGE_MISSING = auto()
    NO_COMMAND = auto()
    COMMAND_NOT_FOUND = auto()  # detail, here and in the next two: the operating system's words
    COMMAND_NOT_EXECUTABLE = auto()
    WORKING_DIRECTORY_INVALID = auto()
    START_IN_STOPPED_SANDBOX = auto()  # id: the sandbox
    MOUNT_CONTAINER_PATH_EMPTY = auto()
    MOUNT_HOST_PATH_EMPTY = auto()
    MOUNT_IMAGE_NOT_FOUND = auto()
    DEVICE_MISSING = auto()
    USER_UNKNOWN = auto()
    GROUP_WITHOUT_USER = auto()
    SECCOMP_PROFILE_MISSING = auto()
    APPARMOR_PROFILE_MISSING = auto()
    CAPABILITY_UNKNOWN = auto()
    MEMORY_LIMIT_BELOW_USAGE = auto()
    LOG_UNWRITABLE = auto()
    PATH_REFUSED = auto()
    RESOURCES_INVALID = auto()

    # images
    IMAGE_REFERENCE_EMPTY = auto()
    IMAGE_REFERENCE_INVALID = auto()
    IMAGE_REFERENCE_UPPERCASE = auto()  # repository: the part with capitals
    IMAGE_REFERENCE_TOO_LONG = auto()
    IMAGE_REFERENCE_IS_ID = auto()  # 64 hex digits where a name is needed
    IMAGE_ID_AMBIGUOUS = auto()
    IMAGE_NOT_FOUND = auto()
    IMAGE_IN_USE = auto()  # containers: ids, oldest first; container: the first of them
    # of a pull
    IMAGE_NOT_IN_REGISTRY = auto()  # missing: "name" or "manifest"
    REGISTRY_UNAUTHORIZED = auto()  # no credentials were given
    REGISTRY_BAD_CREDENTIALS = auto()
    REGISTRY_FORBIDDEN = auto()
    REGISTRY_FAILED = auto()
    REGISTRY_UNREACHABLE = auto()  # address: host:port that refused
    REGISTRY_HOST_UNKNOWN = auto()  # address: host:port whose name does not resolve
    REGISTRY_AUTH_MALFORMED = auto()  # detail: Go's words
    IMAGE_DIGEST_MISMATCH = auto()  # digests of a layer

    # stats, metrics, events, checkpoints
    STATS_OF_STOPPED_CONTAINER = auto()
    STATS_OF_STOPPED_SANDBOX = auto()
    SUBSCRIBER_TOO_SLOW = auto()
    CHECKPOINT_LOCATION_EMPTY = auto()
    CHECKPOINT_LOCATION_INVALID = auto()
    CHECKPOINT_UNREADABLE = auto()
    CHECKPOINT_OPTION_UNKNOWN = auto()
    CHECKPOINT_CONTAINER_NOT_RUNNING = auto()
    CHECKPOINT_CONTAINERS_INVALID = auto()
    CHECKPOINT_TIMED_OUT = auto()
    CHECKPOINT_MISMATCH = auto()


#: Of every failed pull: the full reference, its parts (``reference`` is the tag or digest), the manifest's URL.
_PULL: Final = ("image", "host", "repository", "reference", "url")

#: What each refusal must bring, so that any personality can word it; a reason without a row brings nothing.
FACTS: Final[Mapping[Reason, tuple[str, ...]]] = MappingProxyType(
    {
        Reason.MALFORMED_METHOD: ("path",),
        Reason.UNKNOWN_SERVICE: ("service",),
        Reason.UNKNOWN_METHOD: ("service", "method"),
        Reason.METHOD_NOT_IMPLEMENTED: ("method",),
        Reason.UNDECODABLE: ("detail",),
        Reason.FIELD_NOT_UTF8: ("field",),
        Reason.REQUEST_TOO_LARGE: ("size", "limit"),
        Reason.RESPONSE_TOO_LARGE: ("size", "limit"),
        Reason.UNFORESEEN: ("call", "error"),
        Reason.SANDBOX_NAME_RESERVED: ("name", "owner"),
        Reason.SANDBOX_ID_EMPTY: ("id",),
        Reason.SANDBOX_ID_AMBIGUOUS: ("id",),
        Reason.SANDBOX_NOT_FOUND: ("id",),
        Reason.SANDBOX_NOT_READY: ("id",),
        Reason.SANDBOX_BAD_STATE: ("id", "state", "input"),
        Reason.RUNTIME_HANDLER_UNKNOWN: ("id", "handler", "known"),
        Reason.OCI_RUNTIME_MISSING: ("id", "handler", "binary"),
        Reason.SHIM_MISSING: ("id", "handler", "runtime_type", "binary"),
        Reason.NETWORK_NOT_READY: ("id",),
        Reason.NETWORK_TEARDOWN_FAILED: ("id",),
        Reason.NO_ADDRESS_LEFT: ("id", "cidr"),
        Reason.HOST_PORT_TAKEN: ("id", "port", "protocol"),
        Reason.SYSCTL_INVALID: ("id", "name", "value"),
        Reason.HOSTNAME_TOO_LONG: ("id", "hostname"),
        Reason.LOG_DIRECTORY_RELATIVE: ("id", "path"),
        Reason.POD_CIDR_INVALID: ("cidr",),
        Reason.USERNS_INVALID: ("id", "detail"),
        Reason.CONTAINER_SANDBOX_NOT_FOUND: ("id",),
        Reason.CONTAINER_SANDBOX_NOT_RUNNING: ("id",),
        Reason.CONTAINER_NAME_RESERVED: ("name", "owner"),
        Reason.CONTAINER_ID_EMPTY: ("id",),
        Reason.CONTAINER_ID_AMBIGUOUS: ("id",),
        Reason.CONTAINER_NOT_FOUND: ("id",),
        Reason.CONTAINER_BAD_STATE: ("id", "state", "input"),
        Reason.CONTAINER_STARTING: ("id",),
        Reason.CONTAINER_NOT_RUNNING: ("id", "state"),
        Reason.CONTAINER_IMAGE_NOT_FOUND: ("image",),
        Reason.NO_COMMAND: ("id",),
        Reason.COMMAND_NOT_FOUND: ("id", "command", "detail"),
        Reason.COMMAND_NOT_EXECUTABLE: ("id", "command", "detail"),
        Reason.WORKING_DIRECTORY_INVALID: ("id", "path", "detail"),
        Reason.START_IN_STOPPED_SANDBOX: ("id",),
        Reason.MOUNT_CONTAINER_PATH_EMPTY: ("id",),
        Reason.MOUNT_HOST_PATH_EMPTY: ("id",),
        Reason.MOUNT_IMAGE_NOT_FOUND: ("id", "image"),
        Reason.DEVICE_MISSING: ("id", "path"),
        Reason.USER_UNKNOWN: ("id", "user"),
        Reason.GROUP_WITHOUT_USER: ("id", "group"),
        Reason.SECCOMP_PROFILE_MISSING: ("id", "profile"),
        Reason.APPARMOR_PROFILE_MISSING: ("id", "profile"),
        Reason.CAPABILITY_UNKNOWN: ("id", "capability"),
        Reason.MEMORY_LIMIT_BELOW_USAGE: ("id", "limit", "usage"),
        Reason.LOG_UNWRITABLE: ("id", "path", "error"),
        Reason.PATH_REFUSED: ("path", "detail"),
        Reason.RESOURCES_INVALID: ("id", "detail"),
        Reason.IMAGE_REFERENCE_INVALID: ("image",),
        Reason.IMAGE_REFERENCE_UPPERCASE: ("image", "repository"),
        Reason.IMAGE_REFERENCE_TOO_LONG: ("image", "limit"),
        Reason.IMAGE_REFERENCE_IS_ID: ("image",),
        Reason.IMAGE_ID_AMBIGUOUS: ("image",),
        Reason.IMAGE_NOT_FOUND: ("image",),
        Reason.IMAGE_IN_USE: ("image", "containers", "container"),
        Reason.IMAGE_NOT_IN_REGISTRY: (*_PULL, "missing"),
        Reason.REGISTRY_UNAUTHORIZED: (*_PULL, "status", "status_text"),
        Reason.REGISTRY_BAD_CREDENTIALS: (*_PULL, "status", "status_text"),
        Reason.REGISTRY_FORBIDDEN: (*_PULL, "status", "status_text"),
        Reason.REGISTRY_FAILED: (*_PULL, "status", "status_text"),
        Reason.REGISTRY_UNREACHABLE: (*_PULL, "address"),
        Reason.REGISTRY_HOST_UNKNOWN: (*_PULL, "address"),
        Reason.REGISTRY_AUTH_MALFORMED: (*_PULL, "detail"),
        Reason.IMAGE_DIGEST_MISMATCH: (*_PULL, "got", "expected"),
        Reason.STATS_OF_STOPPED_CONTAINER: ("id",),
        Reason.STATS_OF_STOPPED_SANDBOX: ("id",),
        Reason.SUBSCRIBER_TOO_SLOW: ("limit",),
        Reason.CHECKPOINT_LOCATION_EMPTY: ("id",),
        Reason.CHECKPOINT_LOCATION_INVALID: ("path", "detail"),
        Reason.CHECKPOINT_UNREADABLE: ("path", "detail"),
        Reason.CHECKPOINT_OPTION_UNKNOWN: ("option",),
        Reason.CHECKPOINT_CONTAINER_NOT_RUNNING: ("id", "state"),
        Reason.CHECKPOINT_CONTAINERS_INVALID: ("id", "detail"),
        Reason.CHECKPOINT_TIMED_OUT: ("id", "timeout"),
        Reason.CHECKPOINT_MISMATCH: ("path", "detail"),
    }
)


class CriError(Exception):
    """A refusal: its reason and the facts that a text about it may need."""

    def __init__(self, reason: Reason, **facts: Any) -> None:
        super().__init__(reason, facts)
        self.reason = reason
        self.facts = facts

    def __str__(self) -> str:
        shown = ", ".join(f"{key}={value!r}" for key, value in self.facts.items())
        return f"{self.reason.value}({shown})"
