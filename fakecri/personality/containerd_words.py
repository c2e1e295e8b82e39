"""How containerd words what goes wrong with sandboxes and containers: 2.1.9 as measured, later releases as read.

The rule: a form holds the innermost words, a wrapper the call's own around them. Where containerd cannot refuse what
core can (it takes an empty pod name, CRI-O does not), the form still exists, in containerd's manner, so that every
reason has words here.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from fakecri.base.reasons import Code, Reason
from fakecri.personality.model import Form, over

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fakecri.personality.model import Key

#: What a look-up by id can end in.
SANDBOX_MISSES: Final = (Reason.SANDBOX_ID_EMPTY, Reason.SANDBOX_ID_AMBIGUOUS, Reason.SANDBOX_NOT_FOUND)
CONTAINER_MISSES: Final = (Reason.CONTAINER_ID_EMPTY, Reason.CONTAINER_ID_AMBIGUOUS, Reason.CONTAINER_NOT_FOUND)

#: What the low-level runtime refuses when a sandbox, or a container, is started.
SANDBOX_TASK_FAILURES: Final = (Reason.OCI_RUNTIME_MISSING, Reason.SYSCTL_INVALID, Reason.HOSTNAME_TOO_LONG)
CONTAINER_TASK_FAILURES: Final = (
    Reason.COMMAND_NOT_FOUND,
    Reason.COMMAND_NOT_EXECUTABLE,
    Reason.WORKING_DIRECTORY_INVALID,
    Reason.CAPABILITY_UNKNOWN,
)
TASK: Final = "failed to create containerd task: "
SHIM_TASK: Final = f"{TASK}failed to create shim task: OCI runtime create failed: "
START_SANDBOX: Final = 'failed to start sandbox "{id}": '
SPEC: Final = 'failed to generate container "{id}" spec: failed to generate spec: '
CREATE: Final = "failed to create containerd container: "
UPDATE: Final = "failed to update resources: failed to update resources: "

RUNC: Final = "runc create failed: unable to start container process: "
_AMBIGUOUS: Final = Form(Code.UNKNOWN, "Multiple IDs found with provided prefix: {id}")


def _unknown(text: str) -> Form:
    """Most of containerd's errors carry no kind that gRPC has a code for."""
    return Form(Code.UNKNOWN, text)


_SANDBOX_FORMS: Final[Mapping[Key, Form]] = {
    (Reason.SANDBOX_CONFIG_MISSING, None): _unknown("sandbox config must include metadata"),
    (Reason.SANDBOX_METADATA_MISSING, None): _unknown("sandbox config must include metadata"),
    (Reason.SANDBOX_NAME_EMPTY, None): _unknown("sandbox config must include a name in its metadata"),
    (Reason.SANDBOX_NAMESPACE_EMPTY, None): _unknown("sandbox config must include a namespace in its metadata"),
    (Reason.SANDBOX_UID_EMPTY, None): _unknown("sandbox config must include a uid in its metadata"),
    (Reason.SANDBOX_NAME_RESERVED, None): Form(
        Code.FAILED_PRECONDITION, 'failed to reserve sandbox name "{name}": name "{name}" is reserved for "{owner}"'
    ),
    (Reason.SANDBOX_ID_EMPTY, None): _unknown("prefix can't be empty"),
    (Reason.SANDBOX_ID_AMBIGUOUS, None): _AMBIGUOUS,
    (Reason.SANDBOX_NOT_FOUND, None): Form(Code.NOT_FOUND, "not found"),
    (Reason.SANDBOX_NOT_READY, None): _unknown('sandbox container "{id}" is not running'),
    (Reason.SANDBOX_NOT_READY, "PortForward"): _unknown("sandbox container is not running"),
    (Reason.SANDBOX_BAD_STATE, None): _unknown('sandbox "{id}" is in state {state}, in which {input} is not possible'),
    (Reason.RUNTIME_HANDLER_UNKNOWN, None): _unknown('no runtime for "{handler}" is configured'),
    (Reason.OCI_RUNTIME_MISSING, None): _unknown(
        "unable to retrieve OCI runtime error (open /run/containerd/io.containerd.runtime.v2.task/k8s.io/{id}/log.json:"
        " no such file or directory): fork/exec {binary}: no such file or directory"
    ),
    (Reason.SHIM_MISSING, None): _unknown(
        'failed to start shim: failed to resolve runtime path: runtime "{runtime_type}" binary not installed'
        ' "{binary}": file does not exist'
    ),
    (Reason.NETWORK_NOT_READY, None): _unknown("cni plugin not initialized"),
    (Reason.NETWORK_TEARDOWN_FAILED, None): _unknown("cni plugin not initialized"),
    (Reason.NO_ADDRESS_LEFT, None): _unknown(
        'plugin type="bridge" failed (add): failed to allocate for range 0: no IP addresses available in range set:'
        " {cidr}"
    ),
    (Reason.HOST_PORT_TAKEN, None): _unknown(
        'plugin type="portmap" failed (add): host port {port}/{protocol} is already in use'
    ),
    (Reason.SYSCTL_INVALID, None): _unknown(
        'runc create failed: sysctl "{name}" is not in a separate kernel namespace'
    ),
    (Reason.HOSTNAME_TOO_LONG, None): _unknown(f"{RUNC}error during container init: sethostname: invalid argument"),
    (Reason.LOG_DIRECTORY_RELATIVE, None): _unknown('log directory "{path}" of sandbox "{id}" is not an absolute path'),
    (Reason.POD_CIDR_INVALID, None): _unknown("invalid CIDR address: {cidr}"),
    (Reason.USERNS_INVALID, None): _unknown("{detail}"),
}

