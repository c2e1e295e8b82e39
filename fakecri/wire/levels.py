"""Which release of Kubernetes brought what, and what one API version shows at one level.

The rule: a level is a release, and what came later does not exist: the RPC is not served, the field is cleared, the
enum value reads as zero. v1alpha2 goes by its own table, which ends at 1.25: what only v1 ever had, it never shows.
"""

from __future__ import annotations

import json
import re
from functools import cache
from pkgutil import get_data
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from fakecri.wire.pool import file_descriptor

if TYPE_CHECKING:
    from collections.abc import Mapping

    from google._upb._message import Descriptor as UpbDescriptor
    from google._upb._message import EnumDescriptor as UpbEnumDescriptor
    from google.protobuf.descriptor import Descriptor, EnumDescriptor
    from google.protobuf.message import Message

    from fakecri.wire.methods import MethodSpec


class Level(NamedTuple):
    """A Kubernetes minor release; ordered by age, oldest first."""

    major: int
    minor: int

    @classmethod
    def parse(cls, text: str) -> Level:
        """The level that `text`, such as "1.37", names; ValueError where it is no known release."""
        found = re.fullmatch(r"([0-9]{1,4})\.([0-9]{1,4})", text)
        level = cls(int(found[1]), int(found[2])) if found else None
        if level is None or not OLDEST <= level <= NEWEST:
            raise ValueError(f"unknown level {text!r}: it is a Kubernetes minor release, {OLDEST} … {NEWEST}")
        return level

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"


class Releases(NamedTuple):
    """One API version's table: the release that brought each RPC, field and enum value. What it lacks is not a key."""

    first: Level
    last: Level
    rpcs: Mapping[str, Mapping[str, Level]]
    """Service → RPC → since."""
    fields: Mapping[str, Mapping[str, Level]]
    """Message → field → since; never older than the message itself."""
    enum_values: Mapping[str, Mapping[str, Level]]
    """Enum, a nested one as "SecurityProfile.ProfileType" → value → since."""


def _read_releases() -> Mapping[str, Releases]:
    levels: dict[str, Level] = {}

    def level(text: str) -> Level:
        if text not in levels:
            levels[text] = Level(*map(int, text.split(".")))
        return levels[text]

    def parsed(rows: dict[str, dict[str, str]]) -> Mapping[str, Mapping[str, Level]]:
        return {name: {key: level(since) for key, since in row.items()} for name, row in rows.items()}

    raw: dict[str, dict[str, Any]] = json.loads(get_data(__package__, "levels.json") or b"")
    return MappingProxyType(
        {
            api: Releases(
                first=level(row["first"]),
                last=level(row["last"]),
                rpcs=parsed(row["rpcs"]),
                fields=parsed(row["messages"]),
                enum_values=parsed(row["enums"]),
            )
            for api, row in raw.items()
        }
    )


RELEASES: Final[Mapping[str, Releases]] = _read_releases()
"""By API version: "v1", "v1alpha2"."""
OLDEST: Final = min(releases.first for releases in RELEASES.values())
NEWEST: Final = max(releases.last for releases in RELEASES.values())
LEVELS: Final[Mapping[str, tuple[Level, ...]]] = MappingProxyType(
    {
        api: tuple(Level(1, minor) for minor in range(releases.first.minor, releases.last.minor + 1))
        for api, releases in RELEASES.items()
    }
)
"""By API version: every level at which it has a view of its own, oldest first."""

# The release in which KeyValue.value of v1 turned from string to bytes; v1alpha2 kept the string.
_ENV_VALUE_IS_BYTES_SINCE: Final = Level(1, 37)


class _Mask(NamedTuple):
    """What to clear in a message of one type; false where there is nothing. Names are fields'."""

    hidden: tuple[str, ...]
    enums: tuple[tuple[str, frozenset[int]], ...]
    """With the numbers that are not shown."""
    single: tuple[tuple[str, _Mask], ...]
    """Messages to look into, and in `repeated` lists of such."""
    repeated: tuple[tuple[str, _Mask], ...]

    def __bool__(self) -> bool:
        return any(self[:])


_NOTHING: Final = _Mask((), (), (), ())


