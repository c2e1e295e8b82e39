"""What a container shows of its image, when the image's names change: lists are kept encoded, and must follow."""

from __future__ import annotations

import pytest

from fakecri.core.traits import ListImageReference
from fakecri.personality.model import derive
from fakecri.personality.registry import PERSONALITIES

DIGESTS_IN_LISTS = derive(
    PERSONALITIES["reference"],
    name="digests in lists",
    summary="",
    traits={"list_image_reference": ListImageReference.REPO_DIGEST},
)


@pytest.fixture
def listed(make_client):
    client = make_client(personality=DIGESTS_IN_LISTS)
    client.pull("r.example/app:1")
    client.create(client.run_pod(), image="r.example/app:1")
    return client, lambda: client.ListContainers().containers[0]


def test_a_list_entry_follows_its_image(listed) -> None:
    client, shown = listed
    image_id = client.ImageStatus(image={"image": "r.example/app:1"}).image.id
    first = shown().image_ref
    assert first.startswith("r.example/app@sha256:")
    client.RemoveImage(image={"image": "r.example/app:1"})
    assert shown().image_ref == shown().image_id == image_id
    client.pull(first)
    assert shown().image_ref == first


def test_status_shows_a_name_of_the_image_and_once_it_is_gone_the_name_as_given(listed) -> None:
    client, shown = listed
    status = client.ContainerStatus(container_id=shown().id).status
    assert status.image.image == "r.example/app:1"
    assert status.image_ref.startswith("r.example/app@sha256:")
    client.RemoveImage(image={"image": status.image_id})
    status = client.ContainerStatus(container_id=shown().id).status
    assert (status.image.image, status.image_ref) == ("r.example/app:1", status.image_id)
