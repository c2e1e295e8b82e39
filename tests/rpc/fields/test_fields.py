"""Every response field is what the table says: echoed, derived, constant or absent; and the page repeats the table.

Each place where a field is reached from a response is looked at on its own. Write the page anew with
``FAKECRI_WRITE_DOCS=1 python -m pytest tests/rpc/fields``.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from fakecri.core.node import CgroupDriver, RuntimeHandler
from fakecri.core.traits import FirstInterface, Shown, StatusImageName

HERE = Path(__file__).parent
PAGE = HERE.parents[2] / "docs" / "reference" / "fields.md"
KINDS = ("echoed", "derived", "constant", "absent")

#: Name of a cause → the settings of a world that has the other one.
CAUSES: dict[str, dict[str, Any]] = {
    "API version of the call": {"api": "v1alpha2"},
    "CPU quota": {"quota": 0},
    "CPU use": {"millicores": 200},
    "a command that is not there": {"missing": "/gone"},
    "age of pods": {"age_s": 98},
    "annotations of the image": {"image_annotations": (("built", "elsewhere"),)},
    "cgroup driver": {"cgroup_driver": CgroupDriver.SYSTEMD},
    "conditions that the runtime knows": {"behaviour": {"conditions": ("RuntimeReady", "NetworkReady", "Third")}},
    "directory of images": {"image_fs_path": "/srv/images"},
    "exit code": {"exit_code": 3},
    "how a status names the image": {"traits": {"status_image_name": StatusImageName.AS_GIVEN}},
    "log path": {"log_name": "other.log"},
    "memory limit without a swap limit": {"swap_limit": False},
    "memory use": {"memory_mib": 12},
    "mounts": {"mounts": 2},
    "name of the runtime": {"identity": {"runtime_name": "other"}},
    "names of the image": {"other_names": ("example.com/team/app:another",)},
    "number of containers": {"more_containers": 1},
    "pod CIDRs": {"cidrs": ("127.99.0.0/16", "fd00:99::/64")},
    "runtime handlers": {
        "handlers": (
            RuntimeHandler("runc", recursive_read_only_mounts=False, user_namespaces=False),
            RuntimeHandler("other"),
        )
    },
    "seed": {"seed": 2},
    "size of the image": {"size_mib": 800},
    "stop signal of the image": {"stop_signal": "SIGHUP"},
    "time of the first call": {"start_s": 4},
    "user of the image by name": {"user": "alice"},
    "user of the image by number": {"user": "1001:2001"},
    "version of the runtime": {"identity": {"runtime_version": "9.9"}},
    "when a workload ends": {"exit_after_s": 10_000},
    "whether a pod is stopped": {"stops": False},
    "whether the image is pinned": {"pinned": True},
    "whether the network is ready": {"network_ready": False},
    "whether the runtime reports features": {"traits": {"runtime_features": Shown.NO}},
    "which interface comes first": {"traits": {"first_interface": FirstInterface.LOOPBACK}},
}


@dataclass(frozen=True)
class Row:
    """What the table says about one field."""

    kind: str
    text: str


def read_table() -> dict[str, Row]:
    rows = {}
    for message, fields in yaml.safe_load((HERE / "table.yaml").read_text()).items():
        for name, said in fields.items():
            (kind, text), *more = said.items()
            assert kind in KINDS, f"{message}.{name}: {kind} is none of {', '.join(KINDS)}"
            assert not more
            rows[f"{message}.{name}"] = Row(kind, text)
    return rows


TABLE = read_table()


def rows_at(all_leaves: list[Any]) -> Iterator[tuple[Any, str, Row]]:
    """Every place with its row; what lies in a message that is absent has the message's row."""
    for leaf in all_leaves:
        found = [TABLE[key] for key in (*leaf.within, leaf.key) if key in TABLE]
        assert found, f"{leaf.path}: no row {leaf.key} in {HERE / 'table.yaml'}"
        yield leaf, leaf.key, found[0]


# -- the table is complete ---------------------------------------------------------------------------------------------
def test_every_field_has_a_row_and_every_row_a_field(all_leaves) -> None:
    known = {key for leaf, _, _ in rows_at(all_leaves) for key in (*leaf.within, leaf.key)}
    assert set(TABLE) - known == set(), "rows without a field"


def test_every_cause_is_used_and_known() -> None:
    used = {row.text for row in TABLE.values() if row.kind == "derived"}
    assert used == set(CAUSES)


