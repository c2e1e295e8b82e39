"""A container: the client's ContainerConfig, untouched, and our status beside it."""

from __future__ import annotations

from sys import intern
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from fakecri.base.steps import Trigger
from fakecri.core.sandbox import PodSandbox, encoded
from fakecri.core.states import ContainerState
from fakecri.core.users import resolve_user
from fakecri.wire import messages

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fakecri.core.image import Image
    from fakecri.core.stats import Settled
    from fakecri.kernel.process import Process

_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})


class Container:
    """One container. The config is kept as bytes and decoded on demand; a few fields are lifted out of it."""

    __slots__ = (
        "_exited",
        "attempt",
        "checkpointed_at_ns",
        "config_bytes",
        "container_name",
        "created_at_ns",
        "exit_code",
        "finished_at_ns",
        "id",
        "image",
        "image_name",
        "log_path",
        "message",
        "name",
        "process",
        "reason",
        "resources_bytes",
        "restored",
        "restored_layer",
        "resumes",
        "sandbox",
        "settled",
        "started_at_ns",
        "starting",
        "state",
        "stop_signal",
        "stop_signalled",
    )

    def __init__(
        self, full_id: str, name: str, sandbox: PodSandbox, config: messages.ContainerConfig, image: Image
    ) -> None:
        self.id = full_id
        self.name = name
        self.sandbox = sandbox
        self.state: ContainerState = ContainerState.ABSENT
        self.config_bytes = encoded(config)
        self.container_name = intern(config.metadata.name)
        self.attempt = config.metadata.attempt
        self.image = image
        #: The image as the client named it in the config.
        self.image_name = intern(config.image.image)
        #: Absolute path of the log file; empty when the container logs nowhere.
        self.log_path = ""
        #: Signal number that StopContainer sends first.
        self.stop_signal = 15
        #: Whether that signal was sent: it is sent once.
        self.stop_signalled = False
        #: ``LinuxContainerResources`` as applied (defaults filled in, changed by updates).
        self.resources_bytes = b""
        self.created_at_ns = 0
        self.started_at_ns = 0
        self.finished_at_ns = 0
        self.exit_code = 0
        self.reason = ""
        self.message = ""
        #: The main process while it lives.
        self.process: Process | None = None
        #: A StartContainer is under way.
        self.starting = False
        self.restored = False
        #: What a start after a restore takes up: fields of ``kernel.process.ProcessSpec``.
        self.resumes: Mapping[str, Any] = _NOTHING
        #: Files that it finds written when it starts after a restore, by path.
        self.restored_layer: Mapping[str, bytes] = _NOTHING
        self.checkpointed_at_ns = 0
        #: What its CPU limits had cost it when they last changed; None while they are those of its start.
        self.settled: Settled | None = None
        self._exited: Trigger | None = None

    def config(self) -> messages.ContainerConfig:
        """The client's message, decoded afresh (the caller may keep or change it)."""
        return messages.ContainerConfig.FromString(self.config_bytes)

    @property
    def exited(self) -> Trigger:
        """Fires when the container leaves RUNNING; made when somebody waits."""
        if self._exited is None:
            self._exited = Trigger()
        return self._exited

    def fire_exited(self) -> None:
        """The container has left RUNNING."""
        if self._exited is not None:
            self._exited.fire()

    def user(self) -> messages.LinuxContainerUser:
        """Uid, gid and supplementary groups of the first process."""
        return resolve_user(self.config().linux.security_context, self.image, self.id)

    def resources(self) -> messages.LinuxContainerResources:
        """The resources in force, decoded afresh."""
        return messages.LinuxContainerResources.FromString(self.resources_bytes)

    @property
    def labels(self) -> Mapping[str, str]:
        """The labels as given, decoded afresh: kept only in the message, since a label index finds most objects."""
        return self.config().labels

    @property
    def running(self) -> bool:
        """Whether the main process lives, as far as the runtime knows."""
        return self.state is ContainerState.RUNNING

    @property
    def pid(self) -> int:
        """The main process's pid; 0 when there is none."""
        return self.process.pid if self.process is not None else 0
