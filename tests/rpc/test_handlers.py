"""Every RPC has its handler, and each kind of handler keeps its rule."""

from __future__ import annotations

from inspect import isgeneratorfunction

from fakecri.core.rpc.registry import HANDLERS
from fakecri.wire.methods import METHODS

#: Streams into containers: not served yet.
LATER = {"Exec", "Attach", "PortForward", "ExecSync"}
V1 = {spec.name: spec for spec in METHODS.values() if spec.api == "v1"}


def test_every_rpc_but_those_to_come_has_a_handler_and_there_are_no_others() -> None:
    assert len(V1) == 43
    assert set(HANDLERS) == set(V1) - LATER


def test_streams_suspend_and_only_events_have_no_end() -> None:
    for name, registered in HANDLERS.items():
        if V1[name].server_streaming:
            assert registered.suspends, name
        assert registered.subscription == (name == "GetContainerEvents")


def test_whatever_changes_something_can_be_held() -> None:
    for name, registered in HANDLERS.items():
        if V1[name].mutating:
            assert isgeneratorfunction(registered.handler), name


def test_every_handler_says_what_it_does() -> None:
    for name, registered in HANDLERS.items():
        assert registered.handler.__doc__, name
        assert registered.method == name
