"""What images there are in the world: what each is, under which names it can be had, and from which registries.

The catalogue is the same for every runtime that is made from it and never changes; what a runtime has pulled is in
``core.image``. An id is the digest of what the image is and of its first name, so it is the same in every run; an
image made up for an unknown reference follows from the digest of that reference alone: a tag and its digest give one.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from fakecri.base.reasons import CriError, Reason
from fakecri.core.node import UnknownImages
from fakecri.core.references import Reference, is_digest, parse_tagged
from fakecri.core.registries import (
    TRANSFER_NS,
    Credentials,
    Registry,
    check_access,
    check_host,
    facts,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_MEBIBYTE = 1 << 20

MADE_UP_ENTRYPOINT: Final = ("/entrypoint",)
#: What a made-up image's commands are: they wait, and obey SIGTERM.
MADE_UP_PROGRAM: Final = "wait"
DEFAULT_PATH: Final = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
DEFAULT_PASSWD: Final = "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n"
DEFAULT_GROUP: Final = "root:x:0:\nnogroup:x:65534:\n"


def _nothing() -> Mapping[str, Any]:
    return MappingProxyType({})


def digest_of(*parts: str) -> str:
    """``sha256:<hex>`` of some words."""
    return f"sha256:{hashlib.sha256(chr(0).join(parts).encode()).hexdigest()}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageConfig:
    """The part of an OCI image configuration that says how a container of it runs; unset means empty."""

    user: str = ""
    entrypoint: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    #: ``NAME=value`` each.
    environment: tuple[str, ...] = ()
    working_directory: str = ""
    stop_signal: str = ""
    labels: Mapping[str, str] = field(default_factory=_nothing)
    volumes: tuple[str, ...] = ()
    exposed_ports: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ImageSource:
    """One image as a registry or a disk holds it.

    ``names`` are references; one with a digest (``repo:tag@sha256:…`` or ``repo@sha256:…``) fixes the digest of its
    manifest, others get one that follows from the id. ``at_start`` images are on the node from the beginning, and in
    their registry too.

    Raises:
        CriError: a name is malformed, or ``id`` is not ``sha256:`` and 64 digits (IMAGE_REFERENCE_INVALID).
    """

    names: tuple[str, ...]
    config: ImageConfig = field(default_factory=ImageConfig)
    id: str = ""
    size_bytes: int = 4 * _MEBIBYTE
    passwd: str = DEFAULT_PASSWD
    group: str = DEFAULT_GROUP
    #: Absolute path → name of the program that it is.
    executables: Mapping[str, str] = field(default_factory=_nothing)
    #: Absolute path → content.
    files: Mapping[str, bytes] = field(default_factory=_nothing)
    annotations: Mapping[str, str] = field(default_factory=_nothing)
    at_start: bool = False
    pinned: bool = False
    #: Nobody described it: it contains its entrypoint and any command that is asked of it.
    made_up: bool = False

    def __post_init__(self) -> None:
        _ = self.references
        if not self.id:
            object.__setattr__(self, "id", digest_of("image config", self._described()))
        elif not is_digest(self.id):
            raise CriError(Reason.IMAGE_REFERENCE_INVALID, image=self.id)

    @cached_property
    def manifest_digest(self) -> str:
        """The digest of the image's manifest where no name fixes another."""
        return digest_of("image manifest", self.id)

    @cached_property
    def references(self) -> tuple[tuple[Reference, str], ...]:
        """Every name as (reference, manifest digest or "" for the image's own)."""
        return tuple(_named(name) for name in self.names)

    def without(self, taken: frozenset[Reference]) -> ImageSource | None:
        """The same image without some of its names; None when none is left."""
        left = tuple(
            name for name, (reference, _) in zip(self.names, self.references, strict=True) if reference not in taken
        )
        if len(left) == len(self.names):
            return self
        return replace(self, names=left) if left else None  # the id, once computed, stays

    def _described(self) -> str:
        config = asdict(replace(self.config, labels={})) | {"labels": dict(self.config.labels)}
        files = {path: hashlib.sha256(content).hexdigest() for path, content in self.files.items()}
        what = [self.names[0] if self.names else "", config, self.size_bytes, self.passwd, self.group, files]
        what.append(dict(self.executables))
        return json.dumps(what, sort_keys=True, default=dict)


@dataclass(frozen=True, slots=True)
class Offer:
    """What a registry answers to a pull that it lets through: an image, its manifest's digest, the time it takes."""

    source: ImageSource
    digest: str
    transfer_ns: int
    #: The layer that would arrive and the one that the manifest names, when they differ.
    mismatch: tuple[str, str] | None = None


