"""PullImage and RemoveImage, with time, cancellation and other callers."""

from __future__ import annotations

import pytest

from fakecri.base.reasons import CriError, Reason
from fakecri.base.steps import Cancelled
from fakecri.clock import MILLISECOND, SECOND
from fakecri.core.catalogue import Catalogue, ImageSource
from fakecri.core.node import Node, UnknownImages
from fakecri.core.registries import RESOLVE_NS, Login, Registry, RepositoryRule, WrongDigest
from fakecri.core.traits import ImageInUse, OnUnknown, PullReference, RemoveImageScope
from fakecri.wire import messages

APP = ImageSource(names=("r.example/app:1", "r.example/app:alias"))
NEWER = ImageSource(names=("r.example/app:1",), size_bytes=9)


def request(reference: str, **auth: str):
    message = messages.PullImageRequest(image=messages.ImageSpec(image=reference))
    if auth:
        message.auth.CopyFrom(messages.AuthConfig(**auth))
    return message


def slow(*sources: ImageSource, seconds: int = 5, **rule) -> Catalogue:
    rules = (RepositoryRule(duration_ns=seconds * SECOND, **rule),)
    return Catalogue(sources or (APP,), [Registry(host="r.example", rules=rules)])


def refused(runtime, reference: str, **auth: str) -> CriError:
    before = runtime.listed()
    with pytest.raises(CriError) as failure:
        runtime.pull(reference, **auth)
    assert runtime.listed() == before, "a failed pull leaves nothing"
    assert runtime.images.pulling == []
    return failure.value


# -- what a pull gives -------------------------------------------------------------------------------------------------
def test_the_answer_is_the_images_id_by_tag_and_by_digest(image_runtime) -> None:
    runtime = image_runtime()
    by_tag = runtime.pull("r.example/any:1")
    (digest,) = runtime.status(by_tag).image.repo_digests
    assert by_tag == runtime.status("r.example/any:1").image.id
    assert runtime.pull(digest) == by_tag
    fresh = image_runtime()
    assert fresh.pull(digest) == by_tag, "another runtime knows the same world"
    assert fresh.status(digest).image.repo_tags == []
    assert list(fresh.status(digest).image.repo_digests) == [digest]
    assert runtime.pull("r.example/any:2") != by_tag


def test_some_runtimes_answer_a_repository_digest(image_runtime) -> None:
    runtime = image_runtime(pull_reference=PullReference.REPO_DIGEST)
    answer = runtime.pull("r.example/any:1")
    assert answer.startswith("r.example/any@sha256:")
    assert list(runtime.status("r.example/any:1").image.repo_digests) == [answer]


def test_a_pull_adds_its_name_to_the_image_that_is_there(image_runtime) -> None:
    runtime = image_runtime(Catalogue([APP]))
    assert runtime.pull("r.example/app:1") == runtime.pull("r.example/app:alias") == runtime.pull("r.example/app:1")
    (image,) = runtime.listed()
    assert image.repo_tags == ["r.example/app:1", "r.example/app:alias"]


def test_a_tag_moves_and_leaves_the_older_image_without_it(image_runtime) -> None:
    old = ImageSource(names=("r.example/app:1",), at_start=True)
    runtime = image_runtime(Catalogue([old, NEWER]))
    assert runtime.status("r.example/app:1").image.id == old.id
    assert runtime.pull("r.example/app:1") == NEWER.id
    assert runtime.status("r.example/app:1").image.id == NEWER.id
    older, newer = runtime.listed()
    assert (older.id, older.repo_tags) == (old.id, [])
    assert newer.repo_tags == ["r.example/app:1"]


def test_an_index_has_a_digest_of_its_own(image_runtime) -> None:
    index = "sha256:" + "4c" * 32
    source = ImageSource(names=("r.example/app:1", f"r.example/app:idx@{index}"))
    runtime = image_runtime(Catalogue([source], [Registry(host="r.example")]))
    assert runtime.pull("r.example/app:idx") == source.id
    image = runtime.status("r.example/app:idx").image
    assert (image.repo_tags, image.repo_digests) == (["r.example/app:idx"], [f"r.example/app@{index}"])
    assert runtime.pull(f"r.example/app@{index}") == runtime.pull("r.example/app:1")
    assert len(runtime.listed()[0].repo_digests) == 2


