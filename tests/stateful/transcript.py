"""Prints one line per call of a seeded run: when, path, request, messages, how it ended; the same in any interpreter.

``python tests/stateful/transcript.py --seed N --steps N``
"""

from __future__ import annotations

import argparse
import hashlib
import sys

from cri_machine.counts import Counts
from cri_machine.drive import step
from cri_machine.pick import Seeded
from cri_machine.settings import SETTINGS
from cri_machine.world import World

from fakecri.record.call import Reply


class Transcript:
    """Writes what became of each call, in the order in which calls ended."""

    def __init__(self, world: World) -> None:
        self._close = world.engine.calls.close
        self._world = world
        world.engine.calls.close = self._closed  # type: ignore[method-assign]

    def _closed(self, call, reply: Reply | None, now_ns: int) -> None:
        exchange = self._world.open.get(call.id)
        messages = [body.hex() for body in exchange.told] if exchange is not None else []
        ending = "cancelled" if reply is None else f"{int(reply.code)} {reply.text!r} {reply.body.hex()}"
        line = f"{call.id} {call.received_ns} {now_ns} {call.path} {call.request.hex()} {messages} {ending}"
        print(line)
        self._close(call, reply, now_ns)


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--steps", type=int, default=300)
    chosen = parser.parse_args()
    for name, setting in SETTINGS.items():
        print(f"# {name}")
        world = World(setting, chosen.seed, Counts())
        Transcript(world)
        pick = Seeded(chosen.seed)
        for _ in range(chosen.steps):
            step(world, pick)
        world.close()
        records = [(record.type.name, record.object_id, record.created_ns) for record in world.runtime.events.records]
        print(hashlib.sha256(repr(records).encode()).hexdigest())
        for path in sorted(world.logs.files.entries("/var/log/pods/scene") or ()):
            print(path, world.logs.content(f"/var/log/pods/scene/{path}").hex())


if __name__ == "__main__":
    sys.exit(main())
