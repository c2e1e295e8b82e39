"""The gRPC door, with real grpcio clients on its socket."""

from __future__ import annotations

import threading
from typing import Any

import grpc
import pytest

from fakecri.core.node import Node
from fakecri.testing import FakeRuntime
from fakecri.wire import messages

LIMIT = 16 << 20
WITHIN_S = 20


@pytest.mark.parametrize("api", ["v1", "v1alpha2"])
def test_both_api_versions_answer_on_one_socket(cri: FakeRuntime, connect: Any, api: str) -> None:
    client = connect(cri.endpoint, api)
    version = client.Version(timeout=10)
    assert version.runtime_api_version == api
    assert version.version == "0.1.0"
    assert len(client.ListImages().images) == 1
    assert [call.path for call in cri.calls] == [
        f"/runtime.{api}.RuntimeService/Version",
        f"/runtime.{api}.ImageService/ListImages",
    ]


def test_an_object_made_by_one_version_is_there_in_the_other(cri: FakeRuntime, client: Any, connect: Any) -> None:
    sandbox_id = client.pod()
    assert [item.id for item in connect(cri.endpoint, "v1alpha2").ListPodSandbox().items] == [sandbox_id]


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("/runtime.v1.RuntimeService/NoSuch", "unknown method NoSuch for service runtime.v1.RuntimeService"),
        ("/runtime.v9.RuntimeService/Version", "unknown service runtime.v9.RuntimeService"),
        (
            "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
            "unknown service grpc.reflection.v1.ServerReflection",
        ),
        ("/foo", 'malformed method name: "/foo"'),
        (
            "/runtime.v1alpha2.RuntimeService/RuntimeConfig",
            "unknown method RuntimeConfig for service runtime.v1alpha2.RuntimeService",
        ),
    ],
)
def test_a_path_that_names_nothing_is_answered_as_grpc_go_does(client: Any, refusal: Any, path: str, text: str) -> None:
    assert refusal(client.raw, path, timeout=10) == (grpc.StatusCode.UNIMPLEMENTED, text)


def test_an_unknown_path_is_answered_before_the_client_sends_a_message(client: Any) -> None:
    gate = threading.Event()

    def nothing_yet() -> Any:
        gate.wait(WITHIN_S)
        yield b""

    stream = client.channel.stream_stream("/no.such.Service/Stream")(nothing_yet(), timeout=WITHIN_S)
    assert stream.code() is grpc.StatusCode.UNIMPLEMENTED
    gate.set()


def test_what_is_served_may_change_while_clients_are_connected(
    cri: FakeRuntime, client: Any, connect: Any, refusal: Any
) -> None:
    old = connect(cri.endpoint, "v1alpha2")
    cri.engine.serve("RuntimeService", frozenset({"v1alpha2"}))
    cri.engine.serve("ImageService", frozenset({"v1"}))
    unimplemented = grpc.StatusCode.UNIMPLEMENTED
    assert refusal(client.Version) == (unimplemented, "unknown service runtime.v1.RuntimeService")
    assert old.Version().runtime_api_version == "v1alpha2"
    assert refusal(old.ListImages) == (unimplemented, "unknown service runtime.v1alpha2.ImageService")
    assert len(client.ListImages().images) == 1


def test_health(client: Any, refusal: Any) -> None:
    assert client.raw("/grpc.health.v1.Health/Check") == b"\x08\x01"
    assert client.raw("/grpc.health.v1.Health/Check", b"\n\x00") == b"\x08\x01"
    assert refusal(client.raw, "/grpc.health.v1.Health/Check", b"\n\x01x") == (
        grpc.StatusCode.NOT_FOUND,
        "unknown service",
    )


def test_health_is_watched_until_the_server_stops(cri: FakeRuntime, client: Any) -> None:
    watch = client.channel.unary_stream("/grpc.health.v1.Health/Watch")(b"", timeout=WITHIN_S)
    unknown = client.channel.unary_stream("/grpc.health.v1.Health/Watch")(b"\n\x01x", timeout=WITHIN_S)
    assert (next(watch), next(unknown)) == (b"\x08\x01", b"\x08\x03")
    cri.close()
    assert list(watch) == [b"\x08\x02"]
    assert list(unknown) == []
    assert len(cri.calls) == 0


def test_a_request_over_16_mib_is_refused_in_grpc_gos_words(cri: FakeRuntime, client: Any, refusal: Any) -> None:
    path = "/runtime.v1.RuntimeService/Version"
    fits = messages.VersionRequest(version="x" * (LIMIT - 5)).SerializeToString()
    assert len(fits) == LIMIT
    assert client.raw(path, fits)
    assert refusal(client.raw, path, fits + b"\x00") == (
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        f"grpc: received message larger than max ({LIMIT + 1} vs. {LIMIT})",
    )
    assert refusal(client.channel.unary_stream("/runtime.v1.RuntimeService/GetContainerEvents"), bytes(LIMIT + 1)) == (
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        f"grpc: received message larger than max ({LIMIT + 1} vs. {LIMIT})",
    )


