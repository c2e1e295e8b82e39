"""ContainerStatus, ListContainers and StreamContainers: what is shown, and which filter shows it."""

from __future__ import annotations

import pytest

from fakecri.base.reasons import Code
from fakecri.clock import SECOND
from fakecri.core.traits import ListImageReference, StatusImageName
from fakecri.personality.model import derive
from fakecri.personality.registry import PERSONALITIES
from fakecri.wire import messages


def state(value):
    return messages.ContainerStateValue(state=value)


@pytest.fixture
def world(client):
    """Two pods; in the first a created, a running and an exited container, in the second one that runs."""
    first, second = client.run_pod("a"), client.run_pod("b")
    pod_config = client.pod_config("a")
    created = client.create(first, "created", labels={"app": "web", "tier": "front"}, pod_config=pod_config)
    running = client.run(first, "running", labels={"app": "web"}, pod_config=pod_config)
    exited = client.run(first, "exited", command=["false"], labels={"app": "store"}, pod_config=pod_config)
    other = client.run(second, "other", labels={"app": "web"}, pod_config=client.pod_config("b"))
    client.engine.advance(SECOND)
    return {"pods": (first, second), "created": created, "running": running, "exited": exited, "other": other}


def test_the_status_echoes_the_config(client) -> None:
    mounts = [
        messages.Mount(
            container_path="/a", host_path="/h", readonly=True, propagation=messages.PROPAGATION_HOST_TO_CONTAINER
        )
    ]
    container = client.create(client.run_pod(), labels={"a": "1"}, annotations={"b": "ß"}, mounts=mounts, attempt=3)
    status = client.status(container)
    assert (status.metadata.name, status.metadata.attempt) == ("main", 3)
    assert (dict(status.labels), dict(status.annotations)) == ({"a": "1"}, {"b": "ß"})
    assert list(status.mounts) == mounts


def test_the_status_names_the_image_by_tag_digest_and_id(client) -> None:
    image = client.ImageStatus(image=messages.ImageSpec(image="busybox:1.36")).image
    status = client.status(client.create(client.run_pod(), image="busybox:1.36"))
    assert status.image.image == "docker.io/library/busybox:1.36"
    assert status.image_ref == image.repo_digests[0]
    assert status.image_id == image.id


def test_an_image_that_lost_its_tag_is_shown_as_it_was_asked_for(client) -> None:
    container = client.create(client.run_pod(), image="busybox:1.36")
    client.RemoveImage(image=messages.ImageSpec(image="busybox:1.36"))
    status = client.status(container)
    assert status.image.image == "busybox:1.36"
    assert status.image_ref == status.image_id


def test_times_are_filled_as_the_container_goes_on(client, world) -> None:
    created, running, exited = (client.status(world[name]) for name in ("created", "running", "exited"))
    assert created.created_at > 0
    assert (created.started_at, created.finished_at) == (0, 0)
    assert running.started_at > running.created_at
    assert running.finished_at == 0
    assert exited.finished_at > exited.started_at > exited.created_at


def test_user_and_stop_signal(client) -> None:
    linux = messages.LinuxContainerConfig(
        security_context=messages.LinuxContainerSecurityContext(
            run_as_user=messages.Int64Value(value=1000),
            run_as_group=messages.Int64Value(value=2000),
            supplemental_groups=[3000],
        )
    )
    status = client.status(client.create(client.run_pod(), linux=linux, stop_signal=messages.SIGNAL_SIGUSR1))
    user = status.user.linux
    assert (user.uid, user.gid, list(user.supplemental_groups)) == (1000, 2000, [2000, 3000])
    assert status.stop_signal == messages.SIGNAL_SIGUSR1


def test_info_comes_only_when_it_is_asked_for(client, world) -> None:
    assert not client.ContainerStatus(container_id=world["running"]).info
    assert client.ContainerStatus(container_id=world["running"], verbose=True).info


def test_unknown_empty_and_foreign_ids(client, world) -> None:
    for given in ("nope", world["running"] + "0", world["pods"][0]):
        failed = client.refused("ContainerStatus", container_id=given)
        text = f'an error occurred when try to find container "{given}": not found'
        assert (failed.code, failed.text) == (Code.NOT_FOUND, text)
    assert client.refused("ContainerStatus").code == Code.UNKNOWN


