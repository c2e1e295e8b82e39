"""Registry hosts as a pull sees them: who must show which credentials, what is refused, what is slow or broken.

A host that somebody described is a closed world: what is not listed there is not found. Of the others, ``invalid.*``,
``*.invalid`` and ``localhost`` without a port cannot be reached.
"""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from http import HTTPStatus
from typing import Any, Final

from fakecri.base.reasons import CriError, Reason
from fakecri.clock import MILLISECOND
from fakecri.core.references import DEFAULT_HOST, Reference

#: How long a registry takes to name the image behind a reference, and to hand over its layers. critest needs a pull
#: to take longer than a client's deadline of 1 ms.
RESOLVE_NS: Final = 5 * MILLISECOND
TRANSFER_NS: Final = 15 * MILLISECOND

_DOCKER_HUB_SERVER = "registry-1.docker.io"
_HUB_ALIASES = {"index.docker.io": DEFAULT_HOST, _DOCKER_HUB_SERVER: DEFAULT_HOST}


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    """What a registry accepts: a name with its password, and bearer or identity tokens."""

    username: str = ""
    password: str = ""
    tokens: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Credentials:
    """What a client gave with one pull; ``malformed`` is why its ``AuthConfig`` could not be used, if it could not."""

    username: str = ""
    password: str = ""
    token: str = ""
    malformed: str = ""

    @property
    def given(self) -> bool:
        """Whether there is anything to show to a registry."""
        return bool(self.username or self.password or self.token)


ANONYMOUS: Final = Credentials()


@dataclass(frozen=True, slots=True, kw_only=True)
class WrongDigest:
    """A layer that arrives (``got``) is not the one that the manifest names; empty: follows from the image."""

    got: str = ""
    expected: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RepositoryRule:
    """How a host treats the repositories whose path, or ``path:tag``, matches a glob; None means: as usual."""

    match: str = "*"
    login: Login | None = None
    #: HTTP status of the manifest request, 400 … 599.
    status: int | None = None
    wrong_digest: WrongDigest | None = None
    #: How long the transfer of an image takes that is not here yet, in ns.
    duration_ns: int | None = None

    def matches(self, reference: Reference) -> bool:
        """Whether the rule is about this reference."""
        return fnmatchcase(reference.path, self.match) or fnmatchcase(f"{reference.path}:{reference.tag}", self.match)


@dataclass(frozen=True, slots=True, kw_only=True)
class Registry:
    """One described host. Of its rules the first that matches counts."""

    host: str
    reachable: bool = True
    #: Whether an image that nobody listed can be pulled from here all the same.
    open: bool = False
    rules: tuple[RepositoryRule, ...] = ()

    def rule_for(self, reference: Reference) -> RepositoryRule:
        """The first matching rule, else one that leaves everything as usual."""
        return next((rule for rule in self.rules if rule.matches(reference)), _AS_USUAL)


_AS_USUAL = RepositoryRule()


def facts(reference: Reference) -> dict[str, Any]:
    """What the texts of a failed pull may name."""
    plain = is_plain_http(reference.host)
    server = _DOCKER_HUB_SERVER if reference.host == DEFAULT_HOST else reference.host
    return {
        "image": str(reference),
        "host": server,
        "repository": reference.repository,
        "reference": reference.selector,
        "url": f"{'http' if plain else 'https'}://{server}/v2/{reference.path}/manifests/{reference.selector}",
    }


def is_plain_http(host: str) -> bool:
    """Whether a host is spoken to without TLS: the machine itself."""
    name = _without_port(host)
    return name in ("localhost", "[::1]") or name.startswith("127.")


