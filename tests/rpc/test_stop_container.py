"""StopContainer and RemoveContainer: stop signal, grace, SIGKILL; who waits, who interrupts; both can be repeated."""

from __future__ import annotations

import pytest

from fakecri.base.reasons import Code
from fakecri.clock import SECOND
from fakecri.core import processes
from fakecri.core.states import ContainerState
from fakecri.core.traits import OnClientGone, OnUnknown, RunningOnRemove
from fakecri.kernel.signals import Signal
from fakecri.personality.model import derive
from fakecri.personality.registry import PERSONALITIES
from fakecri.wire import messages

#: Ends at once on SIGTERM: what an image made up for an unknown reference runs.
OBEDIENT = "example.com/obedient:1"


def relative(**traits):
    return derive(PERSONALITIES["reference"], name="relative", summary="", traits=traits)


@pytest.fixture
def pod(client):
    client.pull(OBEDIENT)
    return client.run_pod()


@pytest.fixture
def stubborn(client, pod):
    """`sleep`: a first process without a handler, which SIGTERM does not end."""
    return client.run(pod, "stubborn")


def obedient(client, pod, name="obedient", **config):
    return client.run(pod, name, image=OBEDIENT, command=[], **config)


def elapsed(client, call) -> int:
    before = client.engine.clock.now_ns
    call()
    return client.engine.clock.now_ns - before


def test_a_process_that_obeys_ends_at_once(client, pod) -> None:
    container = obedient(client, pod)
    assert elapsed(client, lambda: client.StopContainer(container_id=container, timeout=30)) < SECOND
    status = client.status(container)
    assert status.state == messages.CONTAINER_EXITED
    assert status.exit_code in (0, 143)
    assert status.finished_at >= status.started_at


def test_a_process_that_does_not_is_killed_after_its_grace(client, stubborn) -> None:
    assert elapsed(client, lambda: client.StopContainer(container_id=stubborn, timeout=7)) == 7 * SECOND
    status = client.status(stubborn)
    assert (status.state, status.exit_code, status.reason) == (messages.CONTAINER_EXITED, 137, "Error")


@pytest.mark.parametrize("timeout", [0, -1, -(2**62)])
def test_no_grace_means_kill_at_once(client, stubborn, timeout) -> None:
    assert elapsed(client, lambda: client.StopContainer(container_id=stubborn, timeout=timeout)) == 0
    assert client.status(stubborn).exit_code == 137


def test_an_enormous_grace_is_no_problem(client, pod) -> None:
    container = obedient(client, pod)
    client.StopContainer(container_id=container, timeout=2**62)
    assert client.status(container).state == messages.CONTAINER_EXITED


def test_the_stop_signal_is_the_configs_else_the_images(client, pod) -> None:
    signals = []
    machine = client.engine.runtime.machine
    send = machine.signal

    def watch(process, number, **how):
        signals.append(number)
        send(process, number, **how)

    machine.signal = watch
    nginx = "docker.io/library/nginx:1.27"
    client.pull(nginx)
    for name, image, config in (
        ("plain", OBEDIENT, {}),
        ("image", nginx, {}),
        ("config", nginx, {"stop_signal": messages.SIGNAL_SIGUSR1}),
    ):
        container = client.run(pod, name, image=image, command=["sleep", "3600"], **config)
        client.StopContainer(container_id=container, timeout=1)
    del machine.signal
    assert [number for number in signals if number != Signal.KILL] == [Signal.TERM, Signal.QUIT, Signal.USR1]


def test_the_call_returns_when_the_process_ends_by_itself(client, pod) -> None:
    container = client.run(pod, command=["sleep", "3"])
    assert 2 * SECOND < elapsed(client, lambda: client.StopContainer(container_id=container, timeout=10)) < 4 * SECOND
    assert client.status(container).exit_code == 0


def test_stopping_can_be_repeated_in_every_state(client, pod, stubborn) -> None:
    created = client.create(pod, "created")
    client.StopContainer(container_id=created, timeout=10)
    assert client.status(created).state == messages.CONTAINER_CREATED
    for _ in range(3):
        client.StopContainer(container_id=stubborn)
    before = client.status(stubborn)
    client.StopContainer(container_id=stubborn, timeout=5)
    assert client.status(stubborn) == before


def test_stops_at_once_from_several_clients(client, stubborn) -> None:
    slow = client.begin("StopContainer", container_id=stubborn, timeout=60)
    client.engine.advance(SECOND)
    quicker = client.begin("StopContainer", container_id=stubborn, timeout=5)
    client.engine.advance(5 * SECOND - 1)
    assert slow.open
    assert quicker.open
    client.engine.advance(1)
    assert slow.answer is not None
    assert quicker.answer is not None
    assert client.status(stubborn).exit_code == 137


def test_one_kill_answers_all(client, stubborn) -> None:
    calls = [client.begin("StopContainer", container_id=stubborn, timeout=60) for _ in range(3)]
    client.StopContainer(container_id=stubborn, timeout=0)
    assert all(call.answer is not None for call in calls)


def test_a_client_that_goes_away_leaves_the_container_running(client, stubborn) -> None:
    call = client.begin("StopContainer", container_id=stubborn, timeout=5)
    client.engine.advance(3 * SECOND)
    call.cancel()
    assert not call.open
    client.engine.advance(60 * SECOND)
    assert call.reply is None
    assert client.status(stubborn).state == messages.CONTAINER_RUNNING
    client.StopContainer(container_id=stubborn, timeout=1)
    assert client.status(stubborn).state == messages.CONTAINER_EXITED


