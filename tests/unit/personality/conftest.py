"""One script of calls, played on a runtime of any personality: what a client sees of it, call by call."""

from __future__ import annotations

import sys
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from fakecri.assembly import build_engine
from fakecri.base.reasons import CriError
from fakecri.clock import SECOND
from fakecri.core import processes
from fakecri.core.node import Node
from fakecri.engine import HOLD, Engine
from fakecri.personality.model import Personality, word
from fakecri.record.call import Call, Reply
from fakecri.scenario.compile import compile_documents
from fakecri.scenario.load import load_files, load_text
from fakecri.wire import messages
from fakecri.wire.levels import NEWEST
from fakecri.wire.methods import METHODS

CASES = Path(__file__).parents[2] / "reference" / "images.yaml"
MORE = """
apiVersion: fakecri.dev/v1alpha1
kind: Scenario
images:
  present:
    - names: [example.com/annotated:v1]
      command: [sleep, "60"]
      annotations: {a: b}
    - names: [example.com/alike-one:v1]
      id: sha256:abcde00000000000000000000000000000000000000000000000000000000001
    - names: [example.com/alike-two:v1]
      id: sha256:abcde00000000000000000000000000000000000000000000000000000000002
"""
WORLD = compile_documents([*load_files([CASES]), *load_text(MORE)])
BUSYBOX = "docker.io/library/busybox:1.0"
REGISTRY = "127.0.0.1:5055"
UNKNOWN = "f" * 64
RPCS = {spec.name: spec for spec in METHODS.values() if spec.api == "v1"}
#: RPCs that a client reads from for as long as it likes.
SUBSCRIPTION = "GetContainerEvents"


def build(personality: Personality) -> Engine:
    """A runtime of a personality, at the newest level, with the images and handlers of the measured cases."""
    return build_engine(
        personality=personality,
        node=Node(runtime_handlers=WORLD.handlers(), event_queue_limit=40),
        catalogue=WORLD.catalogue(),
        level=NEWEST,
        apis=frozenset({"v1", "v1alpha2"}),
        seed=7,
    )


class Player:
    """Plays calls on one engine and notes what each brought; a call that fails brings an empty response."""

    def __init__(self, engine: Engine, outcomes: dict[str, str]) -> None:
        self.engine = engine
        self.outcomes = outcomes
        self.unread: list[Call] = []

    def note(self, label: str, text: str) -> None:
        self.outcomes[f"{label} ({len(self.outcomes)})"] = text

    def raw(self, label: str, path: str, body: bytes = b"") -> None:
        """A call of any path with any bytes."""
        self.engine.submit(path, body, on_done=lambda _, reply: self.note(label, f"{reply.code}: {reply.text}"))

    def __call__(self, what: str, method: str, **fields: Any) -> Any:
        spec = RPCS[method]
        label = f"{method}: {what}"
        bodies: list[bytes] = []
        replies: list[Reply] = []
        call = self.engine.submit(
            spec.path,
            spec.request(**fields).SerializeToString(deterministic=True),
            on_done=lambda _, reply: replies.append(reply),
            on_message=lambda _, body: bodies.append(body),
        )
        while not replies and (call.unsent or (due := self.engine.next_due_ns()) is not None):
            self.engine.notify(call) if call.unsent else self.engine.advance_to(due)
        if not replies:
            self.note(label, "waits for ever")
            return spec.response()
        self.note(label, f"{replies[0].code}: {replies[0].text} {[*bodies, replies[0].body]!r}")
        return spec.response.FromString(replies[0].body)

    # -- what most probes begin with -------------------------------------------------------------------------------
    def config(self, name: str, **more: Any) -> Any:
        metadata = messages.PodSandboxMetadata(name=name, namespace="default", uid=f"uid-{name}")
        more.setdefault("log_directory", f"/var/log/pods/{name}")
        return messages.PodSandboxConfig(metadata=metadata, **more)

    def pod(self, name: str, runtime_handler: str = "", **more: Any) -> str:
        request = {"config": self.config(name, **more), "runtime_handler": runtime_handler}
        return str(self(name, "RunPodSandbox", **request).pod_sandbox_id)

    def create(self, name: str, pod: str, image: str = BUSYBOX, command: Any = ("sleep", "60"), **more: Any) -> str:
        linux = more.setdefault("linux", {})
        linux.setdefault("security_context", {})["namespace_options"] = {"pid": messages.CONTAINER}
        config = messages.ContainerConfig(
            metadata=messages.ContainerMetadata(name=name),
            image=messages.ImageSpec(image=image, user_specified_image=image),
            command=command,
            **{"log_path": f"{name}.log", **more},
        )
        sandbox = self.config("pod")
        fields = {"pod_sandbox_id": pod, "config": config, "sandbox_config": sandbox}
        return str(self(name, "CreateContainer", **fields).container_id)

    def run(self, name: str, pod: str, **more: Any) -> str:
        container = self.create(name, pod, **more)
        self(name, "StartContainer", container_id=container)
        return container

    def subscribe(self, *, reads: bool = True) -> list[str]:
        """A subscription, to the end of the script; the answer grows by each message that comes."""
        seen: list[str] = []

        def message(call: Call, body: bytes) -> None:
            seen.append(repr(body))
            if reads:
                self.engine.notify(call)

        call = self.engine.submit(
            RPCS[SUBSCRIPTION].path,
            b"",
            on_done=lambda _, reply: seen.append(f"{reply.code}: {reply.text}"),
            on_message=message,
        )
        if not reads:
            self.unread.append(call)
        return seen


