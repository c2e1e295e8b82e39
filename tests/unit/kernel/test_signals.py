"""Names and numbers of signals, and every signal against every disposition."""

from __future__ import annotations

import signal as host
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakecri.clock import MILLISECOND, SECOND
from fakecri.kernel.process import Disposition, ProcessState
from fakecri.kernel.program import Exit
from fakecri.kernel.signals import (
    SIGRTMAX,
    SIGRTMIN,
    UNBLOCKABLE,
    DefaultAction,
    Signal,
    UnknownSignal,
    default_action,
    is_signal,
    parse_signal,
    signal_name,
)
from fakecri.wire import messages

ALL = [number for number in range(1, 65) if is_signal(number)]
FATAL = [number for number in ALL if default_action(number) in (DefaultAction.TERMINATE, DefaultAction.CORE)]
IGNORED = [number for number in ALL if default_action(number) is DefaultAction.IGNORE]
STOPPING = [number for number in ALL if default_action(number) is DefaultAction.STOP]


# -- names -------------------------------------------------------------------------------------------------------------
def test_numbers_are_those_of_this_operating_system() -> None:
    assert {f"SIG{one.name}": int(one) for one in Signal} == {
        name: int(value)
        for name, value in host.Signals.__members__.items()
        if value <= 31 and name not in ("SIGCLD", "SIGIOT", "SIGPOLL")
    }
    assert (SIGRTMIN, SIGRTMAX) == (host.SIGRTMIN, host.SIGRTMAX)


@given(st.sampled_from(ALL))
def test_a_name_is_parsed_back_however_it_is_written(number: int) -> None:
    name = signal_name(number)
    forms = (name, name.lower(), name.removeprefix("SIG"), f" {name} ", str(number))
    assert {parse_signal(form) for form in forms} == {number}


@pytest.mark.parametrize(
    ("text", "number"),
    [("SIGRTMIN+3", 37), ("RTMIN+30", 64), ("SIGRTMAX-14", 50), ("SIGRTMAX", 64), ("SIGIOT", 6), ("POLL", 29)],
)
def test_aliases_and_real_time_signals(text: str, number: int) -> None:
    assert parse_signal(text) == number


def test_every_signal_of_the_api_has_its_number() -> None:
    for name, value in messages.Signal.items():
        if value:  # 0 is RUNTIME_DEFAULT
            assert is_signal(parse_signal(name.removeprefix("SIGNAL_"))), name


@pytest.mark.parametrize(
    "text",
    ["", "0", "-9", "32", "33", "65", "999", "SIG", "SIGNOPE", "9.0", "TERM KILL", "SIGRTMIN+31", "SIGRTMAX-31", "²"],
)
def test_what_is_no_signal_is_refused_by_name(text: str) -> None:
    with pytest.raises(UnknownSignal, match="SIGRTMIN") as caught:
        parse_signal(text)
    assert caught.value.given == text


def test_a_number_without_a_name_is_refused() -> None:
    with pytest.raises(UnknownSignal, match="32"):
        signal_name(32)


# -- dispositions ------------------------------------------------------------------------------------------------------
def waiting(context: Any) -> Any:
    return context.for_ever()


@pytest.mark.parametrize("number", FATAL)
def test_by_default_a_fatal_signal_ends_a_process_with_128_and_its_number(world: Any, number: int) -> None:
    process = world.start(waiting, is_namespace_init=False)
    world.advance(MILLISECOND)
    world.signal(process, number)
    assert (process.state, process.exit_code, process.signal) == (ProcessState.EXITED, 128 + number, number)
    assert process.finished_ns == MILLISECOND
    assert world.ends == [process]


@pytest.mark.parametrize("number", [number for number in FATAL if number != Signal.KILL] + STOPPING[1:])
def test_the_first_of_a_namespace_ignores_what_it_has_no_handler_for(world: Any, number: int) -> None:
    process = world.start(waiting, is_namespace_init=True)
    world.advance(MILLISECOND)
    world.signal(process, number)
    world.advance()
    assert process.state is ProcessState.RUNNING


