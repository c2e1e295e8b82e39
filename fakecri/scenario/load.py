"""Reading scenario files: YAML with marks, every problem with its place.

Scalars follow YAML 1.2's core schema, so ``on``, ``no`` and ``1:30`` are text and ``0o17`` is fifteen. A key may stand
once in a mapping. Anchors and aliases work; merge keys (``<<``) are not part of YAML 1.2. All problems of all documents
are collected, in order of file and line.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import yaml
from pydantic import ValidationError
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from fakecri.scenario.document import Document
from fakecri.scenario.wording import describe

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

    from pydantic_core import ErrorDetails

#: Nodes that the aliases of one document may unfold to.
EXPANSION_LIMIT: Final = 100_000

_PLAIN = "!plain"
_CORE = "tag:yaml.org,2002:"
_INTEGER = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_NAMED: Final[dict[str, Any]] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **{sign + word: float(sign + "inf") for sign in ("", "+", "-") for word in (".inf", ".Inf", ".INF")},
    **dict.fromkeys((".nan", ".NaN", ".NAN"), float("nan")),
}


class _Loader(yaml.CSafeLoader):
    """Composes nodes; plain scalars keep a tag of their own, so that the schema here decides what they are."""

    yaml_implicit_resolvers = {None: [(_PLAIN, re.compile(""))]}


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """One thing that is wrong; line and column count from 1, 0 where the whole file is meant."""

    file: str
    line: int
    column: int
    path: str
    message: str

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}:{self.column}" if self.line else self.file
        return f"{where}: {self.path}: {self.message}" if self.path else f"{where}: {self.message}"


class ScenarioError(Exception):
    """Documents that cannot be used; ``problems`` are in order of file and line."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = list(problems)
        super().__init__("\n".join(map(str, self.problems)))


@dataclass(frozen=True, slots=True)
class Loaded:
    """A valid document and where it stands."""

    document: Document
    file: str
    node: Node


def load_files(paths: Iterable[str | Path]) -> list[Loaded]:
    """The documents of some files, in order.

    Raises:
        ScenarioError: every problem of every file.
    """
    loaded: list[Loaded] = []
    problems: list[Problem] = []
    for path in paths:
        try:
            loaded += load_text(Path(path).read_bytes().decode(), str(path))
        except OSError as error:
            problems.append(Problem(str(path), 0, 0, "", f"cannot be read: {error.strerror}"))
        except UnicodeDecodeError as error:
            problems.append(Problem(str(path), 0, 0, "", f"is not UTF-8 text (byte {error.start}): save it as UTF-8"))
        except ScenarioError as error:
            problems += error.problems
    if problems:
        raise ScenarioError(problems)
    return loaded


def load_text(text: str, file: str = "<text>") -> list[Loaded]:
    """The documents of one text.

    Raises:
        ScenarioError: every problem, in order of line; of text that is not YAML only the first can be told.
    """
    try:
        nodes = list(yaml.compose_all(text, Loader=_Loader))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark is not None else (0, 0)
        raise ScenarioError([Problem(file, line, column, "", f"not YAML: {error.problem or error.context}")]) from None
    except yaml.YAMLError as error:
        raise ScenarioError([Problem(file, 0, 0, "", f"not YAML: {error}")]) from None
    reader = _Reader(file)
    loaded = [found for node in nodes if node is not None and (found := reader.document(node)) is not None]
    if not nodes and not reader.problems:
        reader.problems.append(Problem(file, 0, 0, "", "there is no document in it"))
    if reader.problems:
        raise ScenarioError(sorted(set(reader.problems)))
    return loaded


