"""Another package that registers runtime.v1 in protobuf's default pool, and fakecri, do not meet."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

# Not the real file: a message of one field, of another type, so that a shared pool could not hold both.
OTHER = """
syntax = "proto3";
package runtime.v1;
message VersionRequest { int64 version = 1; }
message OnlyThere { string name = 1; }
"""
USE = """
assert other_pb2.VersionRequest(version=7).SerializeToString() == b"\\x08\\x07"
assert messages.VersionRequest(version="7").SerializeToString() == b"\\x0a\\x017"
assert not hasattr(messages, "OnlyThere")
from google.protobuf import descriptor_pool
found = descriptor_pool.Default().FindMessageTypeByName("runtime.v1.VersionRequest")
assert found is other_pb2.VersionRequest.DESCRIPTOR
print("both work")
"""
IMPORTS = ["import other_pb2", "from fakecri.wire import messages"]


@pytest.mark.parametrize("name", ["other.proto", "runtime/v1/api.proto"])
@pytest.mark.parametrize("imports", [IMPORTS, IMPORTS[::-1]], ids=["other first", "fakecri first"])
def test_both_are_usable_whichever_comes_first(tmp_path: Path, name: str, imports: list[str]) -> None:
    source = tmp_path / name
    source.parent.mkdir(parents=True, exist_ok=True)
    source.write_text(OTHER)
    subprocess.run(
        [sys.executable, "-m", "grpc_tools.protoc", f"-I{tmp_path}", f"--python_out={tmp_path}", name], check=True
    )
    module = name.removesuffix(".proto").replace("/", ".")
    parent, _, last = module.rpartition(".")
    import_other = f"from {parent} import {last}_pb2 as other_pb2" if parent else "import other_pb2"
    lines = [import_other if line == IMPORTS[0] else line for line in imports]
    path = os.pathsep.join([str(tmp_path), *sys.path])
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", "\n".join([*lines, USE])],
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.stdout == "both work\n", run.stderr


def test_importing_fakecri_leaves_the_default_pool_without_runtime_v1() -> None:
    text = (
        "from fakecri.wire import messages, methods, levels; from google.protobuf import descriptor_pool\n"
        "try: descriptor_pool.Default().FindMessageTypeByName('runtime.v1.VersionRequest')\n"
        "except KeyError: print('absent')"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    run = subprocess.run([sys.executable, "-c", text], env=environment, capture_output=True, text=True, check=False)
    assert run.stdout == "absent\n", run.stderr
