"""The host's files: the rules that the real ones and those in memory share, and what only real ones can suffer."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from fakecri.base.ports import HostFiles
from fakecri.base.reasons import CriError, Reason
from fakecri.kernel.host_twin import TwinHostFiles
from fakecri.service.host_files import SYSTEM_TREES, WIDE_ROOTS, RealHostFiles


@pytest.fixture(params=["real", "twin"])
def files(request: pytest.FixtureRequest, tmp_path: Path) -> HostFiles:
    """Both kinds, with ``tmp_path`` named by a client."""
    made: HostFiles = RealHostFiles() if request.param == "real" else TwinHostFiles()
    made.allow(str(tmp_path))
    made.make_directories(str(tmp_path))
    return made


@pytest.fixture
def real(tmp_path: Path) -> RealHostFiles:
    """Real files below ``named`` alone; beside it lies a secret."""
    (tmp_path / "named").mkdir()
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_bytes(b"secret")
    return RealHostFiles([str(tmp_path / "named")])


def refused(action: Callable[[], object]) -> str:
    """Why an action is refused."""
    with pytest.raises(CriError) as caught:
        action()
    assert caught.value.reason is Reason.PATH_REFUSED
    assert caught.value.facts["path"]
    return str(caught.value.facts["detail"])


def every_use(files: HostFiles, path: str) -> list[Callable[[], object]]:
    return [
        lambda: files.stat(path),
        lambda: files.read(path),
        lambda: files.write(path, b"x"),
        lambda: files.remove(path),
        lambda: files.make_directories(path),
        lambda: files.entries(path),
    ]


# -- what both do ------------------------------------------------------------------------------------------------------
def test_a_file_is_written_read_measured_and_removed(files: HostFiles, tmp_path: Path) -> None:
    path = f"{tmp_path}/file"
    assert (files.stat(path), files.read(path)) == (None, None)
    files.write(path, b"content", 0o640)
    found = files.stat(path)
    assert found is not None
    assert (found.is_directory, found.size_bytes, found.mode) == (False, 7, 0o640)
    assert (files.read(path), files.read(path, limit_bytes=3)) == (b"content", b"con")
    files.write(path, b"new")
    assert files.read(path) == b"new"
    files.remove(path)
    files.remove(path)
    assert files.stat(path) is None


def test_directories_are_made_with_their_parents_once(files: HostFiles, tmp_path: Path) -> None:
    path = f"{tmp_path}/a/b/c"
    files.make_directories(path)
    files.make_directories(path)
    files.make_directories(f"{path}/./")
    found = files.stat(path)
    assert found is not None
    assert found.is_directory
    assert (files.entries(f"{tmp_path}/a"), files.entries(path), files.entries(f"{tmp_path}/x")) == (("b",), (), None)


def test_names_of_a_directory_are_sorted(files: HostFiles, tmp_path: Path) -> None:
    for name in ("b", "a", "c"):
        files.write(f"{tmp_path}/{name}", b"")
    files.make_directories(f"{tmp_path}/d/inner")
    assert files.entries(str(tmp_path)) == ("a", "b", "c", "d")


@pytest.mark.parametrize(
    ("path", "words"),
    [("relative/path", "absolute"), ("", "absolute"), ("/a/../b", "'..'"), ("/a/..", "'..'"), ("/a\0b", "NUL")],
)
def test_odd_paths_are_refused_by_every_use(files: HostFiles, path: str, words: str) -> None:
    files.allow(path or "/nowhere")
    for use in every_use(files, path):
        with pytest.raises(CriError) as caught:
            use()
        assert (caught.value.reason, words in caught.value.facts["detail"]) == (Reason.PATH_REFUSED, True)


def test_a_name_that_begins_with_dots_is_a_name(files: HostFiles, tmp_path: Path) -> None:
    files.make_directories(f"{tmp_path}/..2026_01_01")
    files.write(f"{tmp_path}/..2026_01_01/key", b"value")
    assert files.read(f"{tmp_path}/..2026_01_01/key") == b"value"


def test_a_directory_is_no_file_and_a_file_no_directory(files: HostFiles, tmp_path: Path) -> None:
    files.make_directories(f"{tmp_path}/directory")
    files.write(f"{tmp_path}/file", b"x")
    assert "is a directory" in refused(lambda: files.read(f"{tmp_path}/directory"))
    assert "is a directory" in refused(lambda: files.write(f"{tmp_path}/directory", b"x"))
    refused(lambda: files.remove(f"{tmp_path}/directory"))
    assert "not a directory" in refused(lambda: files.make_directories(f"{tmp_path}/file"))
    assert "not a directory" in refused(lambda: files.make_directories(f"{tmp_path}/file/below"))
    assert files.read(f"{tmp_path}/file") == b"x"


def test_a_file_is_not_written_into_a_directory_that_is_not_there(files: HostFiles, tmp_path: Path) -> None:
    assert "no such file or directory" in refused(lambda: files.write(f"{tmp_path}/missing/file", b"x"))


# -- what may be used --------------------------------------------------------------------------------------------------
def test_only_what_a_client_named_may_be_used(real: RealHostFiles, tmp_path: Path) -> None:
    secret = f"{tmp_path}/outside/secret"
    for use in every_use(real, secret):
        assert "no client has named it" in refused(use)
    real.allow(secret)
    assert real.read(secret) == b"secret"
    refused(lambda: real.entries(f"{tmp_path}/outside"))


def test_a_sibling_with_the_same_beginning_is_not_below(real: RealHostFiles, tmp_path: Path) -> None:
    (tmp_path / "named2").mkdir()
    refused(lambda: real.entries(f"{tmp_path}/named2"))


def test_a_root_that_is_not_there_yet_can_be_made(real: RealHostFiles, tmp_path: Path) -> None:
    path = f"{tmp_path}/var/log/pods/pod"
    real.allow(path)
    assert real.stat(path) is None
    real.make_directories(path)
    assert (tmp_path / "var/log/pods/pod").is_dir()


def test_roots_are_told_in_the_order_of_naming(real: RealHostFiles, tmp_path: Path) -> None:
    real.allow(f"{tmp_path}/b/")
    real.allow(f"{tmp_path}/a")
    real.allow("no/path")
    assert real.roots == (f"{tmp_path}/named", f"{tmp_path}/b", f"{tmp_path}/a")


@pytest.mark.parametrize("root", sorted(WIDE_ROOTS))
def test_nothing_is_changed_through_a_wide_root(root: str) -> None:
    files = RealHostFiles([root])
    path = f"{root.rstrip('/')}/fakecri-must-not-write-here"
    for change in (
        lambda: files.write(path, b"x"),
        lambda: files.make_directories(path),
        lambda: files.remove(path),
        lambda: files.open_file(path, os.O_WRONLY | os.O_CREAT, 0o600),
    ):
        assert "belongs to the system" in refused(change)
    if os.access(root, os.X_OK):  # not everybody may look into root's own directory
        assert files.stat(path) is None


@pytest.mark.parametrize("tree", SYSTEM_TREES)
def test_nothing_is_changed_in_a_system_tree_whoever_named_it(tree: str) -> None:
    path = f"{tree}/fakecri-must-not-write-here"
    assert "belongs to the system" in refused(lambda: RealHostFiles([path]).write(path, b"x"))


def test_a_link_to_the_system_is_no_way_into_it(tmp_path: Path) -> None:
    (tmp_path / "alias").symlink_to("/etc")
    path = f"{tmp_path}/alias/fakecri-must-not-write-here"
    assert "belongs to the system" in refused(lambda: RealHostFiles([f"{tmp_path}/alias"]).write(path, b"x"))


def test_a_mount_of_the_whole_host_can_be_looked_at() -> None:
    files = RealHostFiles(["/"])
    found = files.stat("/dev/null")
    assert found is not None
    assert not found.is_directory
    assert "etc" in (files.entries("/") or ())


# -- links -------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "target", ["../outside", "{tmp}/outside", "inner/../../outside", "/", "..", "../named/../outside"]
)
def test_a_link_out_of_the_root_is_followed_by_nothing(real: RealHostFiles, tmp_path: Path, target: str) -> None:
    (tmp_path / "named" / "inner").mkdir()
    (tmp_path / "named" / "link").symlink_to(target.format(tmp=tmp_path))
    below = f"{tmp_path}/named/link/secret"
    for use in (*every_use(real, below), *every_use(real, f"{tmp_path}/named/link")[:1]):
        assert "leads out" in refused(use)
    assert (tmp_path / "outside" / "secret").read_bytes() == b"secret"
    assert sorted(path.name for path in (tmp_path / "outside").iterdir()) == ["secret"]


@pytest.mark.parametrize("target", ["../outside/secret", "{tmp}/outside/secret", "../outside/new"])
def test_a_file_that_is_a_link_out_is_neither_read_nor_written(
    real: RealHostFiles, tmp_path: Path, target: str
) -> None:
    (tmp_path / "named" / "file").symlink_to(target.format(tmp=tmp_path))
    path = f"{tmp_path}/named/file"
    for use in every_use(real, path):
        assert "leads out" in refused(use)
    assert (tmp_path / "outside" / "secret").read_bytes() == b"secret"
    assert not (tmp_path / "outside" / "new").exists()


def test_links_that_stay_inside_are_followed(real: RealHostFiles, tmp_path: Path) -> None:
    root = tmp_path / "named"
    (root / "..2026").mkdir()
    (root / "..2026" / "key").write_bytes(b"value")
    (root / "..data").symlink_to("..2026")
    (root / "key").symlink_to("..data/key")
    (root / "absolute").symlink_to(root / "..data")
    (root / "a").mkdir()
    (root / "a" / "up").symlink_to("../key")
    (root / "self").symlink_to(".")
    for path in ("key", "..data/key", "absolute/key", "a/up", "self/self/key"):
        assert real.read(f"{root}/{path}") == b"value", path
    real.write(f"{root}/key", b"new")
    assert (root / "..2026" / "key").read_bytes() == b"new"
    assert (root / "key").is_symlink()
    assert real.entries(f"{root}/self") == real.entries(str(root))


def test_a_dangling_link_inside_is_created_at_its_target(real: RealHostFiles, tmp_path: Path) -> None:
    (tmp_path / "named" / "link").symlink_to("target")
    assert real.read(f"{tmp_path}/named/link") is None
    real.write(f"{tmp_path}/named/link", b"x")
    assert (tmp_path / "named" / "target").read_bytes() == b"x"


def test_a_circle_of_links_ends(real: RealHostFiles, tmp_path: Path) -> None:
    (tmp_path / "named" / "a").symlink_to("b")
    (tmp_path / "named" / "b").symlink_to("a")
    assert "too many levels" in refused(lambda: real.read(f"{tmp_path}/named/a"))


def test_the_root_itself_is_taken_as_the_client_named_it(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "alias").symlink_to("real")
    files = RealHostFiles([f"{tmp_path}/alias"])
    files.write(f"{tmp_path}/alias/file", b"x")
    assert (tmp_path / "real" / "file").read_bytes() == b"x"


def test_a_directory_that_is_swapped_for_a_link_never_leads_out(real: RealHostFiles, tmp_path: Path) -> None:
    """Somebody swaps a directory and a link out as fast as they can; no write ever lands outside."""
    root, outside = tmp_path / "named", tmp_path / "outside"
    (root / "directory").mkdir()
    (root / "link").symlink_to(outside)
    done = threading.Event()

    def swap() -> None:
        while not done.is_set():
            os.rename(root / "directory", root / "spare")
            os.rename(root / "link", root / "directory")
            os.rename(root / "directory", root / "link")
            os.rename(root / "spare", root / "directory")

    swapper = threading.Thread(target=swap)
    swapper.start()
    outcomes = set()
    try:
        for _ in range(3000):
            try:
                real.write(f"{root}/directory/planted", b"x")
                outcomes.add("written")
            except CriError:
                outcomes.add("refused")
    finally:
        done.set()
        swapper.join()
    assert outcomes == {"written", "refused"}
    assert not (outside / "planted").exists()


# -- odd files ---------------------------------------------------------------------------------------------------------
def test_a_fifo_holds_nobody_up(real: RealHostFiles, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "named" / "fifo")
    assert "not a regular file" in refused(lambda: real.read(f"{tmp_path}/named/fifo"))
    assert "not a regular file" in refused(lambda: real.write(f"{tmp_path}/named/fifo", b"x"))


def test_a_device_is_not_opened() -> None:
    files = RealHostFiles(["/dev/zero"])
    assert "not a regular file" in refused(lambda: files.read("/dev/zero"))


def test_writing_keeps_the_inode_and_a_new_file_gets_exactly_its_mode(real: RealHostFiles, tmp_path: Path) -> None:
    path = tmp_path / "named" / "file"
    before = os.umask(0o077)
    try:
        real.write(str(path), b"a long content", 0o666)
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o777 == 0o666
    inode = path.stat().st_ino
    real.write(str(path), b"short", 0o600)
    assert (path.stat().st_ino, path.stat().st_mode & 0o777, path.read_bytes()) == (inode, 0o666, b"short")


def test_a_large_file_is_read_whole_when_asked(real: RealHostFiles, tmp_path: Path) -> None:
    content = bytes(range(256)) * 20_000
    real.write(f"{tmp_path}/named/large", content)
    assert real.read(f"{tmp_path}/named/large") == content[:65536]
    assert real.read(f"{tmp_path}/named/large", limit_bytes=1 << 30) == content


def test_no_descriptor_is_left_open(real: RealHostFiles, tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    (tmp_path / "named" / "out").symlink_to("../outside")
    for path in ("a/b/c", "out/secret", "new", "missing/x", "."):
        for use in every_use(real, f"{tmp_path}/named/{path}"):
            try:
                use()
            except CriError:
                continue
    assert len(os.listdir("/proc/self/fd")) == before
