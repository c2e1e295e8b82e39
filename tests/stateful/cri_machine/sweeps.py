"""Operations that go through a whole list, on a scene of their own: every refusal, every place to cancel.

Chance alone would have to wait long for an unusual refusal of an unusual personality. A sweep begins from whatever the
world is like (other calls open, others' pods about), but with a network, with logs, and with nothing armed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from cri_machine.expected import CANCELS
from cri_machine.operations import (
    CONTAINER_SPOILS,
    POD_SPOILS,
    POINTS,
    PULLS,
    REFERENCES,
    operation,
)
from cri_machine.pick import Pick
from cri_machine.settings import BARE, OBEDIENT, OTHER, TOOL
from cri_machine.world import CHECKPOINTS, Exchange, World

from fakecri.base.reasons import CriError, Reason
from fakecri.clock import MILLISECOND, SECOND
from fakecri.engine import HOLD
from fakecri.wire import messages
from fakecri.wire.methods import METHODS

#: Ids of one hex digit: some name nothing, some one object, some several.
DIGITS = tuple("0123456789abcdef")


class Scene:
    """A pod with a created and a running container, made for a sweep and removed after it."""

    def __init__(self, world: World) -> None:
        self.world = world
        world.serial += 1
        self.name = f"scene-{world.serial}"
        self.pod_config = pod_config(self.name)
        self.pod = self._made("RunPodSandbox", messages.RunPodSandboxRequest(config=self.pod_config), "pod_sandbox_id")
        self.created = self.container("created")
        self.running = self.container("running", ["sleep", "3600"])
        self.send("StartContainer", messages.StartContainerRequest(container_id=self.running))

    @property
    def complete(self) -> bool:
        """Whether all of it could be made: an address or an image may be missing."""
        running = self.world.runtime.containers.get(self.running)
        return bool(self.pod and self.created and running is not None and running.running)

    def send(self, method: str, request: Any, **how: Any) -> Exchange:
        return self.world.send(method, request, api="v1" if "v1" in self.world.apis else self.world.apis[0], **how)

    def _made(self, method: str, request: Any, field: str) -> str:
        exchange = self.send(method, request)
        if exchange.reply is None or not exchange.reply.ok:
            return ""
        response = METHODS[f"/runtime.v1.RuntimeService/{method}"].response.FromString(exchange.reply.body)
        return str(getattr(response, field))

    def creation(self, name: str, command: list[str] | None = None) -> Any:
        config = container_config(name, command or ["sleep", "3600"])
        config.log_path = f"{self.name}-{name}.log"
        return messages.CreateContainerRequest(pod_sandbox_id=self.pod, config=config, sandbox_config=self.pod_config)

    def container(self, name: str, command: list[str] | None = None) -> str:
        return self._made("CreateContainer", self.creation(name, command), "container_id")

    def remove(self) -> None:
        if self.pod:
            self.send("RemovePodSandbox", messages.RemovePodSandboxRequest(pod_sandbox_id=self.pod))
            self.world.engine.advance(11 * SECOND)


def pod_config(name: str) -> Any:
    metadata = messages.PodSandboxMetadata(name=name, namespace="default", uid=f"uid-{name}")
    return messages.PodSandboxConfig(metadata=metadata, log_directory="/var/log/pods/scene")


def container_config(name: str, command: list[str]) -> Any:
    config = messages.ContainerConfig(metadata=messages.ContainerMetadata(name=name), command=command)
    config.image.image = config.image.user_specified_image = TOOL
    config.linux.security_context.namespace_options.pid = messages.CONTAINER
    return config


@contextmanager
def scene(world: World) -> Iterator[Scene | None]:
    """A scene, or None where none can be had now; it is gone afterwards."""
    world.armed.clear()
    world.log_answers = "at once"
    while world.asked:
        world.answer_port()
    world.runtime.conditions["NetworkReady"] = (True, "", "")
    made = Scene(world)
    if made.complete:
        yield made
    else:
        yield None
    world.armed.clear()
    made.remove()


# -- refusals ----------------------------------------------------------------------------------------------------------
@operation(1)
def sweep_pods(world: World, pick: Pick) -> None:
    """Everything that can be wrong with a pod."""
    with scene(world) as here:
        if here is None:
            return
        for number, spoil in enumerate(sorted(POD_SPOILS)):
            config = pod_config(f"spoilt-{number}")
            POD_SPOILS[spoil](config)
            made = here.send("RunPodSandbox", messages.RunPodSandboxRequest(config=config))
            _remove_made(here, made)
        for handler in ("broken", "noshim", "unknown"):
            request = messages.RunPodSandboxRequest(config=pod_config("handled"), runtime_handler=handler)
            here.send("RunPodSandbox", request)
        here.send("RunPodSandbox", messages.RunPodSandboxRequest(config=here.pod_config))
        here.send("RunPodSandbox", messages.RunPodSandboxRequest())
        _ports_and_network(world, here)


def _ports_and_network(world: World, here: Scene) -> None:
    made = []
    for number in range(2):
        config = pod_config(f"port-{number}")
        config.port_mappings.add(container_port=80, host_port=8080)
        made.append(here.send("RunPodSandbox", messages.RunPodSandboxRequest(config=config)))
    for method, network in (("StopPodSandbox", False), ("RemovePodSandbox", False)):
        world.runtime.conditions["NetworkReady"] = (True, "", "")
        config = pod_config(f"torn-{method}")
        exchange = here.send("RunPodSandbox", messages.RunPodSandboxRequest(config=config))
        made.append(exchange)
        world.runtime.conditions["NetworkReady"] = (network, "NetworkPluginNotReady", "")
        pod = _pod_of(exchange)
        if pod:
            request = METHODS[f"/runtime.v1.RuntimeService/{method}"].request(pod_sandbox_id=pod)
            here.send(method, request)
        here.send("RunPodSandbox", messages.RunPodSandboxRequest(config=pod_config("unconnected")))
    world.runtime.conditions["NetworkReady"] = (True, "", "")
    for exchange in made:
        _remove_made(here, exchange)


def _pod_of(exchange: Exchange) -> str:
    if exchange.reply is None or not exchange.reply.ok:
        return ""
    return str(messages.RunPodSandboxResponse.FromString(exchange.reply.body).pod_sandbox_id)


def _remove_made(here: Scene, exchange: Exchange) -> None:
    pod = _pod_of(exchange)
    if pod:
        here.send("RemovePodSandbox", messages.RemovePodSandboxRequest(pod_sandbox_id=pod))


@operation(2)
def sweep_containers(world: World, pick: Pick) -> None:
    """Everything that can be wrong with a container: at its creation or at its start."""
    with scene(world) as here:
        if here is None:
            return
        for number, spoil in enumerate(sorted(CONTAINER_SPOILS)):
            request = here.creation(f"spoilt-{number}")
            CONTAINER_SPOILS[spoil](request.config)
            _start_made(here, here.send("CreateContainer", request))
        for number, command in enumerate((["/no/such"], ["nosuch"], ["/etc/passwd"], ["true"])):
            _start_made(here, here.send("CreateContainer", here.creation(f"command-{number}", command)))
        request = here.creation("directory")
        request.config.working_dir = "relative"
        _start_made(here, here.send("CreateContainer", request))
        for absent in ("config", "sandbox_config"):
            request = here.creation("lacking")
            request.ClearField(absent)
            here.send("CreateContainer", request)
        here.send("CreateContainer", here.creation("created"))
        _wrong_states(world, here)


def _start_made(here: Scene, exchange: Exchange) -> None:
    if exchange.reply is not None and exchange.reply.ok:
        made = messages.CreateContainerResponse.FromString(exchange.reply.body).container_id
        here.send("StartContainer", messages.StartContainerRequest(container_id=made))


def _wrong_states(world: World, here: Scene) -> None:
    """Calls that a container's state does not allow, and limits that it cannot keep."""
    tiny = messages.LinuxContainerResources(memory_limit_in_bytes=1)
    here.send(
        "UpdateContainerResources", messages.UpdateContainerResourcesRequest(container_id=here.running, linux=tiny)
    )
    here.send("RemoveContainer", messages.RemoveContainerRequest(container_id=here.running))
    world.log_answers = "no space"
    second = here.container("second")
    here.send("ReopenContainerLog", messages.ReopenContainerLogRequest(container_id=here.running))
    here.send("StartContainer", messages.StartContainerRequest(container_id=second))
    world.log_answers = "at once"
    world.armed["StartContainer", "before_commit"] = HOLD
    starting = here.send("StartContainer", messages.StartContainerRequest(container_id=here.created))
    here.send("StartContainer", messages.StartContainerRequest(container_id=here.created))
    here.send("RemoveContainer", messages.RemoveContainerRequest(container_id=here.created))
    if starting.held:
        world.release(starting)
    for container in (here.running, second):
        here.send("StartContainer", messages.StartContainerRequest(container_id=container))
        here.send("StopContainer", messages.StopContainerRequest(container_id=container))
        here.send("ReopenContainerLog", messages.ReopenContainerLogRequest(container_id=container))
        here.send("ContainerStats", messages.ContainerStatsRequest(container_id=container))
        change = messages.UpdateContainerResourcesRequest(container_id=container, linux=tiny)
        here.send("UpdateContainerResources", change)
    third = here.container("third")
    here.send("StopPodSandbox", messages.StopPodSandboxRequest(pod_sandbox_id=here.pod))
    world.engine.advance(11 * SECOND)
    here.send("StartContainer", messages.StartContainerRequest(container_id=third))
    here.send("CreateContainer", here.creation("fourth"))
    here.send("PodSandboxStats", messages.PodSandboxStatsRequest(pod_sandbox_id=here.pod))
    here.send("ListPodSandboxStats", messages.ListPodSandboxStatsRequest())


