"""Shared by the tests of the wire: the tables, as they stand in protos/since."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

PROTOS = Path(__file__).parents[3] / "protos"


@pytest.fixture(scope="session")
def protos() -> Path:
    """The checkout's protos directory."""
    return PROTOS


@pytest.fixture(scope="session")
def tables() -> dict[str, dict[str, Any]]:
    """API version → its table, read without the generator's code."""
    return {api: json.loads((PROTOS / "since" / f"{api}.json").read_text()) for api in ("v1", "v1alpha2")}
