"""The README gives two commands: one serves, one runs the tests; CI runs the second, word for word."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

SERVE = ".ci/setup && .venv/bin/fakecri serve"
TEST = ".ci/setup test && .venv/bin/pytest"


def shell_blocks(text: str) -> list[str]:
    return [block.strip() for block in re.findall(r"^```(?:sh|bash|console|shell)\n(.*?)^```", text, re.M | re.S)]


def test_there_are_exactly_two_commands(root: Path) -> None:
    assert shell_blocks((root / "README.md").read_text(encoding="utf-8")) == [SERVE, TEST]


def test_ci_runs_the_second_as_it_stands(root: Path) -> None:
    """The line by which .ci/run finds the command is tried here on the README."""
    script = (root / ".ci" / "run").read_text(encoding="utf-8")
    line = next(line for line in script.splitlines() if line.startswith("readme_tests="))
    shown = subprocess.run(
        ["bash", "-c", f'{line}; printf %s "$readme_tests"'], cwd=root, capture_output=True, text=True, check=True
    )
    assert shown.stdout == TEST
    assert 'bash -c "$readme_tests"' in script


def test_the_scripts_can_be_run(root: Path) -> None:
    for command in (SERVE, TEST):
        script = root / shlex.split(command)[0]
        assert script.stat().st_mode & 0o111, f"{script} is not executable"
        subprocess.run(["bash", "-n", str(script)], check=True)
    subprocess.run(["bash", "-n", str(root / ".ci" / "run")], check=True)


def test_the_extra_that_it_installs_exists(root: Path) -> None:
    project = (root / "pyproject.toml").read_text(encoding="utf-8")
    assert re.search(r"^test = \[$", project, re.M)
    assert re.search(r'^fakecri = "fakecri.cli.main:main"$', project, re.M)
