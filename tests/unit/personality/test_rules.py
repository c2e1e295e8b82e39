"""What keeps personalities data: one place assigns states, none asks for a name, each trait has one reader."""

from __future__ import annotations

import ast
from collections import defaultdict
from dataclasses import fields
from functools import cache
from pathlib import Path

import pytest

import fakecri
from fakecri.core.traits import Behaviour, Traits

PACKAGE = Path(fakecri.__file__).parent
TREES = {str(path.relative_to(PACKAGE)): ast.parse(path.read_text()) for path in sorted(PACKAGE.rglob("*.py"))}
TRAITS = {field.name for field in fields(Traits)}
#: Processes have a state of their own, which no table of CRI's governs.
BELOW_CRI = ("kernel/", "workload/", "base/", "wire/")


def places(node: ast.AST, where: str = "") -> dict[ast.AST, str]:
    """Every node with the dotted name of the function that it stands in."""
    found = {}
    for child in ast.iter_child_nodes(node):
        inner = where
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            inner = f"{where}.{child.name}".lstrip(".")
        found[child] = inner
        found |= places(child, inner)
    return found


def last_name(node: ast.AST) -> str:
    """The name that an expression ends in: ``traits`` of ``runtime.behaviour.traits``."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def assigned(node: ast.AST) -> list[ast.Attribute]:
    """The attributes to which a statement assigns, also inside tuples."""
    targets = node.targets if isinstance(node, ast.Assign) else []
    if isinstance(node, (ast.AugAssign, ast.AnnAssign, ast.NamedExpr, ast.For)):
        targets = [node.target]
    return [part for target in targets for part in ast.walk(target) if isinstance(part, ast.Attribute)]


def state_changes(tree: ast.AST) -> list[str]:
    """Functions that assign an attribute ``state``, a constructor's first value aside."""
    found = []
    for node, where in places(tree).items():
        for target in assigned(node):
            first = isinstance(node, ast.AnnAssign) and where.endswith(".__init__") and "ABSENT" in ast.dump(node.value)
            if target.attr == "state" and isinstance(target.ctx, ast.Store) and not first:
                found.append(where)
        by_name = isinstance(node, ast.Call) and last_name(node.func) in ("setattr", "__setattr__")
        if by_name and any(isinstance(part, ast.Constant) and part.value == "state" for part in node.args):
            found.append(where)
    return found


def test_only_the_tables_assign_a_state():
    changes = {
        f"{path}:{where}"
        for path, tree in TREES.items()
        if not path.startswith(BELOW_CRI)
        for where in state_changes(tree)
    }
    assert changes == {"core/states.py:apply"}


@pytest.mark.parametrize(
    "source",
    [
        "def f(c): c.state = 1",
        "def f(c): (c.state, x) = 1, 2",
        "def f(c): c.state += 1",
        "def f(c): setattr(c, 'state', 1)",
        "class A:\n def __init__(self): self.state: S = S.READY",
    ],
)
def test_the_search_for_states_sees_other_ways_to_assign(source):
    assert state_changes(ast.parse(source))


def asks_for_a_name(tree: ast.AST) -> list[int]:
    """Lines that decide by a personality's name: a comparison, a match, a look-up."""

    def named(node: ast.AST | None) -> bool:
        return any(
            isinstance(part, ast.Attribute)
            and part.attr in ("name", "runtime_name", "runtime_version")
            and "personality" in last_name(part.value)
            for part in (ast.walk(node) if node is not None else ())
        )

    found = []
    for node in ast.walk(tree):
        deciding: list[ast.AST | None] = []
        if isinstance(node, ast.Compare):
            deciding = [node.left, *node.comparators]
        elif isinstance(node, ast.Match):
            deciding = [node.subject]
        elif isinstance(node, ast.Subscript):
            deciding = [node.slice]
        elif isinstance(node, ast.Call) and last_name(node.func) in ("get", "startswith", "endswith"):
            deciding = [node.func, *node.args]
        if any(named(part) for part in deciding):
            found.append(node.lineno)
    return found


def test_nothing_decides_by_a_personalitys_name():
    asking = {path: lines for path, tree in TREES.items() if (lines := asks_for_a_name(tree))}
    assert asking == {}


@pytest.mark.parametrize(
    "source",
    [
        "if personality.name == 'containerd': pass",
        "if 'x' in engine.personality.runtime_name: pass",
        "match personality.name:\n case 'a': pass",
        "A[personality.name]",
        "A.get(self.personality.name)",
        "personality.name.startswith('c')",
    ],
)
def test_the_search_for_names_sees_other_ways_to_ask(source):
    assert asks_for_a_name(ast.parse(source))


@cache
def readers() -> dict[str, set[str]]:
    """Trait → the functions that read it."""
    found = defaultdict(set)
    for path, tree in TREES.items():
        if path.startswith("personality/"):
            continue
        for node, where in places(tree).items():
            if isinstance(node, ast.Attribute) and node.attr in TRAITS and last_name(node.value).endswith("traits"):
                found[node.attr].add(f"{path}:{where}")
    return found


@pytest.mark.parametrize("trait", sorted(TRAITS))
def test_a_trait_is_read_in_one_function(trait):
    assert len(readers()[trait]) == 1, f"{trait}: {sorted(readers()[trait])}: read it behind one named function"


@pytest.mark.parametrize("part", [field.name for field in fields(Behaviour) if field.name != "traits"])
def test_every_part_of_a_behaviour_is_read(part):
    reading = {
        path
        for path, tree in TREES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr == part and last_name(node.value).endswith("behaviour")
    }
    assert reading - {"personality/model.py"}, f"nothing reads {part}"