def test_list_entries_hold_what_the_status_holds(client, world) -> None:
    items = client.ListContainers().containers
    assert [item.id for item in items] == [world[name] for name in ("created", "running", "exited", "other")]
    for item in items:
        status = client.status(item.id)
        for field in ("id", "metadata", "state", "created_at", "labels", "annotations", "image_id"):
            assert getattr(item, field) == getattr(status, field), field
        assert item.image.image == "docker.io/library/busybox:1.36"
        assert item.image_ref == status.image_id


def test_filters_are_all_of_them(client, world) -> None:
    first, second = world["pods"]
    created, running, exited, other = (world[name] for name in ("created", "running", "exited", "other"))
    found = client.containers
    assert found(id=running) == found(id=running[:13]) == [running]
    assert found(id="unknown") == []
    assert found(pod_sandbox_id=first) == found(pod_sandbox_id=first[:13]) == [created, running, exited]
    assert found(pod_sandbox_id="unknown") == []
    assert found(state=state(messages.CONTAINER_CREATED)) == [created]
    assert found(state=messages.ContainerStateValue()) == [created]
    assert found(state=state(messages.CONTAINER_RUNNING)) == [running, other]
    assert found(state=state(messages.CONTAINER_EXITED)) == [exited]
    assert found(state=state(messages.CONTAINER_UNKNOWN)) == []
    assert found(label_selector={"app": "web"}) == [created, running, other]
    assert found(label_selector={"app": "web", "tier": "front"}) == [created]
    assert found(label_selector={"tier": ""}) == []
    assert found(pod_sandbox_id=second, id=running) == []
    assert found(pod_sandbox_id=first, id=running) == [running]
    assert found(pod_sandbox_id=first, state=state(messages.CONTAINER_RUNNING)) == [running]
    assert found(pod_sandbox_id=first, label_selector={"app": "web"}) == [created, running]
    assert found(id=running, label_selector={"app": "store"}) == []
    assert found(id=running, state=state(messages.CONTAINER_EXITED)) == []
    assert len(found(id="")) == 4


def test_a_list_follows_every_change(client, world) -> None:
    def states():
        return [item.state for item in client.ListContainers().containers]

    assert states() == [0, 1, 2, 1]
    client.StartContainer(container_id=world["created"])
    assert states() == [1, 1, 2, 1]
    client.StopPodSandbox(pod_sandbox_id=world["pods"][1])
    assert states() == [1, 1, 2, 2]
    client.RemoveContainer(container_id=world["exited"])
    assert states() == [1, 1, 2]
    assert client.containers(label_selector={"app": "store"}) == []


def test_the_stream_is_the_list(client, world) -> None:
    (batch,) = client.streamed("StreamContainers")
    assert list(batch.containers) == list(client.ListContainers().containers)
    wanted = messages.ContainerFilter(pod_sandbox_id=world["pods"][1])
    (batch,) = client.streamed("StreamContainers", filter=wanted)
    assert [item.id for item in batch.containers] == [world["other"]]
    assert client.streamed("StreamContainers", filter=messages.ContainerFilter(id="none")) == []


def test_where_lists_show_digests_they_follow_the_images_names(make_client) -> None:
    relative = derive(
        PERSONALITIES["reference"],
        name="relative",
        summary="",
        traits={
            "list_image_reference": ListImageReference.REPO_DIGEST,
            "status_image_name": StatusImageName.AS_GIVEN,
        },
    )
    client = make_client(personality=relative)
    container = client.create(client.run_pod(), image="busybox:1.36")
    assert "@sha256:" in client.ListContainers().containers[0].image_ref
    assert client.status(container).image.image == "busybox:1.36"
    client.RemoveImage(image=messages.ImageSpec(image="busybox:1.36"))
    assert client.ListContainers().containers[0].image_ref == client.status(container).image_id
    client.pull("busybox:1.36")
    assert "@sha256:" in client.ListContainers().containers[0].image_ref
