"""The server's log."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from fakecri.cli.log import CallLog, file_problem
from fakecri.service.grpc_server import Exchange

CALL = Exchange("/runtime.v1.RuntimeService/Version", 0, "", 1_234_000, 1, 7, 30)


@pytest.fixture(autouse=True)
def own_handlers() -> Iterator[None]:
    """Gives the logger back as it was."""
    logger = logging.getLogger("fakecri")
    before = logger.handlers[:], logger.propagate, logger.level
    yield
    logger.handlers[:], logger.propagate = before[:2]
    logger.setLevel(before[2])


def log(form: str, *, calls: bool = True, failures: list[str] | None = None) -> CallLog:
    engine: Any = SimpleNamespace(failures=[] if failures is None else failures)
    return CallLog(engine, form, calls=calls)


def test_a_line_has_outcome_and_duration(capsys: pytest.CaptureFixture[str]) -> None:
    log("text").ended(CALL)
    line = capsys.readouterr().err
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z runtime.v1.RuntimeService/Version OK 1.23ms\n", line)


def test_a_refusal_has_its_text_and_a_stream_its_messages(capsys: pytest.CaptureFixture[str]) -> None:
    log("text").ended(Exchange("/s/M", 5, "not there", 1_000_000, 3, 0, 0))
    assert capsys.readouterr().err.endswith(" s/M NOT_FOUND 1.00ms, 3 messages: not there\n")


def test_a_client_that_went_away_is_said_so(capsys: pytest.CaptureFixture[str]) -> None:
    log("text").ended(Exchange("/s/M", None, "", 1_000_000, 0, 0, 0))
    assert " s/M client gone 1.00ms\n" in capsys.readouterr().err


def test_json_has_every_fact(capsys: pytest.CaptureFixture[str]) -> None:
    log("json").ended(CALL)
    line = json.loads(capsys.readouterr().err)
    assert line.pop("time").endswith("Z")
    assert line == {
        "level": "info",
        "message": "runtime.v1.RuntimeService/Version OK 1.23ms",
        "method": "runtime.v1.RuntimeService/Version",
        "outcome": "OK",
        "duration_ms": 1.234,
        "text": "",
        "messages": 1,
        "request_bytes": 7,
        "reply_bytes": 30,
    }


def test_calls_are_not_logged_unless_asked_for_but_failures_are_once(capsys: pytest.CaptureFixture[str]) -> None:
    failures = ["Traceback: one"]
    quiet = log("text", calls=False, failures=failures)
    quiet.ended(CALL)
    quiet.ended(CALL)
    failures.append("Traceback: two")
    quiet.ended(CALL)
    lines = capsys.readouterr().err.splitlines()
    assert [line.partition(" ")[2] for line in lines] == ["unforeseen: Traceback: one", "unforeseen: Traceback: two"]


def test_a_log_file_that_cannot_be_written_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    log("json")
    file_problem("/logs/0.log", OSError(28, "No space left on device"))
    line = json.loads(capsys.readouterr().err)
    assert line["level"] == "error"
    assert line["message"] == "log file /logs/0.log: [Errno 28] No space left on device"