def test_a_reply_over_16_mib_is_refused_in_grpc_gos_words(cri: FakeRuntime, client: Any, refusal: Any) -> None:
    half = {"note": "x" * (8 << 20)}
    first = client.pod("first", annotations=half)
    assert len(client.ListPodSandbox().items) == 1
    client.pod("second", annotations=half)
    code, text = refusal(client.ListPodSandbox)
    assert code is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert text.startswith("grpc: trying to send message larger than max (1677")
    assert text.endswith(f" vs. {LIMIT})")
    stream = client.channel.unary_stream("/runtime.v1.RuntimeService/StreamPodSandboxes")
    assert refusal(lambda request, **how: list(stream(request, **how)), b"") == (code, text)
    assert {call.reply.code for call in cri.calls.of("StreamPodSandboxes")} == {8}
    client.RemovePodSandbox(pod_sandbox_id=first)
    assert len(client.ListPodSandbox().items) == 1
    assert not cri.failures


def test_a_deadline_reaches_the_waiting_call(cri: FakeRuntime, client: Any, refusal: Any, until: Any) -> None:
    cri.engine.gate = hold_at("checked")
    code, _ = refusal(
        client.RunPodSandbox, config={"metadata": {"name": "a", "namespace": "b", "uid": "c"}}, timeout=0.3
    )
    assert code is grpc.StatusCode.DEADLINE_EXCEEDED
    until(lambda: not cri.engine.open_calls)
    (call,) = cri.calls
    assert call.client_gone
    assert call.time_left_ns is not None
    assert 0 < call.time_left_ns <= 300_000_000
    assert len(cri.sandboxes) == 0


def test_a_cancellation_reaches_the_waiting_call(cri: FakeRuntime, client: Any, until: Any) -> None:
    cri.engine.gate = hold_at("checked")
    metadata = {"name": "a", "namespace": "b", "uid": "c"}
    future = client.method("RunPodSandbox").future(messages.RunPodSandboxRequest(config={"metadata": metadata}))
    until(lambda: cri.engine.open_calls)
    future.cancel()
    until(lambda: not cri.engine.open_calls)
    assert cri.calls[0].client_gone
    assert len(cri.sandboxes) == 0


def test_a_subscriber_that_goes_away_is_forgotten(cri: FakeRuntime, client: Any, until: Any) -> None:
    stream = client.GetContainerEvents()
    until(lambda: cri.engine.open_calls)
    client.pod()
    assert next(stream).container_event_type == messages.CONTAINER_CREATED_EVENT
    stream.cancel()
    until(lambda: not cri.engine.open_calls)
    assert cri.engine.runtime.events.subscribers == []


def test_an_answer_may_come_from_another_thread(cri: FakeRuntime, client: Any, until: Any) -> None:
    cri.engine.gate = hold_at("checked")
    metadata = {"name": "a", "namespace": "b", "uid": "c"}
    future = client.method("RunPodSandbox").future(messages.RunPodSandboxRequest(config={"metadata": metadata}))
    until(lambda: cri.engine.open_calls)
    cri.engine.release(cri.engine.open_calls[0])
    assert future.result(WITHIN_S).pod_sandbox_id in cri.sandboxes


def test_a_slow_reader_holds_up_nobody_but_itself(cri: FakeRuntime, client: Any, connect: Any, until: Any) -> None:
    slow = connect(cri.endpoint).GetContainerEvents()
    quick = connect(cri.endpoint).GetContainerEvents()
    until(lambda: len(cri.engine.open_calls) == 2)
    for number in range(30):
        client.pod(f"pod{number}", annotations={"note": "x" * 100_000})
    seen = [next(quick).container_id for _ in range(60)]
    assert len(set(seen)) == 30
    assert [next(slow).container_id for _ in range(60)] == seen


@pytest.mark.fakecri(node=Node(event_queue_limit=16))
def test_a_reader_that_is_too_slow_loses_its_stream_and_nothing_else(
    cri: FakeRuntime, client: Any, connect: Any, listen: Any, until: Any
) -> None:
    quick = listen(client)
    slow = connect(cri.endpoint).GetContainerEvents()
    until(lambda: len(cri.engine.open_calls) == 2)
    for number in range(100):
        sandbox_id = client.pod(f"pod{number}", annotations={"note": "x" * 100_000})
        until(lambda sandbox_id=sandbox_id: len(quick.of(sandbox_id)) == 2)
    seen = []
    with pytest.raises(grpc.RpcError):
        seen.extend(event.container_id for event in slow)
    assert slow.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert len(cri.engine.open_calls) == 1


def test_metadata_and_connection_are_in_the_record(cri: FakeRuntime, client: Any) -> None:
    client.raw("/runtime.v1.RuntimeService/Version", metadata=(("x-who", "me"),))
    (call,) = cri.calls
    assert ("x-who", "me") in call.metadata
    assert call.connection.startswith("unix:")
    assert call.time_left_ns is None


def test_a_text_that_is_not_ascii_arrives(client: Any, refusal: Any) -> None:
    code, text = refusal(client.ContainerStatus, container_id="näïve→")
    assert code is grpc.StatusCode.NOT_FOUND
    assert "näïve→" in text


def test_an_undecodable_request_is_internal(client: Any, refusal: Any) -> None:
    code, text = refusal(client.raw, "/runtime.v1.RuntimeService/Version", b"\n\x05x")
    assert code is grpc.StatusCode.INTERNAL
    assert text.startswith("grpc: error unmarshalling request: ")


def hold_at(point: str) -> Any:
    """A gate that holds every call at a point."""
    from fakecri.engine import HOLD

    return lambda call, name: HOLD if name == point else None
