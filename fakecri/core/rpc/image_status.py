"""ImageStatus and ImageFsInfo."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakecri.core.image_message import image_info, image_message
from fakecri.core.rpc.registry import Context, handles
from fakecri.core.stats import LAYER_INODES, PAGE
from fakecri.core.traits import Shown
from fakecri.wire import messages

if TYPE_CHECKING:
    from fakecri.core.runtime import Runtime


@handles("ImageStatus")
def image_status(
    runtime: Runtime, context: Context, request: messages.ImageStatusRequest
) -> messages.ImageStatusResponse:
    """One image; an image that is not there is no error but an empty response (a kubelet pulls only then).

    Raises:
        CriError: as ``ImageStore.resolve``.
    """
    image = runtime.images.resolve(request.image.image)
    if image is None:
        return messages.ImageStatusResponse()
    response = messages.ImageStatusResponse(image=image_message(runtime, image))
    if request.verbose:
        response.info.update(image_info(runtime, image))
    return response


@handles("ImageFsInfo")
def image_fs_info(
    runtime: Runtime, context: Context, request: messages.ImageFsInfoRequest
) -> messages.ImageFsInfoResponse:
    """What images, and containers' writable layers where the runtime says so, use of the one file system they share."""
    response = messages.ImageFsInfoResponse()
    images = runtime.images
    response.image_filesystems.append(_usage(runtime, images.used_bytes, images.inodes_used))
    if runtime.traits.container_filesystems is Shown.YES:
        inodes = len(runtime.containers) * LAYER_INODES  # what ContainerStats shows of one without mounts
        response.container_filesystems.append(_usage(runtime, inodes * PAGE, inodes))
    return response


def _usage(runtime: Runtime, used_bytes: int, inodes: int) -> messages.FilesystemUsage:
    usage = messages.FilesystemUsage(timestamp=runtime.clock.wall_ns)
    usage.fs_id.mountpoint = runtime.node.image_fs_path
    usage.used_bytes.value = used_bytes
    usage.inodes_used.value = inodes
    return usage