_CONTAINER_FORMS: Final[Mapping[Key, Form]] = {
    (Reason.CONTAINER_CONFIG_MISSING, None): _unknown("container config must include metadata"),
    (Reason.CONTAINER_METADATA_MISSING, None): _unknown("container config must include metadata"),
    (Reason.CONTAINER_NAME_EMPTY, None): _unknown("container config must include a name in its metadata"),
    # 2.1.9 dies of this; the words are 2.2's.
    (Reason.CONTAINER_SANDBOX_CONFIG_MISSING, None): _unknown("pod sandbox config must include metadata"),
    (Reason.CONTAINER_SANDBOX_NOT_FOUND, None): Form(Code.NOT_FOUND, "not found"),
    (Reason.CONTAINER_SANDBOX_NOT_RUNNING, None): _unknown('sandbox container "{id}" is not running'),
    (Reason.CONTAINER_NAME_RESERVED, None): Form(
        Code.FAILED_PRECONDITION,
        'failed to reserve container name "{name}"; check if another CreateContainer request is in progress:'
        ' name "{name}" is reserved for "{owner}"',
    ),
    (Reason.CONTAINER_ID_EMPTY, None): _unknown("prefix can't be empty"),
    (Reason.CONTAINER_ID_AMBIGUOUS, None): _AMBIGUOUS,
    (Reason.CONTAINER_NOT_FOUND, None): Form(Code.NOT_FOUND, "not found"),
    (Reason.CONTAINER_BAD_STATE, None): _unknown("container is in CONTAINER_{state} state"),
    (Reason.CONTAINER_STARTING, None): _unknown("container is already in starting state"),
    (Reason.CONTAINER_STARTING, "RemoveContainer"): _unknown("container is in starting state, can't be removed"),
    (Reason.CONTAINER_NOT_RUNNING, None): _unknown("container is in CONTAINER_{state} state"),
    (Reason.CONTAINER_NOT_RUNNING, "ReopenContainerLog"): _unknown("container is not running"),
    (Reason.CONTAINER_IMAGE_EMPTY, None): _unknown('failed to resolve image "": ambiguous digest string'),
    (Reason.CONTAINER_IMAGE_NOT_FOUND, None): Form(Code.NOT_FOUND, 'failed to resolve image "{image}": not found'),
    (Reason.CONTAINER_USER_IMAGE_MISSING, None): _unknown("user specified image must not be empty"),
    (Reason.NO_COMMAND, None): _unknown("no command specified"),
    (Reason.COMMAND_NOT_FOUND, None): _unknown('exec: "{command}": {detail}'),
    (Reason.COMMAND_NOT_EXECUTABLE, None): _unknown('exec: "{command}": {detail}'),
    (Reason.WORKING_DIRECTORY_INVALID, None): _unknown("error during container init: {detail}"),
    (Reason.START_IN_STOPPED_SANDBOX, None): _unknown('sandbox container "{id}" is not running'),
    (Reason.MOUNT_CONTAINER_PATH_EMPTY, None): _unknown("mount must have a container path"),
    (Reason.MOUNT_HOST_PATH_EMPTY, None): _unknown('failed to mkdir "": mkdir : no such file or directory'),
    (Reason.MOUNT_IMAGE_NOT_FOUND, None): Form(
        Code.NOT_FOUND, 'ImageVolumeMountFailed: failed to get image "{image}": not found'
    ),
    (Reason.DEVICE_MISSING, None): _unknown("lstat {path}: no such file or directory"),
    (Reason.USER_UNKNOWN, None): _unknown(
        "mount callback failed on /var/lib/containerd/tmpmounts/containerd-mount{id:.10}: no users found"
    ),
    (Reason.GROUP_WITHOUT_USER, None): _unknown(
        'failed to get container spec opts: failed to generate user string: user group "{group}" is specified without'
        " user"
    ),
    (Reason.SECCOMP_PROFILE_MISSING, None): _unknown(
        'cannot load seccomp profile "{profile}": open {profile}: no such file or directory'
    ),
    (Reason.APPARMOR_PROFILE_MISSING, None): _unknown(
        "failed to generate apparmor spec opts: apparmor profile not found {profile}"
    ),
    (Reason.CAPABILITY_UNKNOWN, None): _unknown('unknown capability "{capability}"'),
    (Reason.MEMORY_LIMIT_BELOW_USAGE, None): _unknown(
        "runc did not terminate successfully: exit status 1: unable to set memory limit to {limit}"
        " (current usage: {usage}, peak usage: {usage})"
    ),
    (Reason.LOG_UNWRITABLE, None): _unknown("failed to create and open log file: open {path}: {error}"),
    (Reason.PATH_REFUSED, None): _unknown("open {path}: {detail}"),
    (Reason.RESOURCES_INVALID, None): _unknown("{detail}"),
}

