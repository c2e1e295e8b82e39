"""A pod sandbox: the client's PodSandboxConfig, untouched, and our status beside it."""

from __future__ import annotations

from sys import intern
from typing import TYPE_CHECKING

from fakecri.core.states import SandboxState
from fakecri.wire import messages

if TYPE_CHECKING:
    from collections.abc import Mapping

    from google.protobuf.message import Message

    from fakecri.core.container import Container
    from fakecri.kernel.process import Process


def encoded(message: Message) -> bytes:
    """The one encoding of a message: map entries in order, whatever the interpreter's hash seed."""
    content: bytes = message.SerializeToString(deterministic=True)
    return content


class PodSandbox:
    """One pod sandbox. The config is kept as bytes and decoded on demand; a few fields are lifted out of it."""

    __slots__ = (
        "addresses",
        "attempt",
        "config_bytes",
        "containers",
        "created_at_ns",
        "host_network",
        "host_ports",
        "id",
        "linux_resources_bytes",
        "log_directory",
        "name",
        "namespace",
        "network_namespace",
        "overhead_bytes",
        "pod_name",
        "process",
        "runtime_handler",
        "state",
        "uid",
    )

    def __init__(self, full_id: str, name: str, config: messages.PodSandboxConfig, runtime_handler: str) -> None:
        self.id = full_id
        self.name = name
        self.state: SandboxState = SandboxState.ABSENT
        self.config_bytes = encoded(config)
        self.pod_name = config.metadata.name
        self.namespace = intern(config.metadata.namespace)
        self.uid = config.metadata.uid
        self.attempt = config.metadata.attempt
        self.log_directory = config.log_directory
        self.runtime_handler = intern(runtime_handler)
        options = config.linux.security_context.namespace_options
        self.host_network = bool(options.network == messages.NODE)
        self.created_at_ns = 0
        #: Pod addresses, primary first; empty for host network.
        self.addresses: tuple[str, ...] = ()
        self.host_ports: tuple[tuple[str, int, str], ...] = ()
        self.network_namespace = ""
        #: The sandbox's own process (pause); None once it is gone.
        self.process: Process | None = None
        #: Set by UpdatePodSandboxResources; empty means as configured.
        self.overhead_bytes = b""
        self.linux_resources_bytes = b""
        #: Oldest first.
        self.containers: tuple[Container, ...] = ()

    def config(self) -> messages.PodSandboxConfig:
        """The client's message, decoded afresh (the caller may keep or change it)."""
        return messages.PodSandboxConfig.FromString(self.config_bytes)

    @property
    def labels(self) -> Mapping[str, str]:
        """The labels as given, decoded afresh: kept only in the message, since a label index finds most objects."""
        return self.config().labels

    @property
    def ready(self) -> bool:
        """Whether containers can start here."""
        return self.state is SandboxState.READY

    @property
    def pid(self) -> int:
        """The sandbox process's pid; 0 when it is gone."""
        return self.process.pid if self.process is not None else 0
