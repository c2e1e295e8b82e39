"""What can be done to a runtime: one function per operation, choosing its details by a ``Pick``.

Names come from a small pool, so that they clash; ids may be whole, short, ambiguous, forgotten or empty; every RPC is
sometimes asked for what it must refuse.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from cri_machine.pick import Pick
from cri_machine.settings import BARE, OBEDIENT, OTHER, TOOL
from cri_machine.world import CHECKPOINTS, Exchange, World

from fakecri.base.reasons import CriError, Reason
from fakecri.clock import MILLISECOND, SECOND
from fakecri.core import processes
from fakecri.engine import HOLD
from fakecri.kernel.signals import Signal
from fakecri.wire import messages
from fakecri.wire.methods import METHODS

Operation = Callable[[World, Pick], None]
OPERATIONS: dict[str, Operation] = {}
WEIGHTS: dict[str, int] = {}

POINTS: Final = ("checked", "reserved", "before_commit")
MUTATING: Final = sorted({spec.name for spec in METHODS.values() if spec.mutating} - {"ExecSync"})
POD_NAMES: Final = ("a", "b", "c")
CONTAINER_NAMES: Final = ("main", "side")
REFERENCES: Final = (
    TOOL,
    OTHER,
    BARE,
    OBEDIENT,
    "tool:1",
    "obedient:2",
    "locked.test/private:1",
    "example.test/made/up:1",
    "sha256:abc1".ljust(71, "0"),
    "abc",
    "abc1000",
    "",
    "not here:1",
    "Upper/Case:1",
    "a" * 64,
    "a/" + "b" * 300,
    "nowhere:1",
)


def operation(weight: int = 1) -> Callable[[Operation], Operation]:
    """Register an operation; one of weight 3 is chosen three times as often as one of weight 1."""

    def register(function: Operation) -> Operation:
        name = function.__name__
        OPERATIONS[name], WEIGHTS[name] = function, weight
        return function

    return register


# -- choosing ----------------------------------------------------------------------------------------------------------
def _id(pick: Pick, known: Any) -> str:
    """Mostly the id of something that is or was there."""
    if known and not pick.chance(8):
        given: str = pick(list(known))
        return given
    return pick(("", "nope", *(one[:1] for one in known), *(one[:9] for one in known)))


def _pod(world: World, pick: Pick, *states: str) -> str:
    here = [one.id for one in world.runtime.sandboxes if not states or one.state.name in states]
    return _id(pick, here if here and not pick.chance(6) else world.pods)


def _container(world: World, pick: Pick, *states: str) -> str:
    here = [one.id for one in world.runtime.containers if not states or one.state.name in states]
    return _id(pick, here if here and not pick.chance(6) else world.containers)


def _pod_config(pick: Pick, name: str = "") -> Any:
    name = name or pick(POD_NAMES)
    metadata = messages.PodSandboxMetadata(name=name, namespace="default", uid=f"uid-{name}", attempt=pick((0, 1)))
    return messages.PodSandboxConfig(
        metadata=metadata, labels={"app": pick(("web", "store"))}, log_directory=f"/var/log/pods/{name}"
    )


def _send(world: World, pick: Pick, method: str, request: Any) -> Exchange:
    time_left = pick((None, 3 * SECOND)) if method in ("StopPodSandbox", "RemoveContainer") else None
    return world.send(method, request, api=pick(world.apis), time_left_ns=time_left)


def _spoilt(pick: Pick, config: Any, percent: int, spoils: dict[str, Callable[[Any], Any]]) -> None:
    """Sometimes make one thing wrong in a config."""
    if pick.chance(percent):
        spoils[pick(sorted(spoils))](config)


# -- pods --------------------------------------------------------------------------------------------------------------
def _userns(config: Any) -> None:
    options = config.linux.security_context.namespace_options
    options.userns_options.mode = messages.POD


def _host_network(config: Any) -> None:
    config.linux.security_context.namespace_options.network = messages.NODE


POD_SPOILS: Final = {
    "no metadata": lambda config: config.ClearField("metadata"),
    "no name": lambda config: config.metadata.ClearField("name"),
    "no namespace": lambda config: config.metadata.ClearField("namespace"),
    "no uid": lambda config: config.metadata.ClearField("uid"),
    "hostname": lambda config: setattr(config, "hostname", "h" * 70),
    "sysctl": lambda config: config.linux.sysctls.update({"kernel.hostname": "x"}),
    "user namespace": _userns,
    "log directory": lambda config: setattr(config, "log_directory", "relative"),
    "host network": _host_network,
}


@operation(10)
def run_pod(world: World, pick: Pick) -> None:
    config = _pod_config(pick)
    if pick.chance(30):
        config.port_mappings.add(container_port=80, host_port=8080)
    _spoilt(pick, config, 15, POD_SPOILS)
    request = messages.RunPodSandboxRequest(config=config)
    if pick.chance(2):
        request.ClearField("config")
    if pick.chance(15):
        request.runtime_handler = pick(("runc", "broken", "noshim", "unknown"))
    _send(world, pick, "RunPodSandbox", request)


@operation(1)
def use_up_addresses(world: World, pick: Pick) -> None:
    for number in range(14):
        config = messages.PodSandboxConfig(metadata=messages.PodSandboxMetadata(name=f"many-{number}"))
        _send(world, pick, "RunPodSandbox", messages.RunPodSandboxRequest(config=config))
    for sandbox in [one for one in world.runtime.sandboxes if one.pod_name.startswith("many")]:
        _send(world, pick, "RemovePodSandbox", messages.RemovePodSandboxRequest(pod_sandbox_id=sandbox.id))


@operation(2)
def stop_pod(world: World, pick: Pick) -> None:
    _send(world, pick, "StopPodSandbox", messages.StopPodSandboxRequest(pod_sandbox_id=_pod(world, pick)))


@operation(3)
def remove_pod(world: World, pick: Pick) -> None:
    _send(world, pick, "RemovePodSandbox", messages.RemovePodSandboxRequest(pod_sandbox_id=_pod(world, pick)))


@operation(1)
def ask_about_a_pod(world: World, pick: Pick) -> None:
    method = pick(("PodSandboxStatus", "PodSandboxStats"))
    request = METHODS[f"/runtime.v1.RuntimeService/{method}"].request(pod_sandbox_id=_pod(world, pick))
    if method == "PodSandboxStatus":
        request.verbose = pick((False, True))
    _send(world, pick, method, request)


@operation(1)
def update_pod_resources(world: World, pick: Pick) -> None:
    resources = messages.LinuxContainerResources(cpu_shares=pick((2, 512)))
    request = messages.UpdatePodSandboxResourcesRequest(pod_sandbox_id=_pod(world, pick), resources=resources)
    world.send("UpdatePodSandboxResources", request, api="v1")


# -- containers --------------------------------------------------------------------------------------------------------
def _linux(config: Any) -> Any:
    return config.linux.security_context


def _seccomp(config: Any) -> None:
    profile = _linux(config).seccomp
    profile.profile_type = messages.SecurityProfile.Localhost
    profile.localhost_ref = "/none"


CONTAINER_SPOILS: Final = {
    "no metadata": lambda config: config.ClearField("metadata"),
    "no name": lambda config: config.metadata.ClearField("name"),
    "no user image": lambda config: config.image.ClearField("user_specified_image"),
    "image": lambda config: setattr(config.image, "image", "nowhere:1"),
    "no image": lambda config: setattr(config.image, "image", ""),
    "ambiguous image": lambda config: setattr(config.image, "image", "abc"),
    "malformed image": lambda config: setattr(config.image, "image", "not here:1"),
    "image in capitals": lambda config: setattr(config.image, "image", "Upper/Case:1"),
    "long image": lambda config: setattr(config.image, "image", "a/" + "b" * 300),
    "bare image": lambda config: (setattr(config.image, "image", BARE), config.ClearField("command")),
    "mount without host path": lambda config: config.mounts.add(container_path="/a"),
    "mount without container path": lambda config: config.mounts.add(host_path="/a"),
    "mount with dots": lambda config: config.mounts.add(container_path="/a", host_path="/../a"),
    "image mount": lambda config: config.mounts.add(container_path="/a", image=messages.ImageSpec(image="nowhere:1")),
    "ambiguous image mount": lambda config: config.mounts.add(
        container_path="/a", image=messages.ImageSpec(image="abc")
    ),
    "malformed image mount": lambda config: config.mounts.add(
        container_path="/a", image=messages.ImageSpec(image="not here:1")
    ),
    "device": lambda config: config.devices.add(host_path="/dev/none", container_path="/dev/a"),
    "seccomp": _seccomp,
    "capability": lambda config: _linux(config).capabilities.add_capabilities.append("NONE"),
    "user": lambda config: setattr(_linux(config), "run_as_username", "nobody-else"),
    "group without user": lambda config: setattr(_linux(config).run_as_group, "value", 5),
    "log with dots": lambda config: setattr(config, "log_path", "../../a.log"),
}
COMMANDS: Final = (
    (["sleep", "3600"], 40),
    (["sleep", "3"], 10),
    (["true"], 5),
    (["false"], 5),
    (["echo", "hello"], 5),
    (["/no/such"], 3),
    (["nosuch"], 3),
    (["/etc/passwd"], 3),
)
COMMAND_POOL: Final = [command for command, weight in COMMANDS for _ in range(weight)]


@operation(14)
def create_container(world: World, pick: Pick) -> None:
    world.serial += 1
    config = messages.ContainerConfig(
        metadata=messages.ContainerMetadata(name=pick(CONTAINER_NAMES), attempt=pick((0, 1))),
        labels={"app": pick(("web", "store"))},
        command=pick(COMMAND_POOL),
    )
    config.image.image = config.image.user_specified_image = pick((TOOL, OTHER, OBEDIENT))
    if config.image.image == OBEDIENT:
        config.ClearField("command")
    options = _linux(config).namespace_options
    options.pid = pick((messages.CONTAINER, messages.CONTAINER, messages.POD))
    if pick.chance(50):
        config.log_path = f"{world.serial}.log"
    if pick.chance(3):
        config.working_dir = "relative"
    _spoilt(pick, config, 20, CONTAINER_SPOILS)
    pod = _pod(world, pick, *(() if pick.chance(15) else ("READY",)))
    held = world.runtime.sandboxes.get(pod)
    pod_config = held.config() if held is not None else _pod_config(pick)
    request = messages.CreateContainerRequest(pod_sandbox_id=pod, config=config, sandbox_config=pod_config)
    if pick.chance(3):
        request.ClearField(pick(("config", "sandbox_config")))
    _send(world, pick, "CreateContainer", request)


@operation(14)
def start_container(world: World, pick: Pick) -> None:
    container = _container(world, pick, *(() if pick.chance(20) else ("CREATED",)))
    _send(world, pick, "StartContainer", messages.StartContainerRequest(container_id=container))


@operation(7)
def stop_container(world: World, pick: Pick) -> None:
    container = _container(world, pick, *(() if pick.chance(30) else ("RUNNING", "UNKNOWN")))
    timeout = pick((0, 5, 30, 1, -1))
    request = messages.StopContainerRequest(container_id=container, timeout=timeout)
    _send(world, pick, "StopContainer", request)


@operation(4)
def remove_container(world: World, pick: Pick) -> None:
    request = messages.RemoveContainerRequest(container_id=_container(world, pick))
    _send(world, pick, "RemoveContainer", request)


@operation(2)
def ask_about_a_container(world: World, pick: Pick) -> None:
    method = pick(("ContainerStatus", "ContainerStats"))
    request = METHODS[f"/runtime.v1.RuntimeService/{method}"].request(container_id=_container(world, pick))
    if method == "ContainerStatus":
        request.verbose = pick((False, True))
    _send(world, pick, method, request)


@operation(3)
def update_container(world: World, pick: Pick) -> None:
    request = messages.UpdateContainerResourcesRequest(container_id=_container(world, pick))
    if not pick.chance(10):
        request.linux.cpu_shares = pick((2, 512, 1024))
    if pick.chance(25):
        request.linux.memory_limit_in_bytes = pick((1 << 30, 1))
    _send(world, pick, "UpdateContainerResources", request)


@operation(3)
def reopen_log(world: World, pick: Pick) -> None:
    container = _container(world, pick, *(() if pick.chance(30) else ("RUNNING",)))
    request = messages.ReopenContainerLogRequest(container_id=container)
    _send(world, pick, "ReopenContainerLog", request)


# -- lists and streams -------------------------------------------------------------------------------------------------
LISTS: Final = (
    "ListPodSandbox",
    "ListContainers",
    "ListContainerStats",
    "ListPodSandboxStats",
    "ListPodSandboxMetrics",
    "ListMetricDescriptors",
    "ListImages",
    "ImageFsInfo",
)
STREAMS: Final = tuple(sorted(spec.name for spec in METHODS.values() if spec.name.startswith("Stream")))


@operation(2)
def list_things(world: World, pick: Pick) -> None:
    method = pick(LISTS)
    request = messages.ListPodSandboxRequest() if method == "ListPodSandbox" else None
    if request is not None and pick.chance(70):
        request.filter.id = pick(("", _pod(world, pick)))
        request.filter.label_selector.update(pick(({}, {"app": "web"}, {"app": ""})))
        if pick.chance(40):
            request.filter.state.state = pick((messages.SANDBOX_READY, messages.SANDBOX_NOTREADY))
    if method == "ListContainers":
        request = messages.ListContainersRequest()
        request.filter.pod_sandbox_id = pick(("", _pod(world, pick)))
        request.filter.id = pick(("", _container(world, pick)))
        request.filter.label_selector.update(pick(({}, {"app": "web"})))
        if pick.chance(40):
            request.filter.state.state = pick((0, 1, 2, 3))
    if method == "ListImages" and pick.chance(70):
        request = messages.ListImagesRequest()
        request.filter.image.image = pick(REFERENCES)
    api = "v1" if method not in ("ListPodSandbox", "ListContainers", "ListImages") else pick(world.apis)
    world.send(method, request if request is not None else b"", api=api)


@operation(2)
def stream_things(world: World, pick: Pick) -> None:
    method = pick(STREAMS)
    request: Any = b""
    if method == "StreamImages" and pick.chance(60):
        request = messages.StreamImagesRequest(
            filter=messages.ImageFilter(image=messages.ImageSpec(image=pick(REFERENCES)))
        )
    world.send(method, request, api="v1")


# -- images ------------------------------------------------------------------------------------------------------------
PULLS: Final = (
    *REFERENCES,
    "locked.test/forbidden:1",
    "locked.test/failing:1",
    "locked.test/torn:1",
    "locked.test/none:1",
    "down.test/a:1",
    "host.invalid/a:1",
)


@operation(5)
def pull_image(world: World, pick: Pick) -> None:
    request = messages.PullImageRequest(image=messages.ImageSpec(image=pick(PULLS)))
    if pick.chance(40):
        request.image.image = "locked.test/private:1"
        given: dict[str, str] = pick(
            (
                {"username": "user", "password": "word"},
                {"username": "user", "password": "wrong"},
                {"auth": "%%%"},
                {},
            )
        )
        if given:
            request.auth.CopyFrom(messages.AuthConfig(**given))
    _send(world, pick, "PullImage", request)


@operation(2)
def remove_image(world: World, pick: Pick) -> None:
    image = messages.ImageSpec(image=pick(REFERENCES))
    _send(world, pick, "RemoveImage", messages.RemoveImageRequest(image=image))


@operation(1)
def bring_images_back(world: World, pick: Pick) -> None:
    for name in (TOOL, OTHER, BARE, OBEDIENT, "obedient:2"):
        _send(world, pick, "PullImage", messages.PullImageRequest(image=messages.ImageSpec(image=name)))


@operation(1)
def ask_about_an_image(world: World, pick: Pick) -> None:
    request = messages.ImageStatusRequest(image=messages.ImageSpec(image=pick(REFERENCES)), verbose=pick((False, True)))
    _send(world, pick, "ImageStatus", request)


# -- checkpoints -------------------------------------------------------------------------------------------------------
@operation(2)
def checkpoint_container(world: World, pick: Pick) -> None:
    location = pick((f"{CHECKPOINTS}/one.tar", f"{CHECKPOINTS}/one.tar", "", "relative", "/none/one.tar"))
    container = _container(world, pick, *(() if pick.chance(20) else ("RUNNING",)))
    request = messages.CheckpointContainerRequest(container_id=container, location=location, timeout=pick((0, 1)))
    world.send("CheckpointContainer", request, api="v1")


@operation(3)
def checkpoint_pod(world: World, pick: Pick) -> None:
    world.serial += 1
    directory = f"{CHECKPOINTS}/pod-{world.serial}"
    pod = world.runtime.sandboxes.get(_pod(world, pick))
    running = [one.id for one in pod.containers if one.running] if pod is not None else []
    request = messages.CheckpointPodRequest(
        pod_sandbox_id=pod.id if pod is not None else _pod(world, pick), output_path=directory, container_ids=running
    )
    if not pick.chance(10):
        world.runtime.host_files.make_directories(directory)
    if pick.chance(25):
        wrong = pick(("option", "no path", "used path", "container", "twice", "unknown", "short"))
        if wrong == "option":
            request.options["a"] = "b"
        elif wrong in ("no path", "used path"):
            request.output_path = "" if wrong == "no path" else CHECKPOINTS
        elif wrong == "container":
            request.container_ids.append(_container(world, pick))
        elif wrong == "twice":
            request.container_ids.extend(running)
        elif wrong == "unknown":
            request.container_ids.append("nope")
        else:
            request.container_ids.append(pick(("", "a", "b", "c", "d", "e", "f", "0", "1")))
    world.send("CheckpointPod", request, api="v1")
    world.checkpoints.append((directory, pod.config() if pod is not None else None, _configs(world, running)))


def _configs(world: World, ids: list[str]) -> list[Any]:
    return [world.runtime.container(one).config() for one in ids]


@operation(3)
def restore_pod(world: World, pick: Pick) -> None:
    usable = [one for one in world.checkpoints if one[1] is not None]
    if not usable:
        return
    directory, pod_config, configs = pick(usable)
    request = messages.RestorePodRequest(checkpoint_path=directory, config=pod_config, container_configs=configs)
    request.config.metadata.attempt = pick((7, 8))
    _spoilt(pick, request.config, 25, POD_SPOILS)
    if configs:
        spoils = dict(CONTAINER_SPOILS)
        del spoils["no metadata"], spoils["no name"]
        _spoilt(pick, request.container_configs[0], 35, spoils)
    if pick.chance(25):
        wrong = pick(("option", "no path", "no config", "handler", "pod config", "no sandbox"))
        if wrong == "option":
            request.options["a"] = "b"
        elif wrong == "no path":
            request.checkpoint_path = pick(("", "/none"))
        elif wrong == "no config":
            del request.container_configs[:]
        elif wrong == "handler":
            request.runtime_handler = pick(("broken", "unknown"))
        elif wrong == "no sandbox":
            request.ClearField("config")
    world.send("RestorePod", request, api="v1")


# -- configuration -----------------------------------------------------------------------------------------------------
@operation(1)
def ask_about_the_runtime(world: World, pick: Pick) -> None:
    method = pick(("Version", "Status", "RuntimeConfig"))
    request = messages.StatusRequest(verbose=pick((False, True))) if method == "Status" else b""
    world.send(method, request, api="v1" if method == "RuntimeConfig" else pick(world.apis))


@operation(1)
def set_pod_cidr(world: World, pick: Pick) -> None:
    cidr = pick((",".join(world.setting.cidrs), "10.8.0.0/28", "", "nonsense"))
    network = messages.NetworkConfig(pod_cidr=cidr)
    request = messages.UpdateRuntimeConfigRequest(runtime_config=messages.RuntimeConfig(network_config=network))
    _send(world, pick, "UpdateRuntimeConfig", request)


@operation(1)
def set_network_condition(world: World, pick: Pick) -> None:
    ready = not pick.chance(20)
    world.runtime.conditions["NetworkReady"] = (ready, "" if ready else "NetworkPluginNotReady", "")


# -- events ------------------------------------------------------------------------------------------------------------
@operation(2)
def subscribe(world: World, pick: Pick) -> None:
    if sum(exchange.method == "GetContainerEvents" for exchange in world.open.values()) < 3:
        world.send("GetContainerEvents", messages.GetEventsRequest(), api="v1")


@operation(4)
def read_a_stream(world: World, pick: Pick) -> None:
    unread = [exchange for exchange in world.open.values() if exchange.bodies]
    if unread:
        world.take(pick(unread))


# -- what happens on the node ------------------------------------------------------------------------------------------
@operation(3)
def signal_a_container(world: World, pick: Pick) -> None:
    living = [one for one in world.runtime.containers if one.process is not None]
    if living:
        number = pick((Signal.KILL, Signal.TERM, Signal.STOP, Signal.CONT, Signal.USR1))
        world.runtime.machine.signal(pick(living).process, number)
        world.engine.advance(0)


@operation(2)
def kill_a_sandbox(world: World, pick: Pick) -> None:
    living = [one for one in world.runtime.sandboxes if one.process is not None]
    if living:
        world.runtime.machine.signal(pick(living).process, Signal.KILL)
        world.engine.advance(0)


@operation(2)
def lose_a_container(world: World, pick: Pick) -> None:
    running = [one for one in world.runtime.containers if one.running]
    if running:
        processes.lose_container(world.runtime, pick(running))
        world.engine.advance(0)


@operation(8)
def let_time_pass(world: World, pick: Pick) -> None:
    world.engine.advance(pick((MILLISECOND, 10 * MILLISECOND, SECOND, 6 * SECOND, 40 * SECOND)))


@operation(1)
def set_log_answers(world: World, pick: Pick) -> None:
    world.log_answers = pick(("at once", "at once", "later", "no space"))
    if world.log_answers != "later":
        while world.asked:
            world.answer_port()


@operation(4)
def answer_a_log(world: World, pick: Pick) -> None:
    if world.asked:
        world.answer_port()


# -- calls under way ---------------------------------------------------------------------------------------------------
@operation(8)
def hold_the_next(world: World, pick: Pick) -> None:
    world.armed[pick(MUTATING), pick(POINTS)] = HOLD


@operation(1)
def fail_the_next(world: World, pick: Pick) -> None:
    world.armed[pick(MUTATING), pick(POINTS)] = CriError(Reason.SHUTTING_DOWN)


@operation(6)
def release_a_call(world: World, pick: Pick) -> None:
    held = [exchange for exchange in world.open.values() if exchange.held]
    if held:
        world.release(pick(held))


@operation(6)
def cancel_a_call(world: World, pick: Pick) -> None:
    if world.open:
        world.cancel(pick(list(world.open.values())))


# -- nonsense ----------------------------------------------------------------------------------------------------------
@operation(1)
def send_nonsense(world: World, pick: Pick) -> None:
    method = pick(sorted({spec.name for spec in METHODS.values()}))
    world.send(method, pick((b"\xff\xff", b"\x0a\x05ab", b"\x08")), api="v1")


@operation(1)
def call_what_is_not_there(world: World, pick: Pick) -> None:
    world.send(pick(("NoSuch", "Exec", "ListPodSandbox")), b"", api=pick(("v1", "v1alpha2", "v9")))
