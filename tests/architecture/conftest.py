"""The sources as syntax trees, read once."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Source:
    """One Python file: where it is, and what it says."""

    path: str
    """Relative to the repository."""
    text: str
    tree: ast.Module

    @property
    def module(self) -> str:
        """The dotted name, as an import writes it."""
        return self.path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")

    @property
    def part(self) -> str:
        """The first name below ``fakecri``: the layer."""
        return ".".join(self.module.split(".")[1:2])

    def at(self, node: ast.AST) -> str:
        """path:line, for a message."""
        return f"{self.path}:{getattr(node, 'lineno', 1)}"

    def imports(self) -> Iterator[tuple[ast.AST, str]]:
        """Every absolute import, with the dotted name that it reaches."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    yield node, alias.name
            elif isinstance(node, ast.ImportFrom) and node.module:
                for alias in node.names:
                    yield node, f"{node.module}.{alias.name}"


def read(*folders: str) -> list[Source]:
    found = []
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*.py")):
            text = path.read_text(encoding="utf-8")
            found.append(Source(str(path.relative_to(ROOT)), text, ast.parse(text)))
    assert found, f"no sources in {folders}"
    return found


@pytest.fixture(scope="session")
def root() -> Path:
    """The checkout."""
    return ROOT


@pytest.fixture(scope="session")
def package() -> list[Source]:
    """Every module of fakecri."""
    return read("fakecri")


@pytest.fixture(scope="session")
def tests() -> list[Source]:
    """Every test module, fixture and tool below tests/."""
    return read("tests")


@pytest.fixture(scope="session")
def everything(package: list[Source], tests: list[Source]) -> list[Source]:
    """The package, its tests, and the generators beside them."""
    return [*package, *tests, *read("protos", "docs")]