def test_where_a_call_outlives_its_client_the_container_ends(make_client) -> None:
    client = make_client(personality=relative(on_client_gone=OnClientGone.CONTINUE))
    container = client.run(client.run_pod())
    call = client.begin("StopContainer", container_id=container, timeout=5)
    call.cancel()
    assert client.status(container).state == messages.CONTAINER_RUNNING
    client.engine.advance(5 * SECOND)
    assert client.status(container).state == messages.CONTAINER_EXITED
    assert call.reply is None
    assert not call.open


@pytest.mark.parametrize("method", ["StopContainer", "RemoveContainer"])
def test_unknown_ids(client, make_client, method) -> None:
    getattr(client, method)(container_id="x")
    pod = client.run_pod()
    getattr(client, method)(container_id=pod)  # a pod's id is no container's
    assert client.pods() == [pod]
    failed = client.refused(method)
    assert failed.code == Code.UNKNOWN
    assert failed.text == 'an error occurred when try to find container "": prefix can\'t be empty'
    strict = make_client(
        personality=relative(stop_unknown_container=OnUnknown.NOT_FOUND, remove_unknown_container=OnUnknown.NOT_FOUND)
    )
    failed = strict.refused(method, container_id="x")
    text = 'an error occurred when try to find container "x": not found'
    assert (failed.code, failed.text) == (Code.NOT_FOUND, text)


@pytest.mark.parametrize("method", ["StopContainer", "RemoveContainer"])
def test_an_ambiguous_id_is_refused(client, method) -> None:
    pod = client.run_pod()
    ids = [client.create(pod, f"c{number}") for number in range(17)]
    firsts = [container[:1] for container in ids]
    shared = next(digit for digit in firsts if firsts.count(digit) > 1)
    failed = client.refused(method, container_id=shared)
    assert failed.text.endswith(f"Multiple IDs found with provided prefix: {shared}")
    assert client.containers() == ids


def test_a_container_can_be_removed_in_any_state(client, pod, stubborn) -> None:
    created = client.create(pod, "created")
    exited = client.run(pod, "exited", command=["true"])
    client.engine.advance(SECOND)
    pid = client.engine.runtime.container(stubborn).process.pid
    for container in (created, exited, stubborn):
        client.RemoveContainer(container_id=container)
        client.RemoveContainer(container_id=container)
    assert client.containers() == []
    assert client.refused("ContainerStatus", container_id=stubborn).code == Code.NOT_FOUND
    assert pid not in client.engine.runtime.machine.processes
    assert client.pods() == [pod]


def test_a_lost_container_can_be_stopped_and_removed(client, pod) -> None:
    runtime = client.engine.runtime
    for number in range(2):
        container = runtime.container(client.run(pod, f"c{number}"))
        processes.lose_container(runtime, container)
        assert container.state is ContainerState.UNKNOWN
        status = client.status(container.id)
        assert (status.state, status.exit_code, status.reason) == (messages.CONTAINER_UNKNOWN, 255, "Unknown")
        assert container.process is None
        if number:
            client.StopContainer(container_id=container.id)
            assert client.status(container.id).state == messages.CONTAINER_EXITED
            assert client.status(container.id).finished_at > 0
        client.RemoveContainer(container_id=container.id)
    assert client.containers() == []


def test_a_container_that_is_lost_while_it_is_being_stopped_counts_as_ended(client, stubborn) -> None:
    call = client.begin("StopContainer", container_id=stubborn, timeout=30)
    processes.lose_container(client.engine.runtime, client.engine.runtime.container(stubborn))
    client.engine.advance(0)
    assert call.answer is not None
    assert client.status(stubborn).state == messages.CONTAINER_EXITED
    assert client.status(stubborn).finished_at > 0


def test_a_runtime_may_refuse_to_remove_what_runs(make_client) -> None:
    client = make_client(personality=relative(running_on_remove=RunningOnRemove.REFUSE))
    container = client.run(client.run_pod())
    failed = client.refused("RemoveContainer", container_id=container)
    assert "container is in CONTAINER_RUNNING state" in failed.text
    client.StopContainer(container_id=container)
    client.RemoveContainer(container_id=container)


def test_a_runtime_may_remove_what_runs_with_grace(make_client) -> None:
    client = make_client(personality=relative(running_on_remove=RunningOnRemove.GRACEFUL))
    container = client.run(client.run_pod())
    assert elapsed(client, lambda: client.RemoveContainer(container_id=container)) == 10 * SECOND
    assert client.containers() == []


def test_a_removal_whose_client_goes_away_leaves_the_container(make_client) -> None:
    client = make_client(personality=relative(running_on_remove=RunningOnRemove.GRACEFUL))
    container = client.run(client.run_pod())
    call = client.begin("RemoveContainer", container_id=container)
    client.engine.advance(SECOND)
    call.cancel()
    assert client.status(container).state == messages.CONTAINER_RUNNING
    client.engine.advance(60 * SECOND)
    assert client.containers() == [container]


def test_a_container_that_starts_while_it_is_being_removed_goes_too(client, pod, gate) -> None:
    container = client.create(pod)
    gate.hold("RemoveContainer", "before_commit")
    call = client.begin("RemoveContainer", container_id=container)
    client.StartContainer(container_id=container)
    gate.release()
    assert call.answer is not None
    assert client.containers() == []


def test_of_two_removals_at_once_both_succeed(client, stubborn, gate) -> None:
    gate.hold("RemoveContainer", "before_commit")
    first = client.begin("RemoveContainer", container_id=stubborn)
    gate.at.clear()
    client.RemoveContainer(container_id=stubborn)
    gate.release()
    assert first.answer is not None
    assert client.containers() == []
