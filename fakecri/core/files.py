"""What a container's process sees of files: its image's, and what its mounts put over them from the host."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING

from fakecri.base.reasons import CriError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fakecri.base.ports import HostFiles
    from fakecri.core.container import Container


class ContainerFiles:
    """A layer of its own over the image, and mounts of host paths over both. Implements ``kernel.program.Files``."""

    __slots__ = ("_container", "_host_files", "_mounts", "_own")

    def __init__(self, container: Container, host_files: HostFiles) -> None:
        self._container = container
        self._host_files = host_files
        # Both are made when somebody looks: most processes never open a file.
        self._own: dict[str, bytes] | None = None
        self._mounts: list[tuple[str, str, bool]] | None = None

    @property
    def layer(self) -> dict[str, bytes]:
        """What the container itself has written, by path: what a checkpoint keeps."""
        if self._own is None:
            self._own = dict(self._container.restored_layer)
        return self._own

    def _mounted(self) -> list[tuple[str, str, bool]]:
        """Container path, host path and whether it is read-only; an inner mount before the one that it covers."""
        if self._mounts is None:
            mounts = [
                (_normal(mount.container_path), mount.host_path, mount.readonly)
                for mount in self._container.config().mounts
                if mount.container_path and mount.host_path
            ]
            self._mounts = sorted(mounts, key=lambda mount: -len(mount[0]))
        return self._mounts

    def _on_host(self, path: str) -> tuple[str, bool] | None:
        """The host path behind a path, and whether it is read-only; None when no mount covers it."""
        for container_path, host_path, readonly in self._mounted():
            if path == container_path:
                return host_path, readonly
            if path.startswith(container_path.rstrip("/") + "/"):
                return posixpath.join(host_path, path[len(container_path.rstrip("/")) + 1 :]), readonly
        return None

    def _image_content(self, path: str) -> bytes | None:
        fixed: Mapping[str, str] = {
            "/etc/passwd": self._container.image.passwd,
            "/etc/group": self._container.image.group,
        }
        content = self._container.image.files.get(path, fixed.get(path))
        return content.encode() if isinstance(content, str) else content

    def exists(self, path: str) -> bool:
        """Whether anything is at the path now."""
        path = _normal(path)
        mounted = self._on_host(path)
        if mounted is not None:
            try:
                return self._host_files.stat(mounted[0]) is not None
            except CriError:
                return False
        return (
            path in self.layer
            or self._image_content(path) is not None
            or path in self._container.image.executables.programs
        )

    def read(self, path: str) -> bytes | None:
        """A file's content (its first 64 KiB when it lies on the host); None when there is no such file."""
        path = _normal(path)
        mounted = self._on_host(path)
        if mounted is not None:
            try:
                return self._host_files.read(mounted[0])
            except CriError:
                return None
        return self.layer[path] if path in self.layer else self._image_content(path)

    def write(self, path: str, content: bytes) -> None:
        """Replace or create a file.

        Raises:
            OSError: the mount is read-only, or the host path is refused.
        """
        path = _normal(path)
        mounted = self._on_host(path)
        if mounted is None:
            self.layer[path] = content
            return
        host_path, readonly = mounted
        if readonly:
            raise OSError(30, "Read-only file system", path)
        try:
            self._host_files.write(host_path, content)
        except CriError as error:
            raise PermissionError(13, "Permission denied", path) from error


def _normal(path: str) -> str:
    """Without ``.``, ``..`` and doubled slashes; POSIX lets ``normpath`` keep two at the front, Linux does not."""
    normal = posixpath.normpath(path)
    return normal[1:] if normal.startswith("//") else normal