@operation(1)
def sweep_ids(world: World, pick: Pick) -> None:
    """Ids that name nothing, or more than one thing, in every RPC that takes one."""
    with scene(world) as here:
        if here is None:
            return
        for number in range(4):
            here.container(f"more-{number}")
            here.send("RunPodSandbox", messages.RunPodSandboxRequest(config=_host_network(f"more-{number}")))
        for spec in METHODS.values():
            fields = spec.request.DESCRIPTOR.fields_by_name
            for name, store in (
                ("container_id", world.runtime.containers),
                ("pod_sandbox_id", world.runtime.sandboxes),
            ):
                if spec.api != "v1" or name not in fields or spec.name in ("ExecSync", "Exec", "Attach", "PortForward"):
                    continue
                for given in ("", "nope", *_shared(store)):
                    request = spec.request(**{name: given})
                    if spec.name == "CreateContainer":
                        request = here.creation("main")
                        request.pod_sandbox_id = given
                    world.send(spec.name, request, api="v1")
        for pod in [one for one in world.runtime.sandboxes if one.pod_name.startswith("more-")]:
            here.send("RemovePodSandbox", messages.RemovePodSandboxRequest(pod_sandbox_id=pod.id))


def _host_network(name: str) -> Any:
    config = pod_config(name)
    config.linux.security_context.namespace_options.network = messages.NODE
    return config


