"""Garbage on the socket never takes the server down, while a client works."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from types import ModuleType

    from fakecri.testing import FakeRuntime

PIECES = 1000


@pytest.mark.parametrize("seed", [1])
def test_a_thousand_pieces_of_garbage(cri: FakeRuntime, client: Any, garbage: ModuleType, seed: int) -> None:
    sandbox_id = client.pod()
    for number, piece in enumerate(garbage.pieces(seed, PIECES)):
        garbage.send(cri.socket, piece)
        if number % 10 == 0:
            assert client.PodSandboxStatus(pod_sandbox_id=sandbox_id, timeout=20).status.id == sandbox_id
    assert client.Version(timeout=20).version == "0.1.0"
    assert cri.failures == []
    assert {call.method for call in cri.calls} >= {"RunPodSandbox", "PodSandboxStatus", "Version"}
