"""Stop signals between CRI's enum (``runtime.v1.Signal``) and Linux numbers.

The order of precedence is KEP-4960's: the container's config, else the image's STOPSIGNAL, else SIGTERM.
"""

from __future__ import annotations

from typing import Final

from fakecri.kernel.signals import Signal, UnknownSignal, parse_signal
from fakecri.wire import messages

_NUMBERS: Final[dict[int, int]] = {
    number: parse_signal(name.removeprefix("SIGNAL_")) for name, number in messages.Signal.items() if number
}
_ENUM: Final[dict[int, int]] = {}
for _enum_value, _number in _NUMBERS.items():
    _ENUM.setdefault(_number, _enum_value)


def cri_signal(number: int) -> int:
    """The enum value for a Linux signal number; 0 (runtime default) for one that CRI does not name."""
    return _ENUM.get(number, 0)


def stop_signal(config: messages.ContainerConfig, image_stop_signal: str) -> int:
    """The Linux number of the signal that stops a container first."""
    if config.stop_signal in _NUMBERS:
        return _NUMBERS[config.stop_signal]
    try:
        return parse_signal(image_stop_signal) if image_stop_signal else int(Signal.TERM)
    except UnknownSignal:
        return int(Signal.TERM)