def _shared(store: Any) -> list[str]:
    """One digit with which more than one id of the store begins, if there is one."""
    firsts = [entity.id[:1] for entity in store]
    return [digit for digit in DIGITS if firsts.count(digit) > 1][:1]


@operation(2)
def sweep_images(world: World, pick: Pick) -> None:
    """Every kind of reference, in every RPC that takes one; removals last."""
    with scene(world):
        for text in ("docker.io/library/abc:latest", "abc"):
            world.send("RemoveImage", messages.RemoveImageRequest(image=messages.ImageSpec(image=text)))
        for text in dict.fromkeys((*PULLS, *REFERENCES)):
            image = messages.ImageSpec(image=text)
            here_or_there = messages.ImageFilter(image=image)
            world.send("ImageStatus", messages.ImageStatusRequest(image=image))
            world.send("ListImages", messages.ListImagesRequest(filter=here_or_there))
            _drained(world, world.send("StreamImages", messages.StreamImagesRequest(filter=here_or_there), api="v1"))
            world.send("PullImage", messages.PullImageRequest(image=image))
        for auth in (
            messages.AuthConfig(username="user", password="word"),
            messages.AuthConfig(username="user", password="wrong"),
            messages.AuthConfig(auth="%%%"),
        ):
            image = messages.ImageSpec(image="locked.test/private:1")
            world.send("PullImage", messages.PullImageRequest(image=image, auth=auth))
        world.engine.advance(SECOND)
        for text in REFERENCES:
            world.send("RemoveImage", messages.RemoveImageRequest(image=messages.ImageSpec(image=text)))
    for name in (TOOL, OTHER, BARE, OBEDIENT, "obedient:2"):
        world.send("PullImage", messages.PullImageRequest(image=messages.ImageSpec(image=name)))
    world.engine.advance(SECOND)


