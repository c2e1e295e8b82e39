"""`protos/generate.py`: what is committed is what the tables give, and --check sees any drift."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

WIRE = ("runtime_v1.binpb", "runtime_v1alpha2.binpb", "messages.pyi", "levels.json")
MADE = (
    "protos/runtime/v1/api.proto",
    "protos/runtime/v1alpha2/api.proto",
    *(f"fakecri/wire/{name}" for name in WIRE),
)


@pytest.fixture
def copy(tmp_path: Path, protos: Path) -> Path:
    """A tree with all that the generator reads and writes."""
    shutil.copytree(protos, tmp_path / "protos")
    (tmp_path / "fakecri" / "wire").mkdir(parents=True)
    for name in WIRE:
        shutil.copy(protos.parent / "fakecri" / "wire" / name, tmp_path / "fakecri" / "wire" / name)
    return tmp_path


def generate(tree: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(tree / "protos" / "generate.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_check_passes_on_the_checkout(protos: Path) -> None:
    run = generate(protos.parent, "--check")
    assert (run.returncode, run.stdout, run.stderr) == (0, "6 files agree with the tables\n", "")


@pytest.mark.parametrize("name", MADE)
def test_check_fails_where_a_file_was_altered_and_a_new_run_mends_it(copy: Path, name: str) -> None:
    path = copy / name
    before = path.read_bytes()
    path.write_bytes(before.replace(b"Version", b"Vision", 1))
    run = generate(copy, "--check")
    assert run.returncode == 1
    assert Path(name).name in run.stdout
    assert "run: python protos/generate.py" in run.stderr
    assert generate(copy).returncode == 0
    assert path.read_bytes() == before


def test_check_shows_what_a_changed_table_would_change(copy: Path) -> None:
    path = copy / "protos" / "since" / "v1.json"
    table = json.loads(path.read_text())
    table["messages"]["Mount"]["fields"]["mount_options"]["since"] = "1.36"
    path.write_text(json.dumps(table))
    run = generate(copy, "--check")
    assert run.returncode == 1
    assert "-  repeated string mount_options = 11;  // since 1.37" in run.stdout
    assert "+  repeated string mount_options = 11;  // since 1.36" in run.stdout


def test_check_fails_where_a_file_is_missing(copy: Path) -> None:
    (copy / "fakecri" / "wire" / "levels.json").unlink()
    assert generate(copy, "--check").returncode == 1


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"type": "Nonsense"}, "Mount.host_path: unknown type 'Nonsense'"),
        ({"type": "repeated MountPropagation"}, "Mount.host_path: a repeated enum"),
        ({"since": "1.19"}, "Mount.host_path: since 1.19 is outside 1.20 … 1.37"),
        ({"since": "1.38"}, "Mount.host_path: since 1.38 is outside 1.20 … 1.37"),
        ({"number": 1}, "Field number 1 has already been used"),
    ],
)
def test_a_table_that_cannot_be_is_refused_with_its_place(copy: Path, change: dict[str, object], text: str) -> None:
    path = copy / "protos" / "since" / "v1.json"
    table = json.loads(path.read_text())
    table["messages"]["Mount"]["fields"]["host_path"].update(change)
    path.write_text(json.dumps(table))
    run = generate(copy, "--check")
    assert run.returncode == 1
    assert text in run.stdout + run.stderr
    assert "Traceback" not in run.stderr


def test_a_note_on_nothing_is_refused(copy: Path) -> None:
    path = copy / "protos" / "notes.json"
    notes = json.loads(path.read_text())
    notes["fields"]["Mount.no_such_field"] = "?"
    path.write_text(json.dumps(notes))
    run = generate(copy)
    assert run.returncode == 1
    assert "fields: 'Mount.no_such_field' is not in the table of runtime.v1" in run.stderr
