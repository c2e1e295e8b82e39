"""What every file keeps: its size, its words, its docstrings, and no trace of one machine."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

MAX_MODULE_LINES = 400
MAX_FUNCTION_LINES = 50

BANNED_WORDS = {"mock", "stub", "manager", "helper", "util", "utils", "misc"}
#: A word is one of these only as a whole name.
BANNED_NAMES = {"data"}

#: Places outside the project, and what people call their own set-up.
MACHINE_PATHS = re.compile(
    r"/root/|/home/\w|/work/|/tmp/venv|/opt/wheels|\.pyenv|\bshared/(facts|clients|cri-api|reference|hooks|design)"
    r"|pypi\.org|proxy\.golang\.org|files\.pythonhosted"
)
#: Files that must say such a thing, and why: none so far.
MAY_NAME_PLACES: frozenset[str] = frozenset()
BUILT = {"_build", "__pycache__", ".hypothesis", "node_modules"}
TEXTS = {".py", ".pyi", ".md", ".toml", ".yaml", ".yml", ".sh", ".json", ".proto", ".txt", ".cfg", ".go", ""}


def defined_names(tree: ast.Module):
    """Every name that a module gives: to classes, functions, arguments and variables."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield node, node.name
        elif isinstance(node, ast.arg):
            yield node, node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node, node.id


def words(name: str) -> list[str]:
    """The words of a name in either case style, in lower case."""
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", name)]


def is_banned(name: str) -> bool:
    return name.lower() in BANNED_NAMES or name.startswith("process_") or not BANNED_WORDS.isdisjoint(words(name))


def test_the_word_finder() -> None:
    assert [
        name for name in ("StubRuntime", "pod_manager", "data", "process_events", "util", "HTTPMock") if is_banned(name)
    ] == ["StubRuntime", "pod_manager", "data", "process_events", "util", "HTTPMock"]
    assert not any(is_banned(name) for name in ("metadata", "process", "utility", "stubborn", "databases", "Process"))


def test_modules_are_short(package) -> None:
    long = {source.path: count for source in package if (count := source.text.count("\n")) > MAX_MODULE_LINES}
    assert long == {}, f"modules are at most {MAX_MODULE_LINES} lines: split by what changes together"


def test_functions_are_short(everything) -> None:
    long = {
        source.at(node): f"{node.name}: {length} lines"
        for source in everything
        for node in ast.walk(source.tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (length := (node.end_lineno or node.lineno) - node.lineno + 1) > MAX_FUNCTION_LINES
    }
    assert long == {}


def test_names_are_the_fields_own(package) -> None:
    bad = [
        f"{source.at(node)}: {name}"
        for source in package
        for node, name in defined_names(source.tree)
        if is_banned(name)
    ]
    bad += [source.path for source in package if is_banned(Path(source.path).stem)]
    assert bad == []


def test_every_module_says_the_rule_it_keeps(everything) -> None:
    silent = [source.path for source in everything if source.tree.body and not ast.get_docstring(source.tree)]
    assert silent == []


def test_public_classes_and_functions_say_what_they_mean(package) -> None:
    silent = []
    for source in package:
        scopes: list[ast.Module | ast.ClassDef] = [source.tree]
        while scopes:
            for node in scopes.pop().body:
                if not isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                    continue
                if node.name.startswith("_"):
                    continue
                if not ast.get_docstring(node) and not is_overload(node):
                    silent.append(f"{source.at(node)}: {node.name}")
                if isinstance(node, ast.ClassDef):
                    scopes.append(node)
    assert silent == []


def is_overload(node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Typing's overloads and property setters speak through the definition that they belong to."""
    names = {getattr(decorator, "attr", getattr(decorator, "id", "")) for decorator in node.decorator_list}
    return not names.isdisjoint({"overload", "setter", "override"})


def test_nobody_asks_for_a_personality_by_name(package) -> None:
    asked = [
        source.at(node)
        for source in package
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Compare)
        and any(
            isinstance(side, ast.Attribute)
            and side.attr in {"name", "runtime_name", "runtime_version"}
            and "personality" in ast.unparse(side.value).lower()
            for side in (node.left, *node.comparators)
        )
    ]
    assert asked == [], "a difference between runtimes is a trait, a row, a form or a strategy"


def written_files(root: Path) -> Iterator[Path]:
    """What people wrote: no caches, no environment, nothing built. (A checkout may be without git.)"""
    for path in root.iterdir():
        if path.is_file():
            yield path
        elif path.name in {"fakecri", "protos", "tests", "scenarios", "docs", ".ci"}:
            yield from (file for file in path.rglob("*") if file.is_file() and BUILT.isdisjoint(file.parts))


def test_no_file_names_a_place_outside_the_project(root: Path) -> None:
    found = []
    for path in written_files(root):
        name = str(path.relative_to(root))
        if (
            path.suffix not in TEXTS
            or name in MAY_NAME_PLACES
            or path == Path(__file__)
            or name.startswith(".coverage")
        ):
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
            if MACHINE_PATHS.search(line):
                found.append(f"{name}:{number}: {line.strip()[:100]}")
    assert found == []


def test_the_search_sees_every_part_of_the_project(root: Path) -> None:
    names = {str(path.relative_to(root)) for path in written_files(root)}
    assert {".ci/run", "README.md", "docs/index.md", "fakecri/clock.py", "tests/conftest.py"} <= names
    assert not [name for name in names if {"_build", ".venv", "__pycache__"} & set(Path(name).parts)]
