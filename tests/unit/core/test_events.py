"""The event log: order, bounded queues that harm only their own reader, and the three ways to fan out."""

from __future__ import annotations

from collections import deque

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakecri.base.steps import Trigger
from fakecri.clock import SECOND
from fakecri.core.events import FAN_OUTS, Backlog, EventLog, Subscription
from fakecri.core.states import EventType


def say(log: EventLog, *names: str, now_ns: int = 0) -> None:
    for name in names:
        log.append(EventType.CREATED, name, now_ns, None, now_ns)


def read(subscription: Subscription) -> list[str]:
    """What waits in a queue, taken out."""
    names = [record.object_id for record, _ in subscription.queue]
    subscription.queue.clear()
    return names


class Counted(Trigger):
    """A trigger that counts."""

    __slots__ = ("fired",)

    def __init__(self) -> None:
        super().__init__()
        self.fired = 0

    def fire(self) -> None:
        self.fired += 1
        super().fire()


def test_records_are_numbered_in_order_and_the_oldest_go_first() -> None:
    log = EventLog(kept=3)
    say(log, *"abcde")
    assert [(record.sequence, record.object_id) for record in log.records] == [(3, "c"), (4, "d"), (5, "e")]


def test_a_record_keeps_what_happened_and_only_the_delivery_its_message() -> None:
    log = EventLog()
    reader = log.subscribe(0)
    record = log.append(EventType.STOPPED, "id", 17, "message", 5)
    assert (record.type, record.object_id, record.created_ns) == (EventType.STOPPED, "id", 17)
    assert log.records[-1] is record
    assert list(reader.queue) == [(record, "message")]


@pytest.mark.parametrize("fan_out", sorted(FAN_OUTS))
def test_one_reader_gets_everything_in_order_whatever_the_strategy(fan_out: str) -> None:
    log = EventLog(fan_out)
    reader = log.subscribe(0)
    reader.arrived = counted = Counted()
    say(log, *"abc")
    assert read(reader) == ["a", "b", "c"]
    assert counted.fired == 3


@pytest.mark.parametrize("fan_out", sorted(FAN_OUTS))
def test_who_has_unsubscribed_gets_nothing_more(fan_out: str) -> None:
    log = EventLog(fan_out)
    reader = log.subscribe(0)
    log.unsubscribe(reader)
    log.unsubscribe(reader)  # harmless
    say(log, "a")
    assert read(reader) == []


def test_an_unknown_strategy_is_refused() -> None:
    with pytest.raises(KeyError, match="gossip"):
        EventLog("gossip")


def test_broadcast_gives_each_reader_every_event_from_its_subscription_on() -> None:
    log = EventLog("broadcast")
    say(log, "before")
    first = log.subscribe(0)
    say(log, "a")
    second = log.subscribe(0)
    say(log, "b")
    assert read(first) == ["a", "b"]
    assert read(second) == ["b"]


def test_broadcast_wants_messages_only_while_somebody_listens() -> None:
    log = EventLog("broadcast")
    assert not log.wanted
    reader = log.subscribe(0)
    assert log.wanted
    log.unsubscribe(reader)
    assert not log.wanted


@pytest.mark.parametrize("fan_out", ["backlog", "shared-channel"])
def test_what_nobody_heard_goes_to_the_next_reader_once(fan_out: str) -> None:
    log = EventLog(fan_out)
    assert log.wanted
    say(log, "a", "b")
    first = log.subscribe(0)
    second = log.subscribe(0)
    assert read(first) == ["a", "b"]
    assert read(second) == []


def test_the_backlog_forgets_after_five_minutes() -> None:
    log = EventLog("backlog")
    say(log, "old", now_ns=0)
    say(log, "edge", now_ns=SECOND)
    say(log, "new", now_ns=200 * SECOND)
    assert read(log.subscribe(Backlog.KEPT_NS + SECOND)) == ["edge", "new"]


def test_a_backlog_longer_than_a_queue_hands_over_the_newest_and_does_not_end_the_stream() -> None:
    log = EventLog("backlog", queue_limit=3)
    say(log, *"abcdef")
    reader = log.subscribe(0)
    assert not reader.overflowed
    assert read(reader) == ["d", "e", "f"]


def test_a_shared_channel_gives_each_event_to_one_reader_in_turn() -> None:
    log = EventLog("shared-channel")
    readers = [log.subscribe(0) for _ in range(3)]
    say(log, *"abcdef")
    shares = [read(reader) for reader in readers]
    assert sorted(name for share in shares for name in share) == list("abcdef")
    assert [len(share) for share in shares] == [2, 2, 2]


@pytest.mark.parametrize("fan_out", sorted(FAN_OUTS))
def test_a_full_queue_ends_that_stream_and_is_told_once(fan_out: str) -> None:
    log = EventLog(fan_out, queue_limit=2)
    slow = log.subscribe(0)
    slow.arrived = counted = Counted()
    say(log, *"abcde")
    assert slow.overflowed
    assert list(slow.queue) == []
    assert counted.fired == 3


@given(st.lists(st.sampled_from(["say", "read", "read", "join", "leave"]), max_size=80), st.integers(1, 6))
def test_a_slow_reader_never_harms_another(script: list[str], limit: int) -> None:
    log = EventLog("broadcast", queue_limit=limit)
    diligent, got, said = log.subscribe(0), [], []
    slow: deque[Subscription] = deque([log.subscribe(0)])
    for number, verb in enumerate(script):
        if verb == "say":
            say(log, str(number))
            said.append(str(number))
            got += read(diligent)
        elif verb == "read":
            slow[-1].queue.clear() if slow else None
        elif verb == "join":
            slow.append(log.subscribe(0))
        elif slow:
            log.unsubscribe(slow.popleft())
        assert all(len(reader.queue) <= limit for reader in slow)
    assert got == said
    assert not diligent.overflowed


def test_a_reader_that_was_too_slow_takes_no_share_of_a_channel() -> None:
    log = EventLog("shared-channel", queue_limit=1)
    dead, live = log.subscribe(0), log.subscribe(0)
    got: list[str] = []
    for name in "abcdefgh":
        say(log, name)
        got += read(live)
    assert dead.overflowed
    assert got[-4:] == list("efgh")


def test_a_reader_that_was_too_slow_does_not_keep_the_backlog_from_the_next() -> None:
    log = EventLog("backlog", queue_limit=1)
    dead = log.subscribe(0)
    say(log, "a", "b", "c")
    assert dead.overflowed
    assert read(log.subscribe(0)) == ["c"]
