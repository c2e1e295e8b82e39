"""The runtimes that the machine is driven on: three personalities that exist, three made to turn the other switches.

Pools are small on purpose: addresses run out, a host port clashes, an event queue overflows, an id prefix is ambiguous.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from fakecri.core.catalogue import Catalogue, ImageConfig, ImageSource
from fakecri.core.node import HandlerFault, Node, RuntimeHandler
from fakecri.core.registries import Login, Registry, RepositoryRule, WrongDigest
from fakecri.core.rpc.container_create import CHECKS as CREATE_CHECKS
from fakecri.core.rpc.sandbox_run import CHECKS as RUN_CHECKS
from fakecri.core.traits import (
    AddressAfterStop,
    CreatedContainerStats,
    ImageIdForm,
    ImageInUse,
    ListImageReference,
    ListOrder,
    ListStatsWithStopped,
    MissingCommandFails,
    OnClientGone,
    OnDuplicateName,
    OnInvalidReference,
    OnUnknown,
    PullReference,
    RemoveImageScope,
    RunningOnRemove,
    RunningOnSandboxStop,
    StoppedContainerCalls,
    StoppedContainerStats,
    StoppedSandboxStats,
    UppercaseHost,
)
from fakecri.personality.model import Personality, derive
from fakecri.personality.registry import PERSONALITIES

REFERENCE: Final = PERSONALITIES["reference"]

STRICT: Final = derive(
    REFERENCE,
    name="strict",
    summary="every check, and a refusal wherever a runtime may refuse",
    traits={
        "stop_unknown_container": OnUnknown.NOT_FOUND,
        "stop_unknown_sandbox": OnUnknown.NOT_FOUND,
        "remove_unknown_container": OnUnknown.NOT_FOUND,
        "remove_unknown_image": OnUnknown.NOT_FOUND,
        "running_on_remove": RunningOnRemove.REFUSE,
        "missing_command_fails": MissingCommandFails.AT_CREATE,
        "image_in_use": ImageInUse.REFUSE,
        "remove_image_scope": RemoveImageScope.ONE_NAME,
        "invalid_reference": OnInvalidReference.REFUSE,
        "uppercase_host": UppercaseHost.PATH,
        "update_of_exited": StoppedContainerCalls.REFUSE,
        "list_order": ListOrder.NEWEST_FIRST,
        "list_image_reference": ListImageReference.REPO_DIGEST,
        "pull_reference": PullReference.REPO_DIGEST,
        "image_id_form": ImageIdForm.BARE,
    },
    behaviour={
        "check_orders": {
            "RunPodSandbox": tuple(RUN_CHECKS),
            "CreateContainer": tuple(CREATE_CHECKS),
            "PullImage": ("reference", "credentials", "credentials_decoded"),
        },
    },
)
GENTLE: Final = derive(
    REFERENCE,
    name="gentle",
    summary="grace wherever a runtime may give it, and shared names",
    traits={
        "duplicate_name": OnDuplicateName.RETURN_EXISTING,
        "duplicate_container_name": OnDuplicateName.RETURN_EXISTING,
        "running_on_sandbox_stop": RunningOnSandboxStop.GRACEFUL,
        "running_on_remove": RunningOnRemove.GRACEFUL,
        "address_after_stop": AddressAfterStop.KEPT,
        "stopped_container_stats": StoppedContainerStats.EMPTY,
        "stopped_sandbox_stats": StoppedSandboxStats.EMPTY,
        "created_container_stats": CreatedContainerStats.ZEROES,
        "list_stats_with_stopped": ListStatsWithStopped.LIST,
    },
    behaviour={"strategies": {"events": "shared-channel", "grace": "ten-seconds"}},
)
TENACIOUS: Final = derive(
    GENTLE,
    name="tenacious",
    summary="gentle, and calls that outlive their clients",
    traits={"on_client_gone": OnClientGone.CONTINUE},
    behaviour={"strategies": {"events": "broadcast", "grace": "client-deadline"}},
)


@dataclass(frozen=True)
class Setting:
    """One runtime to drive."""

    name: str
    personality: Personality
    cidrs: tuple[str, ...] = ("10.9.0.0/28",)

    def node(self) -> Node:
        """Its node: few addresses, short event queues, two handlers that cannot start anything."""
        return Node(
            pod_cidrs=self.cidrs,
            event_queue_limit=6,
            runtime_handlers=(
                RuntimeHandler("runc"),
                RuntimeHandler("broken", fault=HandlerFault.OCI_BINARY_MISSING, binary="/usr/bin/none"),
                RuntimeHandler("noshim", fault=HandlerFault.SHIM_MISSING, binary="io.containerd.none.v2"),
            ),
        )


SETTINGS: Final[Mapping[str, Setting]] = {
    setting.name: setting
    for setting in (
        Setting("reference", REFERENCE),
        Setting("containerd-1.6", PERSONALITIES["containerd-1.6"]),
        Setting("containerd-2.1", PERSONALITIES["containerd-2.1"]),
        Setting("strict", STRICT, ("10.9.0.0/29", "fd00:9::/64")),
        Setting("gentle", GENTLE),
        Setting("tenacious", TENACIOUS),
    )
}

#: Their ids begin alike, so that ``abc`` means both.
TOOL, OTHER, BARE = "docker.io/library/tool:1", "docker.io/library/tool:2", "docker.io/library/bare:1"
OBEDIENT = "docker.io/library/obedient:1"
PROGRAMS: Final = {f"/bin/{name}": name for name in ("sleep", "true", "false", "echo")}


def _image_id(beginning: str) -> str:
    return "sha256:" + beginning.ljust(64, "0")


def catalogue() -> Catalogue:
    """Four images, and a host for each way in which a registry can refuse."""
    sleep = ImageConfig(entrypoint=("sleep",), command=("3600",))
    sources = (
        ImageSource(names=(TOOL,), id=_image_id("abc1"), config=sleep, executables=PROGRAMS, at_start=True),
        ImageSource(names=(OTHER,), id=_image_id("abc2"), config=sleep, executables=PROGRAMS, at_start=True),
        ImageSource(names=(BARE,), id=_image_id("def1"), executables=PROGRAMS, at_start=True),
        ImageSource(
            names=(OBEDIENT, "docker.io/library/obedient:2"),
            id=_image_id("def2"),
            config=ImageConfig(entrypoint=("/wait",)),
            executables={"/wait": "wait"},
            at_start=True,
        ),
        ImageSource(names=tuple(f"locked.test/{name}:1" for name in ("private", "forbidden", "failing", "torn"))),
    )
    rules = (
        RepositoryRule(match="private", login=Login(username="user", password="word")),
        RepositoryRule(match="forbidden", status=403),
        RepositoryRule(match="failing", status=500),
        RepositoryRule(match="torn", wrong_digest=WrongDigest()),
    )
    registries = (Registry(host="locked.test", rules=rules), Registry(host="down.test", reachable=False))
    return Catalogue(sources, registries)
