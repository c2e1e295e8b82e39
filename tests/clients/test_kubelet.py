"""Two kubelets, one that speaks v1 and one that falls back to v1alpha2, live on a served runtime."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import grpc
import pytest

from fakecri.wire import messages

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from types import ModuleType

pytestmark = [pytest.mark.client, pytest.mark.root, pytest.mark.timeout(900)]

PODS = [f"web-{number:03}" for number in range(110)]
SERVER_IMAGE = "registry.example.test/team/server:1"
BUSYBOX = "docker.io/library/busybox:latest"
FOREVER = ["sleep", "1000000"]
WEB = {"containers": [{"name": "main", "image": SERVER_IMAGE}]}
# A kubelet writes a pod's status when it looks at the pod, and looks at one that backs off only when the time is over,
# or when something happens in it: that is what the second container is for.
CRASHING = {
    "containers": [
        {"name": "main", "image": BUSYBOX, "command": ["false"]},
        {"name": "beat", "image": BUSYBOX, "command": ["sleep", "5"]},
    ]
}
STEPS = {
    "initContainers": [
        {"name": "first", "image": BUSYBOX, "command": ["sleep", "1"]},
        {"name": "second", "image": BUSYBOX, "command": ["true"]},
    ],
    "containers": [{"name": name, "image": SERVER_IMAGE} for name in ("main", "beside")],
}
SIDECAR = {
    "initContainers": [
        {"name": "proxy", "image": SERVER_IMAGE, "restartPolicy": "Always"},
        {"name": "after", "image": BUSYBOX, "command": ["true"]},
    ],
    "containers": [{"name": "main", "image": BUSYBOX, "command": FOREVER}],
}


class World:
    """A server, a kubelet on it, and what a test asks of both."""

    def __init__(self, node: Any, server: Any, serving: ModuleType) -> None:
        self.node = node
        self.server = server
        self.wait_until = serving.wait_until

    def await_status(self, name: str, what: str, holds: Callable[[dict[str, Any]], object], seconds: float) -> Any:
        """The pod's status once it is as wanted."""
        seen: list[dict[str, Any]] = [{}]

        def reached() -> object:
            seen[0] = self.node.pods().get(name, {}).get("status", {})
            return seen[0] and holds(seen[0])

        self.wait_until(reached, seconds, lambda: f"{name} {what}; its status: {seen[0]}", every=0.5)
        return seen[0]

    def await_running(self, names: list[str], seconds: float) -> dict[str, dict[str, Any]]:
        """The statuses of pods once all run."""
        statuses: dict[str, dict[str, Any]] = {}

        def missing() -> list[str]:
            return [name for name in names if not is_running(statuses.get(name, {}))]

        def reached() -> bool:
            self.server.must_be_sound()
            pods = self.node.pods()
            statuses.update((name, pods.get(name, {}).get("status", {})) for name in names)
            return not missing()

        def what() -> str:
            return f"{len(missing())} of {len(names)} pods are not Running, such as {missing()[0]}: {statuses}"[:4000]

        self.wait_until(reached, seconds, what, every=1)
        return statuses

    def ask(self, method: str) -> Any:
        """The reply to a call of the runtime service, in the version that the kubelet speaks, with an empty request."""
        path = f"/runtime.{self.node.release.api}.RuntimeService/{method}"
        with grpc.insecure_channel(self.server.endpoint) as channel:
            call: Any = channel.unary_unary(path)
            return getattr(messages, f"{method}Response").FromString(call(b"", timeout=20))

    def containers(self) -> list[Any]:
        return list(self.ask("ListContainers").containers)

    def sandbox_ids(self) -> set[str]:
        return {sandbox.id for sandbox in self.ask("ListPodSandbox").items}

    def container_ids(self) -> set[str]:
        return {container.id for container in self.containers()}

    def names_by_creation(self, pod: str) -> list[str]:
        """Names of a pod's containers, oldest first."""
        own = [c for c in self.containers() if c.labels["io.kubernetes.pod.name"] == f"{pod}-kl"]
        return [c.metadata.name for c in sorted(own, key=lambda c: c.created_at)]

    def relists(self) -> float:
        """How often this kubelet process has listed all sandboxes and containers to see what changed."""
        _, body = self.node.get("/metrics")
        found = re.search(rb"^kubelet_pleg_relist_duration_seconds_count (\S+)$", body, re.MULTILINE)
        return float(found.group(1)) if found else 0.0


def is_running(status: dict[str, Any]) -> bool:
    containers = status.get("containerStatuses", [])
    running = bool(containers) and all("running" in c["state"] for c in containers)
    return running and status.get("phase") == "Running" and bool(status.get("podIP"))


def container(status: dict[str, Any], name: str) -> dict[str, Any]:
    every = [*status.get("initContainerStatuses", []), *status.get("containerStatuses", [])]
    return next((c for c in every if c["name"] == name), {"state": {}, "restartCount": 0})


