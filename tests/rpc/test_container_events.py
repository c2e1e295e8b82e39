"""GetContainerEvents: the four types in order, what each holds, and that a slow reader harms only itself."""

from __future__ import annotations

import pytest

from fakecri.base.reasons import Code
from fakecri.clock import SECOND
from fakecri.core.node import Node
from fakecri.engine import CallFailed
from fakecri.kernel.signals import Signal
from fakecri.personality.model import derive
from fakecri.personality.registry import PERSONALITIES
from fakecri.wire import messages

CREATED = messages.CONTAINER_CREATED_EVENT
STARTED = messages.CONTAINER_STARTED_EVENT
STOPPED = messages.CONTAINER_STOPPED_EVENT
DELETED = messages.CONTAINER_DELETED_EVENT


def told(events):
    return [(event.container_event_type, event.container_id) for event in events]


@pytest.fixture
def follower(client):
    """An open stream."""
    call = client.begin("GetContainerEvents")
    yield call
    call.cancel()


def test_a_life_in_events(client, follower) -> None:
    pod = client.run_pod()
    assert told(follower.taken()) == [(CREATED, pod), (STARTED, pod)]
    container = client.create(pod)
    assert told(follower.taken()) == [(CREATED, container)]
    client.StartContainer(container_id=container)
    assert told(follower.taken()) == [(STARTED, container)]
    client.StopContainer(container_id=container)
    assert told(follower.taken()) == [(STOPPED, container)]
    client.StopContainer(container_id=container)
    client.UpdateContainerResources(container_id=container)
    assert follower.taken() == []
    client.RemoveContainer(container_id=container)
    assert told(follower.taken()) == [(DELETED, container)]
    client.StopPodSandbox(pod_sandbox_id=pod)
    assert told(follower.taken()) == [(STOPPED, pod)]
    client.StopPodSandbox(pod_sandbox_id=pod)
    client.RemovePodSandbox(pod_sandbox_id=pod)
    assert told(follower.taken()) == [(DELETED, pod)]


def test_a_pods_end_tells_of_its_containers_first(client, follower) -> None:
    pod = client.run_pod()
    running, created = client.run(pod, "running"), client.create(pod, "created")
    follower.taken()
    client.StopPodSandbox(pod_sandbox_id=pod)
    assert told(follower.taken()) == [(STOPPED, running), (STOPPED, pod)]
    client.RemovePodSandbox(pod_sandbox_id=pod)
    assert told(follower.taken()) == [(DELETED, running), (DELETED, created), (DELETED, pod)]


def test_an_end_of_its_own_a_failed_start_and_a_dead_pod(client, follower) -> None:
    pod = client.run_pod()
    short, broken = client.run(pod, "short", command=["false"]), client.create(pod, "broken", command=["/no"])
    follower.taken()
    client.engine.advance(SECOND)
    assert told(follower.taken()) == [(STOPPED, short)]
    client.refused("StartContainer", container_id=broken)
    assert follower.taken() == []
    runtime = client.engine.runtime
    runtime.machine.signal(runtime.sandbox(pod).process, Signal.KILL)
    client.engine.advance(0)
    assert told(follower.taken()) == [(STOPPED, pod)]


def test_an_event_holds_the_pod_and_all_its_containers_as_they_were(client, follower) -> None:
    pod = client.run_pod(labels={"app": "web"})
    client.create(pod, "other")
    container = client.run(pod, command=["false"])
    status_then = client.status(container)
    client.engine.advance(SECOND)
    events = follower.taken()
    started, stopped = events[-2:]
    assert (started.container_id, stopped.container_id) == (container, container)
    assert started.pod_sandbox_status == client.pod_status(pod)
    assert [status.metadata.name for status in started.containers_statuses] == ["other", "main"]
    assert started.containers_statuses[1] == status_then
    ended = stopped.containers_statuses[1]
    assert (ended.state, ended.exit_code, ended.reason) == (messages.CONTAINER_EXITED, 1, "Error")
    assert ended.finished_at <= stopped.created_at
    stamps = [event.created_at for event in events]
    assert stamps == sorted(set(stamps))


