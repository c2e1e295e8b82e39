"""Processes: their life, what they use, their families, and how a busy one is slowed."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakecri.base.ids import Ids
from fakecri.base.steps import Ask, Trigger
from fakecri.base.tasks import Tasks
from fakecri.clock import MILLISECOND, SECOND, VirtualClock
from fakecri.kernel.curves import Curve, level
from fakecri.kernel.executables import BadWorkingDirectory, CommandNotFound, Executables, NotSimulated
from fakecri.kernel.machine import Machine
from fakecri.kernel.process import (
    BOUND_COMMAND_COST_NS,
    COMMAND_COST_NS,
    COMMANDS_WITHOUT_REST,
    FIRST_PID,
    ProcessSpec,
    ProcessState,
    Usage,
)
from fakecri.kernel.program import Exit, Program
from fakecri.kernel.signals import Signal


def waiting(context: Any) -> Any:
    return context.for_ever()


def spinning(context: Any) -> Any:
    while True:
        yield from context.command()


# -- life --------------------------------------------------------------------------------------------------------------
def test_a_process_runs_its_program_and_reports_its_end_once(world: Any) -> None:
    def body(context: Any) -> Any:
        yield from context.sleep(2 * SECOND)
        context.write(2, b"bye")
        return 3

    process = world.start(body)
    assert process.state is ProcessState.RUNNING
    world.advance(5 * SECOND)
    assert (process.exit_code, process.signal, process.finished_ns) == (3, 0, 2 * SECOND + COMMAND_COST_NS)
    assert world.written == [(2 * SECOND + COMMAND_COST_NS, 2, b"bye")]
    assert world.ends == [process]
    assert world.machine.processes == {}


@pytest.mark.parametrize(("returned", "code"), [(0, 0), (255, 255), (256, 0), (-1, 255)])
def test_exit_codes_have_eight_bits(world: Any, returned: int, code: int) -> None:
    process = world.start(lambda context: returned)
    world.advance()
    assert process.exit_code == code


def test_a_program_may_leave_from_deep_inside(world: Any) -> None:
    def deep(context: Any) -> Any:
        yield from context.sleep(SECOND)
        raise Exit(9)

    def body(context: Any) -> Any:
        yield from deep(context)
        return 0

    process = world.start(body)
    world.advance(2 * SECOND)
    assert (process.exit_code, world.machine.failures) == (9, [])


def test_pids_lie_above_any_host_and_are_never_used_again(world: Any) -> None:
    pids = []
    for _ in range(5):
        pids.append(world.start(lambda context: 0).pid)
        world.advance()
    assert pids == sorted(set(pids))
    assert min(pids) > FIRST_PID > 2**22


def test_a_process_sees_its_own_pid_as_its_namespace_numbers_it(world: Any) -> None:
    def body(context: Any) -> int:
        context.print(str(context.pid))
        return 0

    world.start(body, is_namespace_init=True)
    other = world.start(body, is_namespace_init=False)
    world.advance()
    assert [chunk for _, _, chunk in world.written] == [b"1\n", b"%d\n" % other.pid]


def test_a_program_with_a_bug_dies_of_it_and_is_reported(world: Any) -> None:
    told = []
    world.machine.on_failure = lambda process, error: told.append((process, error))

    def body(context: Any) -> Any:
        yield from context.sleep(SECOND)
        raise KeyError("oops")

    process = world.start(body)
    world.advance(2 * SECOND)
    assert (process.exit_code, process.signal) == (139, Signal.SEGV)
    assert [(who, type(error)) for who, error in world.machine.failures] == [(process, KeyError)]
    assert told == world.machine.failures


def test_a_failing_exit_callback_is_reported_and_the_process_has_ended(world: Any) -> None:
    def broken(process: Any) -> None:
        raise RuntimeError("callback")

    process = world.start(lambda context: 0, on_exit=broken)
    world.advance()
    assert process.ended
    assert [str(error) for _, error in world.machine.failures] == ["callback"]


def test_other_steps_go_to_whoever_answers_them(world: Any) -> None:
    def body(context: Any) -> Any:
        answer = yield from context.ask("logs", "question")
        context.print(answer)
        return 0

    asked = []

    def answer(task: Any, step: Any) -> None:
        asked.append(step)
        world.tasks.resume(task, "answer")

    world.machine.on_step = answer
    world.start(body)
    world.advance()
    assert [(type(step), step.port, step.request) for step in asked] == [(Ask, "logs", "question")]
    assert [chunk for _, _, chunk in world.written] == [b"answer\n"]


def test_a_step_that_nobody_answers_is_a_failure_that_names_the_program(world: Any) -> None:
    def body(context: Any) -> Any:
        yield from context.ask("logs", "question")
        return 0

    process = world.start(body, "/bin/asks")
    with pytest.raises(TypeError, match=r"/bin/asks.*nobody"):
        world.advance()
    assert not process.ended


# -- starting ----------------------------------------------------------------------------------------------------------
def machine(**programs: Program) -> Machine:
    clock = VirtualClock()
    return Machine(clock, Tasks(clock), Ids(0), programs)


@pytest.mark.parametrize(
    ("argv", "directory", "error"),
    [
        (("/nope",), "/", CommandNotFound),
        (("/nope",), "/etc/passwd", BadWorkingDirectory),  # the working directory is looked at first
        (("ghost",), "/", NotSimulated),
    ],
)
def test_what_cannot_be_started_leaves_nothing(argv: tuple[str, ...], directory: str, error: type[Exception]) -> None:
    node = machine()
    image = Executables(programs={"/bin/ghost": "ghost"}, files=frozenset({"/etc/passwd"}))
    with pytest.raises(error):
        node.start(ProcessSpec(argv, executables=image, working_directory=directory))
    assert node.processes == {}


def test_a_program_that_nothing_simulates_is_named() -> None:
    with pytest.raises(NotSimulated, match="ghost") as caught:
        machine().start(ProcessSpec(("ghost",), executables=Executables(programs={"/bin/ghost": "ghostly"})))
    assert caught.value.text == "no program 'ghostly' is simulated"


def test_an_empty_command_is_refused() -> None:
    with pytest.raises(ValueError, match="argv is empty"):
        machine().start(ProcessSpec(()))


def test_a_spec_without_a_sink_or_files_runs(world: Any) -> None:
    def body(context: Any) -> int:
        context.print("nobody listens")
        assert not context.exists("/file")
        assert context.read_file("/file") is None
        with pytest.raises(FileNotFoundError):
            context.write_file("/file", b"x")
        return 0

    node = Machine(world.clock, world.tasks, Ids(0), {"body": Program("body", body)})
    process = node.start(ProcessSpec(("body",), executables=Executables(programs={"/bin/body": "body"})))
    world.advance()
    assert (process.exit_code, node.failures) == (0, [])


# -- usage -------------------------------------------------------------------------------------------------------------
def test_commands_cost_their_time_whoever_reads_it_and_when(world: Any) -> None:
    process = world.start(spinning)
    world.advance(COMMAND_COST_NS // 2)
    assert process.usage(world.clock.now_ns).cpu_ns == COMMAND_COST_NS // 2
    world.advance(10 * MILLISECOND)
    assert process.usage(world.clock.now_ns).cpu_ns == world.clock.now_ns


def test_a_killed_process_has_used_what_it_had_used_by_then(world: Any) -> None:
    def body(context: Any) -> Any:
        yield from context.command(10 * SECOND)
        return 0

    process = world.start(body)
    world.advance(4 * SECOND)
    world.signal(process, Signal.KILL)
    world.advance(20 * SECOND)
    assert process.usage(world.clock.now_ns) == Usage(4 * SECOND, 0, 0)


def test_curves_give_memory_and_cpu_by_age(world: Any) -> None:
    world.advance(100 * SECOND)
    memory = Curve(((0, 1000), (10 * SECOND, 2000)))
    process = world.start(waiting, memory_curve=memory, cpu=level(500))
    world.advance(5 * SECOND)
    usage = process.usage(world.clock.now_ns)
    assert usage == Usage(COMMAND_COST_NS + 5 * SECOND // 2, 1500, 1)
    world.signal(process, Signal.KILL)
    world.advance(5 * SECOND)
    assert process.usage(world.clock.now_ns) == Usage(usage.cpu_ns, 0, 0)


def test_a_program_can_say_what_memory_it_has(world: Any) -> None:
    def body(context: Any) -> Any:
        context.use_memory(7 << 20)
        yield from context.sleep(SECOND)
        context.use_memory(None)
        yield from context.for_ever()

    process = world.start(body, memory_bytes=1 << 20)
    world.advance(MILLISECOND)
    assert process.usage(world.clock.now_ns).memory_bytes == 7 << 20
    world.advance(2 * SECOND)
    assert process.usage(world.clock.now_ns).memory_bytes == 1 << 20


@given(
    st.lists(st.tuples(st.sampled_from(["sleep", "work", "child"]), st.integers(0, 10**9)), max_size=6),
    st.lists(st.integers(0, 10**9), min_size=1, max_size=10),
)
def test_cpu_never_goes_down_over_a_whole_family(deeds: list[tuple[str, int]], pauses: list[int]) -> None:
    def body(context: Any) -> Any:
        for deed, span_ns in deeds if context.argv == ("main",) else [("work", 5 * 10**8)]:
            if deed == "sleep":
                yield from context.sleep(span_ns)
            elif deed == "work":
                yield from context.command(span_ns)
            else:
                context.spawn(("child",), program=context.process.program)
        return 0

    clock = VirtualClock()
    tasks = Tasks(clock)
    node = Machine(clock, tasks, Ids(0), {})
    process = node.start(ProcessSpec(("main",), program=Program("body", body, cpu=level(250))))
    readings = []
    for pause in pauses:
        until_ns = clock.now_ns + pause
        tasks.run_ready()
        while clock.run_next(until_ns):
            tasks.run_ready()
        clock.move_to(until_ns)
        readings.append(process.usage(clock.now_ns).cpu_ns)
    assert readings == sorted(readings)
    assert process.usage(clock.now_ns) == process.usage(clock.now_ns)


@pytest.mark.parametrize(("adjustment", "score"), [(-1000, 0), (-998, 168), (0, 833), (1000, 1500), (500, 1166)])
def test_oom_scores_rank_by_memory_and_adjustment(world: Any, adjustment: int, score: int) -> None:
    process = world.start(waiting, memory_bytes=1 << 30, oom_score_adj=adjustment)
    assert process.oom_score(world.clock.now_ns, 4 << 30) == score


# -- families ----------------------------------------------------------------------------------------------------------
def test_a_child_inherits_and_its_exit_code_is_waited_for(world: Any) -> None:
    def child(context: Any) -> Any:
        context.print(context.environment["NAME"])
        yield from context.sleep(SECOND)
        return 5

    def body(context: Any) -> Any:
        started = context.spawn(("child",), program=Program("child", child))
        code = yield from context.wait_child(started)
        again = yield from context.wait_child(started)
        assert again == code
        return code + 1

    process = world.start(body, environment={"NAME": "value"}, uid=1000)
    world.advance(MILLISECOND)
    (below,) = process.children.values()
    assert (below.spec.uid, below.is_namespace_init, below.parent) == (1000, False, process)
    assert process.usage(world.clock.now_ns).processes == 2
    world.advance(5 * SECOND)
    assert (process.exit_code, world.written[0][2]) == (6, b"value\n")
    assert process.children is None


def test_waiting_for_a_child_can_be_interrupted(world: Any) -> None:
    def body(context: Any) -> Any:
        context.on_signal(Signal.USR1, lambda number: None)
        started = context.spawn(("child",), program=Program("child", waiting))
        answer = yield from context.wait_child(started, interruptible=True)
        return 1 if answer is None else 2

    process = world.start(body)
    world.advance(SECOND)
    world.signal(process, Signal.USR1)
    assert process.exit_code == 1


def test_a_parent_that_handles_sigchld_is_told(world: Any) -> None:
    def body(context: Any) -> Any:
        context.on_signal(Signal.CHLD, lambda number: context.print("child"))
        context.spawn(("child",), program=Program("child", lambda inner: 0))
        yield from context.sleep(SECOND)
        return 0

    world.start(body)
    world.advance(2 * SECOND)
    assert [chunk for _, _, chunk in world.written] == [b"child\n"]


def family(world: Any, *, init: bool) -> Any:
    """A process, its child and that one's child."""

    def middle(context: Any) -> Any:
        context.spawn(("leaf",), program=Program("leaf", waiting))
        return context.for_ever()

    def top(context: Any) -> Any:
        context.spawn(("middle",), program=Program("middle", middle))
        return context.for_ever()

    process = world.start(top, is_namespace_init=init, on_exit=lambda ended: world.ends.append(ended.argv))
    world.advance(SECOND)
    return process


