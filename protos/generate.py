"""Write the .proto files, and what `fakecri/wire/` ships, from the tables in `since/`.

The rule: the tables are the only source. Each holds one CRI version with the Kubernetes minor release that brought
every message, field, enum value and RPC. Descriptors are built here and not by protoc, so that the bytes do not depend
on its version; `--check` has protoc parse the .proto files and compares what it makes of them.

    python protos/generate.py            writes all files
    python protos/generate.py --check    writes nothing; exits 1 with a diff where a file differs
"""

from __future__ import annotations

import argparse
import difflib
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    FileDescriptorSet,
)
from tables import APIS, MAP, SCALARS, TableError, read_notes, read_table, release

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tables import Enum, Message, Notes, Table

HERE: Final = Path(__file__).resolve().parent


# --- descriptors -----------------------------------------------------------------------------------------------------


def json_name(field_name: str) -> str:
    """protoc's rule: an underscore goes and the letter after it is raised, all else stays (uidMappings, CDIDevices)."""
    return re.sub(r"_+(.?)", lambda found: found[1].upper(), field_name)


def map_entry_name(field_name: str) -> str:
    name = json_name(field_name)
    return f"{name[:1].upper()}{name[1:]}Entry"


def file_descriptor(table: Table) -> FileDescriptorProto:
    file = FileDescriptorProto(name=table.path, package=table.package, syntax="proto3")
    for message in table.messages.values():
        _message_descriptor(table, message, file.message_type.add())
    for enum in table.nested_enums(""):
        _enum_descriptor(enum, file.enum_type.add())
    for service, rpcs in table.services.items():
        target = file.service.add(name=service)
        for rpc in rpcs:
            types = (f".{table.package}.{rpc.request}", f".{table.package}.{rpc.response}")
            method = target.method.add(name=rpc.name, input_type=types[0], output_type=types[1])
            if rpc.server_streaming:
                method.server_streaming = True
    return file


def _enum_descriptor(enum: Enum, target: EnumDescriptorProto) -> None:
    target.name = enum.name
    for name, number, _ in enum.values:
        target.value.add(name=name, number=number)


def _message_descriptor(table: Table, message: Message, target: DescriptorProto) -> None:
    target.name = message.name
    for enum in table.nested_enums(message.name):
        _enum_descriptor(enum, target.enum_type.add())
    for field in message.fields:
        row = target.field.add(name=field.name, number=field.number, json_name=json_name(field.name))
        repeated = field.repeated or field.type == MAP
        row.label = FieldDescriptorProto.LABEL_REPEATED if repeated else FieldDescriptorProto.LABEL_OPTIONAL
        enum_type = table.enum_of(message.name, field.type)
        if field.type in SCALARS:
            row.type = SCALARS[field.type][1]
        elif enum_type:
            row.type = FieldDescriptorProto.TYPE_ENUM
            row.type_name = f".{table.package}.{enum_type.full_name}"
        elif field.type == MAP:
            entry = target.nested_type.add(name=map_entry_name(field.name))
            entry.options.map_entry = True
            for number, name in enumerate(("key", "value"), 1):
                part = entry.field.add(name=name, number=number, json_name=name)
                part.label = FieldDescriptorProto.LABEL_OPTIONAL
                part.type = FieldDescriptorProto.TYPE_STRING
            row.type = FieldDescriptorProto.TYPE_MESSAGE
            row.type_name = f".{table.package}.{message.name}.{entry.name}"
        else:
            row.type = FieldDescriptorProto.TYPE_MESSAGE
            row.type_name = f".{table.package}.{field.type}"


# --- texts -----------------------------------------------------------------------------------------------------------


