"""Every RPC of both API versions, by the path that a client calls.

The rule: one table answers for both versions. The request and response classes are always those of runtime.v1, for
v1alpha2 bytes are parsed as v1; which release brought an RPC comes from `levels.json`, each version by its own count.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from fakecri.wire import messages
from fakecri.wire.levels import RELEASES, Level

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from google.protobuf.message import Message

# The RPCs that may change what the runtime keeps; Exec, Attach and PortForward only prepare an endpoint.
_MUTATING: Final = frozenset(
    {
        "RunPodSandbox",
        "StopPodSandbox",
        "RemovePodSandbox",
        "CreateContainer",
        "StartContainer",
        "StopContainer",
        "RemoveContainer",
        "UpdateContainerResources",
        "ReopenContainerLog",
        "ExecSync",
        "UpdateRuntimeConfig",
        "CheckpointContainer",
        "CheckpointPod",
        "RestorePod",
        "UpdatePodSandboxResources",
        "PullImage",
        "RemoveImage",
    }
)


@dataclass(frozen=True, slots=True)
class MethodSpec:
    """One RPC of one API version."""

    path: str
    """As in HTTP/2's `:path`: "/runtime.v1.RuntimeService/Version"."""
    api: str
    """ "v1" or "v1alpha2"."""
    service: str
    """ "RuntimeService" or "ImageService"."""
    name: str
    request: type[Message]
    response: type[Message]
    server_streaming: bool
    since: Level
    """The first Kubernetes release whose `api` has it."""
    mutating: bool
    """Whether a call may change what the runtime keeps."""


def _methods() -> Iterator[MethodSpec]:
    for api, releases in RELEASES.items():
        for service, rpcs in releases.rpcs.items():
            described = messages.DESCRIPTOR.services_by_name[service].methods_by_name
            for name, since in rpcs.items():
                method = described[name]
                yield MethodSpec(
                    path=f"/runtime.{api}.{service}/{name}",
                    api=api,
                    service=service,
                    name=name,
                    request=getattr(messages, method.input_type.name),
                    response=getattr(messages, method.output_type.name),
                    server_streaming=method.server_streaming,
                    since=since,
                    mutating=name in _MUTATING,
                )


METHODS: Final[Mapping[str, MethodSpec]] = MappingProxyType({spec.path: spec for spec in _methods()})
SERVICES: Final = frozenset(f"runtime.{spec.api}.{spec.service}" for spec in METHODS.values())
