"""Container logs on disk: opened, written in order, rotated by inode, and never silent about an error."""

from __future__ import annotations

import os
import resource
import threading
from collections.abc import Iterator
from pathlib import Path
from queue import Queue

import pytest

from fakecri.base.ports import CloseLog, LogRequest, OpenLog, ReopenLog
from fakecri.service.host_files import RealHostFiles
from fakecri.service.log_files import RealLogFiles

PATIENCE_S = 20


class Logs:
    """A writer over ``tmp_path/pods``, and what it reported."""

    def __init__(self, root: Path, open_limit: int) -> None:
        self.root = root
        self.errors: Queue[tuple[str, BaseException]] = Queue()
        self.files = RealHostFiles([str(root)])
        self.writer = RealLogFiles(
            self.files, on_error=lambda path, error: self.errors.put((path, error)), open_limit=open_limit
        )

    def ask(self, request: LogRequest) -> str | None:
        answers: Queue[str | None] = Queue()
        self.writer.port(request, answers.put)
        return answers.get(timeout=PATIENCE_S)

    def open(self, name: str) -> Path:
        path = self.root / name
        assert self.ask(OpenLog(str(path))) is None
        return path

    def append(self, path: Path, text: bytes) -> None:
        self.writer.append(str(path), text)

    def close(self, path: Path) -> str | None:
        return self.ask(CloseLog(str(path)))


@pytest.fixture
def open_limit() -> int:
    return 256


@pytest.fixture
def logs(tmp_path: Path, open_limit: int) -> Iterator[Logs]:
    made = Logs(tmp_path / "pods", open_limit)
    yield made
    made.writer.close()


# -- opening and writing -----------------------------------------------------------------------------------------------
def test_an_open_log_is_in_place_when_it_is_answered(logs: Logs) -> None:
    before = os.umask(0o077)
    try:
        path = logs.open("pod/c/0.log")
    finally:
        os.umask(before)
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"", 0o640)


def test_everything_queued_is_in_the_file_when_closing_is_answered(logs: Logs) -> None:
    path = logs.open("pod/c/0.log")
    lines = [b"%d\n" % number for number in range(2000)]
    for line in lines:
        logs.append(path, line)
    assert logs.close(path) is None
    assert path.read_bytes() == b"".join(lines)


def test_lines_of_many_threads_and_logs_stay_whole_and_in_order(logs: Logs) -> None:
    paths = [logs.open(f"pod{number}/c/0.log") for number in range(4)]

    def write(path: Path) -> None:
        for number in range(500):
            logs.append(path, b"%d\n" % number)

    threads = [threading.Thread(target=write, args=(path,)) for path in paths]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [logs.close(path) for path in paths] == [None] * 4
    assert {path.read_bytes() for path in paths} == {b"".join(b"%d\n" % number for number in range(500))}


def test_a_log_that_is_there_is_gone_on_with(logs: Logs) -> None:
    path = logs.root / "pod/c/0.log"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"before\n")
    logs.open("pod/c/0.log")
    logs.append(path, b"after\n")
    logs.close(path)
    assert path.read_bytes() == b"before\nafter\n"


def test_ending_the_writer_writes_what_is_queued(tmp_path: Path) -> None:
    logs = Logs(tmp_path / "pods", 256)
    path = logs.open("c/0.log")
    logs.append(path, b"last words\n")
    logs.writer.close()
    assert path.read_bytes() == b"last words\n"
    with pytest.raises(ValueError, match="closed"):
        logs.append(path, b"too late\n")


# -- rotation ----------------------------------------------------------------------------------------------------------
def test_reopening_drains_to_the_old_file_then_begins_a_new_one(logs: Logs) -> None:
    path = logs.open("c/0.log")
    logs.append(path, b"one\n")
    old = path.rename(path.with_suffix(".1"))
    logs.append(path, b"two\n")
    assert logs.ask(ReopenLog(str(path))) is None
    assert (path.exists(), path.stat().st_mode & 0o777) == (True, 0o640)
    logs.append(path, b"three\n")
    logs.close(path)
    assert (old.read_bytes(), path.read_bytes()) == (b"one\ntwo\n", b"three\n")


def test_reopening_without_a_rename_goes_on_in_the_same_file(logs: Logs) -> None:
    path = logs.open("c/0.log")
    logs.append(path, b"one\n")
    assert logs.ask(ReopenLog(str(path))) is None
    logs.append(path, b"two\n")
    logs.close(path)
    assert path.read_bytes() == b"one\ntwo\n"


