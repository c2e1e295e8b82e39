"""The report of a long run: what was driven, what was counted, what cannot be reached and why."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from cri_machine.counts import Counts
from cri_machine.expected import CANCELS_UNREACHABLE, UNREACHABLE
from cri_machine.settings import SETTINGS

from fakecri.base.reasons import Code


def written(counts: Counts, seed: int, wrong: Sequence[str]) -> str:
    """The report as Markdown."""
    parts = [
        "# Report of the driven machine",
        "",
        (
            f"{counts.steps} steps from seed {seed}, over {len(SETTINGS)} runtimes ({', '.join(SETTINGS)});"
            f" {sum(counts.outcomes.values())} calls; written by `python tests/stateful/soak.py --steps {counts.steps}"
            f" --seed {seed} --report tests/stateful/REPORT.md`."
        ),
        "",
        "Everything that must be reached was, and nothing else happened." if not wrong else "**Not as expected:**",
        "",
        *(f"- {line}" for line in wrong),
        *_table("Invariants", ("invariant", "times looked at"), _sorted(counts.checks)),
        *_table(
            "State and input",
            ("table", "state", "input", "times"),
            ((kind, state, given, times) for (kind, state, given), times in sorted(counts.pairs.items())),
        ),
        *_table(
            "Refusals",
            ("RPC", "reason", "times"),
            ((method, reason.name, times) for (method, reason), times in sorted(counts.reasons.items())),
        ),
        *_table(
            "Cancels",
            ("RPC", "place", "times"),
            ((method, place, times) for (method, place), times in sorted(counts.cancels.items())),
        ),
        *_table(
            "Outcomes",
            ("RPC", "code", "times"),
            (
                (method, "cancelled" if code < 0 else Code(code).name, times)
                for (method, code), times in sorted(counts.outcomes.items())
            ),
        ),
        *_table("Operations", ("operation", "times"), _sorted(counts.operations)),
        *_table("Reasons that cannot be reached here", ("reason", "why"), _named(UNREACHABLE.items())),
        *_table(
            "Places to cancel that cannot be reached here",
            ("RPC", "place", "why"),
            ((method, place, why) for (method, place), why in CANCELS_UNREACHABLE.items()),
        ),
    ]
    return "\n".join(parts) + "\n"


def _sorted(counted: Any) -> list[tuple[str, int]]:
    return sorted(counted.items())


def _named(rows: Iterable[tuple[Any, str]]) -> Iterable[tuple[str, str]]:
    return ((reason.name, why) for reason, why in rows)


def _table(title: str, heads: tuple[str, ...], rows: Iterable[tuple[Any, ...]]) -> list[str]:
    lines = ["", f"## {title}", "", _row(heads), _row("---" for _ in heads)]
    return lines + [_row(row) for row in rows]


def _row(cells: Iterable[Any]) -> str:
    return "| " + " | ".join(str(cell) for cell in cells) + " |"
