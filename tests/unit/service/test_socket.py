"""One path, one server: claimed, published and withdrawn without touching anybody else's file."""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from fakecri.service.socket import DIALABLE_BYTES, SocketFile, SocketUnusableError


@pytest.fixture
def cleanup() -> Iterator[ExitStack]:
    """Closes what a test opened."""
    with ExitStack() as stack:
        yield stack


def listen_at(path: str | Path, cleanup: ExitStack) -> socket.socket:
    """A bound and listening socket."""
    listener = cleanup.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
    listener.bind(str(path))
    listener.listen()
    return listener


def served(path: Path, cleanup: ExitStack) -> SocketFile:
    """A path that is claimed, bound and published."""
    file = SocketFile.claim(path)
    cleanup.callback(file.withdraw)
    listen_at(file.bind_path, cleanup)
    file.publish()
    return file


def connects(path: Path) -> bool:
    """Whether somebody accepts connections at a path of any length."""
    try:
        target = os.open(path, os.O_PATH)
    except FileNotFoundError:
        return False
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        try:
            client.connect(f"/proc/self/fd/{target}")
        except ConnectionRefusedError:
            return False
        finally:
            os.close(target)
        return True


def test_a_published_socket_is_private_and_leaves_nothing_else_but_its_lock(tmp_path: Path, cleanup: ExitStack) -> None:
    file = served(tmp_path / "cri.sock", cleanup)
    assert stat.S_IMODE(file.path.stat().st_mode) == 0o600
    assert sorted(entry.name for entry in tmp_path.iterdir()) == [".cri.sock.lock", "cri.sock"]
    assert connects(file.path)
    assert file.endpoint == f"unix://{tmp_path}/cri.sock"
    file.withdraw()
    file.withdraw()
    assert list(tmp_path.iterdir()) == []


def test_nobody_sees_the_socket_before_it_is_published(tmp_path: Path, cleanup: ExitStack) -> None:
    file = SocketFile.claim(tmp_path / "cri.sock")
    listen_at(file.bind_path, cleanup)
    private = [entry for entry in tmp_path.iterdir() if entry.is_dir()]
    assert not file.path.exists()
    assert [stat.S_IMODE(entry.stat().st_mode) for entry in private] == [0o700]
    file.withdraw()
    assert list(tmp_path.iterdir()) == []


def test_a_second_server_is_refused_by_the_lock(tmp_path: Path, cleanup: ExitStack) -> None:
    served(tmp_path / "cri.sock", cleanup)
    with pytest.raises(
        SocketUnusableError, match=rf"{tmp_path}/cri.sock is served by another fakecri \(process {os.getpid()}\)"
    ):
        SocketFile.claim(tmp_path / "cri.sock")
    assert connects(tmp_path / "cri.sock")


def test_somebody_elses_live_socket_is_refused_by_the_probe(tmp_path: Path, cleanup: ExitStack) -> None:
    listen_at(tmp_path / "cri.sock", cleanup)
    with pytest.raises(SocketUnusableError, match="is in use, another server listens on it"):
        SocketFile.claim(tmp_path / "cri.sock")
    assert connects(tmp_path / "cri.sock")
    assert [entry.name for entry in tmp_path.iterdir()] == ["cri.sock"]


def test_a_live_socket_with_a_full_backlog_is_live(tmp_path: Path, cleanup: ExitStack) -> None:
    listener = cleanup.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
    listener.bind(str(tmp_path / "cri.sock"))
    listener.listen(0)
    waiting = cleanup.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
    waiting.connect(str(tmp_path / "cri.sock"))
    with pytest.raises(SocketUnusableError, match="is in use"):
        SocketFile.claim(tmp_path / "cri.sock")


def test_a_dead_socket_is_replaced(tmp_path: Path, cleanup: ExitStack) -> None:
    path = tmp_path / "cri.sock"
    listen_at(path, cleanup).close()
    assert not connects(path)
    served(path, cleanup)
    assert connects(path)


def test_a_file_that_is_no_socket_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "cri.sock"
    path.write_text("precious")
    with pytest.raises(SocketUnusableError, match="exists and is not a socket"):
        SocketFile.claim(path)
    assert path.read_text() == "precious"
    assert [entry.name for entry in tmp_path.iterdir()] == ["cri.sock"]


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "cri.sock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(SocketUnusableError, match="exists and is not a socket"):
        SocketFile.claim(tmp_path / "cri.sock")


def test_a_missing_directory_is_named(tmp_path: Path) -> None:
    with pytest.raises(SocketUnusableError, match=f"No such file or directory: make the directory {tmp_path}/no first"):
        SocketFile.claim(tmp_path / "no" / "cri.sock")


def test_only_ones_own_file_is_removed(tmp_path: Path, cleanup: ExitStack) -> None:
    file = served(tmp_path / "cri.sock", cleanup)
    file.path.unlink()
    listen_at(file.path, cleanup)
    file.withdraw()
    assert connects(tmp_path / "cri.sock")


def test_a_path_longer_than_an_address_works(tmp_path: Path, cleanup: ExitStack) -> None:
    path = tmp_path / ("d" * 120) / ("s" * 200)
    path.parent.mkdir()
    file = served(path, cleanup)
    assert len(str(path)) > DIALABLE_BYTES
    assert not file.dialable
    assert connects(path)
    with pytest.raises(SocketUnusableError, match="served by another fakecri"):
        SocketFile.claim(path)
    file.withdraw()
    assert list(path.parent.iterdir()) == []


def test_a_relative_path_is_made_absolute(tmp_path: Path, cleanup: ExitStack, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    file = served(Path("cri.sock"), cleanup)
    assert file.endpoint == f"unix://{tmp_path}/cri.sock"
    assert file.dialable
