"""The command line, in this process."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from fakecri.cli.main import main


@dataclass(frozen=True)
class Outcome:
    """How a command ended."""

    code: int
    output: str
    errors: str


@pytest.fixture
def fakecri(capsys: pytest.CaptureFixture[str]) -> Callable[..., Outcome]:
    """Runs one command."""

    def run(*arguments: str) -> Outcome:
        code = main(arguments)
        captured = capsys.readouterr()
        return Outcome(code, captured.out, captured.err)

    return run
