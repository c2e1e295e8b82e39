"""Starts servers that tests drive from outside, and ends them for certain.

The rule: whatever is started here leads a session of its own, dies with the test process at the latest, and is ended
by its process group, so that no test leaves a process behind. A server that does not come up fails with its log's end.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any, Final, NoReturn, Self

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

START_SECONDS: Final = 30.0
END_SECONDS: Final = 5.0
LOG_LINES: Final = 40
FAKECRI: Final = (sys.executable, "-c", "import sys; from fakecri.cli.main import main; sys.exit(main())")


class NotServingError(Exception):
    """A process did not come up, or went away; the message holds the end of its log."""


def wait_until(
    holds: Callable[[], object], seconds: float, what: str | Callable[[], str], every: float = 0.05
) -> object:
    """Polls until the condition is true and answers its value; else an AssertionError says what did not come true."""
    deadline = time.monotonic() + seconds
    while True:
        value = holds()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds:.0f} s: {what if isinstance(what, str) else what()}")
        time.sleep(every)


class Running:
    """A process with its own group and a log file; leaving the context ends the group."""

    def __init__(
        self,
        arguments: Sequence[str | Path],
        log: Path,
        *,
        pass_fds: Sequence[int] = (),
        env: dict[str, str] | None = None,
        cwd: Path | None = None,
    ) -> None:
        self.log = log
        self.arguments = [str(argument) for argument in arguments]
        with log.open("ab") as output:
            self.process = subprocess.Popen(
                # The kernel ends the process if the one that runs the tests is gone before it could.
                ["setpriv", "--pdeathsig", "KILL", "--", *self.arguments],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                pass_fds=pass_fds,
                env=env,
                cwd=cwd,
            )

    @property
    def pid(self) -> int:
        return self.process.pid

    def alive(self) -> bool:
        return self.process.poll() is None

    def log_tail(self) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-LOG_LINES:]) or "(empty)"

    def fail(self, what: str) -> NoReturn:
        raise NotServingError(f"`{' '.join(self.arguments)}` {what}; end of {self.log}:\n{self.log_tail()}")

    def must_live(self) -> None:
        if not self.alive():
            self.fail(f"ended with {self.process.returncode}")

    def end(self) -> float:
        """Asks by SIGTERM, then kills the whole group; answers how many seconds the leader took to go."""
        start = time.monotonic()
        if self.alive():
            self.process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(timeout=END_SECONDS)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        return time.monotonic() - start

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()


class FakecriServer(Running):
    """`fakecri serve` on a socket in a directory of its own; `ready` is the line that it wrote when it listened."""

    def __init__(
        self, directory: Path, *options: str, prefix: Sequence[str] = (), env: dict[str, str] | None = None
    ) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.socket = directory / "cri.sock"
        self.endpoint = f"unix://{self.socket}"
        reader, writer = os.pipe()
        try:
            command = [*prefix, *FAKECRI, "serve", "--socket", str(self.socket), "--ready-fd", str(writer), *options]
            super().__init__(command, directory / "server.log", pass_fds=(writer,), env=env)
        finally:
            os.close(writer)
        try:
            self.ready = self._await_ready(reader)
        except BaseException:
            self.end()
            raise
        finally:
            os.close(reader)

    def _await_ready(self, reader: int) -> dict[str, Any]:
        line = b""
        deadline = time.monotonic() + START_SECONDS
        while not line.endswith(b"\n"):
            readable, _, _ = select.select([reader], [], [], max(0.0, deadline - time.monotonic()))
            piece = os.read(reader, 4096) if readable else b""
            if not piece:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self.process.wait(timeout=1)
                self.must_live()
                self.fail("closed its --ready-fd" if readable else f"was not ready in {START_SECONDS:.0f} s")
            line += piece
        ready = json.loads(line)
        assert isinstance(ready, dict), f"--ready-fd got {line!r}, not a JSON object"
        return ready

    def must_be_sound(self) -> None:
        """The server serves on, and met nothing that it did not foresee."""
        self.must_live()
        log = self.log.read_text(errors="replace")
        place = log.find("Traceback (most recent call last)")
        if place >= 0:
            self.fail(f"met an error that it did not foresee:\n{log[max(0, place - 300) : place + 3000]}")


class SocketServer(Running):
    """Any server that serves a unix socket as soon as one can connect to it."""

    def __init__(self, arguments: Sequence[str | Path], socket_path: Path, log: Path) -> None:
        self.socket = socket_path
        super().__init__(arguments, log)

        def connects() -> bool:
            self.must_live()
            with socket.socket(socket.AF_UNIX) as probe:
                return probe.connect_ex(str(socket_path)) == 0

        try:
            wait_until(connects, START_SECONDS, f"{arguments[0]} listens on {socket_path}")
        except BaseException:
            self.end()
            raise
