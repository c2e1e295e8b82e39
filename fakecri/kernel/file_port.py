"""The port ``files``: whole files of any size, answered from a ``HostFiles``; a real one may answer from a thread."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fakecri.base.ports import FileRequest, HostFiles, ReadFile
from fakecri.base.reasons import CriError

if TYPE_CHECKING:
    from collections.abc import Callable


def file_port(files: HostFiles) -> Callable[[FileRequest, Callable[[Any], None]], None]:
    """A port that serves each request at once; a refusal is an answer, not an exception."""

    def serve(request: FileRequest, answer: Callable[[Any], None]) -> None:
        answer(_served(files, request))

    return serve


def _served(files: HostFiles, request: FileRequest) -> bytes | CriError | None:
    try:
        if isinstance(request, ReadFile):
            return files.read(request.path, request.limit_bytes)
        files.write(request.path, request.content, request.mode)
    except CriError as refusal:
        return refusal
    return None
