"""Pages made from the code are up to date, and the check sees any drift."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest


def check(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(root / "docs" / "generate.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_pages_are_what_the_code_says(root: Path) -> None:
    run = check(root, "--check")
    assert run.returncode == 0, run.stdout + run.stderr


@pytest.mark.parametrize("page", ["design/states.md", "design/states-container.svg", "reference/command-line.md"])
def test_a_page_that_was_changed_by_hand_is_seen(root: Path, tmp_path: Path, page: str) -> None:
    copy = tmp_path / "docs"
    shutil.copytree(root / "docs", copy, ignore=shutil.ignore_patterns("_build"))
    (copy / page).write_text((copy / page).read_text().replace("e", "3", 1))
    run = check(root, "--check", "--root", str(copy))
    assert run.returncode == 1
    assert f"--- {page}" in run.stdout
    assert "run: python docs/generate.py" in run.stderr
    assert check(root, "--root", str(copy)).returncode == 0
    assert check(root, "--check", "--root", str(copy)).returncode == 0
