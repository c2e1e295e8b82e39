"""RemoveImage: an image with all its names, or one name, as the runtime understands it. Absence is success in CRI."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakecri.base.reasons import CriError, Reason
from fakecri.base.steps import BEFORE_COMMIT, CHECKED, RESERVED, Steps
from fakecri.core.rpc.registry import Context, handles
from fakecri.core.traits import ImageInUse, OnUnknown, RemoveImageScope
from fakecri.wire import messages

if TYPE_CHECKING:
    from fakecri.core.image import Image
    from fakecri.core.references import Reference
    from fakecri.core.runtime import Runtime


@handles("RemoveImage")
def remove_image(
    runtime: Runtime, context: Context, request: messages.RemoveImageRequest
) -> Steps[messages.RemoveImageResponse]:
    """Remove what a reference or id means; a pinned image goes too, since only clients mind the pin.

    Raises:
        CriError: as ``ImageStore.resolve``; IMAGE_NOT_FOUND and IMAGE_IN_USE where the runtime refuses those.
    """
    text = request.image.image
    image = _found(runtime, text)
    yield CHECKED
    yield RESERVED
    yield BEFORE_COMMIT
    if image is None or image not in runtime.images:  # a call that went on meanwhile may have removed it
        return messages.RemoveImageResponse()
    name = _only_name(runtime, image, text)
    if name is not None:
        runtime.images.untag(name)
    else:
        _check_unused(runtime, image, text)
        runtime.images.remove(image)
    return messages.RemoveImageResponse()


def _found(runtime: Runtime, text: str) -> Image | None:
    image = runtime.images.resolve(text)
    if image is None:
        if runtime.traits.remove_unknown_image is OnUnknown.NOT_FOUND:
            raise CriError(Reason.IMAGE_NOT_FOUND, image=text)
        return None
    if _only_name(runtime, image, text) is None:
        _check_unused(runtime, image, text)
    return image


def _only_name(runtime: Runtime, image: Image, text: str) -> Reference | None:
    """The one name that is to go; None when the whole image is."""
    if runtime.traits.remove_image_scope is RemoveImageScope.ALL_NAMES:
        return None
    name = runtime.images.name_meant(text)
    others = [tag for tag in image.repo_tags if tag != str(name)]
    return name if others else None


def _check_unused(runtime: Runtime, image: Image, text: str) -> None:
    if runtime.traits.image_in_use is ImageInUse.ALLOW:
        return
    users = [container.id for container in runtime.containers if container.image is image]
    if users:
        raise CriError(Reason.IMAGE_IN_USE, image=text, containers=users, container=users[0])
