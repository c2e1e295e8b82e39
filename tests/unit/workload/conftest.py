"""Programs run on a machine of their own."""

from __future__ import annotations

from typing import Any

import pytest

from fakecri.base.ids import Ids
from fakecri.base.tasks import Tasks
from fakecri.clock import VirtualClock
from fakecri.kernel.executables import Executables
from fakecri.kernel.machine import Machine
from fakecri.kernel.process import Process, ProcessSpec
from fakecri.workload.programs import PROGRAMS

IMAGE = Executables(programs={f"/bin/{name}": name for name in PROGRAMS})


class Files:
    """Files in a dictionary."""

    def __init__(self) -> None:
        self.contents: dict[str, bytes] = {}

    def exists(self, path: str) -> bool:
        return path in self.contents

    def read(self, path: str) -> bytes | None:
        return self.contents.get(path)

    def write(self, path: str, content: bytes) -> None:
        self.contents[path] = content


class Node:
    """A machine with every program, its clock, and what was written when."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.tasks = Tasks(self.clock)
        self.machine = Machine(self.clock, self.tasks, Ids(0), PROGRAMS)
        self.files = Files()
        self.output: list[tuple[int, int, bytes]] = []

    def run(self, *argv: str, **spec: Any) -> Process:
        process = self.machine.start(ProcessSpec(argv, executables=IMAGE, files=self.files, write=self.write, **spec))
        self.tasks.run_ready()
        return process

    def write(self, descriptor: int, chunk: bytes) -> None:
        self.output.append((self.clock.now_ns, descriptor, chunk))

    def text(self, descriptor: int = 1) -> bytes:
        return b"".join(chunk for _, of, chunk in self.output if of == descriptor)

    def advance(self, span_ns: int) -> None:
        until_ns = self.clock.now_ns + span_ns
        self.tasks.run_ready()
        while self.clock.run_next(until_ns):
            self.tasks.run_ready()
        self.clock.move_to(until_ns)

    def signal(self, process: Process, number: int) -> None:
        self.machine.signal(process, number)
        self.tasks.run_ready()


@pytest.fixture
def node() -> Node:
    return Node()
