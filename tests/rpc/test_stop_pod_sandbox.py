"""StopPodSandbox and RemovePodSandbox: what they end, give back and forget; both can be repeated."""

from __future__ import annotations

import pytest

from fakecri.base.reasons import Code
from fakecri.clock import SECOND
from fakecri.core.node import Node
from fakecri.core.traits import AddressAfterStop, RunningOnSandboxStop
from fakecri.kernel.signals import Signal
from fakecri.personality.model import derive
from fakecri.personality.registry import PERSONALITIES
from fakecri.wire import messages

GENTLE = derive(
    PERSONALITIES["reference"],
    name="gentle",
    summary="",
    traits={
        "running_on_sandbox_stop": RunningOnSandboxStop.GRACEFUL,
        "address_after_stop": AddressAfterStop.KEPT,
    },
    behaviour={"strategies": {"grace": "client-deadline"}},
)


def kill_sandbox_process(client, pod) -> None:
    runtime = client.engine.runtime
    runtime.machine.signal(runtime.sandbox(pod).process, Signal.KILL)
    client.engine.advance(0)


def test_stop_ends_what_runs_and_keeps_what_is_created(client) -> None:
    pod = client.run_pod()
    running, created = client.run(pod, "running"), client.create(pod, "created")
    client.StopPodSandbox(pod_sandbox_id=pod)
    assert client.pod_status(pod).state == messages.SANDBOX_NOTREADY
    assert client.pod_status(pod).network.ip == ""
    ended = client.status(running)
    assert (ended.state, ended.exit_code, ended.reason) == (messages.CONTAINER_EXITED, 137, "Error")
    assert client.status(created).state == messages.CONTAINER_CREATED
    assert client.engine.runtime.sandbox(pod).process is None


def test_a_prefix_of_the_id_is_enough(client) -> None:
    pod = client.run_pod()
    client.StopPodSandbox(pod_sandbox_id=pod[:13])
    client.RemovePodSandbox(pod_sandbox_id=pod[:5])
    assert client.pods() == []


def test_both_can_be_repeated_and_both_accept_an_unknown_id(client) -> None:
    pod = client.run_pod()
    for _ in range(2):
        client.StopPodSandbox(pod_sandbox_id=pod)
    for _ in range(2):
        client.RemovePodSandbox(pod_sandbox_id=pod)
    client.StopPodSandbox(pod_sandbox_id=pod)
    client.StopPodSandbox(pod_sandbox_id="no-such-pod")
    client.RemovePodSandbox(pod_sandbox_id="no-such-pod")


def test_the_older_containerd_refuses_to_stop_what_it_does_not_know(make_client) -> None:
    client = make_client(personality="containerd-1.6")
    failed = client.refused("StopPodSandbox", pod_sandbox_id="x")
    text = 'an error occurred when try to find sandbox "x": not found'
    assert (failed.code, failed.text) == (Code.NOT_FOUND, text)
    client.RemovePodSandbox(pod_sandbox_id="x")


@pytest.mark.parametrize("method", ["StopPodSandbox", "RemovePodSandbox"])
def test_empty_and_ambiguous_ids_are_refused(client, method) -> None:
    failed = client.refused(method)
    assert failed.code == Code.UNKNOWN
    assert failed.text == 'an error occurred when try to find sandbox "": prefix can\'t be empty'
    for number in range(17):
        client.run_pod(f"pod-{number}")
    ids = [pod[:1] for pod in client.pods()]
    shared = next(digit for digit in ids if ids.count(digit) > 1)
    failed = client.refused(method, pod_sandbox_id=shared)
    assert failed.text.endswith(f"Multiple IDs found with provided prefix: {shared}")
    assert len(client.pods()) == 17


def test_removing_a_ready_pod_stops_it_and_takes_its_containers(client) -> None:
    pod, other = client.run_pod(), client.run_pod("other")
    client.run(pod, "running")
    client.create(pod, "created")
    kept = client.run(other, pod_config=client.pod_config("other"))
    client.RemovePodSandbox(pod_sandbox_id=pod)
    assert client.pods() == [other]
    assert client.containers() == [kept]
    failed = client.refused("PodSandboxStatus", pod_sandbox_id=pod)
    assert (failed.code, failed.text) == (
        Code.NOT_FOUND,
        "an error occurred when try to find sandbox: not found",
    )


def test_a_container_that_ignores_the_stop_signal_still_goes_at_once(client) -> None:
    pod = client.run_pod()
    client.run(pod, command=["sleep", "3600"])
    before = client.engine.clock.now_ns
    client.StopPodSandbox(pod_sandbox_id=pod)
    assert client.engine.clock.now_ns == before