def play_routing(play: Player) -> None:
    """What never reaches a handler, and every RPC with an empty request."""
    play.raw("no service", "/foo")
    play.raw("no such service", "/runtime.v9.RuntimeService/Version")
    play.raw("no such method", "/runtime.v1.RuntimeService/NoSuch")
    play.raw("not protobuf", "/runtime.v1.RuntimeService/Version", b"\xff")
    text = messages.CreateContainerRequest()
    text.config.envs.add(key="k", value=b"\xff")
    play.raw("text that is not UTF-8", "/runtime.v1alpha2.RuntimeService/CreateContainer", text.SerializeToString())
    for method in RPCS:
        if method != SUBSCRIPTION:
            play("empty", method)


def play_look_ups(play: Player) -> None:
    """Ids that are unknown or ambiguous, in every RPC that takes one."""
    pods = [play.pod(f"look-up-{index}") for index in range(17)]
    containers = [play.create(f"look-up-{index}", pods[0]) for index in range(17)]
    shared = {
        "pod_sandbox_id": next((a[:1] for a, b in combinations(pods, 2) if a[:1] == b[:1]), ""),
        "container_id": next((a[:1] for a, b in combinations(containers, 2) if a[:1] == b[:1]), ""),
    }
    for method, spec in RPCS.items():
        for field, prefix in shared.items():
            if field in spec.request.DESCRIPTOR.fields_by_name:
                play("unknown", method, **{field: UNKNOWN})
                play("ambiguous", method, **{field: prefix})
    play("labels of 17", "ListPodSandbox", filter={"label_selector": {"absent": ""}})
    play("17", "ListContainers")
    for pod in pods:
        play(f"away with {pods.index(pod)}", "RemovePodSandbox", pod_sandbox_id=pod)


def play_refused_pods(play: Player) -> None:
    """RunPodSandbox with everything that can be wrong."""
    play("config without metadata", "RunPodSandbox", config={"hostname": "h"})
    play("empty metadata", "RunPodSandbox", config={"metadata": {}, "log_directory": "relative"})
    play.pod("no-such-handler", "nosuch")
    play.pod("no-oci-runtime", "broken")
    play.pod("no-shim", "noshim")
    play.pod("bad-sysctl", linux={"sysctls": {"nosuch.ctl": "1"}})
    play.pod("long-hostname", hostname="h" * 70)
    options = {"userns_options": {"mode": messages.POD}}
    play.pod("no-mapping", linux={"security_context": {"namespace_options": options}})
    port = {"host_port": 80, "container_port": 80}
    play.pod("port", port_mappings=[port])
    play.pod("port-taken", port_mappings=[port])
    play("bad CIDR", "UpdateRuntimeConfig", runtime_config={"network_config": {"pod_cidr": "10.0.0.0/99"}})
    play("small CIDR", "UpdateRuntimeConfig", runtime_config={"network_config": {"pod_cidr": "10.9.9.0/30"}})
    for index in range(4):
        play.pod(f"pool-{index}")
    play("large CIDR", "UpdateRuntimeConfig", runtime_config={"network_config": {"pod_cidr": "10.9.0.0/16"}})


