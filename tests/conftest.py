"""What holds for every test: plugins, how many examples a property gets, and that CI skips nothing."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from types import ModuleType

#: Wall-clock deadlines per example say more about the machine than about the code.
settings.register_profile("usual", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("full", settings.get_profile("usual"), max_examples=2000)
settings.load_profile(os.environ.get("FAKECRI_TESTS", "usual"))


#: An installed fakecri brings its plugin itself; from a bare checkout it comes from here.
_INSTALLED = any(point.value == "fakecri.pytest_plugin" for point in entry_points(group="pytest11"))
pytest_plugins = ["pytester", *([] if _INSTALLED else ["fakecri.pytest_plugin"])]


@pytest.fixture(scope="session")
def garbage() -> ModuleType:
    """The module beside this file; tests are no package, so it is loaded by its path."""
    spec = importlib.util.spec_from_file_location("fakecri_tests_garbage", Path(__file__).with_name("garbage.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def pytest_configure(config: pytest.Config) -> None:
    """In CI every test runs: a skip there hides that something is missing."""
    if os.environ.get("CI") == "true" and not hasattr(config, "workerinput"):
        config.pluginmanager.register(NothingSkipped(), "fakecri-nothing-skipped")


class NothingSkipped:
    """Fails the run for each skipped or expectedly failing test, and names it with its reason."""

    def __init__(self) -> None:
        self.skipped: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A skip in set-up or call."""
        if report.skipped:
            self._note(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """A module that skips itself."""
        if report.skipped:
            self._note(report)

    def _note(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        reason = report.longrepr[-1] if isinstance(report.longrepr, tuple) else report.longrepr
        self.skipped.append(f"{report.nodeid}: {getattr(report, 'wasxfail', '') or reason}")

    @pytest.hookimpl(wrapper=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Iterator[None]:
        """Turn a run with skips into a failed one."""
        if self.skipped and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        return (yield)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say why."""
        for line in self.skipped:
            terminalreporter.write_line(f"SKIPPED IN CI, WHICH FAILS THE RUN: {line}", red=True)
