"""The descriptors hold what the tables say, all of it and nothing else."""

from __future__ import annotations

import copy
import pickle
from typing import TYPE_CHECKING, Any

import pytest
from google.protobuf.descriptor import FieldDescriptor

from fakecri.wire import messages
from fakecri.wire.pool import file_descriptor

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor

APIS = ("v1", "v1alpha2")
SCALARS = {
    FieldDescriptor.TYPE_BOOL: "bool",
    FieldDescriptor.TYPE_BYTES: "bytes",
    FieldDescriptor.TYPE_DOUBLE: "double",
    FieldDescriptor.TYPE_INT32: "int32",
    FieldDescriptor.TYPE_INT64: "int64",
    FieldDescriptor.TYPE_STRING: "string",
    FieldDescriptor.TYPE_UINT32: "uint32",
    FieldDescriptor.TYPE_UINT64: "uint64",
}


def type_text(field: FieldDescriptor) -> str:
    """A field's type, written as the tables write it."""
    if field.enum_type is not None:
        return field.enum_type.name
    if field.message_type is None:
        text = SCALARS[field.type]
    elif field.message_type.GetOptions().map_entry:
        key, value = (type_text(field.message_type.fields_by_name[part]) for part in ("key", "value"))
        return f"map<{key},{value}>"
    else:
        text = field.message_type.name
    return text if field.has_presence or _is_singular_scalar(field) else f"repeated {text}"


def _is_singular_scalar(field: FieldDescriptor) -> bool:
    return field.message_type is None and isinstance(field.default_value, (bool, bytes, float, int, str))


def described_fields(descriptor: Descriptor) -> dict[str, tuple[int, str]]:
    return {field.name: (field.number, type_text(field)) for field in descriptor.fields}


@pytest.mark.parametrize("api", APIS)
def test_messages_and_fields_are_those_of_the_table(api: str, tables: dict[str, dict[str, Any]]) -> None:
    described = {
        name: described_fields(message) for name, message in file_descriptor(api).message_types_by_name.items()
    }
    expected = {
        name: {field: (row["number"], row["type"]) for field, row in message["fields"].items()}
        for name, message in tables[api]["messages"].items()
    }
    assert described == expected


@pytest.mark.parametrize("api", APIS)
def test_enums_and_values_are_those_of_the_table(api: str, tables: dict[str, dict[str, Any]]) -> None:
    file = file_descriptor(api)
    enums = [*file.enum_types_by_name.values()]
    enums += [enum for message in file.message_types_by_name.values() for enum in message.enum_types]
    described = {
        enum.full_name.removeprefix(f"{file.package}."): {value.name: value.number for value in enum.values}
        for enum in enums
    }
    assert described == {name: enum["values"] for name, enum in tables[api]["enums"].items()}


@pytest.mark.parametrize(("api", "count"), [("v1", 43), ("v1alpha2", 29)])
def test_rpcs_are_those_of_the_table(api: str, count: int, tables: dict[str, dict[str, Any]]) -> None:
    described = {
        (service.name, rpc.name): (rpc.input_type.name, rpc.output_type.name, rpc.server_streaming)
        for service in file_descriptor(api).services_by_name.values()
        for rpc in service.methods
    }
    assert described == {
        (service, name): (row["request"], row["response"], row["server_streaming"])
        for service, rows in tables[api]["services"].items()
        for name, row in rows.items()
    }
    assert len(described) == count


def test_v1alpha2_is_a_part_of_v1_but_for_one_type() -> None:
    newest, oldest = (file_descriptor(api).message_types_by_name for api in APIS)
    differences = {
        f"{name}.{field}": (form, described_fields(newest[name]).get(field))
        for name, message in oldest.items()
        for field, form in described_fields(message).items()
        if described_fields(newest[name]).get(field) != form
    }
    assert differences == {"KeyValue.value": ((2, "string"), (2, "bytes"))}


def test_odd_field_names_keep_their_json_names() -> None:
    names = {
        (message.name, field.name): field.json_name
        for message in file_descriptor("v1").message_types_by_name.values()
        for field in message.fields
    }
    assert names["Mount", "uidMappings"] == "uidMappings"
    assert names["ContainerConfig", "CDI_devices"] == "CDIDevices"
    assert names["PsiData", "Avg10"] == "Avg10"
    assert names["PodSandboxStatus", "created_at"] == "createdAt"


def test_unknown_api_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="unknown API version 'v1beta1': it is v1 or v1alpha2"):
        file_descriptor("v1beta1")


def test_messages_has_every_class_enum_and_value(tables: dict[str, dict[str, Any]]) -> None:
    for name in tables["v1"]["messages"]:
        assert getattr(messages, name).DESCRIPTOR.full_name == f"runtime.v1.{name}"
    for name, enum in tables["v1"]["enums"].items():
        owner, _, short = name.rpartition(".")
        holder = getattr(messages, owner) if owner else messages
        assert dict(getattr(holder, short).items()) == enum["values"]
        assert {value: getattr(holder, value) for value in enum["values"]} == enum["values"]


def test_equal_messages_have_equal_bytes_whatever_the_order_of_their_maps() -> None:
    labels = {f"key-{number}": str(number) for number in range(50)}
    one = messages.PodSandboxConfig(labels=labels)
    other = messages.PodSandboxConfig(labels=dict(reversed(labels.items())))
    assert one.SerializeToString(deterministic=True) == other.SerializeToString(deterministic=True)


def test_messages_can_be_copied_and_pickled() -> None:
    mount = messages.Mount(host_path="/a")
    assert pickle.loads(pickle.dumps(mount)) == copy.deepcopy(mount) == mount
    assert repr(messages.Mount) == "<class 'fakecri.wire.messages.Mount'>"
