"""Why a call was refused: facts, never words.

Core raises ``CriError(Reason.X, fact=…)``. A personality later turns (reason, method) into a gRPC code and a text, and
only the door knows gRPC itself; so one refusal reads as containerd's, CRI-O's or iSulad's without a line of core.
"""

from __future__ import annotations

from enum import IntEnum, StrEnum, auto
from typing import Any


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
    """The closed set of refusals; the comment names the facts that come with it."""

    # transport and routing
    MALFORMED_METHOD = auto()  # path
    UNKNOWN_SERVICE = auto()  # service
    UNKNOWN_METHOD = auto()  # service method
    METHOD_NOT_IMPLEMENTED = auto()  # method
    UNDECODABLE = auto()  # detail
    FIELD_NOT_UTF8 = auto()  # field
    REQUEST_TOO_LARGE = auto()  # size limit
    RESPONSE_TOO_LARGE = auto()  # size limit
    CLIENT_GONE = auto()
    DEADLINE = auto()
    UNFORESEEN = auto()  # call error
    SHUTTING_DOWN = auto()

    # pod sandboxes: id is the runtime's full id where it is known, else what the client sent
    SANDBOX_CONFIG_MISSING = auto()
    SANDBOX_METADATA_MISSING = auto()
    SANDBOX_NAME_EMPTY = auto()
    SANDBOX_NAMESPACE_EMPTY = auto()
    SANDBOX_UID_EMPTY = auto()
    SANDBOX_NAME_RESERVED = auto()  # name owner
    SANDBOX_ID_EMPTY = auto()
    SANDBOX_ID_AMBIGUOUS = auto()  # id
    SANDBOX_NOT_FOUND = auto()  # id
    SANDBOX_NOT_READY = auto()  # id
    SANDBOX_BAD_STATE = auto()  # id state input
    RUNTIME_HANDLER_UNKNOWN = auto()  # id handler known
    OCI_RUNTIME_MISSING = auto()  # id handler binary
    SHIM_MISSING = auto()  # id handler runtime_type binary
    NETWORK_NOT_READY = auto()  # id
    NETWORK_TEARDOWN_FAILED = auto()  # id
    NO_ADDRESS_LEFT = auto()  # id cidr
    HOST_PORT_TAKEN = auto()  # id port protocol
    SYSCTL_INVALID = auto()  # id name value
    HOSTNAME_TOO_LONG = auto()  # id hostname
    LOG_DIRECTORY_RELATIVE = auto()  # id path
    POD_CIDR_INVALID = auto()  # cidr
    USERNS_INVALID = auto()  # id detail

    # containers
    CONTAINER_CONFIG_MISSING = auto()
    CONTAINER_METADATA_MISSING = auto()
    CONTAINER_NAME_EMPTY = auto()
    CONTAINER_SANDBOX_CONFIG_MISSING = auto()
    CONTAINER_SANDBOX_NOT_FOUND = auto()  # id
    CONTAINER_SANDBOX_NOT_RUNNING = auto()  # id  (create in a stopped pod)
    CONTAINER_NAME_RESERVED = auto()  # name owner
    CONTAINER_ID_EMPTY = auto()
    CONTAINER_ID_AMBIGUOUS = auto()  # id
    CONTAINER_NOT_FOUND = auto()  # id
    CONTAINER_BAD_STATE = auto()  # id state input
    CONTAINER_STARTING = auto()  # id
    CONTAINER_NOT_RUNNING = auto()  # id state
    CONTAINER_IMAGE_EMPTY = auto()
    CONTAINER_IMAGE_NOT_FOUND = auto()  # image
    CONTAINER_USER_IMAGE_MISSING = auto()
    NO_COMMAND = auto()  # id
    COMMAND_NOT_FOUND = auto()  # id command
    COMMAND_NOT_EXECUTABLE = auto()  # id command
    WORKING_DIRECTORY_INVALID = auto()  # id path
    START_IN_STOPPED_SANDBOX = auto()  # id (sandbox)
    MOUNT_CONTAINER_PATH_EMPTY = auto()  # id
    MOUNT_HOST_PATH_EMPTY = auto()  # id
    MOUNT_IMAGE_NOT_FOUND = auto()  # id image
    DEVICE_MISSING = auto()  # id path
    USER_UNKNOWN = auto()  # id user
    GROUP_WITHOUT_USER = auto()  # id group
    SECCOMP_PROFILE_MISSING = auto()  # id profile
    APPARMOR_PROFILE_MISSING = auto()  # id profile
    CAPABILITY_UNKNOWN = auto()  # id capability
    MEMORY_LIMIT_BELOW_USAGE = auto()  # id limit usage
    LOG_UNWRITABLE = auto()  # id path error
    PATH_REFUSED = auto()  # path detail
    RESOURCES_INVALID = auto()  # id detail

    # images
    IMAGE_REFERENCE_EMPTY = auto()
    IMAGE_REFERENCE_INVALID = auto()  # image
    IMAGE_NOT_IN_REGISTRY = auto()  # image host repository reference
    IMAGE_IN_USE = auto()  # image containers
    IMAGE_PINNED = auto()  # image
    REGISTRY_UNAUTHORIZED = auto()  # image host
    REGISTRY_BAD_CREDENTIALS = auto()  # image host
    REGISTRY_FORBIDDEN = auto()  # image host
    REGISTRY_FAILED = auto()  # image host status
    REGISTRY_UNREACHABLE = auto()  # image host url
    REGISTRY_AUTH_MALFORMED = auto()  # image detail
    IMAGE_DIGEST_MISMATCH = auto()  # image got expected

    # stats, metrics, events, checkpoints
    STATS_OF_STOPPED_CONTAINER = auto()  # id
    STATS_OF_STOPPED_SANDBOX = auto()  # id
    SUBSCRIBER_TOO_SLOW = auto()  # limit
    CHECKPOINT_LOCATION_EMPTY = auto()  # id
    CHECKPOINT_LOCATION_INVALID = auto()  # path detail
    CHECKPOINT_UNREADABLE = auto()  # path detail
    CHECKPOINT_OPTION_UNKNOWN = auto()  # option


class CriError(Exception):
    """A refusal: its reason and the facts that a text about it may need."""

    def __init__(self, reason: Reason, **facts: Any) -> None:
        super().__init__(reason, facts)
        self.reason = reason
        self.facts = facts

    def __str__(self) -> str:
        shown = ", ".join(f"{key}={value!r}" for key, value in self.facts.items())
        return f"{self.reason.value}({shown})"