@pytest.mark.parametrize("init", [True, False])
def test_all_end_with_the_first_of_them(world: Any, init: bool) -> None:
    top = family(world, init=init)
    assert [process.argv for process in top.descendants()] == [("leaf",), ("middle",)]
    world.signal(top, Signal.KILL)
    assert world.machine.processes == {}
    assert world.ends == [("body",)]


def test_an_orphan_goes_to_its_grandparent(world: Any) -> None:
    top = family(world, init=True)
    leaf, middle = top.descendants()
    world.signal(middle, Signal.KILL)
    assert list(top.children.values()) == [leaf]
    assert (leaf.parent, leaf.state) == (top, ProcessState.RUNNING)


def test_killing_a_tree_ends_the_deepest_first(world: Any) -> None:
    ended: list[Any] = []
    top = family(world, init=True)
    first = world.start(waiting, parent=top, on_exit=lambda process: ended.append("exec"))
    world.machine.kill_tree(top)
    world.tasks.run_ready()
    assert (ended, world.ends, first.exit_code) == (["exec"], [("body",)], 137)
    assert world.machine.processes == {}


def test_what_lives_in_a_namespace_ends_with_its_first_process_and_counts_apart(world: Any) -> None:
    pause = world.start(waiting, memory_bytes=1000)
    container = world.start(waiting, namespace=pause, memory_bytes=5000, is_namespace_init=False)
    short = world.start(lambda context: 0, namespace=pause, is_namespace_init=False)
    world.advance()
    assert short.ended
    assert pause.usage(world.clock.now_ns).memory_bytes == 1000
    assert pause.dependents == [container]
    world.signal(pause, Signal.KILL)
    assert container.exit_code == 137


