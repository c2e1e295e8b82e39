"""One lock, one clock, one pipeline: what every door, fixture and state machine drives."""

from fakecri.engine.engine import HOLD, Engine, Gate, OnDone, OnMessage, Port, StopSubscription
from fakecri.engine.in_process import CallFailed

__all__ = ["HOLD", "CallFailed", "Engine", "Gate", "OnDone", "OnMessage", "Port", "StopSubscription"]
