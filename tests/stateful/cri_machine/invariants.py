"""What must hold between any two steps. Each invariant is a function whose name says it; a few cost more and are rarer.

They are stated over what a client could see, and over the tables of who owns what: names, addresses, ports, processes,
open logs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from fakecri.base.reasons import CriError
from fakecri.clock import SECOND
from fakecri.core import image_message, status
from fakecri.core.rpc.registry import entry
from fakecri.core.states import ContainerInput, ContainerState, SandboxInput, SandboxState, look_up
from fakecri.wire import messages

if TYPE_CHECKING:
    from cri_machine.world import World

Invariant = Callable[["World"], None]
ALWAYS: dict[str, Invariant] = {}
NOW_AND_THEN: dict[str, Invariant] = {}
#: Calls that may hold a name, an address or a port for a pod that is not there yet.
MAKES_PODS = {"RunPodSandbox", "RestorePod"}
MAKES_CONTAINERS = {"CreateContainer", "RestorePod"}


def always(statement: str) -> Callable[[Invariant], Invariant]:
    """Looked at after every step."""
    return lambda function: ALWAYS.setdefault(statement, function)


def now_and_then(statement: str) -> Callable[[Invariant], Invariant]:
    """Looked at after some steps, and at the end."""
    return lambda function: NOW_AND_THEN.setdefault(statement, function)


def check(world: World, everything: bool = True) -> None:
    """Look at all invariants, or at the cheap ones."""
    for table in (ALWAYS, NOW_AND_THEN) if everything else (ALWAYS,):
        for statement, invariant in table.items():
            world.counts.checks[statement] += 1
            invariant(world)
    world.moves.clear()


def _under_way(world: World, methods: set[str]) -> int:
    return sum(exchange.method in methods for exchange in world.open.values())


@always("nothing unforeseen happens on the server")
def no_failures(world: World) -> None:
    assert not world.engine.failures, world.engine.failures[0]


@always("the engine's open calls are those that no client has heard the end of")
def open_calls(world: World) -> None:
    assert {call.id for call in world.engine.open_calls} == set(world.open)


@always("every move's events are in the log, in order, and there are no others")
def events_follow_moves(world: World) -> None:
    expected = [(event, moved.entity.id) for moved in world.moves for event in moved.row.emits]
    records = world.runtime.events.records
    new = [records[index] for index in range(len(records) - len(expected), len(records))]
    assert [(record.type, record.object_id) for record in new] == expected
    assert [record.sequence for record in new] == list(
        range(world.events_seen + 1, world.events_seen + 1 + len(expected))
    )
    world.events_seen += len(expected)
    assert (records[-1].sequence if records else 0) == world.events_seen


@always("a sandbox that is not ready holds a running container only after its own process died")
def running_in_stopped_sandboxes(world: World) -> None:
    for sandbox in world.runtime.sandboxes:
        if not sandbox.ready and any(container.running for container in sandbox.containers):
            assert sandbox.id in world.died


@always("a name belongs to what has it, or to a call that is making it")
def names(world: World) -> None:
    for store, makers in ((world.runtime.sandboxes, MAKES_PODS), (world.runtime.containers, MAKES_CONTAINERS)):
        for entity in store:
            assert store.name_owner(entity.name) == entity.id
        assert len(store._names) - len(store) <= _under_way(world, makers)
        for removed in world.removed:
            assert removed.id not in store
            assert store.name_owner(removed.name) != removed.id


@always("containers are in the store, in their sandbox, or nowhere")
def membership(world: World) -> None:
    listed = {container.id for sandbox in world.runtime.sandboxes for container in sandbox.containers}
    assert listed == {container.id for container in world.runtime.containers}


@always("addresses belong to pods that have a network, and to nobody else")
def addresses(world: World) -> None:
    owners = dict(world.runtime.network)
    entitled = {
        sandbox.id
        for sandbox in world.runtime.sandboxes
        if not sandbox.host_network and (sandbox.ready or sandbox.id in world.died)
    }
    assert entitled <= owners.keys()
    others = owners.keys() - entitled
    assert not any(owner in world.runtime.sandboxes for owner in others)
    assert len(others) <= _under_way(world, MAKES_PODS)
    for sandbox in world.runtime.sandboxes:
        if sandbox.id in owners:
            assert sandbox.addresses == owners[sandbox.id]
    every = [address for given in owners.values() for address in given]
    assert len(every) == len(set(every))


@always("a host port belongs to a pod that asked for it, and to nobody else")
def host_ports(world: World) -> None:
    owner = world.runtime.host_ports.owner("TCP", 8080)
    entitled = {
        sandbox.id
        for sandbox in world.runtime.sandboxes
        if sandbox.host_ports and (sandbox.ready or sandbox.id in world.died)
    }
    assert len(entitled) <= 1
    if entitled:
        assert owner in entitled
    elif owner is not None:
        assert owner not in world.runtime.sandboxes
        assert _under_way(world, MAKES_PODS)


@always("processes live exactly where something runs")
def processes(world: World) -> None:
    expected = {
        holder.process.pid
        for store in (world.runtime.sandboxes, world.runtime.containers)
        for holder in store
        if holder.process is not None and not holder.process.ended
    }
    assert set(world.runtime.machine.processes) == expected
    for sandbox in world.runtime.sandboxes:
        assert (sandbox.process is not None) == sandbox.ready
    for container in world.runtime.containers:
        assert (container.process is not None) == container.running


@always("a container is starting only while a call starts it")
def starting(world: World) -> None:
    marked = sum(container.starting for container in world.runtime.containers)
    assert marked <= _under_way(world, {"StartContainer"})


@always("logs are open exactly while their containers run")
def logs(world: World) -> None:
    running = [container.log_path for container in world.runtime.containers if container.running]
    expected = {path for path in running if path}
    if not world.asked and not _under_way(world, {"StartContainer"}):
        assert set(world.logs.paths) == expected


@always("whoever is subscribed has an open call")
def subscribers(world: World) -> None:
    assert len(world.runtime.events.subscribers) <= _under_way(world, {"GetContainerEvents"})


@always("a pull is under way only while a call pulls")
def pulls(world: World) -> None:
    assert len(world.runtime.images.pulling) <= _under_way(world, {"PullImage"})


# -- rarer -------------------------------------------------------------------------------------------------------------
@now_and_then("the runtime has counted every move by its row")
def moves_are_counted(world: World) -> None:
    assert world.runtime.moves == world.move_counts


def _list_body(world: World, api: str, method: str) -> bytes:
    reply = world.send(method, b"", api=api).reply
    assert reply is not None
    assert reply.ok
    return bytes(reply.body)


def _same(world: World, body: bytes, fresh: list[bytes]) -> None:
    """The list is the entries, in the store's order or, where lists turn, in some order."""
    if world.runtime.traits.list_order.name == "OLDEST_FIRST":
        assert body == b"".join(fresh)
    elif world.runtime.traits.list_order.name == "NEWEST_FIRST":
        assert body == b"".join(reversed(fresh))
    else:
        assert any(body == b"".join(fresh[at:] + fresh[:at]) for at in range(max(1, len(fresh))))