# -- busy processes ----------------------------------------------------------------------------------------------------
def test_a_process_without_a_rest_is_slowed_and_its_time_accounted_in_full(world: Any) -> None:
    process = world.start(spinning)
    world.advance(COMMANDS_WITHOUT_REST * COMMAND_COST_NS)
    assert process.cpu_bound
    before = process.commands
    world.advance(10 * SECOND)
    assert process.commands - before == 10 * SECOND // BOUND_COMMAND_COST_NS
    assert process.usage(world.clock.now_ns).cpu_ns == world.clock.now_ns


@pytest.mark.parametrize(("rest_ns", "slowed"), [(0, True), (1000, True), (MILLISECOND, False), (SECOND, False)])
def test_a_rest_makes_a_process_quick_again_unless_it_is_hardly_one(world: Any, rest_ns: int, slowed: bool) -> None:
    def body(context: Any) -> Any:
        for _ in range(COMMANDS_WITHOUT_REST - 10):
            yield from context.command()
        yield from context.sleep(rest_ns)
        for _ in range(20):
            yield from context.command()
        yield from context.for_ever()

    process = world.start(body)
    world.advance((COMMANDS_WITHOUT_REST + 20) * COMMAND_COST_NS + 5 * SECOND)
    assert process.cpu_bound is slowed
    assert (process.spent_ns > COMMANDS_WITHOUT_REST * COMMAND_COST_NS + SECOND // 2) is slowed


def test_starting_children_one_after_the_other_is_no_rest(world: Any) -> None:
    def body(context: Any) -> Any:
        while True:
            child = context.spawn(("true",), program=Program("true", lambda inner: 0))
            yield from context.wait_child(child)

    process = world.start(body)
    process.since_rest = COMMANDS_WITHOUT_REST - 5
    world.advance(SECOND)
    assert process.cpu_bound


def test_waiting_for_a_child_that_rests_is_a_rest(world: Any) -> None:
    def body(context: Any) -> Any:
        def sleeps(inner: Any) -> Any:
            yield from inner.sleep(SECOND)
            return 0

        child = context.spawn(("sleep",), program=Program("sleep", sleeps))
        yield from context.wait_child(child)
        yield from context.for_ever()

    process = world.start(body)
    process.since_rest = COMMANDS_WITHOUT_REST
    assert process.cpu_bound
    world.advance(3 * SECOND)
    assert not process.cpu_bound


def test_a_trigger_ends_a_wait_and_time_ends_the_others(world: Any) -> None:
    door = Trigger()

    def body(context: Any) -> Any:
        first = yield from context.wait(door)
        assert first is door
        context.print("open")
        yield from context.wait(door)
        return 0

    process = world.start(body)
    world.advance(SECOND)
    door.fire()
    world.advance(SECOND)
    assert [chunk for _, _, chunk in world.written] == [b"open\n"]
    assert not process.ended


# -- describing --------------------------------------------------------------------------------------------------------
def test_a_description_is_plain_and_enough_to_go_on(world: Any) -> None:
    def body(context: Any) -> Any:
        context.memory["count"] = context.memory.get("count", 0) + 1
        yield from context.until_age(10 * SECOND)
        return context.memory["count"]

    process = world.start(body, "counts", "on")
    world.advance(4 * SECOND)
    told = process.describe(world.clock.now_ns)
    assert told["argv"] == ["counts", "on"]
    assert (told["age_ns"], told["spent_ns"], told["memory"]) == (4 * SECOND, COMMAND_COST_NS, {"count": 1})
    world.signal(process, Signal.KILL)
    again = world.start(body, age_ns=told["age_ns"], spent_ns=told["spent_ns"], memory=told["memory"])
    assert again.usage(world.clock.now_ns).cpu_ns >= told["spent_ns"]
    world.advance(6 * SECOND)
    assert again.exit_code == 2
