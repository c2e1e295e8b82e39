"""Reading documents: YAML 1.2, places of problems, remedies."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from fakecri.scenario.document import Document
from fakecri.scenario.load import Loaded, ScenarioError, load_files, load_text, plain_scalar

HEAD = "apiVersion: fakecri.dev/v1alpha1\nkind: Scenario\n"


def load(text: str) -> Document:
    (loaded,) = load_text(HEAD + dedent(text), "x.yaml")
    return loaded.document


def problems(text: str, head: str = HEAD) -> list[str]:
    with pytest.raises(ScenarioError) as failure:
        load_text(head + dedent(text), "x.yaml")
    lines = [str(problem) for problem in failure.value.problems]
    assert str(failure.value) == "\n".join(lines)
    return lines


# -- scalars -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("on", "on"),
        ("no", "no"),
        ("Yes", "Yes"),
        ("y", "y"),
        ("1:30", "1:30"),
        ("1_000", "1_000"),
        ("2024-01-02", "2024-01-02"),
        ("0b1", "0b1"),
        ("0o17", 15),
        ("017", 17),
        ("0x1F", 31),
        ("-3", -3),
        ("+3", 3),
        ("1.5", 1.5),
        ("1e3", 1000.0),
        (".5", 0.5),
        (".", "."),
        ("true", True),
        ("TRUE", True),
        ("tRUE", "tRUE"),
        ("False", False),
        ("~", None),
        ("", None),
        ("null", None),
        ("nUll", "nUll"),
        ("-.inf", float("-inf")),
        ("=", "="),
        ("<<", "<<"),
    ],
)
def test_a_plain_scalar_is_what_yaml_1_2_says(text: str, value: object) -> None:
    found = plain_scalar(text)
    assert (type(found), found) == (type(value), value)


@pytest.mark.parametrize(
    ("text", "value"), [("on", "on"), ("no", "no"), ("1:30", "1:30"), ('"1"', "1"), ("!!str 1", "1")]
)
def test_text_stays_text_in_a_document(text: str, value: str) -> None:
    document = load(f"images: {{present: [{{names: ['a:1'], labels: {{k: {text}}}}}]}}")
    assert document.images.present[0].labels == {"k": value}


@given(st.text(st.characters(codec="utf-8")))
def test_quoted_text_is_that_text(text: str) -> None:
    quoted = yaml.safe_dump({"k": text}, default_style='"', allow_unicode=False).strip()
    document = load(f"images: {{present: [{{names: ['a:1'], labels: {{{quoted}}}}}]}}")
    assert document.images.present[0].labels == {"k": text}


@given(st.text(st.characters(codec="utf-8")))
def test_any_text_is_a_document_or_has_problems_with_places(text: str) -> None:
    found: list[Loaded] = []
    lines = ["x.yaml"]
    try:
        found = load_text(text, "x.yaml")
    except ScenarioError as failure:
        lines = str(failure).splitlines()
    assert all(isinstance(each, Loaded) for each in found)
    assert lines
    assert lines[0].startswith("x.yaml")


# -- problems ----------------------------------------------------------------------------------------------------------
def test_every_problem_of_a_document_with_its_place_in_order_of_line() -> None:
    assert problems(
        """\
        runtime:
          handler: []
          handlers:
            - nam: x
              fault: shimmissing
            - {name: 3}
        images:
          present:
            - names: [UPPER/Busybox:1, "busybox:1"]
              files: {etc: x}
              comand: [sh]
              pinned: no
          registries:
            - host: 127.0.0.1:5000/x
              status: 200
              duration: 5
          pullable:
            - environment: {on: no}
        bogus: 1
        """
    ) == [
        "x.yaml:4:3: runtime.handler: unknown key 'handler'; did you mean 'handlers'?",
        "x.yaml:6:7: runtime.handlers[0]: key 'name' is missing",
        "x.yaml:6:7: runtime.handlers[0].nam: unknown key 'nam'; did you mean 'name'?",
        "x.yaml:7:14: runtime.handlers[0].fault: unknown value 'shimmissing'; did you mean 'shimMissing'?",
        "x.yaml:8:14: runtime.handlers[1].name: must be text, not 3: put it in quotes",
        (
            "x.yaml:11:15: images.present[0].names[0]: 'UPPER/Busybox:1' is no image reference: repository names are"
            " lower-case"
        ),
        "x.yaml:12:20: images.present[0].files.etc: 'etc' is not an absolute path without '..'",
        "x.yaml:13:7: images.present[0].comand: unknown key 'comand'; did you mean 'command'?",
        "x.yaml:14:15: images.present[0].pinned: must be true or false, not 'no', which is text in YAML 1.2",
        (
            "x.yaml:16:13: images.registries[0].host: '127.0.0.1:5000/x' is no registry host; write such as"
            " registry.example or 127.0.0.1:5000"
        ),
        "x.yaml:17:15: images.registries[0].status: input should be greater than or equal to 400",
        "x.yaml:18:17: images.registries[0].duration: 5 has no unit; write such as 250ms, 5s, 1m30s",
        "x.yaml:20:7: images.pullable[0]: key 'names' is missing",
        "x.yaml:21:1: bogus: unknown key 'bogus'; it is one of apiVersion, images, kind, runtime",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("images: []", "3:9: images: must be a mapping, not a list"),
        ("images: {present: {}}", "3:19: images.present: must be a list, not a mapping"),
        ("images: {present: [{names: []}]}", "3:28: images.present[0].names: must not be empty"),
        ("images: {present: [{names: 'a:1'}]}", "3:28: images.present[0].names: must be a list, not 'a:1'"),
        ("images: {present: [x]}", "3:20: images.present[0]: must be a mapping, not 'x'"),
        ("runtime: {handlers: [{name: ''}]}", "3:29: runtime.handlers[0].name: must not be empty text"),
        (
            "runtime: {handlers: [{name: x, features: {usernamespaces: true}}]}",
            (
                "3:43: runtime.handlers[0].features.usernamespaces: unknown key 'usernamespaces';"
                " did you mean 'userNamespaces'?"
            ),
        ),
        (
            "images: {registries: [{host: a.b, repositories: [{match: x, Status: 500}]}]}",
            "3:61: images.registries[0].repositories[0].Status: unknown key 'Status'; did you mean 'status'?",
        ),
        (
            "images: {registries: [{host: a.b, wrongDigest: {got: abc}}]}",
            (
                "3:54: images.registries[0].wrongDigest.got: 'abc' is no digest;"
                " write sha256: and 64 lower-case hex digits"
            ),
        ),
        (
            "images: {present: [{names: ['a:1'], stopSignal: NOPE}]}",
            "3:49: images.present[0].stopSignal: 'NOPE' is no signal; write such as SIGINT or 2",
        ),
        (
            "images: {present: [{names: ['a:1'], files: {/a/: x}}]}",
            "3:50: images.present[0].files./a/: '/a/' is a directory; a file's path does not end with '/'",
        ),
        (
            "images: {present: [{names: ['a:1'], workingDirectory: /a/../b}]}",
            "3:55: images.present[0].workingDirectory: '/a/../b' is not an absolute path without '..'",
        ),
        (
            "images: {present: [{names: ['a:1'], size: 4MB}]}",
            "3:43: images.present[0].size: '4MB' is not a size; write a number of bytes, or such as 500k, 4Mi, 1.5Gi",
        ),
        (
            "images: {present: [{names: ['a:1'], size: -1}]}",
            "3:43: images.present[0].size: input should be greater than or equal to 0",
        ),
        (
            f"images: {{present: [{{names: ['{'f' * 64}']}}]}}",
            (
                f"3:29: images.present[0].names[0]: '{'f' * 64}' is no image reference:"
                " that is an image id, a name is needed"
            ),
        ),
    ],
)
def test_a_problem_and_its_remedy(text: str, message: str) -> None:
    assert problems(text) == [f"x.yaml:{message}"]


def test_head() -> None:
    assert problems("kind: Scenaro", "") == [
        "x.yaml:1:1: key 'apiVersion' is missing",
        "x.yaml:1:7: kind: unknown value 'Scenaro'; did you mean 'Scenario'?",
    ]
    assert problems("apiVersion: v1\nkind: Scenario", "") == [
        "x.yaml:1:13: apiVersion: unknown value 'v1'; it is one of fakecri.dev/v1alpha1"
    ]


def test_a_key_stands_once() -> None:
    assert problems("images: {}\nruntime: {}\nimages: {present: []}\n") == [
        "x.yaml:5:1: images: key 'images' stands twice, first in line 3"
    ]


def test_keys_are_text() -> None:
    assert problems("images: {present: [{names: ['a:1'], labels: {1: x, ? [a] : b}}]}") == [
        "x.yaml:3:46: images.present[0].labels: a key must be text, not 1: put it in quotes",
        "x.yaml:3:54: images.present[0].labels: a key must be text, not a list: put it in quotes",
    ]


def test_tags_other_than_the_core_schemas() -> None:
    assert problems("images: !secret {}\nruntime: {handlers: [{name: !file x}]}") == [
        "x.yaml:4:29: runtime.handlers[0].name: 'x' cannot be a !file",
        "x.yaml:4:29: runtime.handlers[0].name: must be text, not nothing",
    ]
    assert problems("images: {present: [{names: ['a:1'], pinned: !!bool maybe}]}")[0] == (
        "x.yaml:3:45: images.present[0].pinned: 'maybe' cannot be a !!bool"
    )


def test_text_that_is_not_yaml() -> None:
    (line,) = problems("images: [a\nruntime: {}")
    assert line.startswith("x.yaml:4:")
    assert "not YAML: " in line


@pytest.mark.parametrize("text", ["", "# nothing\n", "---\n"])
def test_nothing(text: str) -> None:
    (line,) = problems(text, "")
    assert line.startswith("x.yaml")


def test_a_document_that_is_no_mapping() -> None:
    assert problems("- a", "") == ["x.yaml:1:1: must be a mapping, not a list"]


# -- anchors -----------------------------------------------------------------------------------------------------------
def test_anchors_and_aliases() -> None:
    document = load(
        """\
        images:
          present:
            - {names: ["a:1"], environment: &env {A: b}}
            - {names: ["b:1"], environment: *env}
        """
    )
    assert document.images.present[1].environment == {"A": "b"}


def test_a_problem_behind_an_alias_is_told_where_it_stands() -> None:
    lines = problems(
        """\
        images:
          present:
            - {names: ["a:1"], environment: &env {A: 1}}
            - {names: ["b:1"], environment: *env}
        """
    )
    assert [line.split(" ")[0] for line in lines] == ["x.yaml:5:46:", "x.yaml:5:46:"]


def test_an_alias_inside_itself() -> None:
    assert problems("images: &a {present: *a}")[0] == (
        "x.yaml:3:9: images.present: an alias inside the very thing that it names"
    )


def test_aliases_that_unfold_without_end() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 10)}]" for level in range(1, 9)]
    assert "aliases unfold to more than 100,000 nodes" in problems("\n".join(lines))[0]


# -- files -------------------------------------------------------------------------------------------------------------
def test_several_documents_in_several_files(tmp_path: Path) -> None:
    first, second = tmp_path / "a.yaml", tmp_path / "b.yaml"
    first.write_text(f"{HEAD}---\n{HEAD}")
    second.write_text(HEAD)
    assert [loaded.file for loaded in load_files([first, second])] == [str(first), str(first), str(second)]


def test_problems_of_all_files(tmp_path: Path) -> None:
    broken, missing, binary = tmp_path / "a.yaml", tmp_path / "none.yaml", tmp_path / "c.yaml"
    broken.write_text(f"{HEAD}bogus: 1\n")
    binary.write_bytes(b"\xff\xfe")
    with pytest.raises(ScenarioError) as failure:
        load_files([broken, missing, binary])
    first, second, third = map(str, failure.value.problems)
    assert first.startswith(f"{broken}:3:1: bogus: unknown key")
    assert second == f"{missing}: cannot be read: No such file or directory"
    assert third == f"{binary}: is not UTF-8 text (byte 0): save it as UTF-8"