def test_what_is_removed_is_no_more_in_its_event(client, follower) -> None:
    pod = client.run_pod()
    container = client.create(pod)
    client.RemoveContainer(container_id=container)
    assert not follower.taken()[-1].containers_statuses
    client.RemovePodSandbox(pod_sandbox_id=pod)
    stopped, deleted = follower.taken()
    assert stopped.pod_sandbox_status.state == messages.SANDBOX_NOTREADY
    assert stopped.pod_sandbox_status.network.ip  # still there, as containerd tells it
    assert deleted.pod_sandbox_status.id == pod
    assert deleted.pod_sandbox_status.network.ip == ""


def test_every_reader_gets_every_event_from_its_own_beginning(client) -> None:
    first = client.begin("GetContainerEvents")
    pod = client.run_pod()
    second = client.begin("GetContainerEvents")
    client.create(pod)
    assert len(first.taken()) == 3
    assert len(second.taken()) == 1
    first.cancel()
    client.StopPodSandbox(pod_sandbox_id=pod)
    assert len(second.taken()) == 1
    assert first.taken() == []
    second.cancel()
    assert client.engine.runtime.events.subscribers == []


def test_a_slow_reader_loses_its_stream_and_nobody_else_notices(make_client) -> None:
    client = make_client(node=Node(event_queue_limit=10))
    slow, quick = client.begin("GetContainerEvents"), client.begin("GetContainerEvents")
    seen = []
    for number in range(10):
        client.run_pod(f"pod-{number}")
        seen += quick.taken()
    assert len(seen) == 20
    assert len(slow.bodies) == 1  # what the transport has not taken yet
    assert slow.open
    slow.taken()
    assert not slow.open
    assert slow.reply.code == Code.RESOURCE_EXHAUSTED
    assert "more than 10 events" in slow.reply.text
    assert quick.open
    client.run_pod("last")
    assert len(quick.taken()) == 2
    quick.cancel()


def test_a_dead_reader_can_be_cancelled(make_client) -> None:
    client = make_client(node=Node(event_queue_limit=2))
    dead = client.begin("GetContainerEvents")
    for number in range(10):
        client.run_pod(f"pod-{number}")
    dead.cancel()
    assert not dead.open
    assert client.engine.runtime.events.subscribers == []


def test_with_events_off_the_stream_ends_at_once_and_empty(make_client) -> None:
    client = make_client(node=Node(pod_events=False))
    call = client.begin("GetContainerEvents")
    assert call.reply.ok
    assert call.bodies == []
    client.run_pod()
    assert len(client.engine.runtime.events.records) == 2  # the log itself is kept


def test_a_runtime_that_keeps_a_backlog_hands_it_to_its_first_reader(make_client) -> None:
    client = make_client(personality="containerd-2.1")
    pod = client.run_pod()
    client.engine.advance(299 * SECOND)
    first = client.begin("GetContainerEvents")
    assert told(first.taken()) == [(CREATED, pod), (STARTED, pod)]
    second = client.begin("GetContainerEvents")
    assert second.taken() == []
    first.cancel()
    second.cancel()
    client.StopPodSandbox(pod_sandbox_id=pod)
    client.engine.advance(301 * SECOND)
    late = client.begin("GetContainerEvents")
    assert late.taken() == []
    late.cancel()


def test_a_runtime_with_one_channel_shares_its_events_out(make_client) -> None:
    shared = derive(
        PERSONALITIES["reference"],
        name="shared",
        summary="",
        behaviour={"strategies": {"events": "shared-channel"}},
    )
    client = make_client(personality=shared)
    calls = [client.begin("GetContainerEvents") for _ in range(2)]
    for number in range(5):
        client.run_pod(f"pod-{number}")
    shares = [[event.container_id for event in call.taken()] for call in calls]
    assert shares[0] == shares[1] == client.pods()  # of each pod's two events each reader gets one
    for call in calls:
        call.cancel()


def test_when_the_runtime_shuts_down_streams_end_well(client, follower) -> None:
    client.run_pod()
    client.engine.end_subscriptions()
    assert follower.reply.ok
    assert not follower.open


def test_the_older_containerd_has_no_events(make_client) -> None:
    client = make_client(personality="containerd-1.6")
    with pytest.raises(CallFailed) as refused:
        next(client.engine.stream("GetContainerEvents"))
    assert (refused.value.code, refused.value.text) == (
        Code.UNIMPLEMENTED,
        "method GetContainerEvents not implemented",
    )