def proto_text(table: Table, notes: Notes) -> str:
    """The .proto file. What came later than what it stands in says so at its line's end."""
    lines = [
        f"// The Kubernetes Container Runtime Interface, {table.package}, releases {' to '.join(APIS[table.api])}.",
        f"// Written by protos/generate.py from protos/since/{table.api}.json: change the table, not this file.",
        "",
        'syntax = "proto3";',
        "",
        f"package {table.package};",
    ]
    first = APIS[table.api][0]
    for service, rpcs in table.services.items():
        lines += ["", *_note(notes, "services", service), f"service {service} {{"]
        for rpc in rpcs:
            response = f"stream {rpc.response}" if rpc.server_streaming else rpc.response
            lines += _note(notes, "rpcs", rpc.name, "  ")
            lines.append(f"  rpc {rpc.name}({rpc.request}) returns ({response});{_mark(rpc.since, first)}")
        lines.append("}")
    for message in table.messages.values():
        lines += ["", *_note(notes, "messages", message.name)]
        lines.append(f"message {message.name} {{{_mark(message.since, first)}")
        for enum in table.nested_enums(message.name):
            lines += _enum_lines(enum, first, "  ")
        for field in message.fields:
            type_name = ("repeated " if field.repeated else "") + field.type.replace(",", ", ")
            lines += _note(notes, "fields", f"{message.name}.{field.name}", "  ")
            lines.append(f"  {type_name} {field.name} = {field.number};{_mark(field.since, message.since)}")
        lines.append("}")
    for enum in table.nested_enums(""):
        lines += ["", *_enum_lines(enum, first)]
    return "\n".join(lines) + "\n"


def _note(notes: Notes, kind: str, name: str, indent: str = "") -> list[str]:
    return [f"{indent}// {notes[kind][name]}"] if name in notes[kind] else []


def _mark(since: str, base: str) -> str:
    return f"  // since {since}" if release(since) > release(base) else ""


def _enum_lines(enum: Enum, first: str, indent: str = "") -> list[str]:
    values = [f"{indent}  {name} = {number};{_mark(since, enum.since)}" for name, number, since in enum.values]
    return [f"{indent}enum {enum.name} {{{_mark(enum.since, first)}", *values, f"{indent}}}"]


STUB_HEAD: Final = '''\
"""Types of `fakecri.wire.messages`. Written by protos/generate.py from protos/since/v1.json."""

from collections.abc import Iterable, Mapping
from typing import Final, Literal

from google.protobuf.descriptor import FileDescriptor
from google.protobuf.internal.containers import RepeatedCompositeFieldContainer, RepeatedScalarFieldContainer, ScalarMap
from google.protobuf.internal.enum_type_wrapper import EnumTypeWrapper
from google.protobuf.message import Message

DESCRIPTOR: Final[FileDescriptor]
'''


def stub_text(table: Table) -> str:
    """`messages.pyi`: fields as attributes; sub-messages, lists and maps are read-only, for they change in place."""
    lines = [STUB_HEAD]
    for enum in table.nested_enums(""):
        lines += [f"{enum.name}: Final[EnumTypeWrapper]"]
        lines += [f"{name}: Final = {number}" for name, number, _ in enum.values] + [""]
    for message in table.messages.values():
        lines += [f"class {message.name}(Message):", *(f"    {line}" for line in _stub_body(table, message)), ""]
    return "\n".join(lines).rstrip() + "\n"


def _stub_body(table: Table, message: Message) -> list[str]:
    lines = []
    for enum in table.nested_enums(message.name):
        lines.append(f"{enum.name}: Final[EnumTypeWrapper]")
        lines += [f"{name}: Final = {number}" for name, number, _ in enum.values]
    lines += [f"{field.name.upper()}_FIELD_NUMBER: Final = {field.number}" for field in message.fields]
    arguments, presence = [], []
    for field in message.fields:
        scalar = "int" if table.enum_of(message.name, field.type) else SCALARS.get(field.type, ("",))[0]
        if field.type == MAP:
            attribute, argument = "ScalarMap[str, str]", "Mapping[str, str]"
        elif field.repeated:
            kind = "RepeatedScalarFieldContainer" if scalar else "RepeatedCompositeFieldContainer"
            attribute, argument = f"{kind}[{scalar or field.type}]", f"Iterable[{scalar or field.type}]"
        else:
            attribute = argument = scalar or field.type
            if not scalar:
                presence.append(field.name)
        if attribute == scalar:
            lines.append(f"{field.name}: {scalar}")
        else:
            lines += ["@property", f"def {field.name}(self) -> {attribute}: ..."]
        arguments.append(f"{field.name}: {argument} | None = ...")
    lines.append(f"def __init__(self{', *, ' if arguments else ''}{', '.join(arguments)}) -> None: ...")
    for method, names, result in (
        ("HasField", presence, "bool"),
        ("ClearField", [field.name for field in message.fields], "None"),
    ):
        if names:
            literal = ", ".join(f'"{name}"' for name in names)
            lines.append(f"def {method}(self, field_name: Literal[{literal}]) -> {result}: ...")
    return lines


