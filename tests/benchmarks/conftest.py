"""Loads the benchmark's modules for their tests."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from types import ModuleType


@pytest.fixture(scope="session")
def report() -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        "fakecri_tests_benchmarks_report", Path(__file__).parent / "report.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
