"""The health service's answers."""

from __future__ import annotations

import pytest

from fakecri.service import health


@pytest.mark.parametrize(("request_", "whole"), [(b"", True), (b"\n\x00", True), (b"\n\x01x", False)])
def test_only_the_server_as_a_whole_is_known(request_: bytes, whole: bool) -> None:
    assert health.is_whole_server(request_) is whole