def play_more_refused_pods(play: Player) -> None:
    """What containerd takes and others refuse."""
    metadata = {"name": "n", "namespace": "ns", "uid": "u", "attempt": 9}
    for missing in ("name", "namespace", "uid"):
        play(f"without {missing}", "RunPodSandbox", config={"metadata": metadata | {missing: ""}})
    play("relative log directory", "RunPodSandbox", config={"metadata": metadata, "log_directory": "a/b"})


def play_pods(play: Player) -> None:
    """A pod's life, with its network and without."""
    pod = play.pod("pod", labels={"app": "x"})
    again = {"config": play.config("pod")}
    play("duplicate", "RunPodSandbox", **again)
    play("ready", "PodSandboxStatus", pod_sandbox_id=pod, verbose=True)
    play("figures", "PodSandboxStats", pod_sandbox_id=pod)
    play("update", "UpdatePodSandboxResources", pod_sandbox_id=pod, overhead={"memory_limit_in_bytes": 1 << 20})
    container = play.run("in-pod", pod)
    waiting = play.create("waits-in-pod", pod)
    networked = play.pod("networked")
    play.engine.runtime.conditions["NetworkReady"] = (False, "NetworkPluginNotReady", "not there")
    play("network gone", "Status", verbose=True)
    play("network gone", "StopPodSandbox", pod_sandbox_id=networked)
    play.pod("without-network")
    play("without network", "ListPodSandbox", filter={"state": {"state": messages.SANDBOX_NOTREADY}})
    play.engine.runtime.conditions["NetworkReady"] = (True, "", "")
    play("container runs", "StopPodSandbox", pod_sandbox_id=pod)
    play("killed with its pod", "ContainerStatus", container_id=container)
    play("created in a stopped pod", "ContainerStatus", container_id=waiting)
    play("start in a stopped pod", "StartContainer", container_id=waiting)
    play("failed to start", "ContainerStatus", container_id=waiting)
    play.create("in-stopped-pod", pod)
    play("twice", "StopPodSandbox", pod_sandbox_id=pod)
    play("stopped", "PodSandboxStatus", pod_sandbox_id=pod, verbose=True)
    play("stopped", "PodSandboxStats", pod_sandbox_id=pod)
    play("stopped", "CheckpointPod", pod_sandbox_id=pod, output_path="/")
    play("one stopped", "ListPodSandboxStats")
    play("one stopped, filtered", "ListPodSandboxStats", filter={"label_selector": {"app": "x"}})
    play("forwarded", "PortForward", pod_sandbox_id=pod)
    dying = play.pod("dying")
    process = play.engine.runtime.sandboxes.get(dying)
    if process is not None and process.process is not None:
        play.engine.runtime.machine.signal(process.process, 9)
        play.engine.advance(SECOND)
    play("died alone", "PodSandboxStatus", pod_sandbox_id=dying)
    play("died alone", "RemovePodSandbox", pod_sandbox_id=dying)
    play("stopped", "RemovePodSandbox", pod_sandbox_id=pod)
    play("all", "ListPodSandbox")


