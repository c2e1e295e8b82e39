"""The method table is the tables' RPCs, with the classes of runtime.v1 for both API versions."""

from __future__ import annotations

from typing import Any

from fakecri.wire import messages
from fakecri.wire.methods import METHODS, SERVICES


def test_methods_are_the_rpcs_of_both_tables(tables: dict[str, dict[str, Any]]) -> None:
    assert {
        path: (
            spec.path,
            spec.api,
            spec.service,
            spec.name,
            spec.request.DESCRIPTOR.full_name,
            spec.response.DESCRIPTOR.full_name,
            spec.server_streaming,
            str(spec.since),
        )
        for path, spec in METHODS.items()
    } == {
        f"/runtime.{api}.{service}/{name}": (
            f"/runtime.{api}.{service}/{name}",
            api,
            service,
            name,
            f"runtime.v1.{row['request']}",
            f"runtime.v1.{row['response']}",
            row["server_streaming"],
            row["since"],
        )
        for api, table in tables.items()
        for service, rows in table["services"].items()
        for name, row in rows.items()
    }


def test_classes_are_those_of_messages() -> None:
    for spec in METHODS.values():
        assert spec.request is getattr(messages, spec.request.DESCRIPTOR.name)
        assert spec.response is getattr(messages, spec.response.DESCRIPTOR.name)


def test_services() -> None:
    assert {
        "runtime.v1.RuntimeService",
        "runtime.v1.ImageService",
        "runtime.v1alpha2.RuntimeService",
        "runtime.v1alpha2.ImageService",
    } == SERVICES


def test_what_reads_by_its_name_is_not_mutating_and_the_rest_is() -> None:
    reads = ("List", "Stream", "Get", "Exec", "Attach", "PortForward", "Status", "Version", "RuntimeConfig")
    for spec in METHODS.values():
        read = spec.name.startswith(reads) or spec.name.endswith(("Status", "Stats", "FsInfo"))
        assert spec.mutating == (not read or spec.name == "ExecSync"), spec.path