_OTHER_FORMS: Final[Mapping[Key, Form]] = {
    (Reason.STATS_OF_STOPPED_CONTAINER, None): _unknown("unexpected metrics response: []"),
    (Reason.STATS_OF_STOPPED_SANDBOX, None): Form(
        Code.UNAVAILABLE,
        'failed to get pod sandbox stats since sandbox container "{id}" is not in ready state: unavailable',
    ),
    (Reason.SUBSCRIBER_TOO_SLOW, None): Form(
        Code.RESOURCE_EXHAUSTED, "the event stream ends: more than {limit} events were left unread"
    ),
    (Reason.CHECKPOINT_LOCATION_EMPTY, None): _unknown('no location is given for the checkpoint of "{id}"'),
    (Reason.CHECKPOINT_LOCATION_INVALID, None): _unknown("open {path}: {detail}"),
    (Reason.CHECKPOINT_UNREADABLE, None): _unknown('failed to read checkpoint "{path}": {detail}'),
    (Reason.CHECKPOINT_CONTAINER_NOT_RUNNING, None): _unknown(
        "container is in CONTAINER_{state} state. only CONTAINER_RUNNING containers can be checkpointed"
    ),
    (Reason.CHECKPOINT_CONTAINERS_INVALID, None): Form(
        Code.INVALID_ARGUMENT, 'containers of the checkpoint of sandbox "{id}": {detail}'
    ),
    (Reason.CHECKPOINT_TIMED_OUT, None): Form(
        Code.DEADLINE_EXCEEDED, 'failed to checkpoint "{id}": timeout {timeout}s exceeded: context deadline exceeded'
    ),
    (Reason.CHECKPOINT_MISMATCH, None): Form(
        Code.FAILED_PRECONDITION, 'checkpoint "{path}" does not fit the request: {detail}'
    ),
    (Reason.CHECKPOINT_OPTION_UNKNOWN, None): Form(Code.INVALID_ARGUMENT, 'unknown checkpoint option "{option}"'),
}

