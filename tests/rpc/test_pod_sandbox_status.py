"""PodSandboxStatus, ListPodSandbox and StreamPodSandboxes: what is shown, and which filter shows it."""

from __future__ import annotations

import pytest

from fakecri.base.reasons import Code
from fakecri.core.node import Node
from fakecri.core.traits import EmptyLabelSelector, ListOrder, SandboxLabels
from fakecri.personality.model import derive
from fakecri.personality.registry import PERSONALITIES
from fakecri.wire import messages


def state(value):
    return messages.PodSandboxStateValue(state=value)


@pytest.fixture
def three(client):
    """Three pods: ready, ready with other labels, stopped."""
    pods = [
        client.run_pod("a", labels={"app": "web", "tier": "front"}),
        client.run_pod("b", labels={"app": "web"}),
        client.run_pod("c", labels={"app": "store"}),
    ]
    client.StopPodSandbox(pod_sandbox_id=pods[2])
    return pods


def test_the_status_echoes_the_config_and_adds_what_the_runtime_knows(client) -> None:
    options = messages.NamespaceOption(pid=messages.CONTAINER, ipc=messages.POD)
    security = messages.LinuxSandboxSecurityContext(namespace_options=options)
    pod = client.run_pod(
        labels={"a": "1"},
        annotations={"b": "2"},
        linux=messages.LinuxPodSandboxConfig(security_context=security),
        handler="runc",
    )
    status = client.pod_status(pod)
    assert status.id == pod
    assert status.linux.namespaces.options == options
    assert (dict(status.labels), dict(status.annotations)) == ({"a": "1"}, {"b": "2"})
    assert status.runtime_handler == "runc"


def test_host_network_pods_have_an_empty_network(client) -> None:
    options = messages.NamespaceOption(network=messages.NODE)
    security = messages.LinuxSandboxSecurityContext(namespace_options=options)
    pod = client.run_pod(linux=messages.LinuxPodSandboxConfig(security_context=security))
    assert client.pod_status(pod).network == messages.PodSandboxNetworkStatus()
    assert client.pod_status(pod).HasField("network")


def test_with_events_the_status_holds_its_containers_and_when_it_was_read(client) -> None:
    pod = client.run_pod()
    container = client.run(pod)
    response = client.PodSandboxStatus(pod_sandbox_id=pod)
    assert [status.id for status in response.containers_statuses] == [container]
    assert response.containers_statuses[0] == client.status(container)
    assert response.timestamp >= response.status.created_at
    assert client.PodSandboxStatus(pod_sandbox_id=pod).timestamp > response.timestamp


@pytest.mark.parametrize("settings", [{"node": Node(pod_events=False)}, {"personality": "containerd-2.1"}])
def test_others_show_no_containers_in_the_pods_status(make_client, settings) -> None:
    client = make_client(**settings)
    pod = client.run_pod()
    client.run(pod)
    response = client.PodSandboxStatus(pod_sandbox_id=pod)
    assert not response.containers_statuses
    assert response.timestamp == 0


def test_info_comes_only_when_it_is_asked_for(client) -> None:
    pod = client.run_pod()
    assert not client.PodSandboxStatus(pod_sandbox_id=pod).info
    assert client.PodSandboxStatus(pod_sandbox_id=pod, verbose=True).info


@pytest.mark.parametrize("given", ["no-such", "b_default_uid-b_0"])
def test_unknown_pods_and_names_are_not_found(client, three, given) -> None:
    failed = client.refused("PodSandboxStatus", pod_sandbox_id=given)
    assert failed.code == Code.NOT_FOUND
    assert failed.text == "an error occurred when try to find sandbox: not found"
    assert client.refused("PodSandboxStatus", pod_sandbox_id=three[0] + "0").code == Code.NOT_FOUND


def test_a_containers_id_is_no_pods_id(client) -> None:
    container = client.create(client.run_pod())
    assert client.refused("PodSandboxStatus", pod_sandbox_id=container).code == Code.NOT_FOUND


def test_an_empty_id_is_refused(client) -> None:
    failed = client.refused("PodSandboxStatus")
    assert (failed.code, failed.text) == (
        Code.UNKNOWN,
        "an error occurred when try to find sandbox: prefix can't be empty",
    )


def test_lists_are_oldest_first_and_hold_what_the_status_holds(client, three) -> None:
    items = client.ListPodSandbox().items
    assert [item.id for item in items] == three
    for item in items:
        status = client.pod_status(item.id)
        for field in ("id", "metadata", "state", "created_at", "labels", "annotations", "runtime_handler"):
            assert getattr(item, field) == getattr(status, field), field


