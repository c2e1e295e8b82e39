"""The tables in `since/`: read, checked, and given shape for the generator.

The rule: a table that the wire package could not serve is refused here, with the place that is wrong; the generator
and `fakecri.wire` may then take for granted that every type exists, and that nothing is older than what holds it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from google.protobuf.descriptor_pb2 import FieldDescriptorProto

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

# API version -> the first and the last Kubernetes minor release that has it.
APIS: Final = {"v1": ("1.20", "1.37"), "v1alpha2": ("1.17", "1.25")}
SCALARS: Final = {
    "bool": ("bool", FieldDescriptorProto.TYPE_BOOL),
    "bytes": ("bytes", FieldDescriptorProto.TYPE_BYTES),
    "double": ("float", FieldDescriptorProto.TYPE_DOUBLE),
    "int32": ("int", FieldDescriptorProto.TYPE_INT32),
    "int64": ("int", FieldDescriptorProto.TYPE_INT64),
    "string": ("str", FieldDescriptorProto.TYPE_STRING),
    "uint32": ("int", FieldDescriptorProto.TYPE_UINT32),
    "uint64": ("int", FieldDescriptorProto.TYPE_UINT64),
}
MAP: Final = "map<string,string>"

Notes: TypeAlias = "Mapping[str, Mapping[str, str]]"


class TableError(Exception):
    """A table, or the notes, say something that cannot be; the text names the place."""


def release(text: str) -> tuple[int, int]:
    """The release "1.37" as a pair that can be compared."""
    major, minor = text.split(".")
    return int(major), int(minor)


@dataclass(frozen=True, slots=True)
class Field:
    """A field. `type` is a scalar's name, a message, an enum or `MAP`; `since` is not older than its message."""

    name: str
    number: int
    type: str
    repeated: bool
    since: str


@dataclass(frozen=True, slots=True)
class Message:
    name: str
    since: str
    fields: tuple[Field, ...]


@dataclass(frozen=True, slots=True)
class Enum:
    """An enum; `owner` is the message that it is nested in, or ""."""

    name: str
    owner: str
    since: str
    values: tuple[tuple[str, int, str], ...]

    @property
    def full_name(self) -> str:
        return f"{self.owner}.{self.name}" if self.owner else self.name


@dataclass(frozen=True, slots=True)
class Rpc:
    name: str
    request: str
    response: str
    server_streaming: bool
    since: str


@dataclass(frozen=True, slots=True)
class Table:
    """One CRI version, as read from `since/<api>.json` and checked."""

    api: str
    messages: Mapping[str, Message]
    enums: tuple[Enum, ...]
    services: Mapping[str, tuple[Rpc, ...]]

    @property
    def package(self) -> str:
        return f"runtime.{self.api}"

    @property
    def path(self) -> str:
        return f"runtime/{self.api}/api.proto"

    def nested_enums(self, message: str) -> list[Enum]:
        return [enum for enum in self.enums if enum.owner == message]

    def enum_of(self, message: str, type_name: str) -> Enum | None:
        """The enum that `type_name` means inside `message`: a nested one goes before one of the package."""
        found = [enum for enum in self.enums if enum.name == type_name and enum.owner in (message, "")]
        return max(found, key=lambda enum: enum.owner) if found else None


def read_table(root: Path, api: str) -> Table:
    path = root / "since" / f"{api}.json"
    raw = json.loads(path.read_text(encoding="utf-8"))
    if raw["package"] != f"runtime.{api}":
        raise TableError(f"{path}: package is {raw['package']!r}, expected 'runtime.{api}'")
    messages = {name: _read_message(name, row) for name, row in raw["messages"].items()}
    enums = tuple(_read_enum(name, row) for name, row in raw["enums"].items())
    services = {
        service: tuple(Rpc(name=name, **row) for name, row in rows.items()) for service, rows in raw["services"].items()
    }
    table = Table(api, messages, enums, services)
    for problem in _problems(table):
        raise TableError(f"{path}: {problem}")
    return table


def _read_message(name: str, row: Mapping[str, Any]) -> Message:
    fields = []
    for field_name, field in row["fields"].items():
        type_name = field["type"].removeprefix("repeated ")
        since = field.get("since", row["since"])
        fields.append(Field(field_name, field["number"], type_name, type_name != field["type"], since))
    return Message(name, row["since"], tuple(fields))


def _read_enum(full_name: str, row: Mapping[str, Any]) -> Enum:
    owner, _, name = full_name.rpartition(".")
    newer = row.get("values_since", {})
    values = tuple((value, number, newer.get(value, row["since"])) for value, number in row["values"].items())
    return Enum(name, owner, row["since"], values)


def _problems(table: Table) -> Iterator[str]:
    """What the wire package could not serve, or what must be a slip: each as one line."""
    for message in table.messages.values():
        for field in message.fields:
            place = f"{message.name}.{field.name}"
            enum = table.enum_of(message.name, field.type)
            if field.type not in SCALARS and field.type != MAP and field.type not in table.messages and not enum:
                yield f"{place}: unknown type {field.type!r}"
            if enum and field.repeated:
                yield f"{place}: a repeated enum; fakecri.wire.levels does not clear values in those"
            yield from _outside(place, field.since, message.since, APIS[table.api][1])
        yield from _outside(message.name, message.since, *APIS[table.api])
    for service, rpcs in table.services.items():
        for rpc in rpcs:
            yield from _outside(f"{service}.{rpc.name}", rpc.since, *APIS[table.api])
            for name in (rpc.request, rpc.response):
                if name not in table.messages:
                    yield f"{service}.{rpc.name}: unknown message {name!r}"


def _outside(place: str, since: str, first: str, last: str) -> Iterator[str]:
    if not release(first) <= release(since) <= release(last):
        yield f"{place}: since {since} is outside {first} … {last}"


def read_notes(root: Path, newest: Table) -> Notes:
    """Our comments, by kind and name; each must belong to something in the newest version's table."""
    notes: Notes = json.loads((root / "notes.json").read_text(encoding="utf-8"))
    known = {
        "services": set(newest.services),
        "rpcs": {rpc.name for rpcs in newest.services.values() for rpc in rpcs},
        "messages": set(newest.messages),
        "fields": {f"{name}.{field.name}" for name, message in newest.messages.items() for field in message.fields},
    }
    for kind, rows in notes.items():
        for name in rows:
            if name not in known.get(kind, ()):
                raise TableError(f"{root / 'notes.json'}: {kind}: {name!r} is not in the table of {newest.package}")
    return notes