def play_refused_containers(play: Player, pod: str) -> None:
    """CreateContainer and StartContainer with everything that can be wrong."""
    create = "CreateContainer"
    sandbox = play.config("refused")
    play("config without metadata", create, pod_sandbox_id=pod, config={"tty": True}, sandbox_config=sandbox)
    play("no config", create, pod_sandbox_id=pod, sandbox_config=sandbox)
    play("no sandbox config", create, pod_sandbox_id=pod, config={"metadata": {"name": "c"}})
    image = {"image": BUSYBOX}
    play("no name", create, pod_sandbox_id=pod, config={"metadata": {}, "image": image}, sandbox_config=sandbox)
    named = {"metadata": {"name": "unspecified"}, "image": image, "command": ["true"]}
    play("no image as specified", create, pod_sandbox_id=pod, config=named, sandbox_config=sandbox)
    play.create("no-image", pod, image="")
    play.create("unknown-image", pod, image="example.com/no/such:v9")
    play.create("malformed-image", pod, image="UPPER//case")
    play.create("no-command", pod, image="example.com/team/nocmd:v1", command=())
    play.create("no-mount-source", pod, mounts=[{"container_path": "/x"}])
    play.create("relative-mount", pod, mounts=[{"host_path": "x", "container_path": "/x"}])
    play.create("no-mount-target", pod, mounts=[{"host_path": "/x"}])
    play.create("no-mount-image", pod, mounts=[{"container_path": "/x", "image": {"image": "example.com/no/such:v9"}}])
    play.create("no-device", pod, devices=[{"host_path": "/dev/nosuch", "container_path": "/dev/x"}])
    contexts = {
        "no-user": {"run_as_username": "nosuch"},
        "group-without-user": {"run_as_group": {"value": 5}},
        "no-seccomp": {"seccomp": {"profile_type": "Localhost", "localhost_ref": "/nosuch.json"}},
        "no-apparmor": {"apparmor": {"profile_type": "Localhost", "localhost_ref": "nosuch"}},
        "no-capability": {"capabilities": {"add_capabilities": ["NOSUCH"]}},
    }
    for name, context in contexts.items():
        profile = messages.SecurityProfile
        given = {
            key: profile(profile_type=profile.Localhost, localhost_ref=value["localhost_ref"])
            if key in ("seccomp", "apparmor")
            else value
            for key, value in context.items()
        }
        play.create(name, pod, linux={"security_context": given})
    play.run("no-such-command", pod, command=["/nosuchbin"])
    play.run("not-executable", pod, command=["/etc/passwd"])
    play.run("no-such-directory", pod, working_dir="/etc/passwd")


def play_state(play: Player, name: str, container: str) -> None:
    """Every call about a container that is in the state of this name."""
    play(name, "ContainerStatus", container_id=container, verbose=True)
    play(name, "ContainerStats", container_id=container)
    play(name, "ReopenContainerLog", container_id=container)
    play(name, "Attach", container_id=container, stdin=True)
    play(name, "Exec", container_id=container, cmd=["true"], stdout=True)
    play(name, "ExecSync", container_id=container, cmd=["true"])
    limit = {"memory_limit_in_bytes": 1 << 30}
    play(f"{name}, resources", "UpdateContainerResources", container_id=container, linux=limit)
    play(f"{name} to file", "CheckpointContainer", container_id=container, location=f"/tmp/{name}.tar")
    play(f"{name} to nowhere", "CheckpointContainer", container_id=container)


def play_containers(play: Player) -> None:
    """A container's life: statuses, lists, figures, calls in the wrong state."""
    pod = play.pod("containers")
    play_refused_containers(play, pod)
    created = play.create("created", pod, stop_signal=messages.SIGNAL_SIGINT)
    play(
        "duplicate",
        "CreateContainer",
        pod_sandbox_id=pod,
        config={"metadata": {"name": "created"}, "image": {"image": BUSYBOX}, "command": ["sleep", "60"]},
        sandbox_config=play.config("pod"),
    )
    running = play.run("running", pod)
    exited = play.run("exited", pod, command=["true"])
    play.engine.advance(SECOND)
    play("running", "StartContainer", container_id=running)
    play("exited", "StartContainer", container_id=exited)
    for name, container in (("created", created), ("running", running), ("exited", exited)):
        play_state(play, name, container)
    too_low = {"memory_limit_in_bytes": 1}
    play("too low", "UpdateContainerResources", container_id=running, linux=too_low)
    play("nonsense", "UpdateContainerResources", container_id=running, linux={"cpu_quota": -7, "cpu_period": 3})
    play("three states", "ListContainers")
    play("created ones", "ListContainers", filter={"state": {"state": messages.CONTAINER_CREATED}})
    play("three states", "ListContainerStats")
    play("running and exited", "PodSandboxStats", pod_sandbox_id=pod)
    play("created", "StopContainer", container_id=created)
    play("after a stop that found it created", "ContainerStatus", container_id=created)
    play("exited", "StopContainer", container_id=exited)
    stopped = play.run("stopped", pod)
    play("running", "StopContainer", container_id=stopped, timeout=3)
    play("stopped", "ContainerStatus", container_id=stopped)
    play("created", "RemoveContainer", container_id=created)
    play("exited", "RemoveContainer", container_id=exited)
    play("running", "RemoveContainer", container_id=running)
    unlogged = play.create("unlogged", pod, log_path="../x")
    play("log in vain", "StartContainer", container_id=unlogged)
    play_checkpoints(play, pod)
    play_held(play, pod)
    play_lost(play, pod)
    play_client_gone(play, pod)
    play("with a container that runs", "RemovePodSandbox", pod_sandbox_id=pod)


