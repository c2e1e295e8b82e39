"""What a container's process sees of files: its image's, and what its mounts put over them from the host."""

from __future__ import annotations

import posixpath
from types import MappingProxyType
from typing import TYPE_CHECKING

from fakecri.base.reasons import CriError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fakecri.base.ports import HostFiles
    from fakecri.core.image import Image
    from fakecri.wire import messages


class ContainerFiles:
    """A layer of its own over the image, and mounts of host paths over both. Implements ``kernel.program.Files``."""

    __slots__ = ("_host_files", "_image", "_mounts", "_own")

    def __init__(
        self,
        image: Image,
        config: messages.ContainerConfig,
        host_files: HostFiles,
        layer: Mapping[str, bytes] = MappingProxyType({}),
    ) -> None:
        self._image = image
        self._host_files = host_files
        self._own: dict[str, bytes] = dict(layer)
        mounts = [
            (posixpath.normpath(mount.container_path), mount.host_path, mount.readonly)
            for mount in config.mounts
            if mount.container_path and mount.host_path
        ]
        # the longest container path first: an inner mount covers an outer one
        self._mounts = sorted(mounts, key=lambda mount: -len(mount[0]))

    @property
    def layer(self) -> Mapping[str, bytes]:
        """What the container itself has written, by path: what a checkpoint keeps."""
        return self._own

    def _on_host(self, path: str) -> tuple[str, bool] | None:
        """The host path behind a path, and whether it is read-only; None when no mount covers it."""
        for container_path, host_path, readonly in self._mounts:
            if path == container_path:
                return host_path, readonly
            if path.startswith(container_path.rstrip("/") + "/"):
                return posixpath.join(host_path, path[len(container_path.rstrip("/")) + 1 :]), readonly
        return None

    def _image_content(self, path: str) -> bytes | None:
        fixed: Mapping[str, str] = {"/etc/passwd": self._image.passwd, "/etc/group": self._image.group}
        content = self._image.files.get(path, fixed.get(path))
        return content.encode() if isinstance(content, str) else content

    def exists(self, path: str) -> bool:
        """Whether anything is at the path now."""
        path = posixpath.normpath(path)
        mounted = self._on_host(path)
        if mounted is not None:
            try:
                return self._host_files.stat(mounted[0]) is not None
            except CriError:
                return False
        return path in self._own or self._image_content(path) is not None or path in self._image.executables.programs

    def read(self, path: str) -> bytes | None:
        """A file's content (its first 64 KiB when it lies on the host); None when there is no such file."""
        path = posixpath.normpath(path)
        mounted = self._on_host(path)
        if mounted is not None:
            try:
                return self._host_files.read(mounted[0])
            except CriError:
                return None
        return self._own[path] if path in self._own else self._image_content(path)

    def write(self, path: str, content: bytes) -> None:
        """Replace or create a file.

        Raises:
            OSError: the mount is read-only, or the host path is refused.
        """
        path = posixpath.normpath(path)
        mounted = self._on_host(path)
        if mounted is None:
            self._own[path] = content
            return
        host_path, readonly = mounted
        if readonly:
            raise OSError(30, "Read-only file system", path)
        try:
            self._host_files.write(host_path, content)
        except CriError as error:
            raise PermissionError(13, "Permission denied", path) from error
