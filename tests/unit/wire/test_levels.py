"""Levels and views: what each release of each API version shows, against the tables themselves."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import pytest
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fakecri.wire import messages
from fakecri.wire.levels import LEVELS, NEWEST, OLDEST, RELEASES, Level, View, non_utf8_env_value, view
from fakecri.wire.methods import METHODS
from fakecri.wire.pool import file_descriptor

if TYPE_CHECKING:
    from google.protobuf.descriptor import FieldDescriptor
    from google.protobuf.message import Message

Tables = dict[str, dict[str, Any]]
VIEWS = [view(api, level) for api, levels in LEVELS.items() for level in levels]
CLASSES = [getattr(messages, name) for name in file_descriptor("v1").message_types_by_name]
ALL_TYPES = {cls.DESCRIPTOR.name: cls for cls in CLASSES}
UNKNOWN = b"\xfa\xff\x7f\x03new"  # field 262143, three bytes: in no release


def release(text: str) -> tuple[int, int]:
    major, minor = text.split(".")
    return int(major), int(minor)


# --- levels ----------------------------------------------------------------------------------------------------------


def test_levels_are_every_release_of_each_api() -> None:
    assert [str(level) for level in LEVELS["v1"]] == [f"1.{minor}" for minor in range(20, 38)]
    assert [str(level) for level in LEVELS["v1alpha2"]] == [f"1.{minor}" for minor in range(17, 26)]
    assert (str(OLDEST), str(NEWEST)) == ("1.17", "1.37")


def test_a_level_is_read_written_and_ordered_by_release_not_by_text() -> None:
    for text in ("1.17", "1.20", "1.37"):
        assert str(Level.parse(text)) == text
    assert Level.parse("1.20") == Level(1, 20)
    assert Level(1, 9) < Level.parse("1.20") < Level.parse("1.37")


@pytest.mark.parametrize(
    "text", ["", "1", "1.16", "1.38", "v1.30", "1.30.1", " 1.30", "1.30\n", "1.٣٠", "2.20", "1.-1"]
)
def test_a_bad_level_is_refused_with_the_range(text: str) -> None:
    with pytest.raises(ValueError) as caught:
        Level.parse(text)
    assert str(caught.value) == f"unknown level {text!r}: it is a Kubernetes minor release, 1.17 … 1.37"


@given(st.text())
def test_any_text_is_a_level_or_a_value_error(text: str) -> None:
    try:
        level = Level.parse(text)
    except ValueError:
        return
    assert OLDEST <= level <= NEWEST


# --- views -----------------------------------------------------------------------------------------------------------


def test_one_view_for_each_pair() -> None:
    assert len(set(VIEWS)) == len(VIEWS) == 18 + 9
    assert view("v1", Level(1, 29)) is view("v1", Level.parse("1.29"))


def test_v1alpha2_shows_nothing_newer_than_its_end() -> None:
    ended = view("v1alpha2", Level(1, 25))
    assert all(view("v1alpha2", level) is ended for level in LEVELS["v1"] if level >= Level(1, 25))
    assert ended.level == Level(1, 25)


def test_v1_before_its_time_is_refused_with_the_remedy() -> None:
    with pytest.raises(ValueError) as caught:
        view("v1", Level(1, 19))
    assert str(caught.value) == (
        "level 1.19 is older than v1, which begins with 1.20: serve v1alpha2 alone, or choose a level of 1.20 … 1.37"
    )


@pytest.mark.parametrize(
    ("api", "level", "text"),
    [
        ("v1", Level(1, 38), "unknown level 1.38: it is a Kubernetes minor release, 1.17 … 1.37"),
        ("v1alpha2", Level(1, 16), "unknown level 1.16: it is a Kubernetes minor release, 1.17 … 1.37"),
        ("v2", Level(1, 30), "unknown API version 'v2': it is v1 or v1alpha2"),
    ],
)
def test_a_view_of_nothing_is_refused(api: str, level: Level, text: str) -> None:
    with pytest.raises(ValueError) as caught:
        view(api, level)
    assert str(caught.value) == text


def test_a_view_says_what_it_is() -> None:
    assert repr(view("v1", Level(1, 29))) == "<View v1 at 1.29>"
    assert [seen for seen in VIEWS if seen.full] == [view("v1", NEWEST)]


@pytest.mark.parametrize("seen", VIEWS, ids=repr)
def test_every_rpc_is_admitted_from_its_release_on_and_in_its_api_only(seen: View, tables: Tables) -> None:
    admitted = {path for path, spec in METHODS.items() if seen.admits(spec)}
    assert admitted == {
        f"/runtime.{seen.api}.{service}/{name}"
        for service, rows in tables[seen.api]["services"].items()
        for name, row in rows.items()
        if release(row["since"]) <= seen.level
    }


def test_the_ends_of_the_range_admit_what_those_releases_had() -> None:
    counts = {(seen.api, str(seen.level)): sum(map(seen.admits, METHODS.values())) for seen in VIEWS}
    assert counts["v1alpha2", "1.17"] == 27
    assert counts["v1alpha2", "1.25"] == 29
    assert counts["v1", "1.20"] == 27
    assert counts["v1", "1.37"] == 43


# --- clearing --------------------------------------------------------------------------------------------------------


def plain(message: Message) -> dict[str, Any]:
    """A message as plain values, by field name: only what is set."""
    return {field.name: plain_value(field, value) for field, value in message.ListFields()}


def plain_value(field: FieldDescriptor, value: Any) -> Any:
    if field.message_type is None:
        return list(value) if not isinstance(value, (bool, int, float, str, bytes)) else value
    if field.message_type.GetOptions().map_entry:
        return dict(value)
    return plain(value) if field.has_presence else [plain(item) for item in value]


def shown(tables: Tables, seen: View, name: str, content: dict[str, Any]) -> dict[str, Any]:
    """What a view should leave of a message, worked out from the table alone."""
    table, kept = tables[seen.api], {}
    message = table["messages"].get(name, {"fields": {}})
    for field, value in content.items():
        row = message["fields"].get(field)
        if row is None or release(row.get("since", message["since"])) > seen.level:
            continue
        type_name = row["type"].removeprefix("repeated ")
        enum = table["enums"].get(f"{name}.{type_name}") or table["enums"].get(type_name)
        if enum and value in hidden_numbers(enum, seen):
            continue  # zero, and a zero is not on the wire
        if type_name not in table["messages"]:
            kept[field] = value
        elif isinstance(value, list):
            kept[field] = [shown(tables, seen, type_name, item) for item in value]
        else:
            kept[field] = shown(tables, seen, type_name, value)
    return kept


def hidden_numbers(enum: dict[str, Any], seen: View) -> set[int]:
    newer = enum.get("values_since", {})
    return {number for value, number in enum["values"].items() if release(newer.get(value, enum["since"])) > seen.level}


def filled(cls: type[Message]) -> Message:
    """A message with all set, and all within; enums at their last value, lists with an empty item first."""
    message = cls()
    for field in cls.DESCRIPTOR.fields:
        target = getattr(message, field.name)
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            target["key"] = "value"
        elif field.message_type is not None:
            inner = filled(ALL_TYPES[field.message_type.name])
            if not field.has_presence:
                target.add()
            (target if field.has_presence else target.add()).CopyFrom(inner)
        elif field.enum_type is not None:
            setattr(message, field.name, max(value.number for value in field.enum_type.values))
        elif isinstance(target, (bool, int, float, str, bytes)):
            setattr(message, field.name, b"x" if isinstance(target, bytes) else type(target)("1"))
        else:
            target.append("x" if field.cpp_type == field.CPPTYPE_STRING else 1)
    return message


def everything_within(seen: View, cls: type[Message]) -> bool:
    """Whether `clear` leaves a full message of this type as it is."""
    message = filled(cls)
    return not seen.clear(message)


@pytest.mark.parametrize("seen", VIEWS, ids=repr)
def test_of_full_messages_every_view_leaves_what_its_table_says(seen: View, tables: Tables) -> None:
    for cls in CLASSES:
        message = filled(cls)
        before = plain(message)
        expected = shown(tables, seen, cls.DESCRIPTOR.name, before)
        assert seen.clear(message) == (expected != before)
        assert plain(message) == expected
        assert seen.dirty(cls.DESCRIPTOR) >= (expected != before)
        assert not seen.clear(message), "a second time there is nothing left to clear"


def test_a_type_is_dirty_only_where_something_can_be_cleared(tables: Tables) -> None:
    # With the last enum values in all fields, a full message shows all there is to clear but NamespaceMode's TARGET,
    # which is the last.
    for seen in VIEWS:
        for cls in CLASSES:
            assert seen.dirty(cls.DESCRIPTOR) == (not everything_within(seen, cls)), (seen, cls)


def optional_fields(name: str) -> dict[str, st.SearchStrategy[Any]]:
    return {field.name: value_of(field) for field in ALL_TYPES[name].DESCRIPTOR.fields}


def value_of(field: FieldDescriptor) -> st.SearchStrategy[Any]:
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        return st.dictionaries(st.text(max_size=3), st.text(max_size=3), max_size=2)
    if field.message_type is not None:
        inner = arguments_of(field.message_type.name)
        return inner if field.has_presence else st.lists(inner, max_size=2)
    if field.enum_type is not None:
        return st.integers(0, len(field.enum_type.values) + 1)  # with numbers that no release knows
    scalar = {
        field.CPPTYPE_BOOL: st.booleans(),
        field.CPPTYPE_DOUBLE: st.floats(allow_nan=False),
        field.CPPTYPE_STRING: st.text(max_size=3) if field.type == field.TYPE_STRING else st.binary(max_size=3),
    }.get(field.cpp_type, st.integers(0, 2**31 - 1))
    repeated = not isinstance(
        getattr(ALL_TYPES[field.containing_type.name](), field.name), bool | int | float | str | bytes
    )
    return st.lists(scalar, max_size=2) if repeated else scalar


@cache
def arguments_of(name: str) -> st.SearchStrategy[dict[str, Any]]:
    """Keyword arguments for a message: any of its fields, with any values."""
    return st.fixed_dictionaries({}, optional=optional_fields(name))


# Types in which something is younger than the oldest view, half of the time: elsewhere there is nothing to find.
YOUNG_TYPES = sorted(name for name, cls in ALL_TYPES.items() if VIEWS[0].dirty(cls.DESCRIPTOR))
random_messages = (st.sampled_from(YOUNG_TYPES) | st.sampled_from(sorted(ALL_TYPES))).flatmap(
    lambda name: arguments_of(name).map(lambda arguments: ALL_TYPES[name](**arguments))
)


@settings(max_examples=600, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(message=random_messages, seen=st.sampled_from(VIEWS))
def test_of_any_message_a_view_leaves_what_its_table_says(tables: Tables, message: Message, seen: View) -> None:
    before, content = plain(message), message.SerializeToString(deterministic=True)
    expected = shown(tables, seen, message.DESCRIPTOR.name, before)
    changed = seen.clear(message)
    assert plain(message) == expected
    assert changed == (expected != before)
    assert seen.clear_bytes(type(message), content) == message.SerializeToString(deterministic=True)


# --- bytes -----------------------------------------------------------------------------------------------------------


def test_v1_only_fields_in_v1alpha2_bytes_are_gone() -> None:
    sent = messages.CreateContainerRequest(
        pod_sandbox_id="sandbox",
        config=messages.ContainerConfig(
            metadata=messages.ContainerMetadata(name="c", attempt=1),
            image=messages.ImageSpec(image="i", user_specified_image="u", runtime_handler="h"),
            CDI_devices=[messages.CDIDevice(name="gpu")],
            stop_signal=messages.SIGNAL_SIGUSR1,
            mounts=[messages.Mount(host_path="/h"), messages.Mount(host_path="/i", recursive_read_only=True)],
            linux=messages.LinuxContainerConfig(
                security_context=messages.LinuxContainerSecurityContext(
                    privileged=True, supplemental_groups_policy=messages.Strict
                )
            ),
        ),
    )
    kept = messages.CreateContainerRequest(
        pod_sandbox_id="sandbox",
        config=messages.ContainerConfig(
            metadata=messages.ContainerMetadata(name="c", attempt=1),
            image=messages.ImageSpec(image="i"),
            mounts=[messages.Mount(host_path="/h"), messages.Mount(host_path="/i")],
            linux=messages.LinuxContainerConfig(
                security_context=messages.LinuxContainerSecurityContext(privileged=True)
            ),
        ),
    )
    for level in LEVELS["v1alpha2"]:
        seen = view("v1alpha2", level)
        content = seen.clear_bytes(messages.CreateContainerRequest, sent.SerializeToString(deterministic=True))
        assert messages.CreateContainerRequest.FromString(content) == kept
        # and the real v1alpha2 class finds nothing in it that it does not know
        cls = GetMessageClass(file_descriptor("v1alpha2").message_types_by_name["CreateContainerRequest"])
        parsed = cls.FromString(content)
        parsed.DiscardUnknownFields()
        assert parsed.SerializeToString(deterministic=True) == content


def test_an_enum_value_newer_than_the_view_reads_as_zero() -> None:
    for level, expected in ((Level(1, 17), messages.POD), (Level(1, 18), messages.TARGET)):
        option = messages.NamespaceOption(network=messages.NODE, pid=messages.TARGET)
        assert view("v1alpha2", level).clear(option) == (expected == messages.POD)
        assert (option.network, option.pid) == (messages.NODE, expected)


def test_an_enum_number_that_no_release_knows_stays() -> None:
    option = messages.NamespaceOption(pid=99)
    assert not view("v1alpha2", OLDEST).clear(option)
    assert option.pid == 99


@pytest.mark.parametrize("seen", VIEWS, ids=repr)
def test_unknown_fields_stay_only_in_the_full_view(seen: View) -> None:
    inner = messages.PodSandboxMetadata(name="n").SerializeToString(deterministic=True) + UNKNOWN
    content = b"\x0a" + bytes([len(inner)]) + inner
    config = messages.PodSandboxConfig.FromString(content)
    assert config.ByteSize() == len(content)
    assert seen.clear(config) == (not seen.full)
    assert (UNKNOWN in config.SerializeToString(deterministic=True)) == seen.full
    assert (UNKNOWN in seen.clear_bytes(messages.PodSandboxConfig, content)) == seen.full
    assert config.metadata.name == "n"
    version = messages.VersionRequest.FromString(UNKNOWN)  # a type with nothing newer in it
    assert seen.clear(version) == (not seen.full)
    assert not seen.dirty(messages.VersionRequest.DESCRIPTOR)


def test_bytes_that_are_not_the_message_are_a_decode_error() -> None:
    with pytest.raises(DecodeError):
        view("v1alpha2", OLDEST).clear_bytes(messages.VersionRequest, b"\xff")


def test_releases_know_only_the_names_of_the_tables(tables: Tables) -> None:
    for api, releases in RELEASES.items():
        assert releases.fields.keys() == tables[api]["messages"].keys()
        assert releases.enum_values.keys() == tables[api]["enums"].keys()


# --- env values ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seen", VIEWS, ids=repr)
def test_an_env_value_is_bytes_only_in_v1_since_1_37(seen: View) -> None:
    assert seen.env_value_is_text == (seen is not view("v1", Level(1, 37)))


def test_a_non_utf8_env_value_is_found_with_its_path() -> None:
    request = messages.CreateContainerRequest()
    assert non_utf8_env_value(request) is None
    for value in (b"", b"plain", "ü€😀".encode(), b"\x00"):
        request.config.envs.add(key="k", value=value)
    assert non_utf8_env_value(request) is None
    request.config.envs.add(key="k", value=b"\xff\xfe")
    request.config.envs.add(key="k", value=b"\xff")
    assert non_utf8_env_value(request) == "config.envs[4].value"
    assert non_utf8_env_value(request.config) == "envs[4].value"
    assert non_utf8_env_value(request.config.envs[4]) == "value"
    assert non_utf8_env_value(request.config.envs[0]) is None


@given(st.lists(st.binary(max_size=6), max_size=5))
def test_what_is_found_is_what_the_v1alpha2_class_refuses(values: list[bytes]) -> None:
    request = messages.CreateContainerRequest()
    for value in values:
        request.config.envs.add(key="k", value=value)
    content = request.SerializeToString(deterministic=True)
    cls = GetMessageClass(file_descriptor("v1alpha2").message_types_by_name["CreateContainerRequest"])
    if non_utf8_env_value(messages.CreateContainerRequest.FromString(content)) is None:
        assert [item.value.encode() for item in cls.FromString(content).config.envs] == values
    else:
        with pytest.raises(DecodeError):
            cls.FromString(content)


def test_a_non_utf8_env_value_passes_through_clear_untouched() -> None:
    request = messages.CreateContainerRequest()
    request.config.envs.add(key="k", value=b"\xff")
    for seen in VIEWS:
        assert not seen.clear(request)
    assert request.config.envs[0].value == b"\xff"


def test_a_request_without_key_value_has_none() -> None:
    for spec in METHODS.values():
        found = non_utf8_env_value(filled(spec.request))
        assert found is None, spec.path