def test_filters_are_all_of_them(client, three) -> None:
    a, b, c = three
    assert client.pods(id=a) == [a]
    assert client.pods(id=a[:13]) == [a]
    assert client.pods(id="unknown") == []
    assert client.pods(state=state(messages.SANDBOX_READY)) == [a, b]
    assert client.pods(state=state(messages.SANDBOX_NOTREADY)) == [c]
    assert client.pods(label_selector={"app": "web"}) == [a, b]
    assert client.pods(label_selector={"app": "web", "tier": "front"}) == [a]
    assert client.pods(label_selector={"tier": ""}) == []
    assert client.pods(label_selector={"app": "none"}) == []
    assert client.pods(id=b, label_selector={"tier": "front"}) == []
    assert client.pods(state=state(messages.SANDBOX_NOTREADY), label_selector={"app": "store"}) == [c]
    assert client.pods(state=state(messages.SANDBOX_NOTREADY), label_selector={"app": "web"}) == []
    assert client.pods(id="") == three


def test_an_ambiguous_id_selects_nothing(client) -> None:
    for number in range(17):
        client.run_pod(f"pod-{number}")
    firsts = [pod[:1] for pod in client.pods()]
    assert client.pods(id=next(digit for digit in firsts if firsts.count(digit) > 1)) == []


def test_a_list_follows_every_change(client, three) -> None:
    assert [item.state for item in client.ListPodSandbox().items] == [0, 0, 1]
    client.StopPodSandbox(pod_sandbox_id=three[0])
    assert [item.state for item in client.ListPodSandbox().items] == [1, 0, 1]
    client.RemovePodSandbox(pod_sandbox_id=three[1])
    late = client.run_pod("late", labels={"app": "web"})
    assert client.pods() == [three[0], three[2], late]
    assert client.pods(label_selector={"app": "web"}) == [three[0], late]


def test_the_stream_is_the_list_in_batches(client, three) -> None:
    (batch,) = client.streamed("StreamPodSandboxes")
    assert list(batch.pod_sandboxes) == list(client.ListPodSandbox().items)
    wanted = messages.PodSandboxFilter(label_selector={"app": "web"})
    (batch,) = client.streamed("StreamPodSandboxes", filter=wanted)
    assert [item.id for item in batch.pod_sandboxes] == three[:2]
    assert client.streamed("StreamPodSandboxes", filter=messages.PodSandboxFilter(id="none")) == []


def test_a_long_stream_has_several_batches_and_waits_for_its_reader(client) -> None:
    for number in range(1001):
        client.run_pod(f"pod-{number}")
    call = client.begin("StreamPodSandboxes")
    assert len(call.bodies) == 1  # the next one goes once this is taken
    assert call.open
    sizes = [len(batch.pod_sandboxes) for batch in call.taken()]
    sizes += [len(batch.pod_sandboxes) for batch in call.taken()]
    assert sizes == [1000, 1]
    assert call.reply.ok


def test_a_stream_whose_reader_is_gone_ends(client, three) -> None:
    call = client.begin("StreamPodSandboxes")
    call.cancel()
    assert not call.open


def other(**traits):
    return derive(PERSONALITIES["reference"], name="other", summary="", traits=traits)


def test_runtimes_differ_in_order_labels_and_empty_selectors(make_client) -> None:
    client = make_client(
        personality=other(
            list_order=ListOrder.NEWEST_FIRST,
            empty_label_selector=EmptyLabelSelector.MATCHES_MISSING,
            sandbox_labels=SandboxLabels.WITH_RUNTIME_LABELS,
        )
    )
    a, b = client.run_pod("a", labels={"tier": "front"}), client.run_pod("b")
    assert client.pods() == [b, a]
    assert client.pods(label_selector={"tier": ""}) == [b]
    assert client.pod_status(b).labels["io.kubernetes.container.name"] == "POD"
    assert client.pod_status(b).labels["io.kubernetes.pod.uid"] == "uid-b"


def test_a_rotated_list_holds_the_same_entries(make_client) -> None:
    client = make_client(personality=other(list_order=ListOrder.ROTATED))
    pods = [client.run_pod(f"pod-{number}") for number in range(5)]
    seen = {tuple(client.pods()) for _ in range(40)}
    assert all(sorted(order) == sorted(pods) for order in seen)
    assert len(seen) == 5
