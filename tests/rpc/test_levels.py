"""Levels and API versions: what is newer than the level does not exist; both versions are one runtime."""

from __future__ import annotations

import pytest

from fakecri.base.reasons import Code
from fakecri.core.rpc.registry import HANDLERS
from fakecri.wire import messages
from fakecri.wire.levels import LEVELS, Level
from fakecri.wire.methods import METHODS


def outcome(client, method):
    call = client.begin(method)
    client.engine.advance(10**9)
    if call.reply is None:
        call.cancel()
        return Code.OK, ""
    return call.reply.code, call.reply.text


@pytest.mark.parametrize("api", ["v1", "v1alpha2"])
@pytest.mark.parametrize("minor", [18, 20, 23, 25, 26, 28, 32, 36, 37])
def test_an_rpc_exists_from_its_release_on(make_engine, make_client, minor, api) -> None:
    level = Level(1, minor)
    if level < LEVELS[api][0]:
        with pytest.raises(ValueError, match="level"):
            make_engine(level=level, apis=frozenset({api}))
        return
    client = make_client(level=level, api=api)
    for spec in METHODS.values():
        if spec.api == api and spec.name in HANDLERS:
            code, text = outcome(client, spec.name)
            missing = f"unknown method {spec.name} for service runtime.{api}.{spec.service}"
            known = spec.since <= min(level, LEVELS[api][-1])
            assert (code == Code.UNIMPLEMENTED) == (not known), (spec.name, text)
            assert known or text == missing


def test_a_field_newer_than_the_level_is_neither_read_nor_shown(make_client) -> None:
    new, old = make_client(level=Level(1, 37)), make_client(level=Level(1, 25))
    shown = []
    for client in (new, old):
        pod = client.run_pod()
        container = client.create(pod, stop_signal=messages.SIGNAL_SIGUSR1)
        assert client.engine.runtime.container(container).stop_signal == (10 if client is new else 15)
        status, item = client.status(container), client.ListContainers().containers[0]
        shown.append((status.stop_signal, bool(status.image_id), status.HasField("user"), bool(item.image_id)))
        assert status.HasField("resources")
    assert shown == [(messages.SIGNAL_SIGUSR1, True, True, True), (0, False, False, False)]


def test_lists_of_both_versions_show_what_each_has(make_client) -> None:
    client = make_client(level=Level(1, 37))
    alpha = client.as_api("v1alpha2")
    pod = client.run_pod()
    container = client.create(pod)
    assert client.ListContainers().containers[0].image_id
    assert alpha.ListContainers().containers[0].image_id == ""
    assert alpha.containers() == client.containers() == [container]
    client.StartContainer(container_id=container)
    assert alpha.ListContainers().containers[0].state == messages.CONTAINER_RUNNING
    assert client.ListContainers().containers[0].image_id


def test_both_versions_are_one_runtime(client) -> None:
    alpha = client.as_api("v1alpha2")
    pod = alpha.run_pod()
    container = client.run(pod)
    assert alpha.status(container).state == messages.CONTAINER_RUNNING
    alpha.StopContainer(container_id=container)
    assert client.status(container).state == messages.CONTAINER_EXITED
    alpha.RemovePodSandbox(pod_sandbox_id=pod)
    assert client.pods() == alpha.pods() == []
    for api in (client, alpha):
        assert api.refused("PodSandboxStatus", pod_sandbox_id=pod).code == Code.NOT_FOUND


def test_an_alpha_client_cannot_reach_what_only_v1_has(client) -> None:
    alpha = client.as_api("v1alpha2")
    request = client.request("UpdateContainerResources", container_id="x").SerializeToString()
    assert alpha.raw("UpdateContainerResources", request).reply.code == Code.NOT_FOUND
    pod = client.run_pod()
    config = client.creation(pod, stop_signal=messages.SIGNAL_SIGUSR1)
    container = alpha.CreateContainer(**config).container_id
    assert client.engine.runtime.container(container).stop_signal == 15


def test_values_that_are_not_utf8_in_the_environment(make_client) -> None:
    client = make_client()
    alpha = client.as_api("v1alpha2")
    pod = client.run_pod()
    envs = [messages.KeyValue(key="A", value=b"ok"), messages.KeyValue(key="B", value=b"\xff\xfe")]
    container = client.run(pod, envs=envs)
    assert client.engine.runtime.container(container).process.environment["B"] == "\udcff\udcfe"
    failed = alpha.refused("CreateContainer", **alpha.creation(pod, "alpha", envs=envs))
    assert failed.code == Code.INTERNAL
    assert "config.envs[1].value contains invalid UTF-8" in failed.text
    old = make_client(level=Level(1, 36))
    failed = old.refused("CreateContainer", **old.creation(old.run_pod(), envs=envs))
    assert failed.code == Code.INTERNAL


def test_events_show_what_the_level_has(make_client) -> None:
    client = make_client(level=Level(1, 26))
    call = client.begin("GetContainerEvents")
    client.create(client.run_pod())
    events = call.taken()
    assert events[-1].containers_statuses[0].image_id == ""
    call.cancel()


def test_a_service_can_stop_and_begin_to_answer_a_version(client) -> None:
    client.engine.serve("RuntimeService", frozenset({"v1alpha2"}))
    failed = client.refused("Version")
    assert (failed.code, failed.text) == (Code.UNIMPLEMENTED, "unknown service runtime.v1.RuntimeService")
    assert client.as_api("v1alpha2").Version().runtime_api_version == "v1alpha2"
    assert client.ListImages().images
    client.engine.serve("RuntimeService", frozenset({"v1"}))
    assert client.Version().runtime_api_version == "v1"
    client.engine.serve("ImageService", frozenset())
    assert client.refused("ListImages").text == "unknown service runtime.v1.ImageService"


def test_what_cannot_be_served_is_refused(make_engine, engine) -> None:
    with pytest.raises(ValueError, match="v2"):
        make_engine(apis=frozenset({"v2"}))
    with pytest.raises(ValueError, match="v1alpha2 alone"):
        make_engine(level=Level(1, 19), apis=frozenset({"v1"}))
    with pytest.raises(ValueError, match="unknown service 'X'"):
        engine.serve("X", frozenset())
    with pytest.raises(ValueError, match="cannot serve v3"):
        engine.serve("ImageService", frozenset({"v3"}))
    assert make_engine(level=Level(1, 19)).served["RuntimeService"] == {"v1alpha2"}


@pytest.mark.parametrize("personality", ["containerd-1.6", "containerd-2.1"])
def test_a_personality_lacks_what_its_runtime_lacks(make_client, personality) -> None:
    client = make_client(personality=personality)
    for method in client.engine.personality.behaviour.unimplemented:
        code, text = outcome(client, method)
        assert code == Code.UNIMPLEMENTED, method
        assert method in text
