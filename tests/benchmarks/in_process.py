"""Measures calls without a socket: what the path of a call costs over its handler alone, and how fast Python gets.

The rule: a bare handler takes request bytes to reply bytes, as any server must; the difference to the same call through
the engine is the price of record, admission, levels, wording and suspension. Both are taken in turns, batch by batch.
"""

from __future__ import annotations

import sys
import time
from statistics import median
from typing import TYPE_CHECKING, Any, Final

from fakecri.assembly import build_engine
from fakecri.core.rpc.registry import HANDLERS, Context, Pieces
from fakecri.wire import messages
from fakecri.wire.methods import METHODS

if TYPE_CHECKING:
    from collections.abc import Callable

    from fakecri.engine import Engine

IMAGE: Final = "registry.example.test/team/web:1.0"
PAIRS: Final = 100
KEPT_CALLS: Final = 1000  # as `fakecri serve` keeps


def sandbox_config(name: str) -> Any:
    metadata = messages.PodSandboxMetadata(name=name, uid=f"uid-{name}", namespace="default")
    return messages.PodSandboxConfig(
        metadata=metadata, hostname=name, labels={"app": "web"}, linux=messages.LinuxPodSandboxConfig()
    )


class Pod:
    """A sandbox and a running container, made by in-process calls."""

    def __init__(self, engine: Engine, image_ref: str, name: str) -> None:
        config = sandbox_config(name)
        self.engine = engine
        sandbox = engine.call("RunPodSandbox", messages.RunPodSandboxRequest(config=config))
        self.sandbox_id: str = sandbox.pod_sandbox_id
        container = messages.ContainerConfig(
            metadata=messages.ContainerMetadata(name="main"),
            image=messages.ImageSpec(image=image_ref),
            command=["/bin/server"],
            labels={"app": "web"},
            linux=messages.LinuxContainerConfig(),
        )
        request = messages.CreateContainerRequest(
            pod_sandbox_id=self.sandbox_id, config=container, sandbox_config=config
        )
        self.container_id: str = engine.call("CreateContainer", request).container_id
        engine.call("StartContainer", messages.StartContainerRequest(container_id=self.container_id))

    def end(self) -> None:
        call = self.engine.call
        call("StopContainer", messages.StopContainerRequest(container_id=self.container_id))
        call("RemoveContainer", messages.RemoveContainerRequest(container_id=self.container_id))
        call("StopPodSandbox", messages.StopPodSandboxRequest(pod_sandbox_id=self.sandbox_id))
        call("RemovePodSandbox", messages.RemovePodSandboxRequest(pod_sandbox_id=self.sandbox_id))


def seconds_per_call(call: Callable[[], object], calls: int) -> float:
    start = time.perf_counter()
    for _ in range(calls):
        call()
    return (time.perf_counter() - start) / calls


def bare(engine: Engine, method: str, body: bytes) -> Callable[[], bytes]:
    """The handler alone, from request bytes to reply bytes."""
    spec = METHODS[f"/runtime.v1.RuntimeService/{method}"]
    registered = HANDLERS[method]
    if registered.suspends:
        raise ValueError(f"{method} suspends, so its handler does not run alone")
    handler, runtime, context = registered.handler, engine.runtime, Context(method, engine.views["v1"])

    def call() -> bytes:
        answer = handler(runtime, context, spec.request.FromString(body))
        return answer.body if type(answer) is Pieces else answer.SerializeToString(deterministic=True)

    return call


def submitted(engine: Engine, method: str, body: bytes) -> Callable[[], object]:
    path = f"/runtime.v1.RuntimeService/{method}"

    def ended(_: object, reply: Any) -> None:
        if not reply.ok:
            raise AssertionError(f"{method} was refused: {reply.text}")

    return lambda: engine.submit(path, body, on_done=ended)


def measure(rounds: int, calls: int) -> dict[str, Any]:
    """Microseconds per call by method: `bare`, `submitted`, and their difference `pipeline`; and whole lives."""
    engine = build_engine(kept_calls=KEPT_CALLS)
    pulled = engine.call("PullImage", messages.PullImageRequest(image=messages.ImageSpec(image=IMAGE)))
    pods = [Pod(engine, pulled.image_ref, f"web-{number:03}") for number in range(PAIRS)]
    status = messages.ContainerStatusRequest(container_id=pods[PAIRS // 2].container_id)
    requests = {
        "Version": messages.VersionRequest(version="v1").SerializeToString(),
        "ContainerStatus": status.SerializeToString(),
        "ListContainers": messages.ListContainersRequest().SerializeToString(),
    }
    methods = {}
    for method, body in requests.items():
        alone, whole = bare(engine, method, body), submitted(engine, method, body)
        taken = [(seconds_per_call(alone, calls), seconds_per_call(whole, calls)) for _ in range(rounds + 1)][1:]
        methods[method] = {
            "bare_us": median(a for a, _ in taken) * 1e6,
            "submitted_us": median(w for _, w in taken) * 1e6,
            "pipeline_us": median(w - a for a, w in taken) * 1e6,
        }
    lives = iter(range(sys.maxsize))
    life = [
        seconds_per_call(lambda: Pod(engine, pulled.image_ref, f"life-{next(lives)}").end(), max(1, calls // 10))
        for _ in range(rounds)
    ]
    if engine.failures:
        raise AssertionError(engine.failures[0])
    return {"pairs": PAIRS, "methods": methods, "life_us": median(life) * 1e6, "life_calls": 7}
