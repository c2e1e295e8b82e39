"""Image references: the grammar of names, tags and digests, and the one full form of each.

The rule is that of the distribution project, which every runtime uses: a name without a registry host is Docker Hub's,
one without a tag or digest means ``latest``, and of a reference with both tag and digest only the digest counts.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from fakecri.base.reasons import CriError, Reason

DEFAULT_HOST: Final = "docker.io"
DEFAULT_TAG: Final = "latest"
#: Longest repository path, in characters, without its host.
PATH_LIMIT: Final = 255

_LEGACY_DEFAULT_HOST = "index.docker.io"
_OFFICIAL = "library/"
_COMPONENT = r"(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])"
_HOST = rf"(?:{_COMPONENT}(?:\.{_COMPONENT})*|\[(?:[a-fA-F0-9:]+)\])(?::[0-9]+)?"
_PATH_COMPONENT = r"[a-z0-9]+(?:(?:[_.]|__|-+)[a-z0-9]+)*"
_TAG = r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}"
_DIGEST = r"[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}"
_REFERENCE = re.compile(
    rf"(?P<host>{_HOST})/(?P<path>{_PATH_COMPONENT}(?:/{_PATH_COMPONENT})*)(?::(?P<tag>{_TAG}))?(?:@(?P<digest>{_DIGEST}))?"
)
_HEX_ID = re.compile(r"[a-f0-9]{64}")
_DIGEST_DIGITS: Final = {"sha256": 64, "sha384": 96, "sha512": 128}


@dataclass(frozen=True, slots=True, order=True)
class Reference:
    """One parsed reference in its full form; it has a tag or a digest, never both."""

    host: str
    path: str
    tag: str = ""
    digest: str = ""

    @property
    def repository(self) -> str:
        """Host and path, as repo tags and repo digests begin."""
        return f"{self.host}/{self.path}"

    @property
    def selector(self) -> str:
        """What follows the repository in a registry's URL: the digest, else the tag."""
        return self.digest or self.tag

    def with_digest(self, digest: str) -> Reference:
        """The reference by digest in the same repository."""
        return Reference(self.host, self.path, digest=digest)

    def __str__(self) -> str:
        return f"{self.repository}@{self.digest}" if self.digest else f"{self.repository}:{self.tag}"


def parse_reference(text: str, *, upper_case_hosts: bool = True) -> Reference:
    """The full form of a reference as a client wrote it.

    ``upper_case_hosts`` False is the older rule (distribution before 2.8.2), which takes a first component with
    capitals for part of the path, and so complains of its case.

    Raises:
        CriError: IMAGE_REFERENCE_INVALID, IMAGE_REFERENCE_UPPERCASE, IMAGE_REFERENCE_TOO_LONG or
            IMAGE_REFERENCE_IS_ID; the fact ``image`` is the text.
    """
    return parse_tagged(text, upper_case_hosts=upper_case_hosts)[0]


def parse_tagged(text: str, *, upper_case_hosts: bool = True) -> tuple[Reference, str]:
    """As ``parse_reference``, and the tag that stood beside a digest (empty when there was no digest)."""
    if _HEX_ID.fullmatch(text):
        raise CriError(Reason.IMAGE_REFERENCE_IS_ID, image=text)
    host, rest = _split_host(text, upper_case_hosts)
    path = rest.partition(":")[0]
    if path != path.lower():
        raise CriError(Reason.IMAGE_REFERENCE_UPPERCASE, image=text, repository=path)
    match = _REFERENCE.fullmatch(f"{host}/{rest}")
    if match is None:
        raise CriError(Reason.IMAGE_REFERENCE_INVALID, image=text)
    if len(match["path"]) > PATH_LIMIT:
        raise CriError(Reason.IMAGE_REFERENCE_TOO_LONG, image=text, limit=PATH_LIMIT)
    digest, tag = match["digest"] or "", match["tag"] or ""
    if not digest:
        return Reference(match["host"], match["path"], tag=tag or DEFAULT_TAG), ""
    if not is_digest(digest):
        raise CriError(Reason.IMAGE_REFERENCE_INVALID, image=text)
    return Reference(match["host"], match["path"], digest=digest), tag


def is_digest(text: str) -> bool:
    """Whether this is a whole digest of a known algorithm, such as an image id in full."""
    algorithm, _, digits = text.partition(":")
    return len(digits) == _DIGEST_DIGITS.get(algorithm) and all(digit in "0123456789abcdef" for digit in digits)


def _split_host(text: str, upper_case_hosts: bool) -> tuple[str, str]:
    first, slash, rest = text.partition("/")
    if not slash:
        return DEFAULT_HOST, _OFFICIAL + text
    if first == _LEGACY_DEFAULT_HOST:
        host = DEFAULT_HOST
    elif first == "localhost" or "." in first or ":" in first or (upper_case_hosts and first != first.lower()):
        host = first
    else:
        host, rest = DEFAULT_HOST, text
    if host == DEFAULT_HOST and "/" not in rest:
        rest = _OFFICIAL + rest
    return host, rest
