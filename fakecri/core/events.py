"""The event log and its subscribers.

Every move of a state machine that emits puts one record here, in order. A subscriber has a bounded queue of its own:
one that reads too slowly loses its stream (RESOURCE_EXHAUSTED) and nothing else happens. How events reach subscribers
is a registered strategy, since runtimes differ in the algorithm and not in a word.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from fakecri.base.steps import Trigger
from fakecri.clock import SECOND

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from fakecri.core.states import EventType


@dataclass(frozen=True, slots=True)
class EventRecord:
    """One emitted event: the number in the log, and what happened to which object."""

    sequence: int
    type: EventType
    object_id: str
    created_ns: int


class Delivery(NamedTuple):
    """An event on its way to a subscriber, with its message as it was then (None when nobody wanted one)."""

    record: EventRecord
    message: Any


class Subscription:
    """One reader of the log, with its own bounded queue."""

    __slots__ = ("arrived", "limit", "overflowed", "queue")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.queue: deque[Delivery] = deque()
        self.overflowed = False
        self.arrived = Trigger()

    def offer(self, delivery: Delivery) -> None:
        """Queue an event, or mark the stream as too slow and drop what it had not read."""
        if self.overflowed:
            return
        if len(self.queue) >= self.limit:
            self.overflowed = True
            self.queue.clear()
        else:
            self.queue.append(delivery)
        self.arrived.fire()


class Broadcast:
    """Every subscriber gets every event from its subscription on; nothing is kept for later ones."""

    #: Whether events are kept while nobody listens.
    keeps = False

    def subscribed(self, subscription: Subscription, now_ns: int) -> None:
        """A new subscriber starts empty."""

    def publish(self, delivery: Delivery, subscribers: list[Subscription], now_ns: int) -> None:
        """Hand the event to each."""
        for subscription in subscribers:
            subscription.offer(delivery)


class Backlog(Broadcast):
    """As broadcast, but events without any subscriber are kept five minutes for the next one.

    containerd 2.1.9, measured: the first subscriber is handed what nobody has read.
    """

    keeps = True
    KEPT_NS: Final = 300 * SECOND

    def __init__(self) -> None:
        self._kept: deque[tuple[int, Delivery]] = deque(maxlen=1000)

    def subscribed(self, subscription: Subscription, now_ns: int) -> None:
        """Hand over what is not too old, once; the newest of it where the queue is shorter."""
        fresh = [delivery for stored_ns, delivery in self._kept if now_ns - stored_ns <= self.KEPT_NS]
        for delivery in fresh[-subscription.limit :]:
            subscription.offer(delivery)
        self._kept.clear()

    def publish(self, delivery: Delivery, subscribers: list[Subscription], now_ns: int) -> None:
        """Keep the event when nobody listens."""
        if subscribers:
            super().publish(delivery, subscribers, now_ns)
        else:
            self._kept.append((now_ns, delivery))


class SharedChannel(Backlog):
    """One channel for all: each event reaches exactly one subscriber, in turn (containerd 1.7, measured)."""

    def __init__(self) -> None:
        super().__init__()
        self._turn = 0

    def publish(self, delivery: Delivery, subscribers: list[Subscription], now_ns: int) -> None:
        """Give the event to the next subscriber in turn."""
        if subscribers:
            self._turn = (self._turn + 1) % len(subscribers)
            subscribers[self._turn].offer(delivery)
        else:
            self._kept.append((now_ns, delivery))


#: Registered strategies of kind ``events``.
FAN_OUTS: Final[Mapping[str, Callable[[], Broadcast]]] = MappingProxyType(
    {"broadcast": Broadcast, "backlog": Backlog, "shared-channel": SharedChannel}
)


class EventLog:
    """What happened, newest last; a bounded memory of records and the live subscriptions."""

    def __init__(self, fan_out: str = "broadcast", kept: int = 1000, queue_limit: int = 1024) -> None:
        self._fan_out = FAN_OUTS[fan_out]()
        self._queue_limit = queue_limit
        self.records: deque[EventRecord] = deque(maxlen=kept)
        self.subscribers: list[Subscription] = []
        self._sequence = 0

    def append(self, type_: EventType, object_id: str, created_ns: int, message: Any, now_ns: int) -> EventRecord:
        """Log one event and hand it to the subscribers."""
        self._sequence += 1
        record = EventRecord(self._sequence, type_, object_id, created_ns)
        self.records.append(record)
        self._fan_out.publish(Delivery(record, message), self.subscribers, now_ns)
        if any(subscription.overflowed for subscription in self.subscribers):
            # A stream that is over takes no share of a channel and keeps no backlog from the next reader.
            self.subscribers = [subscription for subscription in self.subscribers if not subscription.overflowed]
        return record

    def subscribe(self, now_ns: int) -> Subscription:
        """A new reader; it must be given back with ``unsubscribe``."""
        subscription = Subscription(self._queue_limit)
        self._fan_out.subscribed(subscription, now_ns)
        self.subscribers.append(subscription)
        return subscription

    @property
    def wanted(self) -> bool:
        """Whether anybody, now or later, may read the next event's message."""
        return bool(self.subscribers) or self._fan_out.keeps

    def unsubscribe(self, subscription: Subscription) -> None:
        """Stop handing events to a reader."""
        if subscription in self.subscribers:
            self.subscribers.remove(subscription)
