"""One unix socket path, from claim to withdrawal.

The rule: a path belongs to one server. It is claimed with a lock and a probe, bound in a private directory, published
by a rename, and at the end unlinked only while it is still the file that this server published. gRPC itself binds over
a live socket without a word, and would remove the next server's file; here it only ever sees the private name, which
is short, so that a path longer than the 107 bytes of ``sockaddr_un`` works too.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import socket
import stat
import tempfile
from pathlib import Path
from typing import Final

#: ``sun_path`` of Linux, without the closing zero: a client that dials by name can use no longer path.
DIALABLE_BYTES: Final = 107
_PRIVATE_NAME: Final = "s"


class SocketUnusableError(Exception):
    """A socket path cannot be served; the text names the path and what to do."""


class SocketFile:
    """A claimed path. Bind to ``address``, ``publish``, serve, ``withdraw``."""

    def __init__(self, path: Path, lock: int, private: Path, directory: int) -> None:
        self.path = path
        self._lock = lock
        self._private = private
        self._directory = directory
        self._published: tuple[int, int] | None = None

    @classmethod
    def claim(cls, path: str | os.PathLike[str]) -> SocketFile:
        """Take a path for one server; a socket that nobody listens on any more is removed.

        Raises:
            SocketUnusableError: somebody serves it, it is not a socket, or its directory cannot be used.
        """
        absolute = Path(os.path.abspath(path))
        try:
            lock = _lock(absolute)
        except OSError as error:
            raise _unusable(absolute, error) from error
        try:
            _probe(absolute)
            private = Path(tempfile.mkdtemp(prefix=".fakecri-", dir=absolute.parent))
            directory = os.open(private, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        except BaseException as error:
            _unlock(absolute, lock)
            if isinstance(error, OSError):
                raise _unusable(absolute, error) from error
            raise
        return cls(absolute, lock, private, directory)

    @property
    def address(self) -> str:
        """Where to bind, as gRPC writes it: a short path to the private name, valid in this process."""
        return f"unix:{self.bind_path}"

    @property
    def bind_path(self) -> str:
        """The path to bind."""
        return f"/proc/self/fd/{self._directory}/{_PRIVATE_NAME}-{os.getpid()}"

    @property
    def endpoint(self) -> str:
        """How clients are told of it: ``unix:///…``."""
        return f"unix://{self.path}"

    @property
    def dialable(self) -> bool:
        """Whether clients can name the path in ``connect``."""
        return len(os.fsencode(self.path)) <= DIALABLE_BYTES

    def publish(self) -> None:
        """Let clients in: mode 0600, and into place by one rename.

        Raises:
            SocketUnusableError: the directory changed under us.
        """
        try:
            os.chmod(self.bind_path, 0o600)
            status = os.stat(self.bind_path)
            os.rename(self.bind_path, self.path)
        except OSError as error:
            raise _unusable(self.path, error) from error
        self._published = status.st_dev, status.st_ino
        with contextlib.suppress(OSError):
            self._private.rmdir()

    def withdraw(self) -> None:
        """Give the path up; a file that somebody else put there stays. Idempotent."""
        if self._directory < 0:
            return
        for name in (self.bind_path, None if self._published is None else self.path):
            with contextlib.suppress(OSError):
                if name is not None and (name != self.path or self._is_ours()):
                    os.unlink(name)
        with contextlib.suppress(OSError):
            self._private.rmdir()
        os.close(self._directory)
        self._directory = -1
        _unlock(self.path, self._lock)

    def _is_ours(self) -> bool:
        status = os.lstat(self.path)
        return (status.st_dev, status.st_ino) == self._published


def _lock_path(path: Path) -> Path:
    return path.with_name(f".{path.name}.lock")


def _lock(path: Path) -> int:
    """Hold the path's lock file; whoever holds it may remove it, so the file locked must be the file that is there."""
    name = _lock_path(path)
    while True:
        descriptor = os.open(name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip()
            os.close(descriptor)
            raise SocketUnusableError(
                f"socket {path} is served by another fakecri (process {owner or 'unknown'}):"
                " stop it, or choose another path"
            ) from None
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(descriptor), os.stat(name)):
                os.ftruncate(descriptor, 0)
                os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
                return descriptor
        os.close(descriptor)


def _unlock(path: Path, descriptor: int) -> None:
    with contextlib.suppress(OSError):
        os.unlink(_lock_path(path))
    os.close(descriptor)


def _probe(path: Path) -> None:
    """Make sure that nobody listens at the path, and remove what a dead server left.

    The socket is reached through a descriptor, so its name may be of any length.
    """
    try:
        descriptor = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        if not stat.S_ISSOCK(os.fstat(descriptor).st_mode):
            raise SocketUnusableError(f"{path} exists and is not a socket: remove it, or choose another path")
        if _answers(descriptor):
            raise SocketUnusableError(
                f"socket {path} is in use, another server listens on it: stop that one, or choose another path"
            )
        os.unlink(path)
    finally:
        os.close(descriptor)


def _answers(descriptor: int) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)
        outcome = probe.connect_ex(f"/proc/self/fd/{descriptor}")
    # A full backlog (EAGAIN) and a socket of another kind (EPROTOTYPE) have a live server too.
    if outcome in (0, errno.EAGAIN, errno.EINPROGRESS, errno.EPROTOTYPE):
        return True
    if outcome in (errno.ECONNREFUSED, errno.ENOENT):
        return False
    raise OSError(outcome, os.strerror(outcome))


def _unusable(path: Path, error: OSError) -> SocketUnusableError:
    if isinstance(error, (FileNotFoundError, NotADirectoryError)):
        remedy = f"make the directory {path.parent} first, or choose another path"
    elif isinstance(error, PermissionError):
        remedy = f"it takes the right to write to {path.parent}; choose another path"
    else:
        remedy = "choose another path"
    return SocketUnusableError(f"socket {path} cannot be served, {os.strerror(error.errno or 0)}: {remedy}")