def levels_text(tables: Mapping[str, Table]) -> str:
    """`levels.json`: per version, the release of each RPC, field and enum value; what it lacks is not there."""
    rows = {
        api: {
            "first": APIS[api][0],
            "last": APIS[api][1],
            "rpcs": {name: {rpc.name: rpc.since for rpc in rpcs} for name, rpcs in table.services.items()},
            "messages": {
                name: {field.name: field.since for field in message.fields} for name, message in table.messages.items()
            },
            "enums": {enum.full_name: {name: since for name, _, since in enum.values} for enum in table.enums},
        }
        for api, table in tables.items()
    }
    return json.dumps(rows, indent=1) + "\n"


# --- writing and checking --------------------------------------------------------------------------------------------


def outputs(root: Path) -> dict[str, bytes]:
    """Every file that is made, by its path relative to `root` (the `protos` directory)."""
    tables = {api: read_table(root, api) for api in APIS}
    notes = read_notes(root, tables["v1"])
    files: dict[str, bytes] = {}
    for api, table in tables.items():
        files[table.path] = proto_text(table, notes).encode()
        descriptors = FileDescriptorSet(file=[file_descriptor(table)])
        files[f"../fakecri/wire/runtime_{api}.binpb"] = descriptors.SerializeToString(deterministic=True)
    files["../fakecri/wire/messages.pyi"] = stub_text(tables["v1"]).encode()
    files["../fakecri/wire/levels.json"] = levels_text(tables).encode()
    return files


def drift(root: Path, files: Mapping[str, bytes]) -> list[str]:
    """A diff (or a line, for binary files) per file that is not what `outputs` makes."""
    found = []
    for name, expected in files.items():
        path = root / name
        actual = path.read_bytes() if path.exists() else b""
        if actual == expected:
            continue
        if name.endswith(".binpb"):
            found.append(f"{name}: {len(actual)} bytes differ from the {len(expected)} that the tables give")
            continue
        old, new = (text.decode(errors="replace").splitlines() for text in (actual, expected))
        found.append("\n".join(difflib.unified_diff(old, new, name, f"{name} (from the tables)", lineterm="")))
    return found


def protoc_differences(files: Mapping[str, bytes]) -> list[str]:
    """A line per .proto file in `files` that protoc does not read as the descriptor shipped for it."""
    found = []
    with tempfile.TemporaryDirectory() as directory:
        for api in APIS:
            name = f"runtime/{api}/api.proto"
            source, parsed = Path(directory, name), Path(directory, f"{api}.binpb")
            source.parent.mkdir(parents=True)
            source.write_bytes(files[name])
            command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{directory}", f"--descriptor_set_out={parsed}"]
            run = subprocess.run([*command, name], capture_output=True, text=True, check=False)
            if run.returncode:
                found.append(f"{name}: protoc (from grpcio-tools) failed: {run.stderr.strip()}")
                continue
            shipped = FileDescriptorSet.FromString(files[f"../fakecri/wire/runtime_{api}.binpb"])
            if FileDescriptorSet.FromString(parsed.read_bytes()) != shipped:
                found.append(f"{name}: protoc's descriptor differs from runtime_{api}.binpb")
    return found


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Write the .proto files and what fakecri/wire ships from the tables.")
    parser.add_argument("--check", action="store_true", help="write nothing; fail with a diff where a file differs")
    parser.add_argument("--root", type=Path, default=HERE, help="the protos directory (default: this file's)")
    options = parser.parse_args(arguments)
    try:
        files = outputs(options.root)
    except TableError as error:
        print(error, file=sys.stderr)
        return 1
    if options.check:
        problems = drift(options.root, files) + protoc_differences(files)
        print("\n".join(problems) or f"{len(files)} files agree with the tables")
        if problems:
            print("run: python protos/generate.py", file=sys.stderr)
        return 1 if problems else 0
    for name, content in files.items():
        path = options.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return 0


if __name__ == "__main__":
    sys.exit(main())
