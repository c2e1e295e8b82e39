"""Names that move, ids that stay: the store of images as a machine against a plain model."""

from __future__ import annotations

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from fakecri.base.ids import Ids
from fakecri.base.reasons import CriError, Reason
from fakecri.core.catalogue import Catalogue, ImageSource, Offer
from fakecri.core.image import Image, ImageStore
from fakecri.core.node import Node, UnknownCommand
from fakecri.core.references import parse_reference
from fakecri.core.traits import (
    Behaviour,
    ImageIdForm,
    OnInvalidReference,
    PresetDigests,
    Traits,
    UppercaseHost,
)
from fakecri.kernel.executables import CommandNotFound


def store(*sources: ImageSource, node: Node | None = None, **traits) -> ImageStore:
    return ImageStore(Catalogue(sources), Behaviour(traits=Traits(**traits)), Ids(), node or Node())


def source(*names: str, **more) -> ImageSource:
    return ImageSource(names=names, at_start=True, **more)


A = source("r.example/a:1", "r.example/a:alias", "docker.io/library/busybox:1.0", id="sha256:" + "ab" * 32)
B = source("r.example/b:1", id="sha256:" + "abc" + "d" * 61)


# -- resolving ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "text",
    [
        "r.example/a:1",
        "r.example/a:alias",
        "busybox:1.0",
        "library/busybox:1.0",
        "docker.io/busybox:1.0",
        A.id,
        A.id.removeprefix("sha256:"),
        "abab",
        "sha256:abab",
        f"r.example/a@{A.manifest_digest}",
        f"r.example/a:whatever@{A.manifest_digest}",
    ],
)
def test_ways_to_name_an_image(text: str) -> None:
    found = store(A, B).resolve(text)
    assert found is not None
    assert found.digest == A.id


@pytest.mark.parametrize(
    "text", ["r.example/a", "r.example/a:2", "sha256:" + "f" * 64, "f" * 64, "fff", "ab", "UPPER//case", "sha256:zz"]
)
def test_what_names_no_image(text: str) -> None:
    assert store(A, B).resolve(text) is None


def test_an_ambiguous_beginning_is_refused_and_a_unique_one_is_not() -> None:
    images = store(A, B, source("r.example/c:1", id="sha256:" + "abc" + "e" * 61))
    with pytest.raises(CriError) as refused:
        images.resolve("abc")
    assert refused.value.reason is Reason.IMAGE_ID_AMBIGUOUS
    assert images.resolve("abcd").digest == B.id  # type: ignore[union-attr]


def test_a_name_made_of_hex_digits_is_found_as_a_name() -> None:
    images = store(A, source("abab:latest"))
    assert images.resolve("abab").repo_tags == ("docker.io/library/abab:latest",)  # type: ignore[union-attr]


def test_no_reference_at_all_is_refused() -> None:
    with pytest.raises(CriError) as refused:
        store(A).resolve("")
    assert refused.value.reason is Reason.IMAGE_REFERENCE_EMPTY


def test_runtimes_differ_in_malformed_references() -> None:
    strict = store(A, invalid_reference=OnInvalidReference.REFUSE)
    with pytest.raises(CriError) as refused:
        strict.resolve("UPPER//case")
    assert refused.value.reason is Reason.IMAGE_REFERENCE_INVALID
    assert strict.resolve("f" * 64) is None
    assert strict.resolve(A.id.removeprefix("sha256:")) is not None
    older = store(A, invalid_reference=OnInvalidReference.REFUSE, uppercase_host=UppercaseHost.PATH)
    with pytest.raises(CriError) as refused:
        older.resolve("UPPER//case")
    assert refused.value.reason is Reason.IMAGE_REFERENCE_UPPERCASE


# -- what an image shows -----------------------------------------------------------------------------------------------
def test_names_are_sorted_and_digests_are_a_matter_of_how_the_image_came() -> None:
    pulled = store(A).resolve(A.id)
    imported = store(A, preset_digests=PresetDigests.IMPORTED).resolve(A.id)
    assert pulled is not None
    assert imported is not None
    assert pulled.repo_tags == imported.repo_tags
    assert list(pulled.repo_tags) == sorted(pulled.repo_tags)
    assert pulled.repo_digests == (
        f"docker.io/library/busybox@{A.manifest_digest}",
        f"r.example/a@{A.manifest_digest}",
    )
    assert imported.repo_digests == ()


def test_the_form_of_an_id() -> None:
    bare = store(A, image_id_form=ImageIdForm.BARE).resolve("busybox:1.0")
    assert bare is not None
    assert (bare.id, bare.digest) == ("ab" * 32, A.id)