def test_a_gentle_runtime_gives_grace_out_of_the_clients_deadline(make_client) -> None:
    client = make_client(personality=GENTLE)
    pod = client.run_pod()
    running, created = client.run(pod, "running"), client.create(pod, "created")
    address = client.pod_status(pod).network.ip
    call = client.begin("StopPodSandbox", pod_sandbox_id=pod, time_left_ns=5 * SECOND)
    client.engine.advance(4 * SECOND - 1)
    assert call.open
    assert client.status(running).state == messages.CONTAINER_RUNNING
    assert client.pod_status(pod).state == messages.SANDBOX_READY
    client.engine.advance(1)
    assert call.answer is not None
    assert client.status(running).exit_code == 137
    assert client.status(created).state == messages.CONTAINER_CREATED
    assert client.pod_status(pod).network.ip == address  # shown, but given back
    assert client.engine.runtime.sandbox(pod).addresses == (address,)


def test_without_a_deadline_the_gentle_grace_is_nine_seconds(make_client) -> None:
    client = make_client(personality=GENTLE)
    pod = client.run_pod()
    for name in ("one", "two", "three"):  # they have it together, not one after the other
        client.run(pod, name)
    before = client.engine.clock.now_ns
    client.StopPodSandbox(pod_sandbox_id=pod)
    assert client.engine.clock.now_ns - before == 9 * SECOND


def test_a_stop_that_is_cancelled_in_the_middle_can_be_repeated(make_client) -> None:
    client = make_client(personality=GENTLE)
    pod = client.run_pod()
    running = client.run(pod)
    call = client.begin("StopPodSandbox", pod_sandbox_id=pod)
    client.engine.advance(SECOND)
    call.cancel()
    assert client.pod_status(pod).state == messages.SANDBOX_READY
    assert client.status(running).state == messages.CONTAINER_RUNNING
    client.StopPodSandbox(pod_sandbox_id=pod)
    assert client.pod_status(pod).state == messages.SANDBOX_NOTREADY


def test_a_container_started_while_the_pod_is_being_stopped_does_not_outlive_it(client, gate) -> None:
    pod = client.run_pod()
    late = client.create(pod)
    gate.hold("StopPodSandbox", "before_commit")
    call = client.begin("StopPodSandbox", pod_sandbox_id=pod)
    client.StartContainer(container_id=late)
    gate.release()
    assert call.answer is not None
    assert client.pod_status(pod).state == messages.SANDBOX_NOTREADY
    assert client.status(late).state == messages.CONTAINER_EXITED


def test_a_container_started_while_the_pod_is_being_removed_goes_with_it(client, gate) -> None:
    pod = client.run_pod()
    late = client.create(pod)
    gate.hold("StopPodSandbox", "before_commit")
    gate.hold("RemovePodSandbox", "before_commit")
    call = client.begin("RemovePodSandbox", pod_sandbox_id=pod)
    client.StartContainer(container_id=late)
    gate.release()
    assert call.answer is not None
    assert (client.pods(), client.containers()) == ([], [])


def test_without_a_network_a_stop_fails_but_the_pod_is_stopped(client) -> None:
    pod = client.run_pod()
    client.engine.runtime.conditions["NetworkReady"] = (False, "NetworkPluginNotReady", "no CNI")
    failed = client.refused("StopPodSandbox", pod_sandbox_id=pod)
    text = f'failed to destroy network for sandbox "{pod}": cni plugin not initialized'
    assert (failed.code, failed.text) == (Code.UNKNOWN, text)
    assert client.pod_status(pod).state == messages.SANDBOX_NOTREADY
    client.StopPodSandbox(pod_sandbox_id=pod)
    client.RemovePodSandbox(pod_sandbox_id=pod)


def test_a_pod_whose_own_process_dies_is_not_ready_while_its_containers_run_on(client) -> None:
    pod = client.run_pod()
    container = client.run(pod)
    address = client.pod_status(pod).network.ip
    kill_sandbox_process(client, pod)
    assert client.pod_status(pod).state == messages.SANDBOX_NOTREADY
    assert client.pod_status(pod).network.ip == address
    assert client.status(container).state == messages.CONTAINER_RUNNING
    client.StopPodSandbox(pod_sandbox_id=pod)
    assert client.status(container).state == messages.CONTAINER_EXITED
    assert client.pod_status(pod).network.ip == ""


def test_removing_a_pod_that_died_gives_its_address_and_host_ports_back(make_client) -> None:
    client = make_client(node=Node(pod_cidrs=("10.9.0.0/29",)))
    mapping = messages.PortMapping(container_port=80, host_port=8080)
    for number in range(20):
        pod = client.run_pod(f"pod-{number}", port_mappings=[mapping])
        kill_sandbox_process(client, pod)
        client.RemovePodSandbox(pod_sandbox_id=pod)
    client.run_pod("last", port_mappings=[mapping])
