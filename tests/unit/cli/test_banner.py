"""What `serve` says once it listens."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fakecri.cli import banner


def facts(**changed: Any) -> banner.Facts:
    usual: dict[str, Any] = {
        "personality": "reference",
        "apis": ("v1",),
        "level": "1.37",
        "socket": Path("/run/cri.sock"),
        "image_socket": Path("/run/cri.sock"),
        "pod_cidrs": ("127.88.0.0/16",),
        "cgroup_driver": "cgroupfs",
        "clock": "real",
        "seed": 0,
        "host_files": True,
        "root": Path("/var/lib/x"),
        "pid": 1,
    }
    return banner.Facts(**usual | changed)


def shown(**changed: Any) -> str:
    return "\n".join(banner.lines(facts(**changed)))


def test_it_says_how_clients_reach_it() -> None:
    text = shown()
    assert "crictl --runtime-endpoint unix:///run/cri.sock --image-endpoint unix:///run/cri.sock info" in text
    assert "fakecri kubelet-config --socket /run/cri.sock > kubelet.yaml" in text
    assert "CRI v1 at level 1.37" in text
    assert "(images)" not in text
    assert "longer than" not in text


def test_what_the_kubelet_must_agree_with_is_in_its_command() -> None:
    assert "--socket '/run/my cri.sock' --cgroup-driver systemd" in shown(
        socket=Path("/run/my cri.sock"), cgroup_driver="systemd"
    )


def test_a_second_socket_is_named() -> None:
    assert "unix:///run/i.sock (images)" in shown(image_socket=Path("/run/i.sock"))


def test_addresses_that_the_host_does_not_answer_for_come_with_their_command() -> None:
    assert "ip route" not in shown()
    text = shown(pod_cidrs=("10.88.0.0/16", "fd00:88::/64"))
    assert "ip route add local 10.88.0.0/16 dev lo" in text
    assert "ip -6 route add local fd00:88::/64 dev lo" in text


def test_it_says_which_files_of_the_host_are_used() -> None:
    text = shown()
    assert "the runtime's own: /var/lib/x" in text
    assert "never changed: /bin " in text
    assert "host files  none: logs and mounted files are kept in memory" in shown(host_files=False)


def test_a_path_that_cannot_be_dialled_is_pointed_out() -> None:
    assert "longer than 107 bytes" in shown(socket=Path("/" + "x" * 120))


def test_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    banner.show(facts(), "json")
    assert json.loads(capsys.readouterr().out) == {"message": "serving", **facts().as_json()}