class View:
    """What one API version shows at one level. Made by `view` only, once for each pair, so that `is` compares two."""

    __slots__ = ("_masks", "_releases", "api", "env_value_is_text", "full", "level")

    api: Final[str]
    level: Final[Level]
    full: Final[bool]
    """Whether it shows all that the message classes have: then nothing is ever cleared, unknown fields included."""
    env_value_is_text: Final[bool]
    """Whether KeyValue.value is a string here, so that a value which is not UTF-8 is malformed; else it is bytes."""

    def __init__(self, api: str, level: Level) -> None:
        self.api = api
        self.level = level
        self.full = api == "v1" and level == NEWEST
        self.env_value_is_text = api != "v1" or level < _ENV_VALUE_IS_BYTES_SINCE
        self._releases = RELEASES[api]
        self._masks: dict[Descriptor | UpbDescriptor, _Mask] = {}

    def __repr__(self) -> str:
        return f"<View {self.api} at {self.level}>"

    def admits(self, spec: MethodSpec) -> bool:
        """Whether the RPC exists here; False also for one of the other API version."""
        return spec.api == self.api and spec.since <= self.level

    def dirty(self, descriptor: Descriptor | UpbDescriptor) -> bool:
        """Whether a message of this type, or one within it, can hold a field or enum value that is not shown here.

        Where it is False, `clear` can still drop unknown fields that a client sent.
        """
        return bool(self._mask(descriptor))

    def clear(self, message: Message) -> bool:
        """Clears in `message`, and all within it, what is not shown here; returns whether anything changed.

        Fields are unset, enum values become zero, and unknown fields are dropped. A number that no release knows as a
        value of its enum stays, as every runtime keeps it.
        """
        if self.full:
            return False
        # Whatever goes makes the message smaller, so its size tells whether anything went.
        size = message.ByteSize()
        message.DiscardUnknownFields()
        mask = self._mask(message.DESCRIPTOR)
        if mask:
            _clear(message, mask)
        return message.ByteSize() != size

    def clear_bytes(self, message_type: type[Message], content: bytes) -> bytes:
        """`content`, an encoded `message_type`, as it is after `clear`; DecodeError where it cannot be parsed."""
        if self.full:
            return content
        message = message_type.FromString(content)
        return message.SerializeToString(deterministic=True) if self.clear(message) else content

    def _mask(self, descriptor: Descriptor | UpbDescriptor) -> _Mask:
        mask = self._masks.get(descriptor)
        if mask is None:
            mask = self._masks[descriptor] = self._compile(descriptor)
        return mask

    def _compile(self, descriptor: Descriptor | UpbDescriptor) -> _Mask:
        if self.full or descriptor.GetOptions().map_entry:  # every map is of strings: nothing inside it has a release
            return _NOTHING
        shown = self._shown(self._releases.fields.get(descriptor.name, {}))
        hidden = tuple(field.name for field in descriptor.fields if field.name not in shown)
        enums: list[tuple[str, frozenset[int]]] = []
        single: list[tuple[str, _Mask]] = []
        repeated: list[tuple[str, _Mask]] = []
        for field in descriptor.fields:
            if field.name not in shown:
                continue
            if field.enum_type is not None and (newer := self._newer_values(field.enum_type)):
                enums.append((field.name, newer))
            if field.message_type is not None and (inner := self._mask(field.message_type)):
                (single if field.has_presence else repeated).append((field.name, inner))
        return _Mask(hidden, tuple(enums), tuple(single), tuple(repeated))

    def _newer_values(self, enum: EnumDescriptor | UpbEnumDescriptor) -> frozenset[int]:
        """The numbers of an enum that are not shown here. A number that has a shown name too is shown."""
        name = enum.full_name.removeprefix(f"{enum.file.package}.")
        shown = self._shown(self._releases.enum_values.get(name, {}))
        numbers = {value.number for value in enum.values if value.name in shown}
        return frozenset(value.number for value in enum.values) - numbers

    def _shown(self, since: Mapping[str, Level]) -> frozenset[str]:
        return frozenset(name for name, level in since.items() if level <= self.level)


def _clear(message: Message, mask: _Mask) -> None:
    for name in mask.hidden:
        message.ClearField(name)
    for name, newer in mask.enums:
        if getattr(message, name) in newer:
            message.ClearField(name)
    for name, inner in mask.single:
        if message.HasField(name):
            _clear(getattr(message, name), inner)
    for name, inner in mask.repeated:
        for item in getattr(message, name):
            _clear(item, inner)


def view(api: str, level: Level) -> View:
    """What `api` shows when the level is `level`: v1 shows that level, v1alpha2 none newer than 1.25, its last.

    Two calls that mean the same give the same object. ValueError for an unknown `api`, and for a level that is older
    than it or not known at all.
    """
    if api not in RELEASES:
        raise ValueError(f"unknown API version {api!r}: it is {' or '.join(RELEASES)}")
    first, last = RELEASES[api].first, RELEASES[api].last
    if not OLDEST <= level <= NEWEST:
        raise ValueError(f"unknown level {level}: it is a Kubernetes minor release, {OLDEST} … {NEWEST}")
    if level < first:
        raise ValueError(
            f"level {level} is older than {api}, which begins with {first}:"
            f" serve v1alpha2 alone, or choose a level of {first} … {last}"
        )
    return _interned(api, min(level, last))


@cache
def _interned(api: str, level: Level) -> View:
    return View(api, level)


_KEY_VALUE: Final = file_descriptor("v1").message_types_by_name["KeyValue"]


@cache
def _leads_to_key_value(descriptor: Descriptor | UpbDescriptor) -> tuple[tuple[str, bool], ...]:
    """The fields through which a KeyValue can be reached: name, and whether it is repeated."""
    return tuple(
        (field.name, not field.has_presence)
        for field in descriptor.fields
        if field.message_type is not None
        and (field.message_type is _KEY_VALUE or _leads_to_key_value(field.message_type))
    )


def non_utf8_env_value(message: Message) -> str | None:
    """The path, such as "config.envs[3].value", of the first KeyValue.value in `message` that is not UTF-8."""
    if message.DESCRIPTOR is _KEY_VALUE:
        value: bytes = getattr(message, "value")  # noqa: B009
        return None if value.isascii() or _is_utf8(value) else "value"
    for name, repeated in _leads_to_key_value(message.DESCRIPTOR):
        if not repeated and not message.HasField(name):
            continue
        found_here = getattr(message, name)
        for index, inner in enumerate(found_here if repeated else (found_here,)):
            if found := non_utf8_env_value(inner):
                return f"{name}[{index}].{found}" if repeated else f"{name}.{found}"
    return None


def _is_utf8(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True
