"""Named strategies: where runtimes differ in an algorithm and not in a word. A personality chooses by name.

Kinds: ``events`` (see ``core.events.FAN_OUTS``) and ``grace``: how long StopPodSandbox and RemoveContainer let running
containers end of themselves, in ns, given what is left of the client's own deadline.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from fakecri.clock import SECOND

Grace = Callable[["int | None"], int]


def no_grace(time_left_ns: int | None) -> int:
    """SIGKILL at once (containerd)."""
    return 0


def grace_of_client_deadline(time_left_ns: int | None) -> int:
    """The client's deadline less one second, or nine seconds without one (CRI-O 1.36, measured)."""
    return 9 * SECOND if time_left_ns is None else max(0, time_left_ns - SECOND)


def ten_seconds(time_left_ns: int | None) -> int:
    """Ten seconds, whatever the client's deadline (CRI's own default)."""
    return 10 * SECOND


GRACES: Final[Mapping[str, Grace]] = MappingProxyType(
    {"none": no_grace, "client-deadline": grace_of_client_deadline, "ten-seconds": ten_seconds}
)
