"""A machine of its own for each test, and time that moves when the test says so."""

from __future__ import annotations

from typing import Any

import pytest

from fakecri.base.ids import Ids
from fakecri.base.tasks import Tasks
from fakecri.clock import SECOND, VirtualClock
from fakecri.kernel.machine import Machine
from fakecri.kernel.process import Process, ProcessSpec
from fakecri.kernel.program import Body, Program


class World:
    """A machine, its clock, and what its processes wrote and how they ended."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.tasks = Tasks(self.clock)
        self.machine = Machine(self.clock, self.tasks, Ids(0), {})
        self.written: list[tuple[int, int, bytes]] = []
        self.ends: list[Process] = []

    def start(self, body: Body, *argv: str, **spec: Any) -> Process:
        """Start a process that runs a body; options are fields of ``ProcessSpec`` and ``Program``, and ``start``'s."""
        placing = {name: spec.pop(name) for name in ("parent", "namespace") if name in spec}
        declared = {name: spec.pop(name) for name in ("memory_bytes", "memory_curve", "cpu") if name in spec}
        program = Program(
            "body",
            body,
            memory_bytes=declared.get("memory_bytes", 1 << 20),
            memory=declared.get("memory_curve"),
            cpu=declared.get("cpu"),
        )
        effects = {"write": self.write, "on_exit": self.ended, **spec}
        process = self.machine.start(ProcessSpec(argv or ("body",), program=program, **effects), **placing)
        self.tasks.run_ready()
        return process

    def write(self, descriptor: int, chunk: bytes) -> None:
        self.written.append((self.clock.now_ns, descriptor, chunk))

    def ended(self, process: Process) -> None:
        self.ends.append(process)

    def advance(self, span_ns: int = SECOND) -> None:
        """Let time pass, with everything that is due in it."""
        until_ns = self.clock.now_ns + span_ns
        self.tasks.run_ready()
        while self.clock.run_next(until_ns):
            self.tasks.run_ready()
        self.clock.move_to(until_ns)

    def signal(self, process: Process, number: int, **how: Any) -> None:
        self.machine.signal(process, number, **how)
        self.tasks.run_ready()


@pytest.fixture
def world() -> World:
    return World()