def test_a_failed_reopening_leaves_no_new_file_and_goes_on_in_the_old(logs: Logs) -> None:
    path = logs.open("c/0.log")
    directory = path.parent.rename(logs.root / "moved")
    assert "no such file or directory" in str(logs.ask(ReopenLog(str(path))))
    assert not path.parent.exists()
    logs.append(path, b"still here\n")
    assert logs.close(path) is None
    assert (directory / "0.log").read_bytes() == b"still here\n"


def test_reopening_what_is_not_open_makes_no_file(logs: Logs) -> None:
    (logs.root / "c").mkdir(parents=True)
    assert "not open" in str(logs.ask(ReopenLog(str(logs.root / "c/0.log"))))
    assert not (logs.root / "c/0.log").exists()


def test_a_log_that_two_opened_is_open_until_both_closed_it(logs: Logs) -> None:
    path = logs.open("c/0.log")
    logs.open("c/0.log")
    logs.close(path)
    logs.append(path, b"one\n")
    logs.close(path)
    assert path.read_bytes() == b"one\n"
    assert logs.errors.empty()


# -- few descriptors ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("open_limit", [2])
def test_more_logs_than_descriptors(logs: Logs) -> None:
    before = len(os.listdir("/proc/self/fd"))
    paths = [logs.open(f"c{number}/0.log") for number in range(20)]
    for number in range(3):
        for path in paths:
            logs.append(path, b"%d\n" % number)
    assert logs.close(logs.root / "none") is None  # queued last: the others are done
    assert len(os.listdir("/proc/self/fd")) <= before + 2
    assert {logs.close(path) for path in paths} == {None}
    assert {path.read_bytes() for path in paths} == {b"0\n1\n2\n"}
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize("open_limit", [1])
def test_a_renamed_log_whose_descriptor_was_closed_is_found_by_its_inode(logs: Logs) -> None:
    path, other = logs.open("c/0.log"), logs.open("d/0.log")  # the second takes the only descriptor
    old = path.rename(path.with_name("0.log.20260101-000000"))
    path.write_bytes(b"somebody else's\n")
    logs.append(path, b"mine\n")
    logs.append(other, b"other\n")
    assert logs.close(path) is None
    assert (old.read_bytes(), path.read_bytes()) == (b"mine\n", b"somebody else's\n")


@pytest.mark.parametrize("open_limit", [1])
def test_lines_for_a_removed_log_are_lost_as_on_a_real_node(logs: Logs) -> None:
    path = logs.open("c/0.log")
    logs.open("d/0.log")
    path.unlink()
    logs.append(path, b"lost\n")
    assert logs.close(path) is None
    assert not path.exists()
    assert logs.errors.empty()


# -- errors ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("made", ["directory", "fifo", "link out"])
def test_what_is_no_log_file_is_an_error_text(logs: Logs, tmp_path: Path, made: str) -> None:
    path = logs.root / "c/0.log"
    path.parent.mkdir(parents=True)
    if made == "directory":
        path.mkdir()
    elif made == "fifo":
        os.mkfifo(path)
    else:
        path.symlink_to(tmp_path / "planted")
    problem = logs.ask(OpenLog(str(path)))
    assert problem in {
        "is a directory",
        "not a regular file",
        "a symbolic link leads out of the directory that a client named",
    }
    assert not (tmp_path / "planted").exists()


@pytest.mark.parametrize("path", ["/nobody/named/this/0.log", "relative/0.log", "{root}/../0.log"])
def test_a_log_elsewhere_is_refused(logs: Logs, path: str) -> None:
    assert logs.ask(OpenLog(path.format(root=logs.root)))
    assert not (logs.root.parent / "0.log").exists()


def test_lines_without_a_log_are_reported(logs: Logs) -> None:
    logs.append(logs.root / "c/0.log", b"lost\n")
    path, error = logs.errors.get(timeout=PATIENCE_S)
    assert path == str(logs.root / "c/0.log")
    assert "not open" in str(error)
    assert not (logs.root / "c").exists()


def test_a_write_that_fails_is_reported_and_told_at_the_close(logs: Logs) -> None:
    path = logs.open("c/0.log")
    logs.append(path, b"fits\n")
    logs.ask(ReopenLog(str(path)))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (8, hard))
    try:
        logs.append(path, b"does not fit any more\n")
        named, error = logs.errors.get(timeout=PATIENCE_S)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert named == str(path)
    assert isinstance(error, OSError)
    assert logs.close(path) == "File too large"


def test_an_answer_that_fails_is_reported_and_the_writer_goes_on(logs: Logs) -> None:
    def broken(problem: str | None) -> None:
        raise RuntimeError("nobody home")

    logs.writer.port(OpenLog(str(logs.root / "c/0.log")), broken)
    _, error = logs.errors.get(timeout=PATIENCE_S)
    assert str(error) == "nobody home"
    assert logs.close(logs.root / "c/0.log") is None
