"""The same seed and calls give byte-equal transcripts, whatever the interpreter's hash seed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.xdist_group("transcripts")
SCRIPT = Path(__file__).with_name("transcript.py")


def transcript(hash_seed: str, seed: int = 1) -> bytes:
    """What a fresh interpreter prints."""
    return subprocess.run(
        [sys.executable, str(SCRIPT), "--seed", str(seed)],
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        cwd=SCRIPT.parents[2],
        capture_output=True,
        check=True,
    ).stdout


@pytest.fixture(scope="module")
def first() -> bytes:
    return transcript("1")


def test_another_hash_seed_changes_no_byte(first) -> None:
    lines, others = first.splitlines(), transcript("4242").splitlines()
    for number, (one, other) in enumerate(zip(lines, others, strict=True)):
        assert one == other, f"line {number}"
    assert len(lines) > 3000


def test_another_seed_changes_ids(first) -> None:
    assert transcript("1", seed=2) != first


def test_the_transcript_holds_every_kind_of_line(first) -> None:
    lines = first.decode().splitlines()
    assert sum(line.endswith(" cancelled") for line in lines) > 10
    assert sum("/RunPodSandbox " in line for line in lines) > 100
    assert any("runtime.v1alpha2" in line for line in lines)
