"""GetContainerEvents: the log of events, followed from now on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakecri.base.reasons import CriError, Reason
from fakecri.base.steps import Emit, Steps, Wait
from fakecri.core.rpc.registry import Context, handles

if TYPE_CHECKING:
    from fakecri.core.runtime import Runtime
    from fakecri.wire import messages


@handles("GetContainerEvents", subscription=True)
def get_container_events(runtime: Runtime, context: Context, request: messages.GetEventsRequest) -> Steps[None]:
    """Emit every event from now on, in order.

    With pod events off the stream ends at once and empty, which a kubelet counts as a failed attempt (CRI-O with
    ``enable_pod_events=false``, measured).

    Raises:
        CriError: SUBSCRIBER_TOO_SLOW when this stream's own queue overflowed.
    """
    if not runtime.node.pod_events:
        return
    subscription = runtime.events.subscribe(runtime.clock.now_ns)
    try:
        while True:
            if subscription.overflowed:
                raise CriError(Reason.SUBSCRIBER_TOO_SLOW, limit=subscription.limit)
            if subscription.queue:
                yield Emit(subscription.queue.popleft().message.pieces(context.view))
            else:
                yield Wait(subscription.arrived)
    finally:
        runtime.events.unsubscribe(subscription)