def _drained(world: World, exchange: Exchange) -> None:
    while exchange.bodies:
        world.take(exchange)


@operation(1)
def sweep_nonsense(world: World, pick: Pick) -> None:
    """Bytes that are no message, to every RPC."""
    body = pick((b"\xff\xff", b"\x0a\x05ab", b"\x08"))
    for spec in METHODS.values():
        if spec.api in world.apis:
            world.send(spec.name, body, api=spec.api)


# -- checkpoints -------------------------------------------------------------------------------------------------------
def _served(world: World, method: str) -> bool:
    return "v1" in world.apis and method not in world.runtime.behaviour.unimplemented


@operation(2)
def sweep_restores(world: World, pick: Pick) -> None:
    """Everything that can be wrong with a restore, and what can be wrong with a checkpoint before it."""
    if not _served(world, "RestorePod"):
        return
    with scene(world) as here:
        if here is None:
            return
        _wrong_checkpoints(world, here)
        directory = f"{CHECKPOINTS}/{here.name}"
        world.runtime.host_files.make_directories(directory)
        taken = checkpoint_request(here, directory)
        world.send("CheckpointPod", taken, api="v1")
        world.engine.advance(SECOND)
        held = world.runtime.containers.get(here.running)
        if held is None:
            return
        request = messages.RestorePodRequest(
            checkpoint_path=directory, config=here.pod_config, container_configs=[held.config()]
        )
        _restore(world, here, request)  # the pod's name is taken
        request.config.metadata.attempt = 1
        _restore(world, here, request)  # and its container's
        here.send("StopContainer", messages.StopContainerRequest(container_id=here.running))
        here.send("RemoveContainer", messages.RemoveContainerRequest(container_id=here.running))
        world.engine.advance(11 * SECOND)
        for wrong in _wrong_restores(request):
            _restore(world, here, wrong)
        _restore(world, here, request)
        world.runtime.conditions["NetworkReady"] = (False, "NetworkPluginNotReady", "")
        _restore(world, here, request)
        world.runtime.conditions["NetworkReady"] = (True, "", "")
        with _used_up(here):
            _restore(world, here, request)


@contextmanager
def _used_up(here: Scene) -> Iterator[None]:
    """Every pod address is taken."""
    made = [
        here.send("RunPodSandbox", messages.RunPodSandboxRequest(config=pod_config(f"many-{number}")))
        for number in range(14)
    ]
    yield
    for exchange in made:
        _remove_made(here, exchange)


def checkpoint_request(here: Scene, directory: str) -> Any:
    return messages.CheckpointPodRequest(pod_sandbox_id=here.pod, output_path=directory, container_ids=[here.running])


def _restore(world: World, here: Scene, request: Any) -> None:
    exchange = world.send("RestorePod", request, api="v1")
    world.engine.advance(100 * MILLISECOND)
    if exchange.reply is not None and exchange.reply.ok:
        pod = messages.RestorePodResponse.FromString(exchange.reply.body).pod_sandbox_id
        here.send("RemovePodSandbox", messages.RemovePodSandboxRequest(pod_sandbox_id=pod))