def play_checkpoints(play: Player, pod: str) -> None:
    """Checkpoints of a container and of a pod, and restoring one."""
    files = play.engine.runtime.host_files
    for directory in ("/cp/pod", "/cp/empty"):
        files.make_directories(directory)
    container = play.run("saved", pod)
    play("running to file", "CheckpointContainer", container_id=container, location="/cp/one.tar")
    saved = {"pod_sandbox_id": pod, "output_path": "/cp/pod", "container_ids": [container]}
    play("no container", "CheckpointPod", **saved | {"container_ids": []})
    play("an option", "CheckpointPod", **saved, options={"nosuch": "1"})
    play("to nowhere", "CheckpointPod", **saved | {"output_path": ""})
    play("to a directory", "CheckpointPod", **saved)
    restored = {"config": play.config("restored"), "container_configs": [{"metadata": {"name": "other"}}]}
    play("from nowhere", "RestorePod", **restored)
    play("from an empty directory", "RestorePod", **restored, checkpoint_path="/cp/empty")
    play("with other containers", "RestorePod", **restored, checkpoint_path="/cp/pod")
    play("saved", "RemoveContainer", container_id=container)


def play_held(play: Player, pod: str) -> None:
    """Calls about a container whose start is under way."""
    container = play.create("held", pod)
    held: list[Call] = []

    def gate(call: Call, point: str) -> object:
        if call.method == "StartContainer" and point == "checked":
            held.append(call)
            return HOLD
        return None

    play.engine.gate = gate
    body = messages.StartContainerRequest(container_id=container).SerializeToString()
    play.engine.submit(RPCS["StartContainer"].path, body, on_done=lambda *_: None)
    play.engine.gate = None
    play("a start is under way", "StartContainer", container_id=container)
    play("a start is under way", "RemoveContainer", container_id=container)
    for call in held:
        play.engine.release(call)


def play_lost(play: Player, pod: str) -> None:
    """Containers of which the runtime has lost track."""
    for what in ("StopContainer", "RemoveContainer"):
        container = play.run(f"lost-{what}", pod)
        found = play.engine.runtime.containers.get(container)
        if found is not None and found.running:
            try:
                processes.lose_container(play.engine.runtime, found)
            except CriError as refusal:
                play.note(f"lost to {what}", str(refusal))
        play(f"lost before {what}", "ContainerStatus", container_id=container)
        play("lost", what, container_id=container)
        play(f"lost after {what}", "ContainerStatus", container_id=container)


def play_client_gone(play: Player, pod: str) -> None:
    """A client that goes while its StopContainer waits for the grace period."""
    container = play.run("left-alone", pod)
    body = messages.StopContainerRequest(container_id=container, timeout=5).SerializeToString()
    call = play.engine.submit(RPCS["StopContainer"].path, body, on_done=lambda *_: None)
    play.engine.cancel(call)
    play.engine.advance(6 * SECOND)
    play("its client left", "ContainerStatus", container_id=container)


