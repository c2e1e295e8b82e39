"""Writes the pages that repeat what the code says: states, RPCs, refusals, personalities, the command line.

A page that could lie is made from the tables themselves. `python docs/generate.py` writes them; with `--check` it
writes nothing and fails where a page differs, as a test does.
"""

from __future__ import annotations

import argparse
import difflib
import inspect
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields
from enum import Enum
from pathlib import Path
from typing import Any, Final, get_type_hints

import click

from fakecri.base.reasons import FACTS, Reason
from fakecri.cli.main import cli as command_line
from fakecri.core import states, traits
from fakecri.personality.model import Personality, most_specific
from fakecri.personality.registry import PERSONALITIES
from fakecri.scenario.document import Document
from fakecri.wire.levels import LEVELS, RELEASES
from fakecri.wire.methods import METHODS
from fakecri.workload.programs import PROGRAMS

HERE: Final = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from diagrams import draw  # noqa: E402  (a file beside this one)

MADE: Final = "% Written by docs/generate.py from the code: change that, not this page.\n\n"
MACHINES: Final[tuple[tuple[str, str, Callable[[Personality], states.Table]], ...]] = (
    ("sandbox", "Pod sandbox", lambda personality: personality.behaviour.sandbox_table),
    ("container", "Container", lambda personality: personality.behaviour.container_table),
)
#: Keys whose text is read as a number with a unit.
QUANTITIES: Final = {"size": "bytes, such as `300Mi`", "duration": "a span, such as `250ms` or `1m30s`"}
REFERENCE: Final = PERSONALITIES["reference"]


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A Markdown table; cells may hold Markdown."""
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    lines += [
        "| " + " | ".join(str(cell).replace("|", "\\|").replace("\n", " ") for cell in row) + " |" for row in rows
    ]
    return "\n".join(lines) + "\n"


def code(text: object) -> str:
    """Inline code, or nothing for nothing."""
    return f"`{text}`" if str(text) else ""


# --- states ----------------------------------------------------------------------------------------------------------


def reached(machine: states.Table) -> list[str]:
    """Every state by rounds from ABSENT."""
    order, before = ["ABSENT"], []
    while before != order:
        before = list(order)
        for (start, _), move in machine.items():
            if start.name in before and move.to.name not in order:
                order.append(move.to.name)
    return order


def drawing(title: str, machine: states.Table) -> str:
    """The picture of one table."""
    arcs = [(start.name, move.to.name, given.name) for (start, given), move in machine.items()]
    return draw(title, reached(machine), arcs)


def row_cells(pair: tuple[Any, Any], move: states.Move | None) -> list[str]:
    """One row of a state table for readers."""
    start, given = pair
    if move is None:
        return [code(start.name), code(given.name), given.value, "refused", "", ""]
    emits = ", ".join(code(f"CONTAINER_{event.name}_EVENT") for event in move.emits)
    residue = code(move.residue.name) if move.residue is not None else ""
    return [code(start.name), code(given.name), given.value, code(move.to.name), emits, residue]


def states_page() -> str:
    """Diagrams and rows of both machines, and each personality's own rows."""
    head = ("state", "input", "which is", "leads to", "events", "a failed attempt leaves")
    text = MADE + "# States\n\nThe only place where a state changes is a row of these tables. A pair that is not here\n"
    text += "is refused and changes nothing. A move back to the same state is a success without effect.\n"
    for key, title, of in MACHINES:
        machine = of(REFERENCE)
        text += f"\n## {title}\n\n![{title}: states and inputs](states-{key}.svg)\n\n"
        text += table(head, (row_cells(pair, move) for pair, move in machine.items()))
        for personality in PERSONALITIES.values():
            own = of(personality)
            changed = [(pair, own.get(pair)) for pair in {**machine, **own} if own.get(pair) != machine.get(pair)]
            if changed:
                text += f"\n### {title} under `{personality.name}`\n\nOnly these rows differ.\n\n"
                text += table(head, (row_cells(pair, move) for pair, move in changed))
    return text


# --- reference -------------------------------------------------------------------------------------------------------