def test_the_commands_of_a_made_up_image() -> None:
    for unknown, found in ((UnknownCommand.WAIT, True), (UnknownCommand.FAIL, False)):
        images = store(node=Node(unknown_command=unknown))
        offer = _offer(images, "r.example/unknown:1")
        image = images.commit(parse_reference("r.example/unknown:1"), offer)
        assert image.executables.find(image.entrypoint[0], {}) == "wait"
        if found:
            assert image.executables.find("/any/thing", {}) == "wait"
        else:
            with pytest.raises(CommandNotFound):
                image.executables.find("/any/thing", {})


def test_a_described_image_has_its_executables_and_no_others() -> None:
    image = store(source("a:1", executables={"/bin/x": "sleep"})).resolve("a:1")
    assert image is not None
    assert image.executables.find("x", {"PATH": "/bin"}) == "sleep"
    with pytest.raises(CommandNotFound):
        image.executables.find("y", {"PATH": "/bin"})


def test_a_removed_image_that_somebody_keeps_is_the_same_after_the_next_pull() -> None:
    images = store(A)
    kept = images.resolve("r.example/a:1")
    assert kept is not None
    images.remove(kept)
    assert kept not in images
    assert (kept.repo_tags, kept.repo_digests) == ((), ())
    assert images.commit(parse_reference("r.example/a:1"), _offer(images, "r.example/a:1")) is kept
    assert kept.repo_tags == ("r.example/a:1",)


def test_used_bytes_and_inodes_follow_the_images() -> None:
    images = store(A, B)
    both = images.used_bytes, images.inodes_used
    assert both[0] == A.size_bytes + B.size_bytes
    image = images.resolve(B.id)
    assert image is not None
    images.remove(image)
    assert images.used_bytes == A.size_bytes
    assert 0 < images.inodes_used < both[1]


def _offer(images: ImageStore, text: str) -> Offer:
    from fakecri.core.node import UnknownImages
    from fakecri.core.registries import ANONYMOUS

    return images.catalogue.ask(parse_reference(text), ANONYMOUS, UnknownImages.PULL)


# -- the machine -------------------------------------------------------------------------------------------------------
SOURCES = [ImageSource(names=(f"r.example/s{number}:1",), size_bytes=number + 1) for number in range(4)]
REFERENCES = [parse_reference(f"r.example/{repository}:{tag}") for repository in "ab" for tag in "12"]


class Images(RuleBasedStateMachine):
    """Pulls that give any tag to any image, by tag or digest; removals; untagging."""

    def __init__(self) -> None:
        super().__init__()
        self.changed: list[Image] = []
        self.images = store()
        self.images.listeners.append(self.changed.append)
        self.names: dict[str, str] = {}
        self.present: list[str] = []

    @rule(source=st.sampled_from(SOURCES), reference=st.sampled_from(REFERENCES), by_digest=st.booleans())
    def pull(self, source, reference, by_digest) -> None:
        digest = source.manifest_digest
        wanted = reference.with_digest(digest) if by_digest else reference
        image = self.images.commit(wanted, Offer(source, digest, 0))
        assert image.digest == source.id
        assert self.changed[-1] is image
        self.names[str(wanted)] = source.id
        self.names[str(wanted.with_digest(digest))] = source.id
        if source.id not in self.present:
            self.present.append(source.id)

    @precondition(lambda self: self.present)
    @rule(choice=st.randoms(use_true_random=False))
    def remove(self, choice) -> None:
        gone = choice.choice(self.present)
        image = self.images.resolve(gone)
        self.images.remove(image)
        self.present.remove(gone)
        self.names = {name: owner for name, owner in self.names.items() if owner != gone}
        assert self.changed[-1] is image

    @precondition(lambda self: self.names)
    @rule(choice=st.randoms(use_true_random=False))
    def untag(self, choice) -> None:
        name = choice.choice(sorted(self.names))
        self.images.untag(parse_reference(name))
        del self.names[name]

    @invariant()
    def every_name_means_its_image(self) -> None:
        for name, owner in self.names.items():
            image = self.images.resolve(name)
            assert image is not None
            assert image.digest == owner
            assert name in (*image.repo_tags, *image.repo_digests)

    @invariant()
    def the_list_is_what_was_pulled_in_order(self) -> None:
        assert [image.digest for image in self.images] == self.present
        shown = [name for image in self.images for name in (*image.repo_tags, *image.repo_digests)]
        assert sorted(shown) == sorted(self.names)

    @invariant()
    def cached_entries_are_fresh(self) -> None:
        def encode(image: Image) -> bytes:
            return repr((image.id, image.repo_tags, image.repo_digests)).encode()

        assert self.images.pieces("test", encode).all() == b"".join(map(encode, self.images))


TestImages = Images.TestCase
