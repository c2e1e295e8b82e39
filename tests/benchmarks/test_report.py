"""The table shows medians of each round's own ratio, beside targets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import ModuleType


def figures(server: str, rate: float, **cell: Any) -> dict[str, Any]:
    whole = {"call": "ListContainers", "mode": "list", "pairs": 1000, "streams": 1, **cell}
    return {**whole, "server": server, "calls_per_second": rate, "server_cpu_us_per_call": 1e6 / rate}


def test_a_ratio_is_taken_within_its_round(report: ModuleType) -> None:
    # The machine was ten times slower in the second round: the ratio of medians would be 2.2, not what any round saw.
    rounds = [
        [figures("Go fake", 1000), figures("fakecri", 2000)],
        [figures("Go fake", 100), figures("fakecri", 300)],
        [figures("Go fake", 900), figures("fakecri", 3600)],
    ]
    line = report.table_of_cells(rounds)[-1]
    assert line.split(" | ")[3:7] == ["900", "2,000", "x3.00 [2.00..4.00]", "≥ x3"]


def test_each_cell_has_a_line_and_only_lists_have_targets(report: ModuleType) -> None:
    cells: list[dict[str, Any]] = [{}, {"streams": 16}, {"call": "Version", "mode": "version"}]
    one = [figures(server, 100, **cell) for cell in cells for server in ("Go fake", "fakecri")]
    targets = [line.split(" | ")[6] for line in report.table_of_cells([one, one])[2:]]
    assert targets == ["≥ x3", "≥ x2.5", ""]


def test_the_document_names_commit_machine_and_every_part(report: ModuleType) -> None:
    events = {"subscribers": 100, "events_per_second": 250.0, "deliveries_per_second": 25e3}
    in_process = {"bare_us": 5.0, "submitted_us": 17.0, "pipeline_us": 12.0}
    text = report.document(
        {
            "commit": "abc123",
            "machine": {"python": "3.11.7", "grpcio": "1.85.3", "processor": "Some CPU", "cores": 2},
            "rounds": 1,
            "cells": [[figures("Go fake", 10), figures("fakecri", 20)]],
            "events": [[{**events, "server_cpu_us_per_delivery": 24.5}]],
            "in_process": {"pairs": 100, "methods": {"Version": in_process}, "life_us": 1234.0, "life_calls": 7},
            "memory": {"bytes_per_pair": 4321.0, "pairs": 10_000},
        }
    )
    for part in ("abc123", "Python 3.11.7", "Some CPU", "| 100 | 250 [250..250] | 25,000", "4,321 bytes", "≤ 8,192"):
        assert part in text
    assert "| Version | 5.0 | 17.0 | 12.0 |" in text
