"""A served runtime for the replays, and the API's Python modules as a foreign client has them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def api_modules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with cri_v1_pb2.py and cri_v1alpha2_pb2.py, made from the two api.proto files."""
    directory = tmp_path_factory.mktemp("pb")
    for api in ("v1", "v1alpha2"):
        shutil.copy(ROOT / "protos" / "runtime" / api / "api.proto", directory / f"cri_{api}.proto")
    sources = ["cri_v1.proto", "cri_v1alpha2.proto"]
    command = [sys.executable, "-m", "grpc_tools.protoc", "-I", ".", "--python_out", ".", *sources]
    subprocess.run(command, cwd=directory, check=True, timeout=120)
    return directory


@pytest.fixture(scope="session")
def serve() -> Iterator[Callable[..., str]]:
    """``serve(personality, clock)`` starts ``fakecri serve`` with the cases' images; the answer is its socket."""
    with ExitStack() as stack:

        def started(personality: str, clock: str = "autojump") -> str:
            directory = tempfile.mkdtemp(prefix="fakecri-")
            stack.callback(shutil.rmtree, directory, ignore_errors=True)
            socket = f"{directory}/cri.sock"
            reading, writing = os.pipe()
            command = [sys.executable, "-m", "fakecri", "serve", "--socket", socket, "--ready-fd", str(writing)]
            command += ["--images", str(HERE / "images.yaml"), "--personality", personality, "--clock", clock]
            process = subprocess.Popen(command, cwd=ROOT, pass_fds=[writing], stdout=subprocess.DEVNULL)
            os.close(writing)

            def end() -> None:
                process.terminate()
                assert process.wait(timeout=30) == 0

            stack.callback(end)
            with os.fdopen(reading) as ready:
                assert json.loads(ready.readline())
            return socket

        yield started


@pytest.fixture(scope="session")
def replay(
    serve: Callable[..., str], api_modules: Path, tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., dict]:
    """``replay(socket, profile, api, *options)``: case → what the runner wrote of it."""

    def run(socket: str, profile: str, api: str, *options: str) -> dict[str, dict]:
        command = [sys.executable, str(HERE / "run_cases.py"), "--socket", socket, "--profile", profile, "--api", api]
        command += ["--pb", str(api_modules), "--log-dir", str(tmp_path_factory.mktemp("logs")), *options]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=240, check=False)
        assert done.returncode in (0, 1), done.stderr
        assert not done.stderr.strip(), done.stderr
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        assert len({line["name"] for line in lines}) == len(lines)
        return {line["name"]: line for line in lines}

    return run
