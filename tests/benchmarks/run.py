"""Measures fakecri beside upstream's Go fake: `python tests/benchmarks/run.py [--quick] [--write]`.

The rule: both servers are measured by the same load client, one right after the other, in several rounds with fresh
servers; what counts is the median of the rounds' ratios, since rates alone tell more of the machine and its other work.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

HERE: Final = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "clients"))

import in_process  # noqa: E402
from builder import Builder, BuildError  # noqa: E402
from report import OWN, PEER, document  # noqa: E402
from serving import FakecriServer, NotServingError, SocketServer  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable

RESULTS: Final = HERE / "RESULTS.md"


class MeasureError(Exception):
    """A figure could not be taken; nothing is printed in its place."""


@dataclass(frozen=True)
class Cell:
    """One line of the table: a mode of the load client while so many containers exist, with so many streams."""

    call: str
    mode: str
    pairs: int
    streams: int


@dataclass(frozen=True)
class Plan:
    """How much is measured."""

    rounds: int
    seconds: float
    list_sizes: tuple[int, ...]
    memory_pairs: int
    in_process_rounds: int
    in_process_calls: int
    events_cycles: tuple[tuple[int, int], ...]  # (subscribers, pods' lives)

    def cells(self) -> list[Cell]:
        """All cells, those of one population together, in growing order of it."""
        first = self.list_sizes[0]
        single = [("Version", "version"), ("ContainerStatus", "status"), ("churn (a pod's life, per call)", "churn")]
        cells = [Cell(call, mode, first, streams) for call, mode in single for streams in (1, 16)]
        return cells + [Cell("ListContainers", "list", size, c) for size in self.list_sizes for c in (1, 16)]


FULL: Final = Plan(5, 2.0, (100, 1_000, 10_000), 10_000, 7, 2_000, ((1, 400), (100, 60)))
QUICK: Final = Plan(1, 0.5, (100, 1_000), 1_000, 2, 200, ((1, 100), (100, 20)))


class LoadClient:
    """criload against one server."""

    def __init__(self, program: Path, server: FakecriServer | SocketServer) -> None:
        self._command = [str(program), "-sock", str(server.socket), "-pid", str(server.pid)]

    def figures(self, mode: str, **options: object) -> dict[str, Any]:
        flags = [f"-{name.replace('_', '-')}={value}" for name, value in options.items()]
        done = subprocess.run(
            [*self._command, "-mode", mode, *flags], capture_output=True, text=True, timeout=600, check=False
        )
        if done.returncode:
            raise MeasureError(f"{mode} {' '.join(flags)}: {done.stderr.strip()}")
        figures: dict[str, Any] = json.loads(done.stdout)
        return figures


class Bench:
    """The programs and a scratch directory; starts servers whenever fresh ones are needed."""

    def __init__(self, scratch: Path, report: Callable[[str], None]) -> None:
        builder = Builder(report=report)
        self.load_program = builder.path("criload")
        self.peer_program = builder.path("gofake")
        self.scratch = scratch
        self.report = report
        self._started = 0

    def own(self) -> FakecriServer:
        self._started += 1
        # Nobody reads log files here, and the Go fake writes none.
        return FakecriServer(self.scratch / str(self._started), "--no-host-files")

    def peer(self) -> SocketServer:
        self._started += 1
        directory = self.scratch / str(self._started)
        directory.mkdir()
        socket = directory / "cri.sock"
        return SocketServer([self.peer_program, f"unix://{socket}"], socket, directory / "server.log")

    def client(self, server: FakecriServer | SocketServer) -> LoadClient:
        return LoadClient(self.load_program, server)

    def round_of_cells(self, plan: Plan, number: int) -> list[dict[str, Any]]:
        """All cells once on fresh servers; who comes first alternates from round to round."""
        figures = []
        with ExitStack() as stack:
            clients = {
                PEER: self.client(stack.enter_context(self.peer())),
                OWN: self.client(stack.enter_context(self.own())),
            }
            order = list(clients) if number % 2 == 0 else list(reversed(clients))
            populated = 0
            for cell in plan.cells():
                if cell.pairs > populated:
                    for name in order:
                        clients[name].figures("populate", **{"from": populated}, pairs=cell.pairs, streams=4)
                    populated = cell.pairs
                for name in order:
                    options = {"pairs": cell.pairs, "streams": cell.streams, "duration": f"{plan.seconds}s"}
                    figures.append({**vars(cell), "server": name, **clients[name].figures(cell.mode, **options)})
                    self.report(
                        f"round {number + 1}: {cell.call}, {cell.pairs} containers, {cell.streams} streams, {name}: "
                        f"{figures[-1]['calls_per_second']:.0f} calls/s"
                    )
        return figures

    def events(self, plan: Plan) -> list[dict[str, Any]]:
        figures = []
        for subscribers, cycles in plan.events_cycles:
            with self.own() as server:
                client = self.client(server)
                figures.append(client.figures("events", subscribers=subscribers, cycles=cycles, streams=4))
                self.report(f"events to {subscribers}: {figures[-1]['events_per_second']:.0f}/s")
        return figures

    def memory(self, plan: Plan) -> dict[str, Any]:
        """Resident bytes that a pair adds, its share of caches and of one listing included."""
        with self.own() as server:
            client = self.client(server)
            # What the first pair and the first listing bring (modules, pools) is no pair's doing.
            before = client.figures("populate", pairs=1)["rss_bytes"]
            after = client.figures("populate", **{"from": 1}, pairs=plan.memory_pairs, streams=4)["rss_bytes"]
        per_pair = (after - before) / (plan.memory_pairs - 1)
        self.report(f"memory: {per_pair:.0f} bytes per pair")
        return {"pairs": plan.memory_pairs, "rss_bytes_before": before, "rss_bytes": after, "bytes_per_pair": per_pair}


def processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def commit() -> str:
    """The commit that was measured; `+` says that the package had changes beside it."""
    if shutil.which("git") is None:
        return "unknown"

    def git(*arguments: str) -> str:
        done = subprocess.run(["git", *arguments], cwd=HERE, capture_output=True, text=True, check=False)
        return done.stdout.strip()

    changed = git("status", "--porcelain", "--", str(HERE.parent.parent / "fakecri"))
    return (git("rev-parse", "--short=12", "HEAD") or "unknown") + ("+" if changed else "")


def take(plan: Plan, report: Callable[[str], None]) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="fakecri-bench-") as scratch:
        bench = Bench(Path(scratch), report)
        cells, events = [], []
        for number in range(plan.rounds):
            cells.append(bench.round_of_cells(plan, number))
            events.append(bench.events(plan))
        memory = bench.memory(plan)
    return {
        "commit": commit(),
        "machine": {
            "python": platform.python_version(),
            "grpcio": version("grpcio"),
            "processor": processor(),
            "cores": os.cpu_count(),
        },
        "rounds": plan.rounds,
        "cells": cells,
        "events": events,
        "memory": memory,
        "in_process": in_process.measure(plan.in_process_rounds, plan.in_process_calls),
    }


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description="Measure fakecri beside upstream's Go fake.")
    parser.add_argument("--rounds", type=int, help=f"interleaved rounds (default {FULL.rounds})")
    parser.add_argument("--quick", action="store_true", help="one short round: does everything still run?")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write every round's figures")
    parser.add_argument("--write", action="store_true", help=f"also write the table to {RESULTS.name}")
    options = parser.parse_args(arguments)
    plan = QUICK if options.quick else FULL
    if options.rounds is not None:
        if options.rounds < 1:
            parser.error("--rounds must be at least 1")
        plan = replace(plan, rounds=options.rounds)
    try:
        taken = take(plan, lambda line: print(line, file=sys.stderr, flush=True))
    except (MeasureError, BuildError, NotServingError) as error:
        print(f"nothing was measured: {error}", file=sys.stderr)
        return 1
    text = document(taken)
    print(text)
    if options.json:
        options.json.write_text(json.dumps(taken, indent=1) + "\n")
    if options.write:
        RESULTS.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