@now_and_then("a list is its store, and cached bytes are what a fresh encoding gives")
def lists(world: World) -> None:
    runtime = world.runtime
    for api in world.apis:
        view = world.engine.views[api]
        for method, entities, show in (
            ("ListPodSandbox", runtime.sandboxes, status.sandbox_item),
            ("ListContainers", runtime.containers, status.container_item),
            ("ListImages", runtime.images, image_message.image_message),
        ):
            fresh = []
            for entity in entities:
                item: Any = show(runtime, entity)  # type: ignore[operator]
                view.clear(item)
                fresh.append(entry(1, item.SerializeToString(deterministic=True)))
            _same(world, _list_body(world, api, method), fresh)


@now_and_then("what is in a list has a status that says the same")
def statuses(world: World) -> None:
    for sandbox in world.runtime.sandboxes:
        shown = status.sandbox_status(world.runtime, sandbox)
        assert shown.state == (messages.SANDBOX_READY if sandbox.ready else messages.SANDBOX_NOTREADY)
        assert sandbox.created_at_ns > 0
    for container in world.runtime.containers:
        shown_container = status.container_status(world.runtime, container)
        assert shown_container.state == int(container.state)
        started, finished = shown_container.started_at, shown_container.finished_at
        assert shown_container.created_at > 0
        assert bool(started) == (container.state is not ContainerState.CREATED and container.reason != "StartError")
        if container.state is ContainerState.EXITED:
            assert finished >= max(started, shown_container.created_at)
        else:
            assert finished == 0


@now_and_then("an input that has no row is refused and changes nothing")
def absent_pairs(world: World) -> None:
    """Every pair without a row, on entities that are there and on some that are gone."""
    runtime = world.runtime
    sandboxes = [*runtime.sandboxes, *(one for one in world.removed if isinstance(one.state, SandboxState))]
    containers = [*runtime.containers, *(one for one in world.removed if isinstance(one.state, ContainerState))]
    for kind, entities, inputs, table, move in (
        ("sandbox", sandboxes, SandboxInput, runtime.behaviour.sandbox_table, runtime.move_sandbox),
        ("container", containers, ContainerInput, runtime.behaviour.container_table, runtime.move_container),
    ):
        for entity in entities:
            for given in inputs:
                if (entity.state, given) in table:
                    assert look_up(table, entity, given) is table[entity.state, given]
                    continue
                before = (entity.state, len(runtime.events.records), len(runtime.sandboxes), len(runtime.containers))
                with pytest.raises(CriError, match=entity.id):
                    move(entity, given)  # type: ignore[operator]
                after = (entity.state, len(runtime.events.records), len(runtime.sandboxes), len(runtime.containers))
                assert after == before
                world.counts.pairs[kind, entity.state.name, given.name] += 1


def at_rest(world: World) -> None:
    """Once nothing is open nothing is held for anybody; once every pod is removed nothing is left."""
    runtime = world.runtime
    assert not world.open
    check(world)
    for store in (runtime.sandboxes, runtime.containers):
        assert set(store._names.values()) == {entity.id for entity in store}
        assert not store.released.waiting
    runtime.conditions["NetworkReady"] = (True, "", "")
    for pod in list(runtime.sandboxes):
        removal = world.send("RemovePodSandbox", messages.RemovePodSandboxRequest(pod_sandbox_id=pod.id))
        world.engine.advance(20 * SECOND)
        assert removal.reply is not None
        assert removal.reply.ok, removal.reply
    check(world)
    assert not len(runtime.sandboxes)
    assert not len(runtime.containers)
    assert not dict(runtime.network)
    assert not runtime.machine.processes
    assert not world.logs.paths
