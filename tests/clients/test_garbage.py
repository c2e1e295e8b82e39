"""A thousand pieces of garbage on the socket, and crictl works all the while."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from types import ModuleType

pytestmark = pytest.mark.client

PIECES = 1000
#: crictl is called once per so many pieces.
PER_CALL = 50


def test_crictl_works_beside_a_thousand_pieces_of_garbage(crictl: Any, server: Any, garbage: ModuleType) -> None:
    sandbox, _ = crictl.runp("web")
    for number, piece in enumerate(garbage.pieces(2, PIECES)):
        garbage.send(server.socket, piece)
        if number % PER_CALL == 0:
            assert crictl.run("pods", "--quiet") == sandbox
    crictl.run("stopp", sandbox)
    crictl.run("rmp", sandbox)
    assert crictl.run("pods", "--quiet") == ""
