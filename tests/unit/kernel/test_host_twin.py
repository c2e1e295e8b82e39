"""Log files in memory: opened, rotated and closed as on disk. (The files' own rules: service/test_host_files.py.)"""

from __future__ import annotations

import pytest

from fakecri.base.ports import CloseLog, LogRequest, OpenLog, ReopenLog
from fakecri.kernel.host_twin import TwinHostFiles, TwinLogFiles

LOG = "/var/log/pods/p/c/0.log"


def ask(logs: TwinLogFiles, request: LogRequest) -> str | None:
    answers: list[str | None] = []
    logs.port(request, answers.append)
    (answer,) = answers  # at once, and once
    return answer


@pytest.fixture
def logs() -> TwinLogFiles:
    return TwinLogFiles(TwinHostFiles())


def test_opening_makes_the_file_and_its_directory(logs: TwinLogFiles) -> None:
    assert ask(logs, OpenLog(LOG)) is None
    found = logs.files.stat(LOG)
    assert found is not None
    assert (found.size_bytes, found.mode) == (0, 0o640)
    assert logs.paths == (LOG,)


def test_lines_are_there_at_once(logs: TwinLogFiles) -> None:
    ask(logs, OpenLog(LOG))
    logs.append(LOG, b"one\n")
    logs.append(LOG, b"two\n")
    assert logs.content(LOG) == b"one\ntwo\n"


def test_a_line_for_a_log_that_is_not_open_is_refused(logs: TwinLogFiles) -> None:
    with pytest.raises(ValueError, match=r"not open"):
        logs.append(LOG, b"one\n")
    ask(logs, OpenLog(LOG))
    ask(logs, CloseLog(LOG))
    with pytest.raises(ValueError, match=r"not open"):
        logs.append(LOG, b"one\n")


def test_rotation_goes_by_the_file_not_its_name(logs: TwinLogFiles) -> None:
    ask(logs, OpenLog(LOG))
    logs.append(LOG, b"old\n")
    logs.files.rename(LOG, f"{LOG}.1")
    logs.append(LOG, b"still old\n")
    assert logs.files.stat(LOG) is None
    assert ask(logs, ReopenLog(LOG)) is None
    logs.append(LOG, b"new\n")
    assert (logs.content(f"{LOG}.1"), logs.content(LOG)) == (b"old\nstill old\n", b"new\n")


def test_reopening_what_is_not_open_makes_no_file(logs: TwinLogFiles) -> None:
    logs.files.make_directories("/var/log/pods/p/c")
    assert "not open" in str(ask(logs, ReopenLog(LOG)))
    assert logs.files.stat(LOG) is None


def test_a_directory_in_the_way_is_an_error_text(logs: TwinLogFiles) -> None:
    logs.files.make_directories(LOG)
    assert ask(logs, OpenLog(LOG)) == "is a directory"
    assert logs.paths == ()


def test_an_older_attempt_log_is_gone_on_with(logs: TwinLogFiles) -> None:
    logs.files.make_directories("/var/log/pods/p/c")
    logs.files.write(LOG, b"before\n")
    ask(logs, OpenLog(LOG))
    logs.append(LOG, b"after\n")
    assert logs.content(LOG) == b"before\nafter\n"


def test_a_log_that_two_opened_is_open_until_both_closed_it(logs: TwinLogFiles) -> None:
    ask(logs, OpenLog(LOG))
    ask(logs, OpenLog(LOG))
    ask(logs, CloseLog(LOG))
    logs.append(LOG, b"one\n")
    ask(logs, CloseLog(LOG))
    assert ask(logs, CloseLog(LOG)) is None
    assert logs.paths == ()