class _Reader:
    """Turns nodes into values and values into documents, noting problems on the way."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.problems: list[Problem] = []
        self._values: dict[int, tuple[Any, int]] = {}
        self._open: set[int] = set()

    def document(self, node: Node) -> Loaded | None:
        before = len(self.problems)
        value, unfolded = self._value(node, ())
        if unfolded > EXPANSION_LIMIT:
            self._note(node, (), f"its aliases unfold to more than {EXPANSION_LIMIT:,} nodes")
        if len(self.problems) > before and not isinstance(value, dict):
            return None
        if unfolded > EXPANSION_LIMIT:
            return None
        try:
            document = Document.model_validate(value)
        except ValidationError as error:
            for detail in error.errors(include_url=False):
                self._note_detail(node, detail)
            return None
        return Loaded(document, self.file, node)

    # -- values ----------------------------------------------------------------------------------------------------
    def _value(self, node: Node, path: tuple[Hashable, ...]) -> tuple[Any, int]:
        """A node's value, and how many nodes it unfolds to; an anchored node is turned once."""
        known = self._values.get(id(node))
        if known is not None:
            return known
        if id(node) in self._open:
            self._note(node, path, "an alias inside the very thing that it names")
            return None, 1
        self._open.add(id(node))
        if isinstance(node, ScalarNode):
            result = self._scalar(node, path), 1
        elif isinstance(node, SequenceNode):
            result = self._sequence(node, path)
        else:
            result = self._mapping(node, path)
        self._open.discard(id(node))
        self._values[id(node)] = result
        return result

    def _sequence(self, node: SequenceNode, path: tuple[Hashable, ...]) -> tuple[list[Any], int]:
        items = [self._value(item, (*path, index)) for index, item in enumerate(node.value)]
        return [value for value, _ in items], 1 + sum(count for _, count in items)

    def _mapping(self, node: Node, path: tuple[Hashable, ...]) -> tuple[dict[str, Any], int]:
        result: dict[str, Any] = {}
        first: dict[str, Node] = {}
        total = 1
        for key_node, value_node in node.value:
            key, _ = self._value(key_node, path)
            if not isinstance(key, str):
                self._note(key_node, path, f"a key must be text, not {_shown(key)}: put it in quotes")
                continue
            if key in first:
                line = first[key].start_mark.line + 1
                self._note(key_node, (*path, key), f"key {key!r} stands twice, first in line {line}")
                continue
            first[key] = key_node
            result[key], count = self._value(value_node, (*path, key))
            total += count
        return result, total

    def _scalar(self, node: ScalarNode, path: tuple[Hashable, ...]) -> Any:
        text: str = node.value
        if node.tag == _CORE + "str":
            return text
        value = plain_scalar(text)
        if node.tag == _PLAIN:
            return value
        wanted = {_CORE + "int": int, _CORE + "float": float, _CORE + "bool": bool, _CORE + "null": type(None)}
        if wanted.get(node.tag) is type(value):
            return value
        if node.tag == _CORE + "float" and type(value) is int:
            return float(value)
        self._note(node, path, f"{text!r} cannot be a {node.tag.replace(_CORE, '!!')}")
        return None

    # -- problems --------------------------------------------------------------------------------------------------
    def _note(self, node: Node, path: tuple[Hashable, ...], message: str) -> None:
        self.problems.append(problem_at(self.file, node, path, message))

    def _note_detail(self, root: Node, detail: ErrorDetails) -> None:
        node, path, rest = locate(root, detail["loc"])
        if detail["type"] == "extra_forbidden":
            node = key_node(root, path)
        missing = rest[:1] if detail["type"] == "missing" else ()
        self._note(node, path, describe(Document, (*path, *missing), detail))


def plain_scalar(text: str) -> Any:
    """What a scalar without quotes is under YAML 1.2's core schema."""
    if text in _NAMED:
        return _NAMED[text]
    if _INTEGER.fullmatch(text):
        return int(text, {"0o": 8, "0x": 16}.get(text[:2], 10))
    if _FLOAT.fullmatch(text):
        return float(text)
    return text


def locate(root: Node, loc: Iterable[int | str]) -> tuple[Node, tuple[int | str, ...], tuple[int | str, ...]]:
    """The deepest node on the way along a location, the way to it, and what is left: names that are not in the file."""
    node, path = root, []
    rest = list(loc)
    while rest:
        found = _child(node, rest[0])
        if found is None:
            break
        node = found
        path.append(rest.pop(0))
    return node, tuple(path), tuple(rest)


def key_node(root: Node, path: tuple[int | str, ...]) -> Node:
    """The node of the key that a path ends with."""
    parent = locate(root, path[:-1])[0]
    return next((key for key, _ in parent.value if key.value == path[-1]), parent)


def _child(node: Node, part: int | str) -> Node | None:
    if isinstance(node, SequenceNode) and isinstance(part, int) and part < len(node.value):
        return node.value[part]  # type: ignore[no-any-return]
    if isinstance(node, MappingNode):
        return next((value for key, value in node.value if key.value == part), None)
    return None


def problem_at(file: str, node: Node, path: Iterable[Hashable], message: str) -> Problem:
    """A problem at a node's first character."""
    shown = ""
    for part in path:
        shown += f"[{part}]" if isinstance(part, int) else f".{part}" if shown else str(part)
    return Problem(file, node.start_mark.line + 1, node.start_mark.column + 1, shown, message)


def _shown(value: Any) -> str:
    return {dict: "a mapping", list: "a list", type(None): "nothing"}.get(type(value), repr(value))