def play_images(play: Player) -> None:
    """Names, pulls and removals of images."""
    identity = play("tag", "ImageStatus", image={"image": BUSYBOX}, verbose=True).image.id
    play("id", "ImageStatus", image={"image": identity})
    play("malformed", "ImageStatus", image={"image": "UPPER//case"})
    play("upper-case host", "ImageStatus", image={"image": "UPPER/case"})
    play("all", "ListImages")
    play("all again", "ListImages")
    play("ambiguous", "ImageStatus", image={"image": "abcde"})
    for name in (BUSYBOX, "UPPER//case", "example.com/no/such:v9"):
        play(f"only {name}", "ListImages", filter={"image": {"image": name}})
    pulls = [
        *(f"{REGISTRY}/{path}" for path in ("team/pull:v1", "team/pull:nope", "private/app:v1", "forbid/app:v1")),
        *(f"{REGISTRY}/{path}" for path in ("err500/app:v1", "corrupt/app:v1")),
        *(
            "127.0.0.1:5999/a/b:v1",
            "registry.invalid/a:v1",
            "UPPER//case",
            "UPPER/case",
            "a.b/Upper",
            "a" * 300,
            "a" * 64,
        ),
    ]
    for name in pulls:
        play(name[:40] + str(len(name)), "PullImage", image={"image": name})
    for what, auth in (("wrong", {"username": "user", "password": "no"}), ("malformed", {"auth": "%"})):
        for name in ("private/app:v1", "team/pull:v2"):
            play(f"{name} with {what} credentials", "PullImage", image={"image": f"{REGISTRY}/{name}"}, auth=auth)
    play("annotated", "ImageStatus", image={"image": "example.com/annotated:v1"})
    pulled = play("pulled", "ImageStatus", image={"image": f"{REGISTRY}/team/pull:v1"}).image.id
    play("two letters of an id", "ImageStatus", image={"image": pulled.split(":")[-1][:3]})
    pod = play.pod("images")
    user = play.run("uses-image", pod, image=f"{REGISTRY}/team/pull:v1")
    play("of a pulled image", "ContainerStatus", container_id=user)
    play("of pulled images", "ListContainers")
    for name in ("UPPER//case", "example.com/no/such:v9", f"{REGISTRY}/team/pull:v1", f"{BUSYBOX}-alias"):
        play(name, "RemoveImage", image={"image": name})
    play("one name is gone", "ImageStatus", image={"image": BUSYBOX})
    play("image is gone", "ContainerStatus", container_id=user)
    play("after all", "ImageFsInfo")


def everything(engine: Engine) -> dict[str, str]:
    """The whole script; label of a call → what it brought."""
    outcomes: dict[str, str] = {}
    play = Player(engine, outcomes)
    play_routing(play)
    play_look_ups(play)
    first, second = play.subscribe(), play.subscribe()
    slow = play.subscribe(reads=False)
    play_pods(play)
    play_containers(play)
    play_images(play)
    play_refused_pods(play)
    play_more_refused_pods(play)
    for call in play.unread:
        engine.notify(call)
    outcomes["GetContainerEvents: first subscriber"] = "\n".join(first)
    outcomes["GetContainerEvents: second subscriber"] = "\n".join(second)
    outcomes["GetContainerEvents: one that does not read"] = "\n".join(slow)
    outcomes["failures"] = "\n".join(engine.failures)
    return outcomes


@pytest.fixture(name="build", scope="session")
def build_fixture() -> Callable[[Personality], Engine]:
    """``build(personality)``: an engine with the images and handlers of the script."""
    return build


@pytest.fixture(scope="session")
def play() -> Callable[[Engine], Player]:
    """``play(engine)``: one who plays calls on it."""
    return lambda engine: Player(engine, {})


@pytest.fixture(scope="session")
def observe() -> Callable[[Personality], dict[str, str]]:
    """``observe(personality)``: the script's outcomes."""
    return lambda personality: everything(build(personality))


@pytest.fixture
def refusals(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str | None, CriError]]:
    """Every refusal that is put into words during the test, with its method."""
    seen: list[tuple[str | None, CriError]] = []

    def noting(personality: Personality, method: str | None, error: CriError) -> tuple[int, str]:
        seen.append((method, error))
        return word(personality, method, error)

    users = [module for name, module in sys.modules.items() if name.startswith("fakecri.")]
    for module in users:
        if module.__dict__.get("word") is word:
            monkeypatch.setattr(module, "word", noting)
    return seen