def test_no_tag_means_latest(image_runtime) -> None:
    runtime = image_runtime()
    runtime.pull("busybox")
    assert runtime.status("busybox:latest").image.id


# -- refusals ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("reference", "reason"),
    [
        ("", Reason.IMAGE_REFERENCE_EMPTY),
        ("UPPER//case", Reason.IMAGE_REFERENCE_INVALID),
        ("Busybox", Reason.IMAGE_REFERENCE_UPPERCASE),
        ("f" * 64, Reason.IMAGE_REFERENCE_IS_ID),
        ("a/" * 200 + "b", Reason.IMAGE_REFERENCE_TOO_LONG),
        ("invalid.example/a:1", Reason.REGISTRY_HOST_UNKNOWN),
        ("localhost/a:1", Reason.REGISTRY_UNREACHABLE),
    ],
)
def test_references_that_no_registry_answers(image_runtime, reference: str, reason: Reason) -> None:
    assert refused(image_runtime(), reference).reason is reason


def test_no_image_at_all(image_runtime) -> None:
    with pytest.raises(CriError) as failure:
        image_runtime().call("PullImage", messages.PullImageRequest())
    assert failure.value.reason is Reason.IMAGE_REFERENCE_EMPTY


def test_a_closed_world_and_a_node_without_unknown_images(image_runtime) -> None:
    runtime = image_runtime(Catalogue([APP], [Registry(host="r.example")]))
    assert refused(runtime, "r.example/app:9").reason is Reason.IMAGE_NOT_IN_REGISTRY
    runtime = image_runtime(node=Node(unknown_images=UnknownImages.FAIL))
    assert refused(runtime, "r.example/app:1").reason is Reason.IMAGE_NOT_IN_REGISTRY
    assert runtime.pull("busybox")


def test_credentials(image_runtime) -> None:
    runtime = image_runtime(slow(login=Login(username="user", password="pw", tokens=frozenset({"t"}))))
    assert refused(runtime, "r.example/app:1").reason is Reason.REGISTRY_UNAUTHORIZED
    wrong = refused(runtime, "r.example/app:1", username="user", password="no")
    assert wrong.reason is Reason.REGISTRY_BAD_CREDENTIALS
    assert refused(runtime, "r.example/app:1", auth="!!!").reason is Reason.REGISTRY_AUTH_MALFORMED
    assert runtime.pull("r.example/app:1", username="user", password="pw") == APP.id
    assert runtime.pull("r.example/app:1", auth="dXNlcjpwdw==") == APP.id
    assert runtime.pull("r.example/app:1", identity_token="t") == APP.id
    assert refused(runtime, "r.example/app:1").reason is Reason.REGISTRY_UNAUTHORIZED, "asked anew at every pull"


def test_malformed_credentials_matter_when_asked_for_or_where_a_runtime_decodes_them_first(image_runtime) -> None:
    runtime = image_runtime(Catalogue([APP]))
    assert runtime.pull("r.example/app:1", auth="!!!") == APP.id
    order = ("reference", "credentials", "credentials_decoded")
    object.__setattr__(runtime.behaviour, "check_orders", {"PullImage": order})
    assert refused(runtime, "r.example/app:1", auth="!!!").reason is Reason.REGISTRY_AUTH_MALFORMED


def test_a_wrong_digest_shows_after_the_transfer_each_time(image_runtime) -> None:
    runtime = image_runtime(slow(wrong_digest=WrongDigest(got="g", expected="e")))
    for _ in range(2):
        began = runtime.clock.now_ns
        error = refused(runtime, "r.example/app:1")
        assert (error.reason, error.facts["got"], error.facts["expected"]) == (Reason.IMAGE_DIGEST_MISMATCH, "g", "e")
        assert runtime.clock.now_ns - began == RESOLVE_NS + 5 * SECOND


