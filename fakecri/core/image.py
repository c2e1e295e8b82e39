"""The images on the node: names that move, ids that stay, and what is being pulled.

An image has any number of names (tags and digests) and lives until it is removed; when a pull finds that a tag now
means another image, the tag moves and the older image stays without it. A pull in progress is in no list.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from weakref import WeakValueDictionary

from fakecri.base.reasons import CriError, Reason
from fakecri.base.steps import RESERVED, After, At, Steps, Wait
from fakecri.core.catalogue import MADE_UP_PROGRAM, Catalogue, ImageSource, Offer
from fakecri.core.node import Node, UnknownCommand
from fakecri.core.pieces import PieceTable
from fakecri.core.references import Reference, is_digest, parse_reference
from fakecri.core.registries import RESOLVE_NS, Credentials, facts
from fakecri.core.traits import (
    Behaviour,
    ImageIdForm,
    OnInvalidReference,
    PresetDigests,
    UppercaseHost,
)
from fakecri.kernel.executables import Executables

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from fakecri.base.ids import Ids
    from fakecri.clock import VirtualClock

#: Fewest hex digits that are taken for the beginning of an image id.
SHORTEST_ID: Final = 3
_SHA256 = "sha256:"


class Image:
    """One image and the names that it has here; it has none before its first pull and after its removal."""

    __slots__ = (
        "__weakref__",
        "annotations",
        "command",
        "config",
        "digest",
        "entrypoint",
        "environment",
        "executables",
        "files",
        "group",
        "id",
        "labels",
        "made_up",
        "passwd",
        "pinned",
        "repo_digests",
        "repo_tags",
        "size_bytes",
        "source",
        "stop_signal",
        "user",
        "working_directory",
    )

    def __init__(self, source: ImageSource, form: ImageIdForm, unknown_command: UnknownCommand) -> None:
        self.source = source
        #: ``sha256:<hex>``, whatever the runtime shows.
        self.digest = source.id
        #: The id as this runtime writes it.
        self.id = source.id if form is ImageIdForm.SHA256 else source.id.removeprefix(_SHA256)
        #: ``repository:tag`` of every tag, sorted.
        self.repo_tags: tuple[str, ...] = ()
        #: ``repository@digest``, sorted; empty for an image that was imported and never pulled.
        self.repo_digests: tuple[str, ...] = ()
        self.size_bytes = source.size_bytes
        self.pinned = source.pinned
        self.annotations = source.annotations
        config = self.config = source.config
        self.user = config.user
        self.entrypoint = config.entrypoint
        self.command = config.command
        self.environment = config.environment
        self.working_directory = config.working_directory
        self.stop_signal = config.stop_signal
        self.labels = config.labels
        #: Contents of /etc/passwd and /etc/group.
        self.passwd = source.passwd
        self.group = source.group
        #: Absolute path → content of the files beside those two and the executables.
        self.files = source.files
        #: Nobody described it: it contains its entrypoint and any command that is asked of it.
        self.made_up = source.made_up
        self.executables = Executables(
            programs=_programs(source),
            files=frozenset({*source.files, "/etc/passwd", "/etc/group"}),
            made_up=source.made_up and unknown_command is UnknownCommand.WAIT,
        )


def _programs(source: ImageSource) -> Mapping[str, str]:
    if source.made_up:
        return {source.config.entrypoint[0]: MADE_UP_PROGRAM}
    return source.executables


@dataclass(slots=True)
class _Pull:
    """One transfer that any number of calls wait for."""

    ends_at_ns: int
    callers: int = 0


class ImageStore:
    """The images of one runtime. Iteration is oldest first."""

    #: Encodings of list entries kept at a time.
    MAX_TABLES = 4

    def __init__(self, catalogue: Catalogue, behaviour: Behaviour, ids: Ids, node: Node) -> None:
        self.catalogue = catalogue
        self._traits = behaviour.traits
        self._ids = ids
        self._node = node
        self._images: dict[str, Image] = {}
        self._sorted_digits: list[str] = []
        self._names: dict[Reference, Image] = {}
        self._pulls: dict[tuple[Reference, str], _Pull] = {}
        self._tables: dict[object, PieceTable[Image]] = {}
        # a removed image that a container still uses is the same object again after the next pull
        self._remembered: WeakValueDictionary[str, Image] = WeakValueDictionary()
        #: Called with an image whose names have changed (or that has come or gone), after the change.
        self.listeners: list[Callable[[Image], None]] = []
        for source in catalogue.at_start:
            self._preset(source)

    # -- looking up ------------------------------------------------------------------------------------------------
    def __len__(self) -> int:
        return len(self._images)

    def __iter__(self) -> Iterator[Image]:
        return iter(self._images.values())

    def __contains__(self, image: object) -> bool:
        return isinstance(image, Image) and self._images.get(image.digest) is image

    def parse(self, text: str) -> Reference:
        """A reference by this runtime's rules.

        Raises:
            CriError: as ``references.parse_reference``.
        """
        return parse_reference(text, upper_case_hosts=self._traits.uppercase_host is UppercaseHost.HOST)

    def resolve(self, text: str) -> Image | None:
        """The image that a client means by a name, an id, or the unique beginning of an id; None for no image.

        A name is looked for first, so a name made of hex digits is found as such.

        Raises:
            CriError: IMAGE_REFERENCE_EMPTY, IMAGE_ID_AMBIGUOUS; those of ``parse`` where the runtime refuses malformed
                references here.
        """
        if not text:
            raise CriError(Reason.IMAGE_REFERENCE_EMPTY)
        if is_digest(text):
            return self._images.get(text)
        problem = None
        try:
            named = self._names.get(self.parse(text))
        except CriError as error:
            named, problem = None, error
        found = named or self._by_id(text)
        if found is None and problem is not None and self._refuses(problem):
            raise problem
        return found

    def _refuses(self, problem: CriError) -> bool:
        refuses = self._traits.invalid_reference is OnInvalidReference.REFUSE
        return refuses and problem.reason is not Reason.IMAGE_REFERENCE_IS_ID

    def name_meant(self, text: str) -> Reference | None:
        """The name of an image that a client means; None when it means one by its id, or none at all."""
        try:
            reference = self.parse(text)
        except CriError:
            return None
        return reference if reference in self._names else None

    def _by_id(self, text: str) -> Image | None:
        digits = text.removeprefix(_SHA256)
        if len(digits) < SHORTEST_ID:
            return None
        known = self._sorted_digits
        at = bisect_left(known, digits)
        if at >= len(known) or not known[at].startswith(digits):
            return None
        if known[at] != digits and at + 1 < len(known) and known[at + 1].startswith(digits):
            raise CriError(Reason.IMAGE_ID_AMBIGUOUS, image=text)
        return self._images[_SHA256 + known[at]]

    # -- sums ------------------------------------------------------------------------------------------------------
    @property
    def used_bytes(self) -> int:
        """Size of all images together."""
        return sum(image.size_bytes for image in self)

    @property
    def inodes_used(self) -> int:
        """Files of all images together: what is described, and a file per 16 KiB of the rest."""
        return sum(_inodes(image.source) for image in self)

    # -- pulling ---------------------------------------------------------------------------------------------------
    def pull(self, clock: VirtualClock, reference: Reference, credentials: Credentials) -> Steps[Offer]:
        """Ask the registry, then take part in the transfer of that reference until it is complete.

        Nothing is on the node yet when this returns; ``commit`` puts it there. Content that is here already takes no
        time. A caller that is cancelled leaves no trace, and the transfer goes on for the others.

        Raises:
            CriError: as ``Catalogue.ask``, after the time of one question; IMAGE_DIGEST_MISMATCH after the transfer.
        """
        yield Wait(After(RESOLVE_NS))
        offer = self.catalogue.ask(reference, credentials, self._node.unknown_images)
        key = (reference, offer.digest)
        here = offer.source.id in self._images and offer.mismatch is None
        pull = self._pulls.setdefault(key, _Pull(clock.now_ns + (0 if here else offer.transfer_ns)))
        pull.callers += 1
        try:
            yield RESERVED
            if pull.ends_at_ns > clock.now_ns:
                yield Wait(At(pull.ends_at_ns))
        finally:
            pull.callers -= 1
            if not pull.callers:
                del self._pulls[key]
        if offer.mismatch is not None:
            got, expected = offer.mismatch
            raise CriError(Reason.IMAGE_DIGEST_MISMATCH, **facts(reference), got=got, expected=expected)
        return offer

    @property
    def pulling(self) -> list[str]:
        """References whose transfer is under way."""
        return [str(reference) for reference, _ in self._pulls]

    # -- changing --------------------------------------------------------------------------------------------------
    def commit(self, reference: Reference, offer: Offer) -> Image:
        """Put a pulled image on the node under the reference and its digest; a tag leaves the image that had it."""
        image = self._arrived(offer.source)
        self._give(image, reference.with_digest(offer.digest))
        if not reference.digest:
            self._give(image, reference)
        self._changed(image)
        return image

    def untag(self, reference: Reference) -> None:
        """Take one name from its image; the image stays, whatever names are left."""
        image = self._names.pop(reference)
        self._name(image)
        self._changed(image)

    def remove(self, image: Image) -> None:
        """Take an image off the node with all its names."""
        for reference in [reference for reference, owner in self._names.items() if owner is image]:
            del self._names[reference]
        self._name(image)
        del self._images[image.digest]
        digits = image.digest.removeprefix(_SHA256)
        del self._sorted_digits[bisect_left(self._sorted_digits, digits)]
        for table in self._tables.values():
            table.drop(image)
        for listener in self.listeners:
            listener(image)

    def _preset(self, source: ImageSource) -> None:
        image = self._arrived(source)
        for reference, fixed in source.references:
            self._give(image, reference)
            if not reference.digest and self._traits.preset_digests is PresetDigests.PULLED:
                self._give(image, reference.with_digest(fixed or source.manifest_digest))
        self._changed(image)

    def _arrived(self, source: ImageSource) -> Image:
        image = self._images.get(source.id)
        if image is None:
            image = self._remembered.get(source.id)
            if image is None:
                image = Image(source, self._traits.image_id_form, self._node.unknown_command)
                self._remembered[source.id] = image
            self._images[source.id] = image
            insort(self._sorted_digits, source.id.removeprefix(_SHA256))
        return image

    def _give(self, image: Image, reference: Reference) -> None:
        before = self._names.get(reference)
        self._names[reference] = image
        self._name(image)
        if before is not None and before is not image:
            self._name(before)
            self._changed(before)

    def _name(self, image: Image) -> None:
        names = [reference for reference, owner in self._names.items() if owner is image]
        image.repo_tags = tuple(sorted(str(reference) for reference in names if not reference.digest))
        image.repo_digests = tuple(sorted(str(reference) for reference in names if reference.digest))

    def _changed(self, image: Image) -> None:
        for table in self._tables.values():
            table.touch(image)
        for listener in self.listeners:
            listener(image)

    # -- list pieces -----------------------------------------------------------------------------------------------
    def pieces(self, encoding: object, encode: Callable[[Image], bytes]) -> PieceTable[Image]:
        """The kept list entries under one encoding (a hashable name for it); made on first use."""
        table = self._tables.pop(encoding, None)
        if table is None:
            table = PieceTable(self._images.values(), encode)
            while len(self._tables) >= self.MAX_TABLES:
                self._tables.pop(next(iter(self._tables)))
        self._tables[encoding] = table
        return table


def _inodes(source: ImageSource) -> int:
    return len(source.files) + len(source.executables) + source.size_bytes // 16384
