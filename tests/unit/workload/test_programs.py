"""What each program does."""

from __future__ import annotations

from typing import Any

import pytest

from fakecri.clock import MILLISECOND, SECOND
from fakecri.kernel.process import BOUND_COMMAND_COST_NS, COMMANDS_WITHOUT_REST, ProcessState
from fakecri.kernel.signals import Signal
from fakecri.workload.programs import PROGRAMS
from fakecri.workload.programs.sleep import parse_duration_ns
from fakecri.workload.registry import program, resting


# -- the registry ------------------------------------------------------------------------------------------------------
def test_every_program_says_what_it_does_and_uses() -> None:
    assert {"pause", "sleep", "true", "false", "exit", "echo", "wait", "spin", "poll"} <= PROGRAMS.keys()
    for name, registered in PROGRAMS.items():
        assert registered.name == name
        assert registered.memory_bytes > 0
        assert registered.summary.endswith("."), name


def test_two_programs_of_one_name_are_refused() -> None:
    registered: dict[str, Any] = {}
    program("x", memory_bytes=1, registered=registered)(lambda context: 0)
    with pytest.raises(ValueError, match="named 'x'"):
        program("x", memory_bytes=1, registered=registered)(lambda context: 0)
    with pytest.raises(ValueError, match="named 'x'"):
        resting("x", summary="Rest.", memory_bytes=1, exits_on={}, registered=registered)


@pytest.mark.parametrize(("names", "memory", "words"), [((), 1, "needs a name"), (("x",), 0, "x: memory_bytes")])
def test_a_program_without_name_or_memory_is_refused(names: tuple[str, ...], memory: int, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        program(*names, memory_bytes=memory)


# -- short ones --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("argv", "code"),
    [
        (("true",), 0),
        (("true", "x"), 0),
        (("false",), 1),
        (("exit",), 0),
        (("exit", "0"), 0),
        (("exit", "42"), 42),
        (("exit", "300"), 44),
        (("exit", "x"), 2),
        (("exit", "-1"), 2),
        (("poll",), 2),
    ],
)
def test_exit_codes(node: Any, argv: tuple[str, ...], code: int) -> None:
    process = node.run(*argv)
    node.advance(MILLISECOND)
    assert (process.exit_code, process.signal, process.ended) == (code, 0, True)


@pytest.mark.parametrize(
    ("argv", "text"),
    [
        ((), b"\n"),
        (("a", "b  c"), b"a b  c\n"),
        (("-n", "a"), b"a"),
        (("-n",), b""),
        (("-x", "a"), b"-x a\n"),
        (("--", "a"), b"-- a\n"),
        (("a", "-n"), b"a -n\n"),
        (("a\\tb",), b"a\\tb\n"),
        (("-e", "a\\tb\\n\\\\"), b"a\tb\n\\\n"),
        (("-e", "\\x41\\0101\\0\\q"), b"AA\0\\q\n"),
        (("-e", "a\\cb", "c"), b"a"),
        (("-e", "-E", "a\\tb"), b"a\\tb\n"),
        (("-ne", "a\\tb"), b"a\tb"),
        (("-e", "\\0777"), b"\xff\n"),
        (("\udcff",), b"\xff\n"),
    ],
)
def test_echo(node: Any, argv: tuple[str, ...], text: bytes) -> None:
    process = node.run("echo", *argv)
    node.advance(MILLISECOND)
    assert (node.text(), process.exit_code) == (text, 0)


# -- sleep -------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("argv", "span_ns"),
    [
        (("5",), 5 * SECOND),
        (("0.25",), SECOND // 4),
        ((".5s",), SECOND // 2),
        (("2m",), 120 * SECOND),
        (("1h",), 3600 * SECOND),
        (("1d",), 86400 * SECOND),
        (("1m", "1", "0.5"), 61 * SECOND + SECOND // 2),
        (("1e2",), 100 * SECOND),
    ],
)
def test_sleep_ends_after_exactly_its_time(node: Any, argv: tuple[str, ...], span_ns: int) -> None:
    process = node.run("sleep", *argv)
    node.advance(span_ns - 1)
    assert not process.ended
    node.advance(1)
    assert (process.exit_code, process.finished_ns) == (0, span_ns)


def test_an_endless_sleep(node: Any) -> None:
    process = node.run("sleep", "1", "infinity")
    node.advance(10**9 * SECOND)
    assert process.state is ProcessState.RUNNING


@pytest.mark.parametrize("text", ["", "x", "5x", "-1", "1 2", "5ss", "0x10", "1e999", "²"])
def test_a_bad_time_is_named(node: Any, text: str) -> None:
    with pytest.raises(ValueError, match="invalid number"):
        parse_duration_ns(text)
    process = node.run("sleep", "1", text)
    node.advance(MILLISECOND)
    assert (process.exit_code, node.text(2)) == (1, f"sleep: invalid number '{text}'\n".encode())


def test_sleep_without_a_time(node: Any) -> None:
    process = node.run("sleep")
    node.advance(MILLISECOND)
    assert (process.exit_code, node.text(2)) == (1, b"sleep: missing operand\n")


@pytest.mark.parametrize(("init", "code"), [(True, None), (False, 143)])
def test_sleep_has_no_handler_for_sigterm(node: Any, init: bool, code: int | None) -> None:
    process = node.run("sleep", "3600", is_namespace_init=init)
    node.advance(SECOND)
    node.signal(process, Signal.TERM)
    assert (process.exit_code if process.ended else None) == code


# -- waiting ones ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("pause", Signal.TERM),
        ("pause", Signal.INT),
        ("wait", Signal.TERM),
        ("nginx", Signal.QUIT),
        ("nginx", Signal.TERM),
        ("httpd-foreground", Signal.WINCH),
        ("httpd-foreground", Signal.TERM),
    ],
)
@pytest.mark.parametrize("pause_ns", [0, SECOND])
def test_a_waiting_program_leaves_when_asked(node: Any, name: str, number: int, pause_ns: int) -> None:
    process = node.run(name, "any", "arguments")
    node.advance(pause_ns)
    node.signal(process, number)
    node.advance(MILLISECOND)
    assert (process.ended, process.exit_code, process.signal) == (True, 0, 0)


