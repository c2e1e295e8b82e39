"""Every message class and enum of runtime.v1 as a module attribute; `messages.pyi` beside this file holds the types.

The rule: these are the only classes in use. v1alpha2 has the same field numbers and types, so its bytes are parsed as
these too. Enum values are plain integers, `messages.SANDBOX_READY`; an enum's name gives its wrapper,
`messages.PodSandboxState.Name(0)`. Serialise with `deterministic=True`: the order of map entries differs otherwise.
"""

from __future__ import annotations

from google.protobuf.internal.enum_type_wrapper import EnumTypeWrapper
from google.protobuf.message_factory import GetMessageClass

from fakecri.wire.pool import file_descriptor

DESCRIPTOR = file_descriptor("v1")

for _name, _descriptor in DESCRIPTOR.message_types_by_name.items():
    globals()[_name] = GetMessageClass(_descriptor)
    globals()[_name].__module__ = __name__  # for pickle, and for whoever prints the class
for _name, _enum in DESCRIPTOR.enum_types_by_name.items():
    globals()[_name] = EnumTypeWrapper(_enum)
    globals().update({value.name: value.number for value in _enum.values})
