"""Reads the documentation's pages and does what they show, as a reader would at a shell."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
CLIENTS = ROOT / "tests" / "clients"
#: Real programs that pages may call, by the name that the builder knows.
BUILT = {"crictl": "crictl", "kubelet": "kubelet-1.37"}
#: Commands that keep running while the page goes on, and how one sees that they are ready.
SECONDS = 60.0
FENCE = re.compile(r"^(`{3,})(.*?)\n(.*?)^\1[ ]*$", re.MULTILINE | re.DOTALL)


@dataclass
class Command:
    """One command of a console block with the output that the page promises."""

    text: str
    output: list[str] = field(default_factory=list)

    @property
    def stays(self) -> bool:
        """Whether it serves until it is told to end."""
        return self.text.startswith(("fakecri serve", "kubelet ")) and not self.output


@dataclass
class Page:
    """One page: files that it shows by name, and commands, in their order."""

    path: Path
    steps: list[Command | tuple[str, str]] = field(default_factory=list)

    @property
    def programs(self) -> set[str]:
        """The real clients that its commands need."""
        words = {word for step in self.steps if isinstance(step, Command) for word in re.findall(r"\w+", step.text)}
        return words & set(BUILT)


def read_page(path: Path) -> Page:
    page = Page(path)
    for _, info, body in FENCE.findall(path.read_text(encoding="utf-8")):
        caption = re.search(r"^:caption: (\S+)\n", body, re.MULTILINE)
        if caption:
            page.steps.append((caption[1], re.sub(r"\A(:\w+:.*\n)+\n?", "", body)))
        elif info.strip() == "console":
            page.steps += read_console(body)
    return page


def read_console(body: str) -> list[Command]:
    commands: list[Command] = []
    continued = False
    for line in body.splitlines():
        if continued:
            commands[-1].text += "\n" + line
        elif line.startswith("$ "):
            commands.append(Command(line[2:]))
        else:
            assert commands, f"output before any command: {line}"
            commands[-1].output.append(line)
        continued = line.endswith("\\") and not commands[-1].output
    return commands


def matches(promised: list[str], actual: str) -> bool:
    """Whether output is as a page shows it: … stands for anything in a line, and alone for any lines."""
    pattern = ""
    for line in promised:
        if line.strip() == "…":
            pattern += r"(?:.*\n)*?"
        else:
            # Columns may be wider or narrower than on the page.
            parts = [r"\s+".join(map(re.escape, re.split(r" {2,}", part))) for part in line.split("…")]
            pattern += ".*".join(parts) + r"[ ]*\n"
    return re.fullmatch(pattern, actual if actual.endswith("\n") or not actual else actual + "\n") is not None


class Shell:
    """One bash in one directory, for one page."""

    def __init__(self, directory: Path, path: str, prefix: list[str]) -> None:
        self.directory = directory
        # Entering a mount namespace leads to its root.
        self.prefix = [*prefix, "env", f"--chdir={directory}"]
        self.environment = {
            name: value
            for name, value in os.environ.items()
            if not name.endswith("_ENDPOINT") and name not in ("CI", "CRI_CONFIG_FILE")
        } | {"PATH": path, "HOME": str(directory)}
        self.staying: list[tuple[str, subprocess.Popen[str], Path]] = []
        self.bash = subprocess.Popen(
            [*self.prefix, "bash", "--norc"],
            cwd=directory,
            env=self.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self, command: str) -> tuple[str, int]:
        """What it printed, and its exit code."""
        assert self.bash.stdin is not None
        assert self.bash.stdout is not None
        self.bash.stdin.write(f'{{ {command}\n}} </dev/null\nprintf "\\n@@%d\\n" $?\n')
        self.bash.stdin.flush()
        lines: list[str] = []
        for line in self.bash.stdout:
            if line.startswith("@@"):
                # The marker's own newline comes before it.
                return "".join(lines).removesuffix("\n"), int(line[2:])
            lines.append(line)
        raise AssertionError(f"the shell ended in {command!r}:\n{''.join(lines)}")

    def stay(self, command: str) -> None:
        """Start something that serves, and wait until it does."""
        log = self.directory / f"staying-{len(self.staying)}.log"
        words = shlex.split(command.replace("$PWD", str(self.directory)))
        with log.open("w") as output:
            process = subprocess.Popen(
                [*self.prefix, *words],
                cwd=self.directory,
                env=self.environment,
                stdout=output,
                stderr=subprocess.STDOUT,
                text=True,
            )
        self.staying.append((command, process, log))
        if "--socket" in words:
            path = self.directory / words[words.index("--socket") + 1]
            self.wait(lambda: accepts(path), f"{command} does not serve", process, log)

    def wait(self, holds: Callable[[], bool], what: str, process: subprocess.Popen[str], log: Path) -> None:
        deadline = time.monotonic() + SECONDS
        while not holds():
            ended = process.poll() is not None
            assert not ended, f"{what}: it ended with {process.returncode}\n{log.read_text()}"
            assert time.monotonic() < deadline, f"{what}\n{log.read_text()}"
            time.sleep(0.05)

    def check(self, command: Command, page: str) -> None:
        """Run one command of a page, again for a while where a kubelet has yet to do its work."""
        if command.stays:
            self.stay(command.text)
            return
        patient = any(text.startswith("kubelet ") for text, _, _ in self.staying)
        deadline = time.monotonic() + SECONDS
        while True:
            output, code = self.run(command.text)
            if code == 0 and matches(command.output, output):
                return
            if code != 0 and command.output and matches(command.output, output):
                return  # a refusal that the page shows
            if not patient or time.monotonic() > deadline:
                shown = "\n".join(command.output)
                logs = "\n".join(log.read_text()[-2000:] for _, _, log in self.staying)
                raise AssertionError(
                    f"{page}: $ {command.text}\n--- shown\n{shown}\n--- got, exit {code}\n{output}\n{logs}"
                )
            time.sleep(0.5)

    def end(self) -> None:
        """End everything that this shell started; a server must go by itself and in peace."""
        self.bash.kill()
        self.bash.communicate()
        for _, process, _ in reversed(self.staying):
            process.terminate()
            process.wait(timeout=15)
        for command, process, log in self.staying:
            if command.startswith("fakecri"):
                assert process.returncode == 0, f"{command} ended with {process.returncode}\n{log.read_text()}"


def accepts(path: Path) -> bool:
    """Whether somebody listens on a unix socket."""
    with socket.socket(socket.AF_UNIX) as client:
        try:
            client.connect(str(path))
        except OSError:
            return False
    return True


def load(name: str) -> ModuleType:
    """A module of the tests with real clients, under a name that nothing else has."""
    full_name = f"fakecri_tests_docs_{name}"
    if full_name not in sys.modules:
        spec = importlib.util.spec_from_file_location(full_name, CLIENTS / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        sys.modules[full_name] = module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return sys.modules[full_name]


@pytest.fixture(scope="session")
def root() -> Path:
    """The checkout."""
    return ROOT


@pytest.fixture(scope="session")
def pages() -> dict[str, Page]:
    """Every page by its path in docs."""
    return {str(path.relative_to(DOCS)): read_page(path) for path in DOCS.rglob("*.md") if "_build" not in path.parts}


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Callable[[Page], Shell]]:
    """Opens a shell with what a page needs on PATH: fakecri, real clients, private namespaces for a kubelet."""
    opened = contextlib.ExitStack()
    # A unix socket's path is short, and tmp_path is not.
    directory = Path(tempfile.mkdtemp(prefix="page-", dir="/tmp"))

    def open_for(page: Page) -> Shell:
        programs = tmp_path / "bin"
        programs.mkdir()
        builder = load("builder").Builder()
        for name in sorted(page.programs):
            (programs / name).symlink_to(builder.path(BUILT[name]))
        prefix: list[str] = []
        if "kubelet" in page.programs:
            prefix = private_namespaces(tmp_path, opened)
        scripts = Path(sys.executable).parent
        shell = Shell(directory, f"{scripts}:{programs}:/usr/bin:/bin", prefix)
        opened.callback(shell.end)
        return shell

    opened.callback(shutil.rmtree, directory, ignore_errors=True)
    with opened:
        yield open_for


def private_namespaces(directory: Path, opened: contextlib.ExitStack) -> list[str]:
    kubelet = load("kubelet")
    reason = kubelet.why_not_possible()
    if reason and os.environ.get("CI") == "true":
        pytest.fail(reason)
    if reason:
        pytest.skip(reason)
    node = opened.enter_context(kubelet.PrivateNode(directory / "namespaces"))
    prefix: list[str] = node.prefix
    return prefix
