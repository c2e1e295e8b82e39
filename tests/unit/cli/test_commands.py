"""What the commands print, and how they refuse."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from fakecri import __version__
from fakecri.cli.main import COMMANDS
from fakecri.cli.output import table


def test_the_overview_names_every_command(fakecri: Callable[..., Any]) -> None:
    shown = fakecri("--help")
    assert shown.code == 0
    for name in ("serve", "version", "images", "programs", "levels", "personalities", "kubelet-config"):
        assert f"\n  {name} " in shown.output
    assert len(COMMANDS) == 7


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help(fakecri: Callable[..., Any], name: str) -> None:
    shown = fakecri(name, "--help")
    assert shown.code == 0
    assert f"Usage: fakecri {name}" in shown.output


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ((), "Missing command."),
        (("bogus",), "No such command 'bogus'."),
        (("levels", "--foo"), "No such option"),  # click has written the rest in two ways
        (("levels", "-o", "xml"), "Invalid value for '-o' / '--output': 'xml' is not one of 'table', 'json'."),
        (
            ("kubelet-config", "--kubelet", "1.30"),
            "Invalid value for '--kubelet': '1.30' is not one of '1.25', '1.37'.",
        ),
        (("serve", "--ready-fd", "x"), "Invalid value for '--ready-fd': 'x' is not a valid integer range."),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(
    fakecri: Callable[..., Any], arguments: tuple[str, ...], line: str
) -> None:
    outcome = fakecri(*arguments)
    assert outcome.code == 2
    assert outcome.output == ""
    assert outcome.errors.startswith(f"fakecri: {line}")
    assert outcome.errors.count("\n") == 1


def test_version(fakecri: Callable[..., Any]) -> None:
    assert fakecri("version").output == f"fakecri {__version__} (CRI v1 1.20-1.37, v1alpha2 1.17-1.25)\n"
    assert json.loads(fakecri("version", "--output", "json").output) == {
        "version": __version__,
        "cri": {"v1": {"first": "1.20", "last": "1.37"}, "v1alpha2": {"first": "1.17", "last": "1.25"}},
    }


def test_levels(fakecri: Callable[..., Any]) -> None:
    rows = {row["level"]: row for row in json.loads(fakecri("levels", "--output", "json").output)}
    assert list(rows) == [f"1.{minor}" for minor in range(17, 38)]
    assert rows["1.19"]["apis"] == ["v1alpha2"]
    assert rows["1.20"]["apis"] == ["v1", "v1alpha2"]
    assert rows["1.26"]["apis"] == ["v1"]
    assert rows["1.23"]["new_rpcs"] == ["ListPodSandboxStats", "PodSandboxStats"]
    assert rows["1.37"]["rpcs"] == 43
    assert "KeyValue.value" not in rows["1.37"]["new_fields"]
    lines = fakecri("levels").output.splitlines()
    assert lines[0].split() == ["LEVEL", "APIS", "RPCS", "NEW", "RPCS"]
    assert len(lines) == 22


def test_personalities(fakecri: Callable[..., Any]) -> None:
    rows = {row["name"]: row for row in json.loads(fakecri("personalities", "--output", "json").output)}
    assert [name for name, row in rows.items() if row["default"]] == ["reference"]
    assert rows["reference"]["apis"] == ["v1", "v1alpha2"]
    assert rows["reference"]["level"] == "1.37"
    assert rows["containerd-1.6"]["apis"] == ["v1", "v1alpha2"]
    assert rows["containerd-2.1"]["apis"] == ["v1"]
    assert all(row["summary"] for row in rows.values())


def test_images(fakecri: Callable[..., Any]) -> None:
    rows = {row["name"]: row for row in json.loads(fakecri("images", "--output", "json").output)}
    assert rows["registry.k8s.io/pause:3.10"]["at_start"] is True
    assert rows["registry.k8s.io/pause:3.10"]["command"] == "/pause"
    assert all(row["size_bytes"] > 0 and row["id"].startswith("sha256:") for row in rows.values())
    assert fakecri("images").output.splitlines()[0].split() == ["NAME", "SIZE", "MB", "USER", "COMMAND", "AT", "START"]


def test_images_of_a_document(fakecri: Callable[..., Any], tmp_path: Path) -> None:
    document = tmp_path / "images.yaml"
    document.write_text(
        "apiVersion: fakecri.dev/v1alpha1\nkind: Scenario\nimages:\n  pullable:\n  - names: [ours.example/app:1]\n"
    )
    rows = json.loads(fakecri("images", "--images", str(document), "--output", "json").output)
    assert rows[-1]["name"] == "ours.example/app:1"
    document.write_text("apiVersion: fakecri.dev/v1alpha1\nkind: Scenario\nbogus: 1\nother: 2\n")
    outcome = fakecri("images", "--images", str(document))
    assert outcome.code == 2
    first, second = outcome.errors.splitlines()
    assert first.startswith(f"fakecri: {document}:3:1: bogus: ")
    assert second.startswith(f"{document}:4:1: other: ")


@pytest.mark.parametrize("release", ["1.25", "1.37"])
def test_kubelet_config(fakecri: Callable[..., Any], release: str) -> None:
    text = fakecri("kubelet-config", "--kubelet", release, "--socket", "/run/x.sock", "--manifests", "/m").output
    shown = yaml.safe_load(text)
    assert shown["kind"] == "KubeletConfiguration"
    assert shown["cgroupDriver"] == "cgroupfs"
    assert shown["staticPodPath"] == "/m"
    in_file = release == "1.37"
    assert shown.get("containerRuntimeEndpoint") == ("unix:///run/x.sock" if in_file else None)
    assert ("failCgroupV1" in shown) is in_file
    first_line = text.splitlines()[0]
    assert ("--container-runtime=remote --container-runtime-endpoint=unix:///run/x.sock" in first_line) is not in_file


def test_kubelet_config_points_at_where_serve_listens_by_itself(
    fakecri: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    shown = yaml.safe_load(fakecri("kubelet-config", "--cgroup-driver", "systemd").output)
    assert shown["containerRuntimeEndpoint"] == f"unix://{tmp_path}/fakecri/cri.sock"
    assert shown["cgroupDriver"] == "systemd"


def test_a_table_shows_nothing_as_a_dash() -> None:
    rows = [{"a": None, "b": True, "c": ["x", "y"]}, {"a": "long", "b": False, "c": []}]
    assert table(rows, ("a", "b", "c")) == "A      B     C\n-      yes   x, y\nlong   no    -"


def test_a_command_loads_only_what_it_needs() -> None:
    program = "import sys; from fakecri.cli.main import main; main(['version']); print(*sys.modules)"
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    loaded = set(finished.stdout.split())
    assert "fakecri.cli.version" in loaded
    assert not loaded & {"grpc", "pydantic", "yaml", "fakecri.engine", "asyncio"}


def test_python_m_fakecri_is_the_command() -> None:
    finished = subprocess.run(
        [sys.executable, "-m", "fakecri", "bogus"], capture_output=True, text=True, check=False, timeout=60
    )
    assert (finished.returncode, finished.stdout) == (2, "")
    assert finished.stderr == "fakecri: No such command 'bogus'.\n"