@pytest.mark.parametrize("init", [True, False])
def test_sigkill_from_outside_always_ends_a_process(world: Any, init: bool) -> None:
    process = world.start(waiting, is_namespace_init=init)
    world.signal(process, Signal.KILL)
    assert (process.exit_code, process.signal) == (137, 9)


@pytest.mark.parametrize("number", IGNORED)
def test_signals_that_are_ignored_by_default(world: Any, number: int) -> None:
    process = world.start(waiting, is_namespace_init=False)
    world.advance(MILLISECOND)
    world.signal(process, number)
    assert process.state is ProcessState.RUNNING


@pytest.mark.parametrize("init", [True, False])
@pytest.mark.parametrize("number", [number for number in ALL if number not in UNBLOCKABLE])
def test_a_handler_takes_any_other_signal(world: Any, number: int, init: bool) -> None:
    def body(context: Any) -> Any:
        context.on_signal(number, lambda seen: context.print(f"got {seen}"))
        return context.for_ever()

    process = world.start(body, is_namespace_init=init)
    world.advance(MILLISECOND)
    world.signal(process, number)
    assert world.written == [(MILLISECOND, 1, f"got {number}\n".encode())]
    assert process.state is ProcessState.RUNNING


@pytest.mark.parametrize("number", [number for number in ALL if number not in UNBLOCKABLE])
def test_a_signal_that_is_set_to_be_ignored_does_nothing(world: Any, number: int) -> None:
    def body(context: Any) -> Any:
        context.on_signal(number, Disposition.IGNORE)
        return context.for_ever()

    process = world.start(body, is_namespace_init=False)
    world.advance(MILLISECOND)
    world.signal(process, number)
    assert process.state is ProcessState.RUNNING


@pytest.mark.parametrize("number", sorted(UNBLOCKABLE))
def test_two_signals_cannot_be_handled(world: Any, number: int) -> None:
    def body(context: Any) -> int:
        with pytest.raises(ValueError, match=f"signal {number}"):
            context.on_signal(number, Disposition.IGNORE)
        return 7

    process = world.start(body)
    world.advance(MILLISECOND)
    assert process.exit_code == 7


def test_an_unknown_number_is_refused(world: Any) -> None:
    process = world.start(waiting)
    with pytest.raises(UnknownSignal):
        world.machine.signal(process, 0)


def test_a_dead_process_takes_no_signal(world: Any) -> None:
    process = world.start(lambda context: 3)
    world.advance(MILLISECOND)
    world.signal(process, Signal.KILL)
    assert (process.exit_code, process.signal) == (3, 0)
    assert world.ends == [process]


# -- handlers and waits ------------------------------------------------------------------------------------------------
def test_a_handler_may_end_the_process(world: Any) -> None:
    def leave(number: int) -> None:
        raise Exit(4)

    def body(context: Any) -> Any:
        context.on_signal(Signal.TERM, leave)
        return context.for_ever()

    process = world.start(body)
    world.advance(MILLISECOND)
    world.signal(process, Signal.TERM)
    assert (process.exit_code, process.signal) == (4, 0)


def test_a_signal_does_not_shorten_a_sleep(world: Any) -> None:
    def body(context: Any) -> Any:
        context.on_signal(Signal.HUP, lambda number: context.print("hup"))
        yield from context.sleep(5 * SECOND)
        context.print("done")
        return 0

    process = world.start(body)
    began_ns = process.spent_ns + 100_000  # the start's own command
    world.advance(2 * SECOND)
    world.signal(process, Signal.HUP)
    world.advance(5 * SECOND)
    assert world.written == [(2 * SECOND, 1, b"hup\n"), (began_ns + 5 * SECOND, 1, b"done\n")]


def test_an_interruptible_wait_ends_with_the_handler(world: Any) -> None:
    def body(context: Any) -> Any:
        context.on_signal(Signal.USR1, lambda number: None)
        answer = yield from context.wait(interruptible=True)
        assert answer is None
        return 5

    process = world.start(body)
    world.advance()
    world.signal(process, Signal.USR1)
    assert process.exit_code == 5


