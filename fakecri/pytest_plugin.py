"""The fixture ``cri``: a simulated runtime of its own for every test that asks for one.

The rule: importing this costs nothing; what a test does not use is not loaded. A test whose runtime met something that
no rule foresaw fails, even when its own assertions hold, and a failing test shows the seed that brings it back.
"""

from __future__ import annotations

import zlib
from importlib.util import find_spec
from inspect import signature
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from fakecri.testing import FakeRuntime

_SEED: Final = pytest.StashKey[int]()
_MARK: Final = "fakecri"


def pytest_addoption(parser: pytest.Parser) -> None:
    """``--fakecri-seed N``."""
    group = parser.getgroup("fakecri", "simulated container runtime")
    group.addoption(
        "--fakecri-seed",
        type=int,
        metavar="N",
        help="seed of every test's runtime that does not set its own (default: one that follows from the test's name)",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Make the mark known, and keep frozen time away from gRPC.

    grpcio computes its deadlines with ``time.time()``: under ``freezegun.freeze_time`` every call with a timeout would
    end at once, and a server started inside would hang. Only grpcio's own modules are taken out; the rest stays frozen.
    """
    config.addinivalue_line("markers", f"{_MARK}(**options): how the cri fixture's runtime is made (see FakeRuntime)")
    if find_spec("freezegun") is not None:
        import freezegun

        freezegun.configure(extend_ignore_list=["grpc"])


@pytest.fixture
def cri(request: pytest.FixtureRequest) -> Iterator[FakeRuntime]:
    """A simulated container runtime on a socket of its own, under virtual time.

    ``cri.endpoint`` is what clients are pointed at, ``cri.clock`` its time, ``cri.calls`` what clients did,
    ``cri.sandboxes``, ``cri.containers`` and ``cri.images`` its state, ``cri.engine`` all the rest. The mark
    ``@pytest.mark.fakecri(personality=…, level=…, seed=…, clock=…, …)`` chooses another runtime; the nearest mark wins,
    option by option. ``strict=False`` lets a test pass although the runtime met something unforeseen.
    """
    from fakecri.testing import FakeRuntime

    options = _options(request.node, FakeRuntime)
    strict = options.pop("strict", True)
    request.node.stash[_SEED] = options["seed"]
    with FakeRuntime(**options) as runtime:
        yield runtime
    if strict and runtime.failures:
        pytest.fail(
            f"{len(runtime.failures)} unforeseen inside the simulated runtime:\n\n" + "\n".join(runtime.failures),
            pytrace=False,
        )


def _options(item: pytest.Item, made: type[FakeRuntime]) -> dict[str, Any]:
    known = {*signature(made).parameters, "strict"}
    options: dict[str, Any] = {}
    for mark in item.iter_markers(_MARK):
        unknown = mark.kwargs.keys() - known
        if mark.args or unknown:
            what = f"unknown options {', '.join(sorted(unknown))}" if unknown else "options without a name"
            raise pytest.UsageError(f"{item.nodeid}: mark {_MARK} has {what}: it takes {', '.join(sorted(known))}")
        options = {**mark.kwargs, **options}
    if options.get("seed") is None:
        given = item.config.getoption("--fakecri-seed")
        options["seed"] = zlib.crc32(item.nodeid.encode()) if given is None else given
    return options


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show the seed where a test failed."""
    report = yield
    seed = item.stash.get(_SEED, None)
    if report.failed and seed is not None:
        report.sections.append(("fakecri", f"seed {seed}: --fakecri-seed={seed} brings this run back"))
    return report