def _wrong_restores(good: Any) -> Iterator[Any]:
    def copy() -> Any:
        request = messages.RestorePodRequest()
        request.CopyFrom(good)
        request.config.metadata.attempt = 2
        return request

    for spoil in sorted(POD_SPOILS):
        request = copy()
        POD_SPOILS[spoil](request.config)
        yield request
    for spoil in sorted(CONTAINER_SPOILS):
        request = copy()
        CONTAINER_SPOILS[spoil](request.container_configs[0])
        yield request
    request = copy()
    request.ClearField("config")
    yield request
    request = copy()
    request.config.port_mappings.add(container_port=80, host_port=8080)
    yield request
    for field, value in (("checkpoint_path", ""), ("checkpoint_path", "/none"), ("runtime_handler", "broken")):
        request = copy()
        setattr(request, field, value)
        yield request
    request = copy()
    request.options["a"] = "b"
    yield request
    request = copy()
    del request.container_configs[:]
    yield request


def _wrong_checkpoints(world: World, here: Scene) -> None:
    for location in ("", "relative", "/none/a.tar", "/a.tar/b"):
        request = messages.CheckpointContainerRequest(container_id=here.running, location=location)
        world.send("CheckpointContainer", request, api="v1")
    path = f"{CHECKPOINTS}/{here.name}.tar"
    stopped = messages.CheckpointContainerRequest(container_id=here.created, location=path)
    world.send("CheckpointContainer", stopped, api="v1")
    for ids in (
        [],
        [here.created],
        [here.running, here.running],
        ["nope"],
        [""],
        *([one] for one in _others(world, here)),
    ):
        request = checkpoint_request(here, CHECKPOINTS + "/none")
        request.output_path = f"{CHECKPOINTS}/empty"
        world.runtime.host_files.make_directories(request.output_path)
        del request.container_ids[:]
        request.container_ids.extend(ids)
        world.send("CheckpointPod", request, api="v1")
    for output in ("", "/none", "relative"):
        world.send("CheckpointPod", checkpoint_request(here, output), api="v1")
    request = checkpoint_request(here, CHECKPOINTS)
    request.options["a"] = "b"
    world.send("CheckpointPod", request, api="v1")


def _others(world: World, here: Scene) -> list[str]:
    """A container of another pod, if there is one, and a digit that means several."""
    others = [one.id for one in world.runtime.containers if one.sandbox.id != here.pod]
    return [*others[:1], *_shared(world.runtime.containers)]


# -- cancels -----------------------------------------------------------------------------------------------------------
def _good_request(world: World, here: Scene, method: str) -> Any:
    """A request that will be carried out."""
    world.serial += 1
    name = f"fresh-{world.serial}"
    directory = f"{CHECKPOINTS}/{name}"
    world.runtime.host_files.make_directories(directory)
    busy = messages.LinuxContainerResources(cpu_shares=7)
    network = messages.NetworkConfig(pod_cidr=",".join(world.setting.cidrs))
    requests = {
        "RunPodSandbox": lambda: messages.RunPodSandboxRequest(config=_host_network(name)),
        "StopPodSandbox": lambda: messages.StopPodSandboxRequest(pod_sandbox_id=here.pod),
        "RemovePodSandbox": lambda: messages.RemovePodSandboxRequest(pod_sandbox_id=here.pod),
        "CreateContainer": lambda: here.creation(name),
        "StartContainer": lambda: messages.StartContainerRequest(container_id=here.created),
        "StopContainer": lambda: messages.StopContainerRequest(container_id=here.running, timeout=30),
        "RemoveContainer": lambda: messages.RemoveContainerRequest(container_id=here.running),
        "UpdateContainerResources": lambda: messages.UpdateContainerResourcesRequest(
            container_id=here.running, linux=busy
        ),
        "ReopenContainerLog": lambda: messages.ReopenContainerLogRequest(container_id=here.running),
        "UpdatePodSandboxResources": lambda: messages.UpdatePodSandboxResourcesRequest(pod_sandbox_id=here.pod),
        "UpdateRuntimeConfig": lambda: messages.UpdateRuntimeConfigRequest(
            runtime_config=messages.RuntimeConfig(network_config=network)
        ),
        "PullImage": lambda: messages.PullImageRequest(image=messages.ImageSpec(image=f"example.test/{name}:1")),
        "RemoveImage": lambda: messages.RemoveImageRequest(image=messages.ImageSpec(image="nowhere:1")),
        "CheckpointContainer": lambda: messages.CheckpointContainerRequest(
            container_id=here.running, location=f"{directory}/one.tar"
        ),
        "CheckpointPod": lambda: checkpoint_request(here, directory),
        "RestorePod": lambda: _good_restore(world, here),
        "GetContainerEvents": messages.GetEventsRequest,
    }
    return requests[method]()