def test_a_handler_that_takes_time_is_run_to_its_end(world: Any) -> None:
    def body(context: Any) -> Any:
        def slow(number: int) -> Any:
            yield from context.sleep(2 * SECOND)
            raise Exit(6)

        context.on_signal(Signal.TERM, slow)
        return context.for_ever()

    process = world.start(body)
    world.advance()
    world.signal(process, Signal.TERM)
    world.advance(SECOND)
    assert process.state is ProcessState.RUNNING
    world.advance(SECOND)
    assert (process.exit_code, process.finished_ns) == (6, 3 * SECOND)


def test_a_standard_signal_is_pending_once_a_real_time_one_as_often_as_sent(world: Any) -> None:
    seen: list[int] = []

    def body(context: Any) -> Any:
        context.on_signal(Signal.USR1, seen.append)
        context.on_signal(SIGRTMIN, seen.append)
        while True:
            yield from context.command(SECOND)

    process = world.start(body)
    world.advance(MILLISECOND)
    for number in (Signal.USR1, SIGRTMIN, Signal.USR1, SIGRTMIN):
        world.signal(process, number)
    world.advance()
    assert seen == [Signal.USR1, SIGRTMIN, SIGRTMIN]


def test_a_signal_before_the_program_has_set_its_handlers_waits_for_them(world: Any) -> None:
    def leave(number: int) -> None:
        raise Exit(0)

    def body(context: Any) -> Any:
        context.on_signal(Signal.TERM, leave)
        return context.for_ever()

    process = world.start(body, is_namespace_init=False)
    world.signal(process, Signal.TERM)  # at the very moment of the start
    assert process.state is ProcessState.RUNNING
    world.advance(MILLISECOND)
    assert (process.exit_code, process.signal) == (0, 0)


def test_a_signal_before_the_first_wait_has_its_default_action_then(world: Any) -> None:
    process = world.start(waiting, is_namespace_init=False)
    world.signal(process, Signal.TERM)
    world.advance(MILLISECOND)
    assert (process.exit_code, process.signal) == (143, Signal.TERM)


# -- stopping ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("number", STOPPING)
def test_a_stopped_process_goes_on_when_continued(world: Any, number: int) -> None:
    def body(context: Any) -> Any:
        for _ in range(3):
            yield from context.sleep(SECOND)
            context.print("tick")
        return 0

    process = world.start(body, is_namespace_init=False)
    world.advance(1500 * MILLISECOND)
    world.signal(process, number)
    world.advance(10 * SECOND)
    assert process.state is ProcessState.STOPPED
    assert len(world.written) == 1
    world.signal(process, Signal.CONT)
    assert process.state is ProcessState.RUNNING
    world.advance(3 * SECOND)
    assert (process.exit_code, len(world.written)) == (0, 3)


def test_a_stopped_process_acts_on_signals_once_continued(world: Any) -> None:
    process = world.start(waiting, is_namespace_init=False)
    world.advance(MILLISECOND)
    world.signal(process, Signal.STOP)
    world.signal(process, Signal.TERM)
    assert process.state is ProcessState.STOPPED
    world.signal(process, Signal.CONT)
    assert (process.exit_code, process.signal) == (143, Signal.TERM)


def test_a_stopped_busy_process_can_be_killed(world: Any) -> None:
    def body(context: Any) -> Any:
        while True:
            yield from context.command()

    process = world.start(body)
    world.advance(MILLISECOND)
    world.signal(process, Signal.STOP)
    world.advance()
    assert process.state is ProcessState.STOPPED
    world.signal(process, Signal.KILL)
    world.advance()
    assert process.exit_code == 137


# -- inside a namespace ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("number", [Signal.KILL, Signal.STOP, Signal.TERM])
def test_nothing_inside_a_namespace_harms_its_first_process(world: Any, number: int) -> None:
    first = world.start(waiting)
    inside = world.start(waiting, parent=first, is_namespace_init=False)
    world.advance(MILLISECOND)
    world.signal(first, number, sender=inside)
    assert first.state is ProcessState.RUNNING


def test_a_process_can_kill_itself(world: Any) -> None:
    def body(context: Any) -> Any:
        yield from context.sleep(SECOND)
        context.kill(context.process, Signal.ABRT)
        context.print("never")
        return 0

    process = world.start(body, is_namespace_init=False)
    world.advance(2 * SECOND)
    assert (process.exit_code, world.written) == (134, [])
    assert world.machine.failures == []
