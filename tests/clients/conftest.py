"""Fixtures that build real clients and drive them against a served runtime."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import ModuleType


def _load(name: str) -> ModuleType:
    """A module beside this file. Tests are no package: it is loaded by path, under a name that nothing else has."""
    full_name = f"fakecri_tests_clients_{name}"
    if full_name not in sys.modules:
        spec = importlib.util.spec_from_file_location(full_name, Path(__file__).with_name(f"{name}.py"))
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[full_name] = module
        spec.loader.exec_module(module)
    return sys.modules[full_name]


@pytest.fixture(scope="session")
def builder_module() -> ModuleType:
    return _load("builder")


@pytest.fixture(scope="session")
def serving() -> ModuleType:
    return _load("serving")


@pytest.fixture(scope="session")
def program(request: pytest.FixtureRequest, builder_module: ModuleType) -> Callable[[str], Path]:
    """Builds a named program unless the cache has it; progress reaches the terminal although output is captured."""
    capture = request.config.pluginmanager.getplugin("capturemanager")

    def report(line: str) -> None:
        if capture is None:
            builder_module.print_to_stderr(line)
        else:
            with capture.global_and_fixture_disabled():
                builder_module.print_to_stderr(line)

    path: Callable[[str], Path] = builder_module.Builder(report=report).path
    return path


@pytest.fixture
def server(serving: ModuleType, tmp_path: Path) -> Iterator[Any]:
    """`fakecri serve` with its defaults, on a socket of its own."""
    with serving.FakecriServer(tmp_path / "server", "--root", str(tmp_path / "root"), "-v") as running:
        yield running
        running.must_be_sound()


@pytest.fixture
def crictl(program: Callable[[str], Path], server: Any, tmp_path: Path) -> Any:
    directory = tmp_path / "crictl"
    directory.mkdir()
    return _load("crictl").Crictl(program("crictl"), server.endpoint, directory)


@pytest.fixture(scope="session")
def kubelet() -> ModuleType:
    return _load("kubelet")


@pytest.fixture
def private_node(kubelet: ModuleType, tmp_path: Path) -> Iterator[Any]:
    """Private namespaces; where they cannot be made the test is skipped with the reason, or fails in CI."""
    reason = kubelet.why_not_possible()
    if reason and os.environ.get("CI") == "true":
        pytest.fail(reason)
    if reason:
        pytest.skip(reason)
    with kubelet.PrivateNode(tmp_path / "namespaces") as node:
        yield node