# -- what the table says is so -----------------------------------------------------------------------------------------
def test_derived_fields_follow_their_cause(all_leaves, play, world) -> None:
    base = play(world()).responses
    failures = []
    for leaf, _, row in rows_at(all_leaves):
        if row.kind == "derived":
            other = play(replace(world(), **CAUSES[row.text])).responses
            if Counter(base.get(leaf.path, ())) == Counter(other.get(leaf.path, ())):
                failures.append(f"{leaf.path}: {row.text!r} changes nothing: {base.get(leaf.path, 'never seen')}")
    assert failures == []


def test_echoed_fields_bring_back_what_a_client_chose(all_leaves, play, world) -> None:
    first = random.randrange(1_000, 200_000)
    worlds = [play(world(token=token)) for token in (first, first + 1)]
    failures = []
    for leaf, _, row in rows_at(all_leaves):
        if row.kind != "echoed":
            continue
        seen = [set(one.responses.get(leaf.path, ())) for one in worlds]
        sent = [set(one.requests.get(row.text, ())) for one in worlds]
        restored = [set(one.requests.get(_restored(row.text), ())) for one in worlds]
        if seen[0] == seen[1]:
            failures.append(f"{leaf.path}: {seen[0] or 'never seen'} whatever was asked for")
        failures += [
            f"{leaf.path}: {values - asked - again} was never asked for in {row.text}"
            for values, asked, again in zip(seen, sent, restored, strict=True)
            if values - asked - again
        ]
    assert failures == []


def _restored(path: str) -> str:
    """Where RestorePod takes the same thing."""
    return path.replace("CreateContainerRequest.config", "RestorePodRequest.container_configs").replace(
        "RunPodSandboxRequest", "RestorePodRequest"
    )


def test_constant_and_absent_fields_never_differ(all_leaves, play, world) -> None:
    worlds = [play(world()), *(play(replace(world(), **change)) for change in CAUSES.values())]
    worlds.append(play(world(token=2001)))
    failures = []
    for leaf, _, row in rows_at(all_leaves):
        seen = {frozenset(one.responses[leaf.path]) for one in worlds if leaf.path in one.responses}
        if row.kind == "constant" and len(seen) != 1:
            failures.append(f"{leaf.path}: {seen or 'never seen'}")
        if row.kind == "absent" and seen:
            failures.append(f"{leaf.path}: {seen}")
    assert failures == []


def test_a_world_brings_the_same_twice(play, world) -> None:
    assert play(world()).responses == play(replace(world(), behaviour={"strategies": {}})).responses


# -- the page ----------------------------------------------------------------------------------------------------------
def page(all_leaves: list[Any]) -> str:
    rows: dict[str, dict[str, Row]] = {}
    for _, key, row in rows_at(all_leaves):
        message, _, name = key.partition(".")
        rows.setdefault(message, {})[name] = row
    counts = Counter(row.kind for fields in rows.values() for row in fields.values())
    lines = [
        "% Written by tests/rpc/fields/test_fields.py from tests/rpc/fields/table.yaml: change that, not this page.",
        "",
        "# Response fields",
        "",
        "Where the value of every field of every response comes from. A test holds each row against running worlds, at",
        "every place where the field is reached from a response.",
        "",
        f"- *echoed* ({counts['echoed']}): the value that a client gave comes back; the request field is named.",
        f"- *derived* ({counts['derived']}): computed; two worlds that differ in the cause named show two values.",
        f"- *constant* ({counts['constant']}): the same in every world, for the reason given.",
        f"- *absent* ({counts['absent']}): in no world, for the reason given.",
        "",
        "Messages without a meaning of their own (`UInt64Value`, `PsiData`, `ImageSpec` and such) stand under the",
        "field that leads to them. Responses that are not listed have no field.",
    ]
    for message in sorted(rows):
        lines += ["", f"## {message}", "", "| field | kind | from |", "| --- | --- | --- |"]
        for name in sorted(rows[message]):
            row = rows[message][name]
            source = f"`{row.text}`" if row.kind == "echoed" else row.text
            lines.append(f"| `{name}` | {row.kind} | {source} |")
    return "\n".join(lines) + "\n"


def test_the_page_is_what_the_table_says(all_leaves) -> None:
    made = page(all_leaves)
    if os.environ.get("FAKECRI_WRITE_DOCS"):
        PAGE.write_text(made)
    assert PAGE.exists(), "write it: FAKECRI_WRITE_DOCS=1 python -m pytest tests/rpc/fields"
    assert PAGE.read_text() == made, "write it anew: FAKECRI_WRITE_DOCS=1 python -m pytest tests/rpc/fields"


@pytest.mark.parametrize("kind", KINDS)
def test_all_kinds_are_in_use(kind) -> None:
    assert any(row.kind == kind for row in TABLE.values())