def rpcs_page() -> str:
    """Every RPC with the release that brought it, by API version, and the personalities without it."""
    text = MADE + "# RPCs and levels\n\n"
    for api, levels in LEVELS.items():
        text += f"`runtime.{api}` has the levels {levels[0]} to {levels[-1]}. "
    text += "An RPC is served from its release on;\nbelow it, and where the personality lacks it, the answer is "
    text += "`UNIMPLEMENTED`. Fields and enum values\nfollow the same rule: what is newer than the level is cleared.\n"
    streaming = {(spec.service, spec.name): spec.server_streaming for spec in METHODS.values()}
    for service, rpcs in RELEASES["v1"].rpcs.items():
        older = RELEASES["v1alpha2"].rpcs.get(service, {})
        text += f"\n## {service}\n\n"
        text += table(
            ("RPC", "v1 since", "v1alpha2 since", "reply", "not in"),
            (
                (
                    code(name),
                    since,
                    older.get(name, "—"),
                    "stream" if streaming[(service, name)] else "one message",
                    ", ".join(code(who.name) for who in PERSONALITIES.values() if name in who.behaviour.unimplemented),
                )
                for name, since in rpcs.items()
            ),
        )
    return text


def refusals_page() -> str:
    """Every reason with its facts and how the reference words it, and what other personalities make of it."""
    text = MADE + "# Refusals\n\nCore raises a reason with facts; a personality words it. `{name}` stands for a fact.\n"
    text += "Where a method has a form of its own, it stands on its own line.\n\n"
    for personality in PERSONALITIES.values():
        text += f"## {personality.name}\n\n{personality.summary}\n\n"
        rows = []
        for reason in Reason:
            methods = sorted(method for key, method in personality.forms if key is reason and method is not None)
            for method in (None, *methods):
                form = personality.forms.get((reason, method))
                if form is None or (personality is not REFERENCE and REFERENCE.forms.get((reason, method)) == form):
                    continue
                wrapper = most_specific(personality.wrappers, reason, method)
                worded = form.text if wrapper is None else wrapper.replace("{cause}", form.text)
                facts = ", ".join(FACTS.get(reason, ()))
                rows.append((code(reason.name), facts, code(method or ""), code(form.code.name), code(worded)))
        if personality is not REFERENCE:
            text += "Only what differs from `reference`.\n\n" if rows else "As `reference`.\n\n"
        text += table(("reason", "facts", "in", "code", "text"), rows) + "\n" if rows else ""
    return text


def personalities_page() -> str:
    """What each personality is, and every trait's value in it."""
    text = MADE + "# Personalities\n\n"
    text += table(
        ("name", "runtime", "API versions", "level", "what it is"),
        (
            (
                code(who.name),
                f"{who.runtime_name} {who.runtime_version}",
                ", ".join(sorted(who.apis)),
                who.level,
                who.summary,
            )
            for who in PERSONALITIES.values()
        ),
    )
    text += "\n## Traits\n\nThe closed switches in which runtimes differ.\n\n"
    rows = []
    kinds = get_type_hints(traits.Traits, include_extras=True)
    for trait in fields(traits.Traits):
        default = getattr(REFERENCE.behaviour.traits, trait.name)
        kind = (inspect.getdoc(type(default)) or "").split("\n")[0]
        meaning = next(iter(getattr(kinds[trait.name], "__metadata__", ())), kind)
        values = [shown_trait(getattr(who.behaviour.traits, trait.name)) for who in PERSONALITIES.values()]
        rows.append((code(trait.name), meaning, *values))
    text += table(("trait", "what it decides", *PERSONALITIES), rows)
    text += (
        "\n## The rest\n\nStrategies, where runtimes differ in an algorithm; orders of checks; what replies hold.\n\n"
    )
    rest = sorted({row for who in PERSONALITIES.values() for row in other_parts(who)})
    return text + table(
        ("part", *PERSONALITIES),
        ((row, *(other_parts(who).get(row, "") for who in PERSONALITIES.values())) for row in rest),
    )


def other_parts(who: Personality) -> dict[str, str]:
    """What a personality has besides words, traits, rows and missing RPCs; else core's default holds."""
    behaviour = who.behaviour
    parts = {f"strategy of {kind}": code(name) for kind, name in behaviour.strategies.items()}
    parts |= {f"checks of {method}": ", ".join(order) for method, order in behaviour.check_orders.items()}
    parts |= {f"verbose keys of {method}": ", ".join(map(code, keys)) for method, keys in behaviour.info_keys.items()}
    return parts | {"conditions": ", ".join(map(code, behaviour.conditions))}


def shown_trait(value: object) -> str:
    """A trait's value for readers."""
    text = str(value.value) if isinstance(value, Enum) else str(value)
    return code(text) if "<" in text else text


