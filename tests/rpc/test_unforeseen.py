"""What no rule foresaw ends one call with INTERNAL and its number, is kept with its traceback, and harms no other."""

from __future__ import annotations

import pytest

from fakecri.base.reasons import Code, Reason
from fakecri.personality.model import derive
from fakecri.personality.registry import PERSONALITIES
from fakecri.wire import messages


@pytest.fixture
def failures(client):
    """What the runtime recorded; these tests mean it to."""
    yield client.engine.failures
    client.engine.failures.clear()


def test_a_refusal_without_words(make_client) -> None:
    speechless = derive(
        PERSONALITIES["reference"], name="speechless", summary="", forms={(Reason.SANDBOX_NAME_RESERVED, None): None}
    )
    client = make_client(personality=speechless)
    client.run_pod()
    failed = client.refused("RunPodSandbox", config=client.pod_config())
    assert failed.code == Code.INTERNAL
    assert "personality speechless has no form for SANDBOX_NAME_RESERVED" in failed.text
    assert len(client.engine.failures) == 1
    client.engine.failures.clear()
    client.run_pod("other")


def test_a_refusal_without_any_words_at_all(make_client) -> None:
    forms = {(Reason.SANDBOX_NOT_FOUND, None): None, (Reason.UNFORESEEN, None): None}
    client = make_client(personality=derive(PERSONALITIES["reference"], name="mute", summary="", forms=forms))
    failed = client.refused("PodSandboxStatus", pod_sandbox_id="x")
    assert failed.code == Code.INTERNAL
    assert "SANDBOX_NOT_FOUND" in failed.text
    client.engine.failures.clear()


def test_a_rule_that_breaks(client, failures) -> None:
    pod = client.run_pod()

    def broken(call, point):
        raise ZeroDivisionError("a rule divides")

    client.engine.gate = broken
    failed = client.refused("CreateContainer", **client.creation(pod))
    client.engine.gate = None
    assert (failed.code, "a rule divides" in failed.text) == (Code.INTERNAL, True)
    assert "ZeroDivisionError" in failures[0]
    assert client.containers() == []
    client.create(pod)


def test_a_port_that_breaks(client, failures) -> None:
    def broken(request, answer):
        raise ZeroDivisionError("a port divides")

    ports, client.engine._ports = client.engine._ports, {"logs": broken}
    config = client.pod_config(log_directory="/var/log/p")
    container = client.create(client.run_pod(), pod_config=config, log_path="a.log")
    failed = client.refused("StartContainer", container_id=container)
    assert (failed.code, "a port divides" in failed.text) == (Code.INTERNAL, True)
    assert failures
    client.engine._ports = ports
    assert client.status(container).state == messages.CONTAINER_CREATED
    client.StartContainer(container_id=container)
    assert not client.engine.waits_for_others


def test_a_port_that_is_not_there(client, failures) -> None:
    ports, client.engine._ports = client.engine._ports, {}
    config = client.pod_config(log_directory="/var/log/p")
    container = client.create(client.run_pod(), pod_config=config, log_path="a.log")
    assert client.refused("StartContainer", container_id=container).code == Code.INTERNAL
    assert failures
    client.engine._ports = ports


def test_a_port_that_answers_twice_or_breaks_after_its_answer(client, failures) -> None:
    def twice(request, answer):
        answer(None)
        answer(None)

    ports, client.engine._ports = client.engine._ports, {"logs": twice}
    config = client.pod_config(log_directory="/var/log/p")
    container = client.create(client.run_pod(), pod_config=config, log_path="a.log")
    client.StartContainer(container_id=container)
    assert any("port logs answered twice" in failure for failure in failures)
    client.engine._ports = ports


def test_a_message_that_cannot_be_encoded(client, failures) -> None:
    def broken(call, message):
        raise ZeroDivisionError("an encoder divides")

    client.run_pod()
    encode, client.engine._pipeline.encode = client.engine._pipeline.encode, broken
    call, other = client.begin("StreamPodSandboxes"), client.begin("GetContainerEvents")
    client.engine._pipeline.encode = encode
    assert call.reply.code == Code.INTERNAL
    assert "an encoder divides" in failures[0]
    assert other.open
    client.run_pod("more")
    assert len(other.taken()) == 2
    other.cancel()