@pytest.fixture(params=["1.37", "1.25"])
def world(
    request: pytest.FixtureRequest,
    kubelet: ModuleType,
    serving: ModuleType,
    program: Callable[[str], Path],
    private_node: Any,
    tmp_path: Path,
) -> Iterator[World]:
    release = kubelet.RELEASES[request.param]
    binary = program(release.program)
    options = ["--root", str(tmp_path / "root"), "--api", release.api, "-v"]
    with (
        serving.FakecriServer(tmp_path / "server", *options, prefix=private_node.prefix) as server,
        kubelet.Node(release, binary, server.endpoint, private_node, tmp_path / "node", serving.Running) as node,
    ):
        yield World(node, server, serving)
        server.must_be_sound()


def test_a_kubelet_lives_on_the_runtime(world: World, kubelet: ModuleType) -> None:
    """One life of a kubelet in one test: its starts and removals take it long, and its log is judged as a whole."""
    release = world.node.release.name
    many_pods_run_each_with_an_address(world)
    a_container_that_exits_is_restarted_with_back_off(world)
    init_containers_run_in_order(world)
    if release != "1.25":  # sidecars are newer
        a_sidecar_runs_beside_what_follows(world)
    the_summary_has_every_pod(world)
    a_restarted_kubelet_makes_nothing_anew(world)
    pods_without_manifest_go_with_their_sandboxes(world)
    world.node.stop()
    log = world.node.log.read_text().splitlines()
    faults = kubelet.judge_log(log, kubelet.allowed_lines(release))
    assert not faults, "\n".join([f"{len(faults)} faults in the log of kubelet {release}:", *faults[:100]])


def many_pods_run_each_with_an_address(world: World) -> None:
    for name in PODS:
        world.node.place(name, WEB)
    statuses = world.await_running(PODS, 180)
    assert len({status["podIP"] for status in statuses.values()}) == len(PODS)


def a_container_that_exits_is_restarted_with_back_off(world: World) -> None:
    world.node.place("crashing", CRASHING)

    def backs_off(status: dict[str, Any]) -> bool:
        main = container(status, "main")
        waiting = main["state"].get("waiting", {}).get("reason")
        return bool(main["restartCount"] >= 1 and waiting == "CrashLoopBackOff")

    status = world.await_status("crashing", "is restarted and backs off", backs_off, 90)
    last = container(status, "main")["lastState"]["terminated"]
    assert (last["exitCode"], last["reason"]) == (1, "Error")
    world.node.withdraw("crashing")


def init_containers_run_in_order(world: World) -> None:
    world.node.place("steps", STEPS)
    status = world.await_status("steps", "runs after its init containers", is_running, 60)
    for name in ("first", "second"):
        ended = container(status, name)["state"]["terminated"]
        assert (ended["exitCode"], ended["reason"]) == (0, "Completed")
    assert world.names_by_creation("steps") == ["first", "second", "main", "beside"]


def a_sidecar_runs_beside_what_follows(world: World) -> None:
    world.node.place("sidecar", SIDECAR)
    status = world.await_status("sidecar", "runs with its sidecar", is_running, 60)
    assert "running" in container(status, "proxy")["state"]
    assert container(status, "after")["state"]["terminated"]["exitCode"] == 0
    assert world.names_by_creation("sidecar") == ["proxy", "after", "main"]


def the_summary_has_every_pod(world: World) -> None:
    status, body = world.node.get("/stats/summary")
    assert status == 200, body
    pods = {pod["podRef"]["name"]: pod for pod in json.loads(body)["pods"]}
    for name in PODS:
        (stats,) = pods[f"{name}-kl"]["containers"]
        assert stats["name"] == "main"
        assert stats["cpu"]["usageCoreNanoSeconds"] > 0
        assert stats["memory"]["workingSetBytes"] > 0


def a_restarted_kubelet_makes_nothing_anew(world: World) -> None:
    def only_placed_pods_are_left() -> bool:
        return set(world.node.pods()) == set(world.node.placed()) and len(world.sandbox_ids()) == len(
            world.node.placed()
        )

    world.wait_until(only_placed_pods_are_left, 150, "the crashing pod is removed", every=1)
    world.await_running(world.node.placed(), 30)
    before = (world.sandbox_ids(), world.container_ids())
    world.node.stop()
    world.node.start()
    world.await_running(world.node.placed(), 90)
    world.wait_until(lambda: world.relists() >= 12, 60, "the new kubelet looks at all pods again and again", every=1)
    statuses = world.await_running(world.node.placed(), 30)
    assert (world.sandbox_ids(), world.container_ids()) == before
    assert {c["restartCount"] for status in statuses.values() for c in status["containerStatuses"]} == {0}


def pods_without_manifest_go_with_their_sandboxes(world: World) -> None:
    for name in world.node.placed():
        world.node.withdraw(name)
    world.wait_until(
        lambda: not world.sandbox_ids(), 240, lambda: f"{len(world.sandbox_ids())} sandboxes are left", every=1
    )
    assert world.container_ids() == set()
    assert world.node.pods() == {}
