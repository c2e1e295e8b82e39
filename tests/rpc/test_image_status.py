"""ListImages, StreamImages, ImageStatus, ImageFsInfo."""

from __future__ import annotations

import json

import pytest

from fakecri.base.reasons import CriError, Reason
from fakecri.core.catalogue import Catalogue, ImageConfig, ImageSource
from fakecri.core.catalogue_builtin import PAUSE_IMAGE
from fakecri.core.node import Node
from fakecri.core.registries import Registry
from fakecri.core.rpc import image_list
from fakecri.core.traits import (
    ImageIdForm,
    ImageListFilter,
    ImageSpecShown,
    ListOrder,
    OnInvalidReference,
    Shown,
)
from fakecri.wire import messages


def world(count: int = 3, **config: object) -> Catalogue:
    return Catalogue(
        ImageSource(names=(f"r.example/i{number}:1",), at_start=True, size_bytes=100 + number, **config)  # type: ignore[arg-type]
        for number in range(count)
    )


# -- lists -------------------------------------------------------------------------------------------------------------
def test_a_fresh_runtime_has_its_pause_image_pinned(image_runtime) -> None:
    (pause,) = image_runtime().listed()
    assert PAUSE_IMAGE in pause.repo_tags
    assert pause.pinned
    assert pause.size > 0
    assert pause.uid.value == 65535


def test_the_list_follows_pulls_and_removals(image_runtime) -> None:
    runtime = image_runtime()
    assert len(runtime.listed()) == 1
    runtime.pull("busybox:1.36")
    assert [image.repo_tags[0] for image in runtime.listed()][1:] == ["docker.io/library/busybox:1.36"]
    runtime.pull("r.example/x:1")
    runtime.remove("busybox:1.36")
    assert [image.repo_tags[0] for image in runtime.listed()][1:] == ["r.example/x:1"]


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("r.example/i1:1", 1),
        ("r.example/i1", 0),
        ("r.example/unknown:1", 0),
        ("UPPER//case", 0),
    ],
)
def test_a_filter_is_a_reference_and_some_runtimes_ignore_it(image_runtime, text: str, count: int) -> None:
    assert len(image_runtime(world()).listed(text)) == count
    assert len(image_runtime(world(), image_list_filter=ImageListFilter.IGNORED).listed(text)) == 3


def test_a_filter_by_id(image_runtime) -> None:
    runtime = image_runtime(world())
    wanted = runtime.listed()[1]
    assert runtime.listed(wanted.id) == [wanted]
    assert runtime.listed(wanted.id[: len("sha256:") + 12]) == [wanted]


def test_a_malformed_filter_may_be_refused(image_runtime) -> None:
    with pytest.raises(CriError) as refused:
        image_runtime(world(), invalid_reference=OnInvalidReference.REFUSE).listed("UPPER//case")
    assert refused.value.reason is Reason.IMAGE_REFERENCE_INVALID


def test_order(image_runtime) -> None:
    oldest = [image.id for image in image_runtime(world()).listed()]
    assert [image.id for image in image_runtime(world(), list_order=ListOrder.NEWEST_FIRST).listed()] == oldest[::-1]
    rotated = image_runtime(world(), list_order=ListOrder.ROTATED)
    orders = {tuple(image.id for image in rotated.listed()) for _ in range(20)}
    assert orders == {tuple(oldest[at:] + oldest[:at]) for at in range(3)}


def test_v1alpha2_and_old_levels_do_not_see_newer_fields(image_runtime) -> None:
    pinned = Catalogue([ImageSource(names=("a:1",), at_start=True, pinned=True)])
    assert image_runtime(pinned).listed()[0].pinned
    assert not image_runtime(pinned, level="1.22").listed()[0].pinned
    assert image_runtime(pinned).listed(api="v1alpha2")[0].id == image_runtime(pinned).listed()[0].id


def test_a_stream_comes_in_batches(image_runtime, monkeypatch) -> None:
    monkeypatch.setattr(image_list, "BATCH", 2)
    runtime = image_runtime(world())
    batches = runtime.call("StreamImages")
    assert [len(batch.images) for batch in batches] == [2, 1]
    assert [image for batch in batches for image in batch.images] == runtime.listed()


def test_a_stream_of_nothing_has_no_message(image_runtime) -> None:
    assert image_runtime(Catalogue()).call("StreamImages") == []
    request = messages.StreamImagesRequest()
    request.filter.image.image = "r.example/unknown:1"
    assert image_runtime(world()).call("StreamImages", request) == []


# -- status ------------------------------------------------------------------------------------------------------------
def test_an_absent_image_is_an_empty_reply(image_runtime) -> None:
    for text in ("r.example/unknown:1", "sha256:" + "f" * 64, "UPPER//case"):
        response = image_runtime().status(text, verbose=True)
        assert not response.HasField("image")
        assert not response.info


def test_no_reference_is_refused(image_runtime) -> None:
    for request in (messages.ImageStatusRequest(), messages.ImageStatusRequest(image=messages.ImageSpec())):
        with pytest.raises(CriError) as refused:
            image_runtime().call("ImageStatus", request)
        assert refused.value.reason is Reason.IMAGE_REFERENCE_EMPTY


