"""In CI a skipped test fails the run, whatever way it was skipped; elsewhere it does not."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SKIPS = """
import pytest

def test_call():
    pytest.skip("within the test")

@pytest.mark.skip(reason="by a mark")
def test_mark():
    pass

@pytest.fixture
def lacking():
    pytest.skip("in a fixture")

def test_fixture(lacking):
    pass

@pytest.mark.xfail(reason="expected to fail")
def test_expected():
    assert False
"""
REASONS = ("within the test", "by a mark", "in a fixture", "expected to fail")


def run(directory: Path, root: Path, text: str, *arguments: str, ci: str) -> subprocess.CompletedProcess[str]:
    shutil.copy(root / "tests" / "conftest.py", directory / "conftest.py")
    (directory / "test_one.py").write_text(f"{text}def test_other():\n    pass\n")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "COV"))}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments, str(directory)],
        cwd=directory,
        env=environment | {"CI": ci},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("workers", ["0", "1"])
def test_a_skip_fails_the_run_in_ci(tmp_path: Path, root: Path, workers: str) -> None:
    done = run(tmp_path, root, SKIPS, "-n", workers, ci="true")
    assert done.returncode == 1, done.stdout
    lines = [line for line in done.stdout.splitlines() if "WHICH FAILS THE RUN" in line]
    assert [reason for reason in REASONS if any(line.endswith(reason) for line in lines)] == list(REASONS)
    assert len(lines) == len(REASONS)
    assert " in " in done.stdout.rstrip().splitlines()[-1], "the summary stays last"


def test_a_skip_fails_no_run_elsewhere(tmp_path: Path, root: Path) -> None:
    assert run(tmp_path, root, SKIPS, ci="").returncode == 0


def test_without_skips_ci_passes(tmp_path: Path, root: Path) -> None:
    assert run(tmp_path, root, "", ci="true").returncode == 0


def test_no_module_skips_itself(tests) -> None:
    """Workers do not tell of those."""
    skipping = [
        source.at(node)
        for source in tests
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Call)
        and (
            getattr(node.func, "attr", "") == "importorskip"
            or any(keyword.arg == "allow_module_level" for keyword in node.keywords)
        )
    ]
    assert skipping == []