# -- time and others ---------------------------------------------------------------------------------------------------
def test_a_pull_takes_longer_than_an_impatient_client_waits(image_runtime) -> None:
    runtime = image_runtime()
    running = runtime.start("PullImage", request("busybox"))
    runtime.advance(MILLISECOND)
    assert not running.done
    runtime.cancel(running)
    assert isinstance(running.error, Cancelled)
    assert not runtime.status("busybox").HasField("image")


def test_an_image_is_seen_when_its_pull_is_complete_and_not_before(image_runtime) -> None:
    runtime = image_runtime(slow())
    running = runtime.start("PullImage", request("r.example/app:1"))
    runtime.advance(RESOLVE_NS + 5 * SECOND - 1)
    assert runtime.images.pulling == ["r.example/app:1"]
    assert runtime.listed() == []
    assert not runtime.status("r.example/app:1").HasField("image")
    runtime.advance(1)
    assert running.value.image_ref == APP.id
    assert running.points == ["checked", "reserved", "before_commit"]
    assert runtime.images.pulling == []
    assert len(runtime.listed()) == 1


def test_content_that_is_here_is_not_transferred_again(image_runtime) -> None:
    runtime = image_runtime(slow())
    runtime.pull("r.example/app:1")
    began = runtime.clock.now_ns
    runtime.pull("r.example/app:alias")
    assert runtime.clock.now_ns - began == RESOLVE_NS


def test_pulls_of_one_reference_share_a_transfer(image_runtime) -> None:
    runtime = image_runtime(slow())
    first = runtime.start("PullImage", request("r.example/app:1"))
    runtime.advance(3 * SECOND)
    second = runtime.start("PullImage", request("r.example/app:1"))
    runtime.advance(2 * SECOND + RESOLVE_NS)
    assert first.value.image_ref == second.value.image_ref == APP.id


def test_a_shared_transfer_survives_the_caller_that_began_it(image_runtime) -> None:
    runtime = image_runtime(slow())
    first = runtime.start("PullImage", request("r.example/app:1"))
    runtime.advance(3 * SECOND)
    second = runtime.start("PullImage", request("r.example/app:1"))
    runtime.advance(SECOND)
    runtime.cancel(first)
    assert runtime.images.pulling == ["r.example/app:1"]
    runtime.advance(SECOND + RESOLVE_NS)
    assert second.value.image_ref == APP.id


def test_a_transfer_that_everybody_left_begins_anew(image_runtime) -> None:
    runtime = image_runtime(slow())
    first = runtime.start("PullImage", request("r.example/app:1"))
    runtime.advance(3 * SECOND)
    runtime.cancel(first)
    assert runtime.images.pulling == []
    began = runtime.clock.now_ns
    runtime.pull("r.example/app:1")
    assert runtime.clock.now_ns - began == RESOLVE_NS + 5 * SECOND


@pytest.mark.parametrize("point", ["checked", "reserved", "before_commit"])
def test_a_call_cancelled_at_any_point_leaves_nothing(image_runtime, point: str) -> None:
    runtime = image_runtime(slow())
    running = runtime.start("PullImage", request("r.example/app:1"), stop_at=point)
    runtime.advance(10 * SECOND)
    assert running.points[-1] == point
    runtime.cancel(running)
    assert isinstance(running.error, Cancelled)
    assert runtime.listed() == []
    assert runtime.images.pulling == []
    assert runtime.pull("r.example/app:1") == APP.id


# -- removal -----------------------------------------------------------------------------------------------------------
def pulled(runtime, *references: str):
    for reference in references:
        runtime.pull(reference)
    return runtime


def test_an_image_goes_with_all_its_names_by_any_of_them_or_by_id(image_runtime) -> None:
    for choose in (
        lambda image: image.id,
        lambda image: image.id.removeprefix("sha256:")[:12],
        lambda image: "r.example/app:alias",
        lambda image: image.repo_digests[0],
    ):
        runtime = pulled(image_runtime(Catalogue([APP])), "r.example/app:1", "r.example/app:alias")
        runtime.remove(choose(runtime.listed()[0]))
        assert runtime.listed() == []
        assert not runtime.status("r.example/app:1").HasField("image")