def test_status_and_list_show_the_same_image(image_runtime) -> None:
    runtime = image_runtime(world())
    for image in runtime.listed():
        assert runtime.status(image.id).image == image
        assert runtime.status(image.repo_tags[0]).image == image
        assert runtime.status(image.repo_digests[0]).image == image


@pytest.mark.parametrize(
    ("user", "uid", "username"),
    [
        ("", None, ""),
        ("0", 0, ""),
        ("1000", 1000, ""),
        ("1000:2000", 1000, ""),
        ("alice", None, "alice"),
        ("alice:staff", None, "alice"),
        (":staff", None, ""),
        ("1x", None, "1x"),
    ],
)
def test_user(image_runtime, user: str, uid: int | None, username: str) -> None:
    image = image_runtime(world(1, config=ImageConfig(user=user))).status("r.example/i0:1").image
    assert (image.uid.value if image.HasField("uid") else None) == uid
    assert image.username == username


def test_annotations_are_in_spec_as_the_runtime_has_it(image_runtime) -> None:
    plain, annotated = world(1), world(1, annotations={"k": "v"})
    for shown, expected in (
        (ImageSpecShown.NEVER, (False, False)),
        (ImageSpecShown.WHEN_ANNOTATED, (False, True)),
        (ImageSpecShown.ALWAYS, (True, True)),
    ):
        images = [image_runtime(catalogue, image_spec=shown).listed()[0] for catalogue in (plain, annotated)]
        assert tuple(image.HasField("spec") for image in images) == expected
    assert dict(images[1].spec.annotations) == {"k": "v"}


def test_pins_are_shown_where_the_runtime_has_them(image_runtime) -> None:
    assert image_runtime(world(1, pinned=True)).listed()[0].pinned
    assert not image_runtime(world(1, pinned=True), image_pinned=Shown.NO).listed()[0].pinned


def test_verbose_info(image_runtime) -> None:
    config = ImageConfig(
        user="1000:2000",
        entrypoint=("/bin/sleep",),
        command=("3600",),
        environment=("PATH=/bin", "FOO=<bar>"),
        working_directory="/srv/x",
        stop_signal="SIGINT",
        labels={"a": "b"},
        volumes=("/vol",),
        exposed_ports=("80/tcp",),
    )
    runtime = image_runtime(world(1, config=config))
    assert not runtime.status("r.example/i0:1").info
    info = runtime.status("r.example/i0:1", verbose=True).info
    assert list(info) == ["info"]
    document = json.loads(info["info"])
    assert sorted(document) == ["chainID", "imageSpec"]
    assert document["imageSpec"]["rootfs"]["diff_ids"] == [document["chainID"]]
    assert document["imageSpec"]["config"] == {
        "User": "1000:2000",
        "ExposedPorts": {"80/tcp": {}},
        "Env": ["PATH=/bin", "FOO=<bar>"],
        "Entrypoint": ["/bin/sleep"],
        "Cmd": ["3600"],
        "Volumes": {"/vol": {}},
        "WorkingDir": "/srv/x",
        "Labels": {"a": "b"},
        "StopSignal": "SIGINT",
    }
    assert (
        json.loads(image_runtime(world(1)).status("r.example/i0:1", verbose=True).info["info"])["imageSpec"]["config"]
        == {}
    )


def test_ids_without_their_algorithm(image_runtime) -> None:
    runtime = image_runtime(world(1), image_id_form=ImageIdForm.BARE)
    (image,) = runtime.listed()
    assert len(image.id) == 64
    assert runtime.status(image.id).image == image
    assert runtime.pull("r.example/i0:1") == image.id


# -- file systems ------------------------------------------------------------------------------------------------------
def test_the_image_file_system(image_runtime) -> None:
    runtime = image_runtime(Catalogue((), [Registry(host="r.example", open=True)]), node=Node(image_fs_path="/srv"))
    (empty,) = runtime.call("ImageFsInfo").image_filesystems
    assert empty.fs_id.mountpoint == "/srv"
    assert empty.HasField("used_bytes")
    assert empty.HasField("inodes_used")
    assert empty.timestamp == runtime.clock.wall_ns
    runtime.pull("r.example/a:1")
    (usage,) = runtime.call("ImageFsInfo").image_filesystems
    assert usage.used_bytes.value == runtime.listed()[0].size
    assert usage.inodes_used.value > 0
    assert usage.timestamp > empty.timestamp


def test_containers_use_it_too_where_the_runtime_says_so(image_runtime) -> None:
    runtime = image_runtime(world(1))
    (before,) = runtime.call("ImageFsInfo").container_filesystems
    runtime.use("c1", "r.example/i0:1")
    (after,) = runtime.call("ImageFsInfo").container_filesystems
    assert after.used_bytes.value > before.used_bytes.value == 0
    assert after.inodes_used.value > before.inodes_used.value == 0
    assert after.fs_id == runtime.call("ImageFsInfo").image_filesystems[0].fs_id
    assert not image_runtime(container_filesystems=Shown.NO).call("ImageFsInfo").container_filesystems
