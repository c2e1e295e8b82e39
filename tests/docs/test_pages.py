"""What a page shows is what happens: its files are written, its commands run, its output compared."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).parents[2] / "docs"
SHOWING = sorted(
    str(path.relative_to(DOCS))
    for path in DOCS.rglob("*.md")
    if "_build" not in path.parts and "```console" in path.read_text(encoding="utf-8")
)


@pytest.mark.parametrize("name", SHOWING)
def test_a_page_shows_what_happens(name: str, pages: dict[str, Any], shell: Callable[[Any], Any]) -> None:
    page = pages[name]
    here = shell(page)
    for step in page.steps:
        if isinstance(step, tuple):
            file_name, content = step
            path = here.directory / file_name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content, encoding="utf-8")
        else:
            here.check(step, name)


def test_every_code_block_is_run_or_plain_text(root: Path) -> None:
    """Python comes from files that are tests; what a shell would do stands in console blocks."""
    allowed = {"console", "text", "mermaid", "{toctree}", "{literalinclude}", "{code-block}", "{note}", "{warning}"}
    strays = []
    for path in DOCS.rglob("*.md"):
        if "_build" in path.parts:
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            opening = re.match(r"^`{3,}(\{?[\w-]+\}?)", line)
            if opening and opening[1] not in allowed:
                strays.append(f"{path.relative_to(root)}:{number}: {opening[1]}")
    assert strays == []


def test_every_included_file_is_a_test(root: Path) -> None:
    included = re.findall(r"\{literalinclude\} (\S+)", "".join(path.read_text() for path in DOCS.rglob("*.md")))
    assert included, "the tutorial shows code"
    for name in included:
        assert re.search(r"tests/docs/test_\w+\.py$", name), name


def test_local_links_lead_somewhere(root: Path) -> None:
    broken = [
        f"{path.name}: {target}"
        for path in (root / "README.md", root / "CONTRIBUTING.md")
        for target in re.findall(r"\]\(([^)#:]+)(?:#[\w-]*)?\)", path.read_text(encoding="utf-8"))
        if not (path.parent / target).exists()
    ]
    assert broken == []