def test_where_a_name_is_only_a_name(image_runtime) -> None:
    runtime = image_runtime(Catalogue([APP]), remove_image_scope=RemoveImageScope.ONE_NAME)
    pulled(runtime, "r.example/app:1", "r.example/app:alias")
    runtime.remove("r.example/app:1")
    (image,) = runtime.listed()
    assert image.repo_tags == ["r.example/app:alias"]
    runtime.remove("r.example/app:alias")
    assert runtime.listed() == [], "the last name takes the image with it"
    pulled(runtime, "r.example/app:1", "r.example/app:alias")
    runtime.remove(APP.id)
    assert runtime.listed() == [], "an id is all names"


@pytest.mark.parametrize("text", ["r.example/unknown:1", "sha256:" + "f" * 64, "UPPER//case"])
def test_what_is_not_there_is_removed_already(image_runtime, text: str) -> None:
    runtime = image_runtime()
    before = runtime.listed()
    runtime.remove(text)
    assert runtime.listed() == before
    with pytest.raises(CriError) as failure:
        image_runtime(remove_unknown_image=OnUnknown.NOT_FOUND).remove(text)
    assert failure.value.reason is Reason.IMAGE_NOT_FOUND


def test_no_reference(image_runtime) -> None:
    with pytest.raises(CriError) as failure:
        image_runtime().call("RemoveImage", messages.RemoveImageRequest())
    assert failure.value.reason is Reason.IMAGE_REFERENCE_EMPTY


def test_a_pinned_image_can_be_removed(image_runtime) -> None:
    runtime = image_runtime()
    runtime.remove(runtime.listed()[0].id)
    assert runtime.listed() == []


def test_an_image_in_use(image_runtime) -> None:
    runtime = pulled(image_runtime(), "busybox")
    container = runtime.use("c1", "busybox")
    runtime.remove("busybox")
    assert not runtime.status("busybox").HasField("image")
    assert container.image.repo_tags == ()
    runtime.pull("busybox")
    assert container.image.repo_tags == ("docker.io/library/busybox:latest",)


def test_an_image_in_use_may_be_kept(image_runtime) -> None:
    runtime = image_runtime(
        Catalogue([APP]), image_in_use=ImageInUse.REFUSE, remove_image_scope=RemoveImageScope.ONE_NAME
    )
    pulled(runtime, "r.example/app:1", "r.example/app:alias")
    runtime.use("c1", "r.example/app:1")
    runtime.use("c2", "r.example/app:1")
    runtime.remove("r.example/app:1")  # a name may go: the image stays
    with pytest.raises(CriError) as failure:
        runtime.remove("r.example/app:alias")
    assert failure.value.reason is Reason.IMAGE_IN_USE
    assert failure.value.facts == {"image": "r.example/app:alias", "containers": ["c1", "c2"], "container": "c1"}
    assert runtime.listed()[0].repo_tags == ["r.example/app:alias"]
    runtime.containers.clear()
    runtime.remove("r.example/app:alias")
    assert runtime.listed() == []


@pytest.mark.parametrize("point", ["checked", "reserved", "before_commit"])
def test_a_removal_cancelled_at_any_point_changes_nothing(image_runtime, point: str) -> None:
    runtime = pulled(image_runtime(), "busybox")
    before = runtime.listed()
    message = messages.RemoveImageRequest(image=messages.ImageSpec(image="busybox"))
    running = runtime.start("RemoveImage", message, stop_at=point)
    assert running.points[-1] == point
    runtime.cancel(running)
    assert runtime.listed() == before


def test_two_removals_at_once(image_runtime) -> None:
    runtime = pulled(image_runtime(), "busybox")
    message = messages.RemoveImageRequest(image=messages.ImageSpec(image="busybox"))
    held = runtime.start("RemoveImage", message, stop_at="before_commit")
    runtime.remove("busybox")
    runtime.tasks.resume(held.task)
    runtime.tasks.run_ready()
    assert held.error is None
    assert held.done
