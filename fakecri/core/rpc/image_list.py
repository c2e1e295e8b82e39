"""ListImages and StreamImages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fakecri.base.steps import Emit, Steps
from fakecri.core.image_message import image_message
from fakecri.core.rpc.registry import Context, Pieces, entry, handles
from fakecri.core.selection import ordered, plain_order
from fakecri.core.traits import ImageListFilter

if TYPE_CHECKING:
    from fakecri.core.image import Image
    from fakecri.core.pieces import PieceTable
    from fakecri.core.runtime import Runtime
    from fakecri.wire import messages

#: Images in one message of a stream.
BATCH: Final = 1000
#: ``ListImagesResponse.images`` and ``StreamImagesResponse.images``.
ENTRIES_FIELD: Final = 1


def _table(runtime: Runtime, context: Context) -> PieceTable[Image]:
    view = context.view

    def encode(image: Image) -> bytes:
        message = image_message(runtime, image)
        view.clear(message)
        return entry(ENTRIES_FIELD, message.SerializeToString(deterministic=True))

    return runtime.images.pieces(view, encode)


def _selected(runtime: Runtime, wanted: messages.ImageFilter) -> list[Image]:
    """The images that pass a filter: all, or the one that its reference means."""
    text = wanted.image.image
    if not text or runtime.traits.image_list_filter is ImageListFilter.IGNORED:
        return ordered(runtime, "images", runtime.images)
    image = runtime.images.resolve(text)
    return [image] if image is not None else []


@handles("ListImages")
def list_images(runtime: Runtime, context: Context, request: messages.ListImagesRequest) -> Pieces:
    """The images on the node; what is still being pulled is not there."""
    table = _table(runtime, context)
    if not request.filter.image.image and plain_order(runtime):
        return Pieces(table.all())
    return Pieces(table.some(_selected(runtime, request.filter)))


@handles("StreamImages")
def stream_images(runtime: Runtime, context: Context, request: messages.StreamImagesRequest) -> Steps[None]:
    """The same as the list, in batches; no message at all when nothing matches (CRI-O 1.36, measured)."""
    pieces = _table(runtime, context).each(_selected(runtime, request.filter))
    for start in range(0, len(pieces), BATCH):
        yield Emit(Pieces(b"".join(pieces[start : start + BATCH])))
