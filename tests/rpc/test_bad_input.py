"""What clients must not send: a code, a message that names the object, no traceback, nothing half-made."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakecri.base.reasons import Code
from fakecri.core.rpc.registry import HANDLERS
from fakecri.wire import messages
from fakecri.wire.methods import METHODS

V1 = [spec for spec in METHODS.values() if spec.api == "v1" and spec.name in HANDLERS]
ID_FIELDS = ("container_id", "pod_sandbox_id")
ABOUT_ONE = [
    (spec.name, field) for spec in V1 for field in ID_FIELDS if field in spec.request.DESCRIPTOR.fields_by_name
]
SILENT = {"StopContainer", "RemoveContainer", "StopPodSandbox", "RemovePodSandbox"}
#: Words that only a programming error has.
TRACES = ("Traceback", "unforeseen", "Error(", 'File "', "NoneType")


def assert_polite(reply) -> None:
    assert reply.code != Code.INTERNAL, reply.text
    assert not any(word in reply.text for word in TRACES), reply.text


@pytest.mark.parametrize(("method", "field"), ABOUT_ONE)
def test_a_missing_id_is_refused_by_every_rpc_about_one_object(client, method, field) -> None:
    reply = client.begin(method).reply
    assert reply.code == Code.UNKNOWN
    assert "prefix can't be empty" in reply.text


@pytest.mark.parametrize(("method", "field"), ABOUT_ONE)
@pytest.mark.parametrize("given", ["nope", "../../etc/passwd", "\x00", "x" * 10_000, "ünï"])
def test_an_unknown_id_is_not_found_or_no_matter(client, method, field, given) -> None:
    reply = client.begin(method, **{field: given}).reply
    assert_polite(reply)
    assert reply.code == (Code.OK if method in SILENT else Code.NOT_FOUND)


@pytest.mark.parametrize("spec", V1, ids=lambda spec: spec.name)
def test_bytes_that_are_no_message(client, spec) -> None:
    reply = client.raw(spec.name, b"\xff\xff\xff\xff").reply
    assert (reply.code, reply.text) == (
        Code.INTERNAL,
        "grpc: error unmarshalling request: unexpected EOF",
    )
    assert client.pods() == []


@pytest.mark.parametrize("spec", V1, ids=lambda spec: spec.name)
def test_an_empty_request_never_trips_anything(client, spec) -> None:
    call = client.raw(spec.name, b"")
    if call.reply is None:
        call.cancel()
    else:
        assert_polite(call.reply)
    assert client.pods() == []


@pytest.mark.parametrize("spec", V1, ids=lambda spec: spec.name)
def test_unknown_fields_are_ignored(client, spec) -> None:
    def outcome(body):
        call = client.raw(spec.name, body)
        client.engine.advance(10**9)
        if call.reply is None:
            call.cancel()
            return None
        return call.reply.code, call.reply.text

    unknown = b"\xfa\x3f\x05hello" + b"\xf0\x3f\x07"
    assert outcome(unknown) == outcome(b"")


def test_unknown_fields_of_a_config_do_not_disturb_it(client) -> None:
    config = client.pod_config().SerializeToString() + b"\xfa\x3f\x05hello"
    request = messages.RunPodSandboxRequest(config=messages.PodSandboxConfig.FromString(config))
    pod = client.raw("RunPodSandbox", request.SerializeToString()).answer.pod_sandbox_id
    assert client.pods() == [pod]


def test_text_that_is_not_utf8(client) -> None:
    request = client.request("ContainerStatus", container_id="AAAA").SerializeToString().replace(b"AAAA", b"\xff\xfe!!")
    reply = client.raw("ContainerStatus", request).reply
    assert reply.code == Code.INTERNAL
    assert reply.text.startswith("grpc: error unmarshalling request")


def test_numbers_that_no_enum_has(client) -> None:
    assert client.pods(state=messages.PodSandboxStateValue(state=77)) == []
    assert client.containers(state=messages.ContainerStateValue(state=77)) == []
    pod = client.run_pod()
    container = client.create(pod, stop_signal=9999)
    client.StartContainer(container_id=container)
    client.StopContainer(container_id=container)


@pytest.mark.parametrize("path", ["/var/log/../../etc", "/..", "/var/log/pods/./../../../x"])
def test_paths_with_dots_are_refused_by_name(client, path) -> None:
    pod = client.run_pod()
    for number, config in enumerate(
        (
            {"mounts": [messages.Mount(container_path="/a", host_path=path)]},
            {"devices": [messages.Device(host_path=path, container_path="/dev/a")]},
        )
    ):
        failed = client.refused("CreateContainer", **client.creation(pod, f"c{number}", **config))
        assert path in failed.text
    pod_config = client.pod_config(log_directory=path)
    container = client.create(pod, "logged", pod_config=pod_config, log_path="a.log")
    failed = client.refused("StartContainer", container_id=container)
    assert path in failed.text
    assert client.containers() == [container]


@pytest.mark.parametrize(
    "path",
    ["/foo", "foo", "", "/", "//", "/runtime.v1.RuntimeService", "runtime.v1.RuntimeService/Version"],
)
def test_malformed_paths(client, engine, path) -> None:
    replies = []
    engine.submit(path, b"", on_done=lambda call, reply: replies.append(reply))
    assert replies[0].code == Code.UNIMPLEMENTED
    assert replies[0].text


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("/runtime.v1.RuntimeService/NoSuch", "unknown method NoSuch for service runtime.v1.RuntimeService"),
        ("/runtime.v9.RuntimeService/Version", "unknown service runtime.v9.RuntimeService"),
        ("/runtime.v1.ImageService/Version", "unknown method Version for service runtime.v1.ImageService"),
    ],
)
def test_unknown_services_and_methods(client, engine, path, text) -> None:
    replies = []
    engine.submit(path, b"", on_done=lambda call, reply: replies.append(reply))
    assert (replies[0].code, replies[0].text) == (Code.UNIMPLEMENTED, text)


@given(spec=st.sampled_from(V1), body=st.binary(max_size=40))
def test_any_bytes_at_all(module_client, spec, body) -> None:
    """Random bodies: an answer or a wait, never something unforeseen (the engine's fixture checks that)."""
    client = module_client
    call = client.raw(spec.name, body)
    client.engine.advance(10**9)
    if call.reply is None:
        call.cancel()
    assert not call.open
    assert not client.engine.failures