def command_line_page() -> str:
    """Every command with its arguments and options, as the program itself has them."""
    text = MADE + "# Command line\n\n"
    context = click.Context(command_line, info_name="fakecri")
    for name in command_line.list_commands(context):
        command = command_line.get_command(context, name)
        assert command is not None
        inner = click.Context(command, info_name=name, parent=context)
        usage = " ".join(command.collect_usage_pieces(inner))
        text += f"## fakecri {name}\n\n```text\nfakecri {name} {usage}\n```\n\n"
        text += f"{inspect.cleandoc(command.help or '')}\n\n".replace("\b\n", "")
        options = [option for option in command.get_params(inner) if isinstance(option, click.Option)]
        rows = [record for option in options if (record := option.get_help_record(inner)) is not None]
        if rows:
            text += table(("option", "meaning"), ((code(left), right) for left, right in rows)) + "\n"
    return text


def programs_page() -> str:
    """Every program that a simulated process can execute."""
    text = (
        MADE + "# Programs\n\nWhat a container can run. An image says which paths it has, and which program each is;\n"
    )
    text += "a path that it has not fails as on a real node.\n\n"
    rows = ((code(name), f"{found.memory_bytes >> 10} KiB", found.summary) for name, found in sorted(PROGRAMS.items()))
    return text + table(("program", "memory", "what it does"), rows)


def document_page() -> str:
    """Every part of a scenario document with its keys, from the classes that read it."""
    schema = Document.model_json_schema(by_alias=True)
    parts = {"Document": schema, **schema.pop("$defs")}
    text = MADE + "# Scenario documents\n\nWhat `--images` reads. A key that is not here is refused.\n"
    for name, part in parts.items():
        if "properties" not in part:
            continue
        needed = part.get("required", ())
        text += f"\n## {name}\n\n{part.get('description', '')}\n\n"
        rows = (
            (code(key), QUANTITIES.get(key) or shown_type(row, parts), "yes" if key in needed else "")
            for key, row in part["properties"].items()
        )
        text += table(("key", "value", "needed"), rows)
    return text


def shown_type(row: dict[str, Any], parts: dict[str, Any]) -> str:
    """What a key takes, for readers."""
    if "anyOf" in row:
        return " or ".join(shown_type(choice, parts) for choice in row["anyOf"] if choice.get("type") != "null")
    if "$ref" in row:
        name = row["$ref"].rsplit("/", 1)[-1]
        part = parts[name]
        return " or ".join(map(code, part["enum"])) if "enum" in part else f"[{name}](#{name.lower()})"
    if "const" in row or "enum" in row:
        return " or ".join(code(value) for value in row.get("enum", [row.get("const")]))
    if row.get("type") == "array":
        return f"list of {shown_type(row['items'], parts)}"
    if row.get("type") == "object":
        return f"mapping to {shown_type(row['additionalProperties'], parts)}"
    kinds = {"string": "text", "integer": "number", "boolean": "`true` or `false`"}
    return kinds.get(str(row.get("type")), "anything")


# --- writing and checking --------------------------------------------------------------------------------------------


def outputs() -> dict[str, str]:
    """Every file that is made, by its path below docs/."""
    files = {f"design/states-{key}.svg": drawing(title, of(REFERENCE)) for key, title, of in MACHINES}
    pages: dict[str, Callable[[], str]] = {
        "design/states.md": states_page,
        "reference/rpcs.md": rpcs_page,
        "reference/refusals.md": refusals_page,
        "reference/personalities.md": personalities_page,
        "reference/command-line.md": command_line_page,
        "reference/document.md": document_page,
        "reference/programs.md": programs_page,
    }
    return files | {path: page().rstrip() + "\n" for path, page in pages.items()}


def main(arguments: list[str] | None = None) -> int:
    """Write, or check; 1 when something differs."""
    parser = argparse.ArgumentParser(description="Write the pages that are made from the code.")
    parser.add_argument("--check", action="store_true", help="write nothing; fail with a diff where a page differs")
    parser.add_argument("--root", type=Path, default=HERE, help="the docs directory (default: this file's)")
    options = parser.parse_args(arguments)
    differ = False
    for name, expected in outputs().items():
        path = options.root / name
        actual = path.read_text(encoding="utf-8") if path.exists() else ""
        if actual == expected:
            continue
        differ = True
        if options.check:
            old, new = actual.splitlines(), expected.splitlines()
            print("\n".join(difflib.unified_diff(old, new, name, f"{name} (from the code)", lineterm="")))
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(expected, encoding="utf-8")
            print(f"wrote docs/{name}")
    if options.check and differ:
        print("run: python docs/generate.py", file=sys.stderr)
    return 1 if options.check and differ else 0


if __name__ == "__main__":
    sys.exit(main())