def check_host(reference: Reference, registry: Registry | None) -> None:
    """Refuse what cannot be reached.

    Raises:
        CriError: REGISTRY_HOST_UNKNOWN, REGISTRY_UNREACHABLE.
    """
    if registry is not None:
        if not registry.reachable:
            raise CriError(Reason.REGISTRY_UNREACHABLE, **facts(reference), address=_address(reference.host))
        return
    name = _without_port(reference.host).lower()
    if name.startswith("invalid.") or name.endswith(".invalid"):
        raise CriError(Reason.REGISTRY_HOST_UNKNOWN, **facts(reference), address=_address(reference.host))
    if reference.host == "localhost":
        raise CriError(Reason.REGISTRY_UNREACHABLE, **facts(reference), address="127.0.0.1:80")


def check_access(reference: Reference, rule: RepositoryRule, credentials: Credentials) -> None:
    """Refuse what the host refuses, whether the image is there or not.

    Raises:
        CriError: REGISTRY_AUTH_MALFORMED, REGISTRY_UNAUTHORIZED, REGISTRY_BAD_CREDENTIALS, REGISTRY_FORBIDDEN,
            IMAGE_NOT_IN_REGISTRY, REGISTRY_FAILED.
    """
    if rule.login is not None or rule.status == HTTPStatus.UNAUTHORIZED:
        if credentials.malformed:
            raise CriError(Reason.REGISTRY_AUTH_MALFORMED, **facts(reference), detail=credentials.malformed)
        if rule.login is None or not _accepts(rule.login, credentials):
            reason = Reason.REGISTRY_BAD_CREDENTIALS if credentials.given else Reason.REGISTRY_UNAUTHORIZED
            raise CriError(reason, **facts(reference), **_status(HTTPStatus.UNAUTHORIZED))
    if rule.status == HTTPStatus.NOT_FOUND:
        raise CriError(Reason.IMAGE_NOT_IN_REGISTRY, **facts(reference), missing="name")
    if rule.status == HTTPStatus.FORBIDDEN:
        raise CriError(Reason.REGISTRY_FORBIDDEN, **facts(reference), **_status(rule.status))
    if rule.status is not None:
        raise CriError(Reason.REGISTRY_FAILED, **facts(reference), **_status(rule.status))


def credentials_of(
    host: str, *, username: str, password: str, auth: str, server_address: str, identity_token: str, registry_token: str
) -> Credentials:
    """What an ``AuthConfig`` has for a host, in the order in which containerd looks at its fields.

    One that is for another server counts as none; ``auth`` is base64 of ``username:password``.
    """
    if server_address and _HUB_ALIASES.get(named := _server_host(server_address), named) != host:
        return ANONYMOUS
    if username:
        return Credentials(username, password)
    if identity_token or registry_token:
        return Credentials(token=identity_token or registry_token)
    if not auth:
        return Credentials(malformed="invalid auth config")
    try:
        decoded = base64.b64decode(auth, validate=True)
    except (binascii.Error, ValueError):
        return Credentials(malformed=f"illegal base64 data at input byte {_bad_base64_at(auth)}")
    name, colon, secret = decoded.decode("utf-8", "replace").partition(":")
    if not colon:
        return Credentials(malformed=f'invalid decoded auth: "{name}"')
    return Credentials(name, secret.strip("\0"))


def _accepts(login: Login, credentials: Credentials) -> bool:
    if credentials.token:
        return credentials.token in login.tokens
    named = bool(login.username) and credentials.username == login.username
    return named and credentials.password == login.password


def _bad_base64_at(text: str) -> int:
    stray = re.search(r"[^A-Za-z0-9+/\r\n]", text)
    return stray.start() if stray is not None and text[stray.start() :].strip("=") else len(text) // 4 * 4


def _server_host(server_address: str) -> str:
    host = server_address.partition("://")[2] or server_address
    return host.partition("/")[0]


def _status(status: int) -> dict[str, Any]:
    try:
        text = HTTPStatus(status).phrase
    except ValueError:
        text = ""
    return {"status": status, "status_text": text}


def _without_port(host: str) -> str:
    return re.sub(r":[0-9]+$", "", host)


def _address(host: str) -> str:
    return host if host != _without_port(host) else f"{host}:{80 if is_plain_http(host) else 443}"