@pytest.mark.parametrize("name", ["pause", "wait", "nginx", "httpd-foreground"])
def test_a_waiting_program_ignores_other_signals_as_a_first_process_does(node: Any, name: str) -> None:
    process = node.run(name)
    node.advance(SECOND)
    for number in (Signal.HUP, Signal.USR1, Signal.CHLD, Signal.CONT, Signal.ABRT):
        node.signal(process, number)
    assert process.state is ProcessState.RUNNING
    node.signal(process, Signal.KILL)
    assert (process.exit_code, process.signal) == (137, Signal.KILL)


def test_a_waiting_program_elsewhere_has_the_default_actions(node: Any) -> None:
    process = node.run("pause", is_namespace_init=False)
    node.signal(process, Signal.TSTP)
    node.signal(process, Signal.TERM)
    assert process.state is ProcessState.STOPPED
    node.signal(process, Signal.CONT)
    assert (process.ended, process.exit_code) == (True, 0)
    other = node.run("pause", is_namespace_init=False)
    node.signal(other, Signal.HUP)
    assert (other.exit_code, other.signal) == (129, Signal.HUP)


@pytest.mark.parametrize("name", ["pause", "wait", "nginx", "httpd-foreground"])
def test_a_waiting_program_waits_for_ever_and_does_nothing(node: Any, name: str) -> None:
    process = node.run(name)
    node.advance(10**6 * SECOND)
    assert process.state is ProcessState.RUNNING
    assert process.commands == 1
    assert node.clock.next_due_ns() is None


# -- busy ones ---------------------------------------------------------------------------------------------------------
def test_a_poll_goes_on_once_its_file_is_there(node: Any) -> None:
    process = node.run("poll", "/shared/ready")
    node.advance(SECOND)
    node.files.contents["/shared/ready"] = b""
    node.advance(MILLISECOND)
    assert (process.exit_code, process.ended, node.text()) == (0, True, b"/shared/ready\n")


def test_a_poll_that_has_become_cpu_bound_still_sees_its_file(node: Any) -> None:
    process = node.run("poll", "/shared/ready")
    node.advance(60 * SECOND)
    assert process.cpu_bound
    assert process.commands < COMMANDS_WITHOUT_REST + 60 * SECOND // BOUND_COMMAND_COST_NS
    assert process.usage(node.clock.now_ns).cpu_ns == 60 * SECOND
    node.files.contents["/shared/ready"] = b""
    node.advance(BOUND_COMMAND_COST_NS)
    assert (process.exit_code, process.ended) == (0, True)


def test_an_endless_loop_can_only_be_killed_as_first_process(node: Any) -> None:
    process = node.run("spin")
    node.advance(SECOND)
    node.signal(process, Signal.TERM)
    node.advance(SECOND)
    assert process.state is ProcessState.RUNNING
    node.signal(process, Signal.KILL)
    assert process.exit_code == 137


# -- going on ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", sorted(name for name, found in PROGRAMS.items() if found.resumable))
def test_a_resumable_program_goes_on_where_it_was(node: Any, name: str) -> None:
    argv = {"sleep": ("sleep", "10"), "poll": ("poll", "/file")}.get(name, (name,))
    process = node.run(*argv)
    node.advance(4 * SECOND)
    told = process.describe(node.clock.now_ns)
    node.signal(process, Signal.KILL)
    node.advance(100 * SECOND)
    again = node.run(*argv, age_ns=told["age_ns"], spent_ns=told["spent_ns"], memory=told["memory"])
    node.advance(6 * SECOND)
    assert again.age_ns(node.clock.now_ns) == 10 * SECOND
    assert again.usage(node.clock.now_ns).cpu_ns >= told["spent_ns"]
    assert again.ended is (name == "sleep")
