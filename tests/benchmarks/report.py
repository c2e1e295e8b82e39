"""Turns what was measured into a Markdown document.

The rule: a ratio is taken within one round, where both servers met the same machine, and the median of those is shown
with the lowest and the highest; targets stand beside the figures and decide nothing.
"""

from __future__ import annotations

from collections import defaultdict
from statistics import median
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

PEER: Final = "Go fake"
OWN: Final = "fakecri"
# What lists should reach, as a multiple of the Go fake's rate, by number of containers and streams.
LIST_TARGETS: Final = {
    (100, 1): 1.2,
    (1_000, 1): 3.0,
    (10_000, 1): 7.0,
    (100, 16): 1.1,
    (1_000, 16): 2.5,
    (10_000, 16): 5.0,
}
MEMORY_TARGET_BYTES: Final = 8_192
PIPELINE_TARGET_US: Final = 40


def spread(values: Sequence[float], form: str = ".2f") -> str:
    """`1.50 [1.20..1.90]`: the median, and from where to where single rounds went."""
    return f"{median(values):{form}} [{min(values):{form}}..{max(values):{form}}]"


def rows(titles: Sequence[str], lines: Sequence[Sequence[str]]) -> list[str]:
    """A Markdown table, all columns but the first aligned to the right."""
    return [f"| {' | '.join(line)} |" for line in (titles, ["---", *["--:"] * (len(titles) - 1)], *lines)]


def grouped(rounds: Sequence[Sequence[dict[str, Any]]], *keys: str) -> dict[tuple[Any, ...], list[dict[str, Any]]]:
    """Figures of all rounds by what they have in common, in order of the rounds."""
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = defaultdict(list)
    for one in rounds:
        for figures in one:
            groups[tuple(figures[key] for key in keys)].append(figures)
    return groups


def middle(of: Sequence[dict[str, Any]], key: str) -> str:
    return f"{median(figures[key] for figures in of):,.0f}"


def table_of_cells(rounds: Sequence[Sequence[dict[str, Any]]]) -> list[str]:
    titles = ["call", "containers", "streams", f"{PEER} calls/s", f"{OWN} calls/s", f"{OWN} / {PEER}", "target"]
    titles += [f"{PEER} CPU µs/call", f"{OWN} CPU µs/call"]
    groups = grouped(rounds, "call", "mode", "pairs", "streams", "server")
    lines = []
    for call, mode, pairs, streams in dict.fromkeys(key[:4] for key in groups):
        peer, own = (groups[call, mode, pairs, streams, server] for server in (PEER, OWN))
        ratios = [o["calls_per_second"] / p["calls_per_second"] for o, p in zip(own, peer, strict=True)]
        target = LIST_TARGETS.get((pairs, streams)) if mode == "list" else None
        line = [call, f"{pairs:,}", str(streams), middle(peer, "calls_per_second"), middle(own, "calls_per_second")]
        line += [f"x{spread(ratios)}", "" if target is None else f"≥ x{target:g}"]
        lines.append([*line, middle(peer, "server_cpu_us_per_call"), middle(own, "server_cpu_us_per_call")])
    return rows(titles, lines)


def table_of_events(rounds: Sequence[Sequence[dict[str, Any]]]) -> list[str]:
    lines = [
        [
            str(subscribers),
            spread([figures["events_per_second"] for figures in of], ",.0f"),
            spread([figures["deliveries_per_second"] for figures in of], ",.0f"),
            spread([figures["server_cpu_us_per_delivery"] for figures in of], ",.1f"),
        ]
        for (subscribers,), of in sorted(grouped(rounds, "subscribers").items())
    ]
    return rows(["subscribers", "events/s", "deliveries/s", "CPU µs per delivery"], lines)


def table_in_process(taken: dict[str, Any]) -> list[str]:
    titles = ["call", "bare handler µs", "through the engine µs", "difference µs"]
    lines = [
        [method, *(f"{of[key]:,.1f}" for key in ("bare_us", "submitted_us", "pipeline_us"))]
        for method, of in taken["methods"].items()
    ]
    return rows(titles, lines)


def document(taken: dict[str, Any]) -> str:
    machine = taken["machine"]
    memory = taken["memory"]
    measured = (
        f"Commit {taken['commit']}, Python {machine['python']}, grpcio {machine['grpcio']}, {machine['processor']}, "
        f"{machine['cores']} cores, {taken['rounds']} interleaved rounds. Rates and CPU times are medians; a ratio is "
        "the median of each round's own, with the lowest and the highest round."
    )
    of_events = (
        "GetContainerEvents while pods come and go; the publisher waits for the slowest subscriber, and nothing is "
        f"lost. The {PEER} has no such stream."
    )
    of_memory = (
        f"{memory['bytes_per_pair']:,.0f} bytes per sandbox + container pair, over {memory['pairs']:,} pairs "
        f"(target ≤ {MEMORY_TARGET_BYTES:,})."
    )
    in_process = taken["in_process"]
    of_calls = (
        f"Calls without a socket, with {in_process['pairs']} containers. What a call's path adds to its handler should "
        f"be ≤ {PIPELINE_TARGET_US} µs. A pod's whole life, {in_process['life_calls']} calls with messages built and "
        f"read in Python, takes {in_process['life_us']:,.0f} µs."
    )
    parts = ["# Benchmarks", measured, "\n".join(table_of_cells(taken["cells"]))]
    parts += ["## Events", of_events, "\n".join(table_of_events(taken["events"])), "## Memory", of_memory]
    parts += ["## In process", of_calls, "\n".join(table_in_process(in_process))]
    return "\n\n".join(parts) + "\n"
