"""The host's real files, as far as clients have named them.

A path that a client names (a log directory, a mount's source) becomes a root: it and what lies below may be used from
then on. Below a root every component is opened from its directory's descriptor without following links; a link is
read and resolved here, and one that leads out of the root is refused, so no swap of a directory for a link leads
astray. The root itself is taken as the client named it. Only regular files are opened: a FIFO or a device never
holds anybody up. Nothing simulated changes the system's own trees, even when somebody mounts all of ``/``.
"""

from __future__ import annotations

import os
import posixpath
import stat as modes
from collections import deque
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from fakecri.base.ports import FileStat
from fakecri.base.reasons import CriError, Reason
from fakecri.kernel.host_twin import checked_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

#: Trees that are never changed.
SYSTEM_TREES: Final = ("/bin", "/boot", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/proc", "/sbin", "/sys", "/usr")
#: Directories that are too wide to be a root that is changed; what is named below them may be one.
WIDE_ROOTS: Final = frozenset({"/", *(f"/{name}" for name in ("home", "mnt", "opt", "root", "run", "srv", "tmp"))}) | {
    "/var",
    *(f"/var/{name}" for name in ("cache", "lib", "log", "run", "tmp")),
}
_MAX_LINKS: Final = 40  # as Linux has it
_DIRECTORY: Final = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC | getattr(os, "O_PATH", os.O_RDONLY)
#: How a file's last component is opened: a link that appeared since it was looked at is not followed.
_FILE: Final = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a path leads: the directory's descriptor, the name in it, what is there now."""

    directory: int
    name: str
    found: os.stat_result | None


class RealHostFiles:
    """``HostFiles`` on the machine's own file system; thread-safe, since the writer of logs opens files through it."""

    def __init__(self, roots: Iterable[str] = ()) -> None:
        """Begin with some roots.

        Raises:
            CriError: PATH_REFUSED; one of them is no absolute path without ``..``.
        """
        self._roots: dict[str, None] = {}
        for root in roots:
            self._roots[checked_path(root)] = None

    @property
    def roots(self) -> tuple[str, ...]:
        """What may be used, in the order in which it was named."""
        return tuple(self._roots)

    # -- the port ------------------------------------------------------------------------------------------------------
    def allow(self, path: str) -> None:
        """A client named this path: it, and what lies below, may be used from now on.

        A path that could not be used anyway (relative, with ``..``) is left for its use to refuse.
        """
        with suppress(CriError):
            self._roots[checked_path(path)] = None

    def stat(self, path: str) -> FileStat | None:
        """Metadata of a path; None when nothing is there."""
        try:
            with self._reach(path) as place:
                found = place.found
        except FileNotFoundError:
            return None
        if found is None:
            return None
        return FileStat(modes.S_ISDIR(found.st_mode), found.st_size, modes.S_IMODE(found.st_mode))

    def make_directories(self, path: str, mode: int = 0o755) -> None:
        """Create a directory and its parents; one that exists is left alone."""
        try:
            with self._reach(path, changing=True, make=mode) as place:
                if place.found is None:
                    os.mkdir(place.name, mode, dir_fd=place.directory)
                elif not modes.S_ISDIR(place.found.st_mode):
                    raise NotADirectoryError(20, "Not a directory", path)
        except FileExistsError as error:
            found = self.stat(path)  # somebody else may have been first
            if found is None or not found.is_directory:
                raise _refused(path, error) from error
        except FileNotFoundError as error:
            raise _refused(path, error) from error

    def read(self, path: str, limit_bytes: int = 65536) -> bytes | None:
        """The first ``limit_bytes`` of a regular file; None when there is none."""
        try:
            with self._reach(path) as place:
                descriptor = _open_regular(place, os.O_RDONLY)
                try:
                    return _read(descriptor, limit_bytes)
                finally:
                    os.close(descriptor)
        except FileNotFoundError:
            return None

    def write(self, path: str, content: bytes, mode: int = 0o644) -> None:
        """Replace a file's content in place (its inode stays, so a bind mount sees it), or create it."""
        descriptor = self.open_file(path, os.O_WRONLY | os.O_TRUNC | os.O_CREAT, mode)
        try:
            write_all(descriptor, content)
        except OSError as error:
            raise _refused(path, error) from error
        finally:
            os.close(descriptor)

    def remove(self, path: str) -> None:
        """Remove one file; nothing there is no error."""
        with suppress(FileNotFoundError), self._reach(path, changing=True) as place:
            os.unlink(place.name, dir_fd=place.directory)

    def entries(self, path: str) -> tuple[str, ...] | None:
        """Names in a directory, sorted; None when there is no such directory."""
        try:
            with self._reach(path) as place:
                descriptor = os.open(place.name, os.O_RDONLY | os.O_DIRECTORY | _FILE, dir_fd=place.directory)
                try:
                    return tuple(sorted(os.listdir(descriptor)))
                finally:
                    os.close(descriptor)
        except FileNotFoundError:
            return None

    # -- for the writer of logs ----------------------------------------------------------------------------------------
    def open_file(self, path: str, flags: int, mode: int, *, make_parents: bool = False) -> int:
        """A descriptor of a regular file; with ``O_CREAT`` it is made with exactly ``mode``.

        Raises:
            CriError: PATH_REFUSED; the fact ``detail`` says why.
        """
        if make_parents:
            self.make_directories(posixpath.dirname(checked_path(path)))
        try:
            with self._reach(path, changing=True) as place:
                return _open_regular(place, flags, mode)
        except (FileNotFoundError, FileExistsError) as error:
            raise _refused(path, error) from error

    def open_inode(self, directory: str, device: int, inode: int, flags: int) -> int | None:
        """A descriptor of the file in a directory that has this identity, under whatever name; None when it is gone.

        Raises:
            CriError: PATH_REFUSED.
        """
        for name in self.entries(directory) or ():
            try:
                with self._reach(posixpath.join(directory, name), changing=True) as place:
                    if place.found is not None and (place.found.st_dev, place.found.st_ino) == (device, inode):
                        return _open_regular(place, flags)
            except FileNotFoundError:
                continue
        return None

    # -- resolving -----------------------------------------------------------------------------------------------------
    def _root_above(self, path: str) -> str | None:
        while path not in self._roots:
            if path == "/":
                return None
            path = posixpath.dirname(path)
        return path

    @contextmanager
    def _reach(self, path: str, *, changing: bool = False, make: int | None = None) -> Iterator[_Place]:
        """Resolve a path; ``make`` is the mode of directories to be made on the way.

        Raises:
            FileNotFoundError: a directory on the way is missing, or (from the body) the file.
            CriError: PATH_REFUSED, for every other failure, also of the body.
        """
        plain = checked_path(path)
        root = self._root_above(plain)
        if root is None:
            raise CriError(Reason.PATH_REFUSED, path=path, detail="no client has named it or a directory above it")
        # The root is the client's own word: links in it are followed.
        real = os.path.realpath(root)
        if changing and (_is_systems(plain, root) or _is_systems(real, real)):
            raise CriError(Reason.PATH_REFUSED, path=path, detail="it belongs to the system, and is not changed")
        opened: list[int] = []
        try:
            yield _descend(plain, root, real, opened, make)
        except (FileNotFoundError, FileExistsError):
            raise
        except OSError as error:
            raise _refused(path, error) from error
        finally:
            for descriptor in opened:
                os.close(descriptor)


def _is_systems(path: str, root: str) -> bool:
    """Whether a path, reached through a root, is one that nothing simulated changes."""
    return root in WIDE_ROOTS or any(path == tree or path.startswith(f"{tree}/") for tree in SYSTEM_TREES)


def _descend(path: str, root: str, real: str, opened: list[int], make: int | None) -> _Place:
    """Open the directories from ``root`` down to ``path``'s own; ``opened`` collects the descriptors on the way."""
    if make is not None:
        os.makedirs(posixpath.dirname(real) if path == root else real, make, exist_ok=True)
    if path == root:
        return _Walk(posixpath.dirname(real), [posixpath.basename(real) or "."], opened).place(path, make)
    return _Walk(real, path[len(root) :].strip("/").split("/"), opened).place(path, make)


class _Walk:
    """The way from a directory to a place below it, component by component, through links that stay below it."""

    def __init__(self, base: str, names: list[str], opened: list[int]) -> None:
        self._base = base
        self._left = deque(names)
        self._opened = opened
        self._links = 0
        opened.append(os.open(base, _DIRECTORY))

    def place(self, path: str, make: int | None) -> _Place:
        while True:
            name = self._left.popleft()
            if name == "..":
                self._up(path)
                name = "."
            here = self._opened[-1]
            found = _look(name, here)
            if found is not None and modes.S_ISLNK(found.st_mode):
                self._follow(os.readlink(name, dir_fd=here), path)
            elif not self._left:
                return _Place(here, name, found)
            elif name != ".":
                self._down(name, found, path, make)

    def _up(self, path: str) -> None:
        if len(self._opened) == 1:
            raise _leads_out(path)
        os.close(self._opened.pop())

    def _down(self, name: str, found: os.stat_result | None, path: str, make: int | None) -> None:
        if found is None:
            if make is None:
                raise FileNotFoundError(2, "no such file or directory", path)
            os.mkdir(name, make, dir_fd=self._opened[-1])
        self._opened.append(os.open(name, _DIRECTORY, dir_fd=self._opened[-1]))

    def _follow(self, target: str, path: str) -> None:
        self._links += 1
        if self._links > _MAX_LINKS:
            raise OSError(40, "too many levels of symbolic links", path)
        if target.startswith("/"):
            below = self._base.rstrip("/") + "/"
            if not f"{target}/".startswith(below):
                raise _leads_out(path)
            target = target[len(below) :]
            while len(self._opened) > 1:
                os.close(self._opened.pop())
        self._left.extendleft(reversed([part for part in target.split("/") if part] or ["."]))


def _leads_out(path: str) -> OSError:
    return PermissionError(1, "a symbolic link leads out of the directory that a client named", path)


def _look(name: str, directory: int) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return None


def _open_regular(place: _Place, flags: int, mode: int = 0o644) -> int:
    found = place.found
    if found is None:
        if not flags & os.O_CREAT:
            raise FileNotFoundError(2, "no such file or directory", place.name)
        descriptor = os.open(place.name, flags | os.O_EXCL | _FILE, mode, dir_fd=place.directory)
        os.fchmod(descriptor, mode)  # whatever the umask
        return descriptor
    if modes.S_ISDIR(found.st_mode):
        raise IsADirectoryError(21, "is a directory", place.name)
    if not modes.S_ISREG(found.st_mode):
        raise PermissionError(1, "not a regular file", place.name)
    descriptor = os.open(place.name, flags & ~os.O_CREAT | _FILE, dir_fd=place.directory)
    if not modes.S_ISREG(os.fstat(descriptor).st_mode):  # swapped since it was looked at
        os.close(descriptor)
        raise PermissionError(1, "not a regular file", place.name)
    return descriptor


def _read(descriptor: int, limit_bytes: int) -> bytes:
    parts: list[bytes] = []
    while limit_bytes > 0 and (part := os.read(descriptor, min(limit_bytes, 1 << 20))):
        parts.append(part)
        limit_bytes -= len(part)
    return b"".join(parts)


def write_all(descriptor: int, content: bytes) -> None:
    """Write all of it.

    Raises:
        OSError: what the operating system says; a part may have been written.
    """
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def _refused(path: str, error: OSError) -> CriError:
    return CriError(Reason.PATH_REFUSED, path=path, detail=(error.strerror or str(error)).lower())