FORMS: Final[Mapping[Key, Form]] = MappingProxyType({**_SANDBOX_FORMS, **_CONTAINER_FORMS, **_OTHER_FORMS})

WRAPPERS: Final[Mapping[Key, str]] = MappingProxyType(
    {
        **over(
            SANDBOX_MISSES,
            {
                None: 'an error occurred when try to find sandbox "{id}": {cause}',
                "PodSandboxStatus": "an error occurred when try to find sandbox: {cause}",
                "PodSandboxStats": "an error occurred when trying to find sandbox {id}: {cause}",
                "PortForward": 'failed to find sandbox "{id}": {cause}',
                "UpdatePodSandboxResources": "failed to find sandbox: {cause}",
            },
        ),
        **over(
            (Reason.SANDBOX_ID_EMPTY, Reason.SANDBOX_ID_AMBIGUOUS, Reason.CONTAINER_SANDBOX_NOT_FOUND),
            {"CreateContainer": 'failed to find sandbox id "{id}": {cause}'},
        ),
        **over(
            CONTAINER_MISSES,
            {
                None: 'an error occurred when try to find container "{id}": {cause}',
                "UpdateContainerResources": "failed to find container: {cause}",
                "ContainerStats": "failed to find container: {cause}",
                "ExecSync": 'failed to exec in container: failed to find container "{id}" in store: {cause}',
                "Exec": 'failed to find container "{id}" in store: {cause}',
                "Attach": "failed to find container in store: {cause}",
                "CheckpointContainer": (
                    'an error occurred when trying to find container the container status "{id}":'
                    ' an error occurred when try to find container "{id}": {cause}'
                ),
            },
        ),
        (Reason.RUNTIME_HANDLER_UNKNOWN, None): 'unable to get OCI runtime for sandbox "{id}": {cause}',
        **over(SANDBOX_TASK_FAILURES, {None: f"{START_SANDBOX}{SHIM_TASK}{{cause}}"}),
        (Reason.SHIM_MISSING, None): f"{START_SANDBOX}{TASK}{{cause}}",
        (Reason.USERNS_INVALID, None): f"{START_SANDBOX}{{cause}}",
        **over(
            (Reason.NETWORK_NOT_READY, Reason.NO_ADDRESS_LEFT, Reason.HOST_PORT_TAKEN),
            {None: 'failed to setup network for sandbox "{id}": {cause}'},
        ),
        (Reason.NETWORK_TEARDOWN_FAILED, None): 'failed to destroy network for sandbox "{id}": {cause}',
        **over(CONTAINER_TASK_FAILURES, {None: f"{SHIM_TASK}{RUNC}{{cause}}"}),
        **over(
            (Reason.CONTAINER_BAD_STATE, Reason.CONTAINER_STARTING),
            {
                "StartContainer": 'failed to set starting state for container "{id}": {cause}',
                "RemoveContainer": 'failed to set removing state for container "{id}": {cause}',
            },
        ),
        (Reason.CONTAINER_NOT_RUNNING, "ExecSync"): "failed to exec in container: {cause}",
        (Reason.CONTAINER_IMAGE_NOT_FOUND, None): "failed to check if this is a checkpoint image: {cause}",
        **over((Reason.NO_COMMAND, Reason.MOUNT_HOST_PATH_EMPTY, Reason.DEVICE_MISSING), {None: f"{SPEC}{{cause}}"}),
        **over((Reason.USER_UNKNOWN, Reason.SECCOMP_PROFILE_MISSING), {None: f"{CREATE}{{cause}}"}),
        **over(
            (Reason.MEMORY_LIMIT_BELOW_USAGE, Reason.RESOURCES_INVALID),
            {"UpdateContainerResources": f"{UPDATE}{{cause}}"},
        ),
        (Reason.LOG_UNWRITABLE, "StartContainer"): f"{TASK}failed to create container loggers: {{cause}}",
        (Reason.STATS_OF_STOPPED_SANDBOX, "PodSandboxStats"): "failed to decode pod sandbox metrics {id}: {cause}",
        (Reason.STATS_OF_STOPPED_SANDBOX, "ListPodSandboxStats"): (
            'failed to decode sandbox container metrics for sandbox "{id}": {cause}'
        ),
    }
)
