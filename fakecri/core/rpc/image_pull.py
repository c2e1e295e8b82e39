"""PullImage: parse, ask the registry, transfer, commit. Until the commit nobody can see the image."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from fakecri.base.reasons import CriError, Reason
from fakecri.base.steps import BEFORE_COMMIT, CHECKED, Steps
from fakecri.core.checks import Check, run_checks
from fakecri.core.registries import ANONYMOUS, Credentials, credentials_of, facts
from fakecri.core.rpc.registry import Context, handles
from fakecri.core.traits import PullReference
from fakecri.wire import messages

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fakecri.core.references import Reference
    from fakecri.core.runtime import Runtime


@dataclass(slots=True)
class Wanted:
    """What a PullImage call asks for."""

    request: messages.PullImageRequest
    reference: Reference | None = None
    credentials: Credentials = ANONYMOUS


def _reference(runtime: Runtime, wanted: Wanted) -> None:
    text = wanted.request.image.image
    if not text:
        raise CriError(Reason.IMAGE_REFERENCE_EMPTY)
    wanted.reference = runtime.images.parse(text)


def _credentials(runtime: Runtime, wanted: Wanted) -> None:
    assert wanted.reference is not None, "a check order names 'reference' before 'credentials'"
    if wanted.request.HasField("auth"):
        auth = wanted.request.auth
        wanted.credentials = credentials_of(
            wanted.reference.host,
            username=auth.username,
            password=auth.password,
            auth=auth.auth,
            server_address=auth.server_address,
            identity_token=auth.identity_token,
            registry_token=auth.registry_token,
        )


def _credentials_decoded(runtime: Runtime, wanted: Wanted) -> None:
    assert wanted.reference is not None
    if wanted.credentials.malformed:
        raise CriError(Reason.REGISTRY_AUTH_MALFORMED, **facts(wanted.reference), detail=wanted.credentials.malformed)


CHECKS: Final[Mapping[str, Check]] = MappingProxyType(
    {"reference": _reference, "credentials": _credentials, "credentials_decoded": _credentials_decoded}
)
#: containerd: a malformed ``AuthConfig`` is noticed only when the registry asks for credentials.
ORDER: Final = ("reference", "credentials")


@handles("PullImage")
def pull_image(
    runtime: Runtime, context: Context, request: messages.PullImageRequest
) -> Steps[messages.PullImageResponse]:
    """Bring an image to the node, or only a name for it when its content is here; a tag moves to what it now means.

    Raises:
        CriError: as ``references.parse_reference`` (or IMAGE_REFERENCE_EMPTY) and ``ImageStore.pull``.
    """
    wanted = Wanted(request)
    run_checks(runtime, "PullImage", CHECKS, wanted, ORDER)
    reference = wanted.reference
    assert reference is not None
    yield CHECKED
    offer = yield from runtime.images.pull(runtime.clock, reference, wanted.credentials)
    yield BEFORE_COMMIT
    image = runtime.images.commit(reference, offer)
    by_digest = runtime.traits.pull_reference is PullReference.REPO_DIGEST
    return messages.PullImageResponse(image_ref=str(reference.with_digest(offer.digest)) if by_digest else image.id)
