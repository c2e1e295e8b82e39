"""Only service/real_time.py reads the machine's clock; nobody sleeps."""

from __future__ import annotations

import ast
from collections.abc import Iterator

READS_THE_CLOCK = "fakecri.service.real_time"

#: Where real processes are watched, which no clock of ours can hurry: they may be polled.
POLLING_FOLDERS = ("tests/clients/", "tests/benchmarks/", "tests/reference/", "tests/docs/")

#: Replays cases that were measured on real runtimes, some of which let a span of real time pass.
MAY_SLEEP = {"tests/reference/run_cases.py"}

#: Names that read or follow the machine's time, by module.
TIME_NAMES = {
    "time": {
        "time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns", "process_time",
        "process_time_ns", "thread_time", "thread_time_ns", "clock_gettime", "clock_gettime_ns", "localtime", "gmtime",
        "ctime", "strftime", "sleep",
    },
}  # fmt: skip
#: Methods that read the time on whatever object they are called.
TIME_METHODS = {"now", "utcnow", "today"}
DATE_CLASSES = {"datetime", "date"}


def clock_reads(tree: ast.Module) -> Iterator[ast.AST]:
    """Every node of a module that reads the machine's time."""
    modules = {
        alias.asname or alias.name: alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for alias in node.names
        if alias.name in TIME_NAMES
    }
    loops = {"loop", "event_loop", "_loop"}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module in TIME_NAMES:
            if any(alias.name in TIME_NAMES[node.module] or alias.name == "*" for alias in node.names):
                yield node
        elif isinstance(node, ast.Attribute):
            owner = node.value
            if isinstance(owner, ast.Name) and owner.id in modules and node.attr in TIME_NAMES[modules[owner.id]]:
                yield node
            named = owner.attr if isinstance(owner, ast.Attribute) else getattr(owner, "id", "")
            if node.attr in TIME_METHODS and named in DATE_CLASSES:
                yield node
            called = owner.func if isinstance(owner, ast.Call) else None
            from_call = getattr(called, "attr", getattr(called, "id", "")) in {"get_running_loop", "get_event_loop"}
            if node.attr == "time" and (named in loops or from_call):
                yield node


def test_the_finder_finds_each_way_to_read_the_time() -> None:
    for text in (
        "import time\ntime.time()",
        "import time as t\nx = t.monotonic_ns",
        "from time import perf_counter",
        "from time import *",
        "import datetime\ndatetime.datetime.now()",
        "from datetime import datetime\ndatetime.utcnow()",
        "from datetime import date\ndate.today()",
        "loop.time()",
        "self._loop.time()",
        "import asyncio\nasyncio.get_running_loop().time()",
        "import time\ntime.sleep(1)",
    ):
        assert list(clock_reads(ast.parse(text))), text
    for text in ("clock.now_ns", "import time", "message.time()", "from time import struct_time", "self.now()"):
        assert not list(clock_reads(ast.parse(text))), text


def test_one_module_reads_the_machines_clock(package) -> None:
    reads = [
        source.at(node) for source in package if source.module != READS_THE_CLOCK for node in clock_reads(source.tree)
    ]
    assert reads == [], f"only {READS_THE_CLOCK} reads the machine's clock; take the time from the clock handed in"


def sleeps(tree: ast.AST, in_loop: bool = False) -> Iterator[tuple[ast.AST, bool]]:
    """Every call of something named sleep, and whether it stands in a loop.

    One that is yielded from is a step of a simulated process: only virtual time passes.
    """
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.YieldFrom):
            continue
        if isinstance(node, ast.Call):
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if name == "sleep":
                yield node, in_loop
        in_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        yield from sleeps(node, not in_function and (in_loop or isinstance(node, ast.While | ast.For | ast.AsyncFor)))


def test_no_test_sleeps_but_to_poll_a_real_process(tests) -> None:
    bad = [
        source.at(node)
        for source in tests
        for node, in_loop in sleeps(source.tree)
        if not (in_loop and source.path.startswith(POLLING_FOLDERS)) and source.path not in MAY_SLEEP
    ]
    assert bad == [], "wait for a condition, or let the clock move"
