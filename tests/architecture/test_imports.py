"""Who may import whom: the contracts of .importlinter, and the outside libraries that have one home each."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

#: Library → the layers that may know it.
HOMES = {
    "grpc": {"service", "testing", "pytest_plugin", "cli", "driver", "nri"},
    "pydantic": {"scenario"},
    "yaml": {"scenario", "cli"},
    "click": {"cli"},
    "pytest": {"pytest_plugin", "testing"},
    "freezegun": {"testing", "pytest_plugin"},
    "threading": {
        "engine",
        "service",
        "streaming",
        "nri",
        "admin",
        "testing",
        "pytest_plugin",
        "cli",
        "driver",
        "record",
    },
    "asyncio": {"service", "streaming", "nri", "admin", "testing", "pytest_plugin", "cli", "driver"},
    "random": set(),
    "secrets": {"service", "streaming", "cli"},
}


def test_the_contracts_of_import_linter_hold(root: Path) -> None:
    run = subprocess.run(
        [
            sys.executable,
            "-c",
            "from importlinter.cli import lint_imports_command; lint_imports_command()",
            "--no-cache",
        ],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert "Contracts: 2 kept, 0 broken." in run.stdout


def test_outside_libraries_stay_in_their_homes(package) -> None:
    strays = [
        f"{source.at(node)}: {name} is known only in {sorted(HOMES[library]) or 'no layer'}"
        for source in package
        for node, name in source.imports()
        if (library := name.split(".")[0]) in HOMES and source.part not in HOMES[library]
    ]
    assert strays == []


def test_messages_come_from_the_private_pool_only(package) -> None:
    strays = [
        f"{source.at(node)}: import messages from fakecri.wire"
        for source in package
        for node, name in source.imports()
        if name.split(".")[0].endswith("_pb2") or name.startswith(("runtime.v1", "k8s.io"))
    ]
    assert strays == []


def test_the_package_imports_nothing_of_its_tests(package) -> None:
    strays = [source.at(node) for source in package for node, name in source.imports() if name.split(".")[0] == "tests"]
    assert strays == []
