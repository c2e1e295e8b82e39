"""Where things are when nobody says where."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

_NAME: Final = "cri.sock"


def usual_socket() -> Path:
    """``$XDG_RUNTIME_DIR/fakecri/cri.sock``; without that directory, a path in one that only this user can enter.

    The directory is not made here.
    """
    runtime_directory = os.environ.get("XDG_RUNTIME_DIR", "")
    if os.path.isabs(runtime_directory) and os.access(runtime_directory, os.W_OK | os.X_OK):
        return Path(runtime_directory) / "fakecri" / _NAME
    return Path("/tmp") / f"fakecri-{os.getuid()}" / _NAME


def make_private(directory: Path) -> None:
    """Make a directory for this user alone.

    Raises:
        OSError: it cannot be made, or it exists and is somebody else's or open to others.
    """
    directory.mkdir(mode=0o700, exist_ok=True)
    status = directory.lstat()
    if not directory.is_dir() or directory.is_symlink() or status.st_uid != os.getuid() or status.st_mode & 0o077:
        raise OSError(f"{directory} is not a private directory of this user: remove it, or name a socket elsewhere")