def _good_restore(world: World, here: Scene) -> Any:
    directory = f"{CHECKPOINTS}/{here.name}"
    if world.runtime.host_files.stat(directory) is None:
        world.runtime.host_files.make_directories(directory)
        world.send("CheckpointPod", checkpoint_request(here, directory), api="v1")
        world.engine.advance(100 * MILLISECOND)
    config = _host_network(here.name)
    config.metadata.attempt = 3
    held = world.runtime.containers.get(here.running)
    configs = [held.config()] if held is not None else []
    return messages.RestorePodRequest(checkpoint_path=directory, config=config, container_configs=configs)


@operation(4)
def sweep_cancels(world: World, pick: Pick) -> None:
    """One RPC, at each place where it can stand still: there its client goes away, or a rule fails the call."""
    method = pick(sorted(CANCELS))
    for place in sorted(CANCELS[method]):
        if not _served(world, method) and "v1alpha2" not in world.apis:
            return
        with scene(world) as here:
            if here is not None:
                _cancel_at(world, here, method, place)


def _cancel_at(world: World, here: Scene, method: str, place: str) -> None:
    if place in POINTS:
        for verdict in (HOLD, CriError(Reason.SHUTTING_DOWN)):
            world.armed[method, place] = verdict
            exchange = _begin(world, here, method)
            _until(world, exchange, place)
            _leave(world, exchange)
    elif place == "wait" and method in ("RunPodSandbox", "CreateContainer"):
        _cancel_a_duplicate(world, here, method)
    else:
        world.log_answers = "later" if place == "ask" else "at once"
        exchange = _begin(world, here, method)
        if place == "emit" and method == "GetContainerEvents":
            here.container("noticed")
        _leave(world, exchange)
    for made in [one for one in world.runtime.sandboxes if one.pod_name.startswith("fresh-")]:
        here.send("RemovePodSandbox", messages.RemovePodSandboxRequest(pod_sandbox_id=made.id))


def _cancel_a_duplicate(world: World, here: Scene, method: str) -> None:
    """Where a taken name is shared, a second call for it waits for the first."""
    request = _good_request(world, here, method)
    world.armed[method, "reserved"] = HOLD
    holder = here.send(method, request)
    _leave(world, here.send(method, request))
    if holder.held:
        world.release(holder)


def _leave(world: World, exchange: Exchange) -> None:
    """The client of an open call goes away; a call that outlives it goes on."""
    if exchange.call is not None and exchange.call.id in world.open:
        world.cancel(exchange)
        if exchange.held:
            world.release(exchange)


def _begin(world: World, here: Scene, method: str) -> Exchange:
    if method.startswith("Stream"):
        return world.send(method, b"", api="v1")
    return here.send(method, _good_request(world, here, method))


def _until(world: World, exchange: Exchange, place: str) -> None:
    """Let a little time pass until the call has come to its place or to its end."""
    for _ in range(30):
        if exchange.held == place or exchange.call is None or exchange.call.id not in world.open:
            return
        world.engine.advance(MILLISECOND)
