"""How containerd words what goes wrong with images and registries: 2.1.9 as measured."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from fakecri.base.reasons import Code, Reason
from fakecri.personality.model import Form, over

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fakecri.personality.model import Key

#: What a registry can answer before anything is transferred.
RESOLVE_FAILURES: Final = (
    Reason.IMAGE_NOT_IN_REGISTRY,
    Reason.REGISTRY_UNAUTHORIZED,
    Reason.REGISTRY_BAD_CREDENTIALS,
    Reason.REGISTRY_FORBIDDEN,
    Reason.REGISTRY_FAILED,
    Reason.REGISTRY_UNREACHABLE,
    Reason.REGISTRY_HOST_UNKNOWN,
    Reason.REGISTRY_AUTH_MALFORMED,
)
#: References that no registry is asked about.
BAD_REFERENCES: Final = (
    Reason.IMAGE_REFERENCE_INVALID,
    Reason.IMAGE_REFERENCE_UPPERCASE,
    Reason.IMAGE_REFERENCE_TOO_LONG,
    Reason.IMAGE_REFERENCE_IS_ID,
)
PULL: Final = 'failed to pull and unpack image "{image}": '

_STATUS: Final = Form(Code.UNKNOWN, "unexpected status from HEAD request to {url}: {status} {status_text}")
_HEAD: Final = 'failed to do request: Head "{url}": dial tcp'

FORMS: Final[Mapping[Key, Form]] = MappingProxyType(
    {
        (Reason.IMAGE_REFERENCE_EMPTY, None): Form(Code.UNKNOWN, 'can not resolve "" locally: ambiguous digest string'),
        (Reason.IMAGE_REFERENCE_EMPTY, "PullImage"): Form(
            Code.UNKNOWN, 'failed to parse image reference "": invalid reference format'
        ),
        (Reason.IMAGE_REFERENCE_INVALID, None): Form(Code.UNKNOWN, "invalid reference format"),
        (Reason.IMAGE_REFERENCE_UPPERCASE, None): Form(Code.UNKNOWN, "invalid reference format"),
        (Reason.IMAGE_REFERENCE_TOO_LONG, None): Form(
            Code.UNKNOWN, "repository name must not be more than {limit} characters"
        ),
        (Reason.IMAGE_REFERENCE_IS_ID, None): Form(
            Code.UNKNOWN, "invalid repository name ({image}), cannot specify 64-byte hexadecimal strings"
        ),
        (Reason.IMAGE_ID_AMBIGUOUS, None): Form(
            Code.UNKNOWN, 'can not resolve "{image}" locally: ambiguous digest string'
        ),
        (Reason.IMAGE_NOT_FOUND, None): Form(Code.NOT_FOUND, 'can not resolve "{image}" locally: not found'),
        (Reason.IMAGE_IN_USE, None): Form(
            Code.FAILED_PRECONDITION, 'image "{image}" is in use by container "{container}"'
        ),
        (Reason.IMAGE_NOT_IN_REGISTRY, None): Form(Code.NOT_FOUND, "{image}: not found"),
        (Reason.REGISTRY_UNAUTHORIZED, None): Form(
            Code.UNKNOWN,
            "pull access denied, repository does not exist or may require authorization: authorization failed:"
            " no basic auth credentials",
        ),
        (Reason.REGISTRY_BAD_CREDENTIALS, None): _STATUS,
        (Reason.REGISTRY_FORBIDDEN, None): _STATUS,
        (Reason.REGISTRY_FAILED, None): _STATUS,
        (Reason.REGISTRY_UNREACHABLE, None): Form(Code.UNKNOWN, f"{_HEAD} {{address}}: connect: connection refused"),
        (Reason.REGISTRY_HOST_UNKNOWN, None): Form(Code.UNKNOWN, f"{_HEAD}: lookup {{host}}: no such host"),
        (Reason.REGISTRY_AUTH_MALFORMED, None): Form(Code.UNKNOWN, 'failed to get credentials for "{host}": {detail}'),
        (Reason.IMAGE_DIGEST_MISMATCH, None): Form(
            Code.FAILED_PRECONDITION,
            'failed commit on ref "layer-{expected}": unexpected commit digest {got}, expected {expected}:'
            " failed precondition",
        ),
    }
)

WRAPPERS: Final[Mapping[Key, str]] = MappingProxyType(
    {
        **over(BAD_REFERENCES, {None: 'failed to parse image reference "{image}": {cause}'}),
        **over(RESOLVE_FAILURES, {None: f"{PULL}failed to resolve image: {{cause}}"}),
        (Reason.IMAGE_DIGEST_MISMATCH, None): f"{PULL}{{cause}}",
    }
)
