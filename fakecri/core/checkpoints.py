"""What a checkpoint holds, and its form: an archive of our own, which a restore reads back.

One archive holds one container, or a pod without its containers (theirs lie beside it). Configs and statuses are in it
as protobuf, what people may want to read as JSON. A process whose program can tell where it stands (a waiting program,
a server, a scripted workload) goes on from there; any other is started anew from its entry point. Files that the
container wrote come back; log files stay where they are, only their path is kept.
"""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from google.protobuf.message import DecodeError

from fakecri.clock import SECOND
from fakecri.core import archive, status
from fakecri.core.files import ContainerFiles
from fakecri.core.sandbox import encoded
from fakecri.wire import messages

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fakecri.core.container import Container
    from fakecri.core.runtime import Runtime
    from fakecri.core.sandbox import PodSandbox

FORMAT: Final = "fakecri.dev/checkpoint/v1"
#: Entry of every archive that says what it is.
MANIFEST: Final = "checkpoint.json"
CONTAINER: Final = "container"
POD: Final = "pod"
_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})


class Unreadable(ValueError):
    """An archive that is not a checkpoint of the kind asked for; the text says why."""


@dataclass(frozen=True, slots=True)
class ContainerCheckpoint:
    """One container as it was."""

    config: messages.ContainerConfig
    status: messages.ContainerStatus
    #: Digest of the image, whatever the runtime calls it.
    image: str
    #: ``Process.describe()``.
    process: Mapping[str, Any] = field(default_factory=lambda: _NOTHING)
    #: What the container had written, by path.
    layer: Mapping[str, bytes] = field(default_factory=lambda: _NOTHING)

    @property
    def name(self) -> str:
        """The container's name in its pod."""
        return self.config.metadata.name

    @property
    def resumes(self) -> Mapping[str, Any]:
        """Fields of ``ProcessSpec`` with which a start goes on; empty: from the entry point."""
        if not self.process.get("resumable"):
            return _NOTHING
        return {name: self.process[name] for name in ("age_ns", "spent_ns", "memory")}


@dataclass(frozen=True, slots=True)
class PodCheckpoint:
    """One pod as it was, and in which files its containers are."""

    config: messages.PodSandboxConfig
    runtime_handler: str
    #: Container name → file name beside the pod's own.
    files: Mapping[str, str]


# -- writing -----------------------------------------------------------------------------------------------------------
def of_container(runtime: Runtime, container: Container) -> bytes:
    """The archive of a running container at this moment."""
    process = container.process
    assert process is not None
    files = process.spec.files
    layer = files.layer if isinstance(files, ContainerFiles) else {}
    return archive.pack(
        {
            MANIFEST: _manifest(runtime, CONTAINER, id=container.id, image=container.image.digest),
            "config.pb": container.config_bytes,
            "status.pb": encoded(status.container_status(runtime, container)),
            "process.json": _json(process.describe(runtime.clock.now_ns)),
            "layer.json": _json({path: base64.b64encode(layer[path]).decode() for path in sorted(layer)}),
        },
        runtime.clock.wall_ns // SECOND,
    )


def of_pod(runtime: Runtime, sandbox: PodSandbox, files: Mapping[str, str]) -> bytes:
    """The archive of a pod whose containers are in ``files`` (container name → file name)."""
    return archive.pack(
        {
            MANIFEST: _manifest(
                runtime, POD, id=sandbox.id, runtime_handler=sandbox.runtime_handler, containers=dict(files)
            ),
            "config.pb": sandbox.config_bytes,
            "status.pb": encoded(status.sandbox_status(runtime, sandbox)),
        },
        runtime.clock.wall_ns // SECOND,
    )


def _manifest(runtime: Runtime, kind: str, **more: Any) -> bytes:
    return _json({"format": FORMAT, "kind": kind, "checkpointed_at_ns": runtime.clock.wall_ns, **more})


def _json(value: Any) -> bytes:
    return json.dumps(value, indent=1).encode() + b"\n"


# -- reading -----------------------------------------------------------------------------------------------------------
def read_container(content: bytes) -> ContainerCheckpoint:
    """What ``of_container`` wrote.

    Raises:
        Unreadable: it is something else, or damaged.
    """
    entries, manifest = _entries(content, CONTAINER)
    try:
        layer = {path: base64.b64decode(text) for path, text in json.loads(entries["layer.json"]).items()}
        process = _checked(json.loads(entries["process.json"]))
        return ContainerCheckpoint(
            config=messages.ContainerConfig.FromString(entries["config.pb"]),
            status=messages.ContainerStatus.FromString(entries["status.pb"]),
            image=manifest["image"],
            process=process,
            layer=layer,
        )
    except _DAMAGE as problem:
        raise Unreadable(f"an entry is missing or damaged: {problem}") from problem


def read_pod(content: bytes) -> PodCheckpoint:
    """What ``of_pod`` wrote.

    Raises:
        Unreadable: it is something else, or damaged.
    """
    entries, manifest = _entries(content, POD)
    try:
        return PodCheckpoint(
            config=messages.PodSandboxConfig.FromString(entries["config.pb"]),
            runtime_handler=manifest["runtime_handler"],
            files={str(name): str(file) for name, file in manifest["containers"].items()},
        )
    except _DAMAGE as problem:
        raise Unreadable(f"an entry is missing or damaged: {problem}") from problem


def _checked(process: dict[str, Any]) -> dict[str, Any]:
    """A process description whose parts that a restore uses are what they should be."""
    if not (process["age_ns"] >= 0 and process["spent_ns"] >= 0 and isinstance(process["memory"], dict)):
        raise ValueError("process.json describes no process")
    return process


#: What reading a damaged entry may raise: no such key, another type, no JSON or base64, no protobuf.
_DAMAGE: Final = (KeyError, TypeError, ValueError, AttributeError, DecodeError)


def _entries(content: bytes, kind: str) -> tuple[dict[str, bytes], dict[str, Any]]:
    try:
        entries = archive.unpack(content)
        manifest = json.loads(entries.get(MANIFEST, b"null"))
    except ValueError as problem:
        raise Unreadable(f"not a checkpoint archive: {problem}") from problem
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise Unreadable(f"not a checkpoint that this runtime wrote: {MANIFEST} does not say {FORMAT}")
    if manifest.get("kind") != kind:
        raise Unreadable(f"a checkpoint of a {manifest.get('kind')}, not of a {kind}")
    return entries, manifest


# -- does it fit -------------------------------------------------------------------------------------------------------
#: What of a container's config describes the checkpointed process, and may not change in a restore.
_FIXED: Final = ("command", "args", "working_dir", "envs")
_FIXED_CREDENTIALS: Final = ("run_as_user", "run_as_group", "run_as_username", "supplemental_groups")


def mismatch(checkpoint: ContainerCheckpoint, config: messages.ContainerConfig, image: str | None) -> str:
    """Why a restore-time config is not that of the checkpointed process; empty when it is.

    ``image`` is the digest of the image that the config names, None when there is no such image.
    """
    if image is not None and image != checkpoint.image:
        return f"image of container {checkpoint.name} is {image}, was {checkpoint.image}"
    for name in _FIXED:
        if getattr(config, name) != getattr(checkpoint.config, name):
            return f"{name} of container {checkpoint.name} differs"
    for name in _FIXED_CREDENTIALS:
        now = getattr(config.linux.security_context, name)
        if now != getattr(checkpoint.config.linux.security_context, name):
            return f"{name} of container {checkpoint.name} differs"
    return ""
