"""Worlds that use every RPC, and what each response field shows in them.

``play(World())`` runs one script in process and gives back every value of every response field, by its path from the
response message; two worlds that differ in one setting differ in what that setting causes. Nothing here knows what a
field should be: ``table.yaml`` says it, ``test_fields.py`` compares.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from fakecri.assembly import build_engine
from fakecri.clock import SECOND
from fakecri.core.catalogue import ImageConfig, ImageSource
from fakecri.core.catalogue_builtin import builtin_catalogue
from fakecri.core.node import CgroupDriver, Node, RuntimeHandler
from fakecri.engine import Engine
from fakecri.kernel.curves import level
from fakecri.personality.model import derive
from fakecri.personality.registry import PERSONALITIES
from fakecri.wire import messages
from fakecri.wire.methods import METHODS
from fakecri.workload.scripted import ScriptedWorkload

PASSWD = "root:x:0:0::/:/bin/sh\nalice:x:1234:1234::/:/bin/sh\nbob:x:1235:1235::/:/bin/sh\n"
#: Message types that have no meaning of their own: a field of one is named after the field that leads to it.
INLINE = {
    "FilesystemIdentifier",
    "FilesystemUsage",
    "HugepageLimit",
    "IDMapping",
    "ImageSpec",
    "Metric",
    "NetworkInterfaceUsage",
    "PodIP",
    "PsiData",
    "PsiStats",
}
#: A number that may be absent.
WRAPPERS = {"Int64Value", "UInt64Value"}


# -- paths and keys ----------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Leaf:
    """One response field that holds a value: its path from the response, and the key of its row in the table."""

    path: str
    key: str
    #: Keys of the message fields that lead to it, the outermost first.
    within: tuple[str, ...]


@dataclass(frozen=True)
class Place:
    """Where a walk through a response stands."""

    path: str
    owner: str
    suffix: str = ""
    within: tuple[str, ...] = ()
    types: tuple[str, ...] = ()


def leaves(descriptor: Any, place: Place | None = None) -> Iterator[Leaf]:
    """Every value below a message type; a type within itself is not entered again."""
    name = descriptor.name
    if place is None:
        place = Place(name, name)
    elif name not in INLINE:
        place = replace(place, owner=name, suffix="")
    for one in descriptor.fields:
        inner = one.message_type
        path, key = f"{place.path}.{one.name}", f"{place.owner}.{place.suffix}{one.name}"
        if inner is None or inner.GetOptions().map_entry or inner.name in WRAPPERS:
            yield Leaf(path, key, place.within)
        elif inner.name not in place.types:
            suffix = f"{place.suffix}{one.name}."
            yield from leaves(inner, Place(path, place.owner, suffix, (*place.within, key), (*place.types, name)))


def values(message: Any, path: str) -> Iterator[tuple[str, Any]]:
    """(path, value) of everything in a message; a field without presence has a value always."""
    for one in message.DESCRIPTOR.fields:
        value, here, inner = getattr(message, one.name), f"{path}.{one.name}", one.message_type
        if inner is not None and inner.GetOptions().map_entry:
            yield here, tuple(sorted(value.items()))
        elif inner is None:
            yield here, value if one.has_presence or not hasattr(value, "__len__") else _plain(value)
        elif one.has_presence:
            if message.HasField(one.name):
                yield from _below(value, here, inner)
        else:
            for item in value:
                yield from _below(item, here, inner)


def _below(message: Any, path: str, descriptor: Any) -> Iterator[tuple[str, Any]]:
    if descriptor.name in WRAPPERS:
        yield path, message.value
    else:
        yield from values(message, path)


def _plain(value: Any) -> Any:
    return value if isinstance(value, (str, bytes)) else tuple(value)


# -- a world -----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class World:
    """Everything in which two runs of the script may differ."""

    #: Goes into every request value that a client may choose.
    token: int = 1000
    seed: int = 1
    api: str = "v1"
    #: Virtual time before the first call, and the age of pods and containers when they are looked at.
    start_s: int = 3
    age_s: int = 8
    #: Fields of ``Traits``, ``Behaviour`` and ``Personality``.
    traits: dict[str, Any] = field(default_factory=dict)
    behaviour: dict[str, Any] = field(default_factory=dict)
    identity: dict[str, Any] = field(default_factory=dict)
    cidrs: tuple[str, ...] = ("127.88.0.0/16", "fd00:88::/64")
    cgroup_driver: CgroupDriver = CgroupDriver.CGROUPFS
    handlers: tuple[RuntimeHandler, ...] = (RuntimeHandler("runc"), RuntimeHandler("kata"))
    image_fs_path: str = "/var/lib/images"
    network_ready: bool = True
    #: The image of all containers.
    other_names: tuple[str, ...] = ()
    size_mib: int = 400
    user: str = "1000:2000"
    stop_signal: str = "SIGINT"
    pinned: bool = False
    image_annotations: tuple[tuple[str, str], ...] = (("built", "here"),)
    #: What the containers do.
    millicores: int = 100
    memory_mib: int = 10
    exit_code: int = 0
    exit_after_s: int = 1
    missing: str = "/missing"
    quota: int = 20_000
    swap_limit: bool = True
    mounts: int = 1
    more_containers: int = 0
    log_name: str = "main.log"
    stops: bool = True


@dataclass
class Seen:
    """Values by path, in requests and in responses."""

    requests: dict[str, list[Any]] = field(default_factory=lambda: defaultdict(list))
    responses: dict[str, list[Any]] = field(default_factory=lambda: defaultdict(list))


class Script:
    """One run: the calls, and what they showed."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.seen = Seen()
        self.image = f"example.com/team/app:v{world.token}"
        self.engine = self._engine()
        self.events: list[bytes] = []

    def _engine(self) -> Engine:
        world = self.world
        personality = derive(
            PERSONALITIES["reference"],
            name="world",
            summary="the reference with the differences of one world",
            traits=world.traits,
            behaviour=world.behaviour,
            **world.identity,
        )
        image = ImageSource(
            names=(*world.other_names, self.image),
            config=ImageConfig(user=world.user, command=("work",), stop_signal=world.stop_signal),
            size_bytes=world.size_mib << 20,
            passwd=PASSWD,
            executables={"/bin/work": "pause"},
            annotations=dict(world.image_annotations),
            pinned=world.pinned,
        )
        node = Node(
            pod_cidrs=world.cidrs,
            cgroup_driver=world.cgroup_driver,
            runtime_handlers=world.handlers,
            image_fs_path=world.image_fs_path,
            swap_bytes=1 << 30,
        )
        engine = build_engine(
            personality=personality, node=node, catalogue=builtin_catalogue().extended([image]), seed=world.seed
        )
        work = {"main": self._works(), "free": self._works(), "done": self._ends()}
        engine.runtime.workloads.append(lambda container: work.get(container.container_name.partition("-")[0]))
        engine.runtime.host_files.make_directories("/checkpoint")
        return engine

    def _works(self) -> Any:
        world = self.world
        return ScriptedWorkload(cpu=level(world.millicores), memory_bytes=world.memory_mib << 20).program()

    def _ends(self) -> Any:
        return ScriptedWorkload(
            exit_after_ns=self.world.exit_after_s * SECOND, exit_code=self.world.exit_code
        ).program()

    # -- calls ---------------------------------------------------------------------------------------------------------
    def call(self, method: str, /, *, api: str = "v1", **fields: Any) -> Any:
        request = METHODS[self._path(method)].request(**fields)
        self._asked(request)
        response = self.engine.call(method, request, api=api)
        self._answered(response)
        return response

    def stream(self, method: str, **fields: Any) -> None:
        for message in self.engine.stream(method, METHODS[self._path(method)].request(**fields)):
            self._answered(message)

    @staticmethod
    def _path(method: str) -> str:
        return next(path for path, spec in METHODS.items() if spec.api == "v1" and spec.name == method)

    def _asked(self, request: Any) -> None:
        for path, value in values(request, request.DESCRIPTOR.name):
            self.seen.requests[path].append(value)

    def _answered(self, response: Any) -> None:
        for path, value in values(response, response.DESCRIPTOR.name):
            self.seen.responses[path].append(value)

    # -- values that only the client knows -----------------------------------------------------------------------------
    def text(self, name: str) -> str:
        return f"{name}-{self.world.token}"

    def number(self, least: int) -> int:
        return least + self.world.token

    def pick(self, *options: Any) -> Any:
        return options[self.world.token % len(options)]

    def strings(self, name: str) -> dict[str, str]:
        return {self.text(f"{name}-key"): self.text(name)}

    def mappings(self) -> list[Any]:
        return [
            messages.IDMapping(host_id=self.number(1), container_id=self.number(2), length=self.number(3)),
        ]

    # -- the script ----------------------------------------------------------------------------------------------------
    def run(self) -> Seen:
        self.engine.advance(self.world.start_s * SECOND)
        events = self.engine.submit(
            self._path("GetContainerEvents"),
            b"",
            on_done=lambda *_: None,
            on_message=lambda _, body: self.events.append(body),
        )
        self._look_at_the_runtime()
        pod, containers = self._make_pods()
        self.engine.advance(self.world.age_s * SECOND)
        self._look_at(pod, containers)
        self._checkpoint(pod, containers)
        while self.events:
            self._answered(messages.ContainerEventResponse.FromString(self.events.pop(0)))
            self.engine.notify(events)
        assert self.engine.failures == []
        return self.seen

    def _look_at_the_runtime(self) -> None:
        self.call("Version", api=self.world.api)
        self.call("RuntimeConfig")
        self.call("ListMetricDescriptors")
        if not self.world.network_ready:
            self.engine.runtime.conditions["NetworkReady"] = (False, "NetworkPluginNotReady", "not initialized")
        self.call("Status", verbose=True)
        self.engine.runtime.conditions["NetworkReady"] = (True, "", "")
        for name in (*self.world.other_names, self.image):
            self.call("PullImage", image=messages.ImageSpec(image=name))
        self.call("ImageStatus", image=messages.ImageSpec(image=self.image), verbose=True)

    def _make_pods(self) -> tuple[str, dict[str, str]]:
        pod = self._run_pod("pod", self._user_namespace(), linux_resources=True)
        other = self._run_pod("other", self._namespaces())
        context = self._security()
        containers = {
            "main": self._create(pod, "main", linux=self._limits(context)),
            "free": self._create(pod, "free", linux=self._wide_limits(context)),
            "done": self._create(pod, "done"),
            "broken": self._create(pod, "broken", command=[self.world.missing]),
            "created": self._create(pod, "created"),
        }
        for number in range(self.world.more_containers):
            containers[f"more{number}"] = self._create(pod, f"more{number}", command=["/bin/work"])
        for name, container in containers.items():
            if name == "broken":
                request = messages.StartContainerRequest(container_id=container)
                with pytest.raises(Exception, match=r"no such file"):
                    self.engine.call("StartContainer", request)
            elif name != "created":
                self.call("StartContainer", container_id=container)
        if self.world.stops:
            self.call("StopPodSandbox", pod_sandbox_id=other)
        return pod, containers

    def _run_pod(self, name: str, options: Any, *, linux_resources: bool = False) -> str:
        linux = messages.LinuxPodSandboxConfig(
            security_context=messages.LinuxSandboxSecurityContext(namespace_options=options)
        )
        if linux_resources:
            linux.resources.memory_limit_in_bytes = 1 << 30
        config = messages.PodSandboxConfig(
            metadata=messages.PodSandboxMetadata(
                name=self.text(name), uid=self.text("uid"), namespace=self.text("ns"), attempt=self.number(0)
            ),
            labels=self.strings("pod-label"),
            annotations=self.strings("pod-annotation"),
            log_directory="/logs",
            linux=linux,
        )
        handler = self.pick(*(handler.name for handler in self.world.handlers))
        response = self.call("RunPodSandbox", config=config, runtime_handler=handler)
        return str(response.pod_sandbox_id)

    def _user_namespace(self) -> Any:
        options = messages.NamespaceOption()
        options.userns_options.mode = self.pick(messages.POD, messages.NODE)
        options.userns_options.uids.extend(self.mappings())
        options.userns_options.gids.extend(self.mappings())
        return options

    def _namespaces(self) -> Any:
        return messages.NamespaceOption(
            network=self.pick(messages.POD, messages.NODE),
            pid=self.pick(messages.CONTAINER, messages.NODE),
            ipc=self.pick(messages.POD, messages.NODE),
            target_id=self.text("target"),
        )

    @staticmethod
    def _security() -> Any:
        options = messages.NamespaceOption(pid=messages.CONTAINER)
        return messages.LinuxContainerSecurityContext(namespace_options=options)

    def _limits(self, context: Any) -> Any:
        resources = messages.LinuxContainerResources(
            cpu_period=100_000 + self.world.token,
            cpu_quota=self.world.quota and self.world.quota + self.world.token,
            cpu_shares=self.number(2),
            memory_limit_in_bytes=(8 << 20) + self.world.token,
            memory_swap_limit_in_bytes=(32 << 20) + self.world.token if self.world.swap_limit else 0,
            oom_score_adj=self.world.token % 900,
            cpuset_cpus=self.text("cpus"),
            cpuset_mems=self.text("mems"),
            unified=self.strings("unified"),
            hugepage_limits=[messages.HugepageLimit(page_size=self.text("2Mi"), limit=self.number(4))],
        )
        return messages.LinuxContainerConfig(resources=resources, security_context=context)

    @staticmethod
    def _wide_limits(context: Any) -> Any:
        resources = messages.LinuxContainerResources(memory_limit_in_bytes=1 << 30)
        return messages.LinuxContainerConfig(resources=resources, security_context=context)

    def container_config(self, name: str, **more: Any) -> Any:
        image = messages.ImageSpec(
            image=self.image,
            annotations=self.strings("image-annotation"),
            user_specified_image=self.text("wanted"),
            runtime_handler=self.text("handler"),
            image_ref=self.text("ref"),
        )
        no_limits = messages.LinuxContainerResources()
        more.setdefault("linux", messages.LinuxContainerConfig(security_context=self._security(), resources=no_limits))
        return messages.ContainerConfig(
            metadata=messages.ContainerMetadata(name=self.text(name), attempt=self.number(7)),
            image=image,
            labels=self.strings("label"),
            annotations=self.strings("annotation"),
            log_path=self.world.log_name if name == "main" else f"{name}.log",
            mounts=[*(self._mount(number) for number in range(self.world.mounts)), self._image_mount()],
            **more,
        )

    def _mount(self, number: int) -> Any:
        return messages.Mount(
            container_path=self.text(f"/in{number}"),
            host_path=self.text(f"/out{number}"),
            readonly=self.pick(True, False),
            selinux_relabel=self.pick(True, False),
            recursive_read_only=self.pick(True, False),
            propagation=self.pick(messages.PROPAGATION_HOST_TO_CONTAINER, messages.PROPAGATION_BIDIRECTIONAL),
            uidMappings=self.mappings(),
            gidMappings=self.mappings(),
            mount_options=[self.text("option")],
        )

    def _image_mount(self) -> Any:
        image = messages.ImageSpec(
            image=self.pick(self.image, "registry.k8s.io/pause:3.10"),
            annotations=self.strings("volume"),
            user_specified_image=self.text("volume-wanted"),
            runtime_handler=self.text("volume-handler"),
            image_ref=self.text("volume-ref"),
        )
        return messages.Mount(container_path="/image", image=image, image_sub_path=self.text("sub"))

    def _create(self, pod: str, name: str, **more: Any) -> str:
        config = self.container_config(name, **more)
        pod_config = messages.PodSandboxConfig(
            metadata=messages.PodSandboxMetadata(name=pod, uid="u", namespace="n"), log_directory="/logs"
        )
        response = self.call("CreateContainer", pod_sandbox_id=pod, config=config, sandbox_config=pod_config)
        return str(response.container_id)

    def _look_at(self, pod: str, containers: dict[str, str]) -> None:
        for sandbox in self.call("ListPodSandbox").items:
            self.call("PodSandboxStatus", pod_sandbox_id=sandbox.id, verbose=True)
        for container in containers.values():
            self.call("ContainerStatus", container_id=container, verbose=True)
        for name in ("main", "free"):
            self.call("ContainerStats", container_id=containers[name])
        self.call("PodSandboxStats", pod_sandbox_id=pod)
        for method in ("ListContainers", "ListContainerStats", "ListPodSandboxStats", "ListPodSandboxMetrics"):
            self.call(method)
        for method in ("ListImages", "ImageFsInfo"):
            self.call(method)
        for method in (
            "PodSandboxes",
            "Containers",
            "ContainerStats",
            "PodSandboxStats",
            "PodSandboxMetrics",
            "Images",
        ):
            self.stream(f"Stream{method}")

    def _checkpoint(self, pod: str, containers: dict[str, str]) -> None:
        config = self.container_config("taken")
        sandbox_config = messages.PodSandboxConfig(
            metadata=messages.PodSandboxMetadata(name="r", uid="r", namespace="r")
        )
        taken_from = messages.PodSandboxConfig(metadata=messages.PodSandboxMetadata(name="t", uid="t", namespace="t"))
        container = self.call("CreateContainer", pod_sandbox_id=pod, config=config, sandbox_config=taken_from)
        self.call("StartContainer", container_id=container.container_id)
        self.call(
            "CheckpointPod", pod_sandbox_id=pod, output_path="/checkpoint", container_ids=[container.container_id]
        )
        handler = self.pick(*(handler.name for handler in self.world.handlers))
        self.call(
            "RestorePod",
            checkpoint_path="/checkpoint",
            config=sandbox_config,
            runtime_handler=handler,
            container_configs=[config],
        )


@pytest.fixture(scope="session")
def play() -> Callable[[World], Seen]:
    """Runs the script in a world, once for equal worlds."""
    known: dict[str, Seen] = {}

    def run(world: World) -> Seen:
        name = repr(world)
        if name not in known:
            known[name] = Script(world).run()
        return known[name]

    return run


@pytest.fixture(scope="session")
def world() -> type[World]:
    """The class of worlds."""
    return World


@pytest.fixture(scope="session")
def all_leaves() -> list[Leaf]:
    """Every value of every v1 response."""
    return [leaf for spec in METHODS.values() if spec.api == "v1" for leaf in leaves(spec.response.DESCRIPTOR)]
