"""Where `serve` listens when nobody says where."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from fakecri.cli.places import make_private, usual_socket


def test_the_users_runtime_directory_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    assert usual_socket() == tmp_path / "fakecri" / "cri.sock"


@pytest.mark.parametrize("value", ["", "relative", "/no/such/place"])
def test_without_a_usable_one_it_is_a_private_directory(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", value)
    assert usual_socket() == Path(f"/tmp/fakecri-{os.getuid()}/cri.sock")


def test_a_private_directory_is_made_once(tmp_path: Path) -> None:
    for _ in range(2):
        make_private(tmp_path / "mine")
    assert (tmp_path / "mine").stat().st_mode & 0o777 == 0o700


def test_a_directory_that_others_can_enter_is_refused(tmp_path: Path) -> None:
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o755)
    with pytest.raises(OSError, match="is not a private directory of this user: remove it"):
        make_private(tmp_path / "open")


def test_a_link_to_somewhere_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with pytest.raises(OSError, match="is not a private directory"):
        make_private(tmp_path / "link")