class Catalogue:
    """What the node has at the start, and what registries offer.

    Sources given together are one layer: where one name is both at the start and to be pulled, the node begins with the
    one and a pull finds the other; of two alike the later has the name. ``extended`` puts a layer on top, which takes
    every name that it mentions.
    """

    def __init__(self, sources: Iterable[ImageSource] = (), registries: Iterable[Registry] = ()) -> None:
        self.registries: Mapping[str, Registry] = {registry.host: registry for registry in registries}
        layer = tuple(sources)
        #: Images on the node at the start, oldest first.
        self.at_start: tuple[ImageSource, ...] = _last_named(source for source in layer if source.at_start)
        self._offered: dict[Reference, tuple[ImageSource, str]] = {}
        for source in sorted(layer, key=lambda source: not source.at_start):  # what is only to be pulled wins
            self._offer(source)

    def _offer(self, source: ImageSource) -> None:
        for reference, fixed in source.references:
            digest = reference.digest or fixed or source.manifest_digest
            self._offered[reference] = (source, digest)
            self._offered[reference.with_digest(digest)] = (source, digest)

    def extended(self, sources: Iterable[ImageSource], registries: Iterable[Registry] = ()) -> Catalogue:
        """This catalogue under a layer of more images and hosts; a host described again is described anew."""
        result = Catalogue(sources, registries)
        taken = frozenset(result._offered)
        below = [left for source in self.at_start if (left := source.without(taken)) is not None]
        result.at_start = (*below, *result.at_start)
        result._offered = {**self._offered, **result._offered}
        result.registries = {**self.registries, **result.registries}
        return result

    @property
    def sources(self) -> list[ImageSource]:
        """Every image that can be had, those on the node first."""
        found = {source.id: source for source in self.at_start}
        for source, _ in self._offered.values():
            found.setdefault(source.id, source)
        return list(found.values())

    def ask(self, reference: Reference, credentials: Credentials, unknown: UnknownImages) -> Offer:
        """What the registry of a reference answers.

        Raises:
            CriError: as ``registries.check_host`` and ``check_access``; IMAGE_NOT_IN_REGISTRY.
        """
        registry = self.registries.get(reference.host)
        check_host(reference, registry)
        rule = (registry or Registry(host=reference.host)).rule_for(reference)
        check_access(reference, rule, credentials)
        offered = self._offered.get(reference)
        if offered is None:
            if (registry is not None and not registry.open) or unknown is UnknownImages.FAIL:
                known = any(each.repository == reference.repository for each in self._offered)
                missing = "manifest" if known else "name"
                raise CriError(Reason.IMAGE_NOT_IN_REGISTRY, **facts(reference), missing=missing)
            offered = make_up(reference)
        source, digest = offered
        transfer_ns = TRANSFER_NS if rule.duration_ns is None else rule.duration_ns
        mismatch = None
        if (wrong := rule.wrong_digest) is not None:
            mismatch = (wrong.got or digest_of("broken layer", source.id), wrong.expected or layer_digest(source))
        return Offer(source, digest, transfer_ns, mismatch)


def make_up(reference: Reference) -> tuple[ImageSource, str]:
    """The image and manifest digest that a reference which nobody described stands for."""
    digest = reference.digest or digest_of("made-up manifest", str(reference))
    source = ImageSource(
        names=(str(reference),),
        id=digest_of("made-up image", digest),
        config=ImageConfig(entrypoint=MADE_UP_ENTRYPOINT, environment=(DEFAULT_PATH,)),
        size_bytes=5 * _MEBIBYTE + int(digest_of("size", digest)[7:15], 16) % (95 * _MEBIBYTE),
        made_up=True,
    )
    return source, digest


def layer_digest(source: ImageSource) -> str:
    """The digest of an image's only layer, uncompressed: its chain id."""
    return digest_of("image layer", source.id)


def _last_named(sources: Iterable[ImageSource]) -> tuple[ImageSource, ...]:
    kept: list[ImageSource] = []
    for source in sources:
        taken = frozenset(reference for reference, _ in source.references)
        kept = [left for earlier in kept if (left := earlier.without(taken)) is not None]
        kept.append(source)
    return tuple(kept)


def _named(name: str) -> tuple[Reference, str]:
    reference, tag = parse_tagged(name)
    if not tag:
        return reference, ""
    return Reference(reference.host, reference.path, tag=tag), reference.digest
