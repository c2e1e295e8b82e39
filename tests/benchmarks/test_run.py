"""The benchmark runs from end to end: every mode of the load client finds what it needs on both servers."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.client

RUN = Path(__file__).with_name("run.py")


def test_a_quick_run_fills_every_part(tmp_path: Path) -> None:
    figures = tmp_path / "figures.json"
    done = subprocess.run(
        [sys.executable, RUN, "--quick", "--json", figures], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    taken = json.loads(figures.read_text())
    (cells,) = taken["cells"]
    assert {(cell["mode"], cell["server"]) for cell in cells} == {
        (mode, server) for mode in ("version", "status", "churn", "list") for server in ("Go fake", "fakecri")
    }
    assert all(cell["calls_per_second"] > 0 and cell["server_cpu_us_per_call"] > 0 for cell in cells)
    # A pod and its container are created, started, stopped and deleted.
    assert [events["events_per_life"] for events in taken["events"][0]] == [8, 8]
    assert taken["memory"]["bytes_per_pair"] > 0
    assert "| ListContainers | 1,000 | 16 |" in done.stdout


def test_no_round_is_no_benchmark() -> None:
    done = subprocess.run([sys.executable, RUN, "--rounds", "0"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "--rounds must be at least 1" in done.stderr
