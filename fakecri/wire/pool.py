"""The private descriptor pool that holds `runtime.v1`, and the descriptors of both versions.

The rule: nothing is added to protobuf's default pool. Another package in the same interpreter may have registered its
own `runtime.v1` there, of any release; the two never meet.
"""

from __future__ import annotations

from functools import cache
from pkgutil import get_data
from typing import TYPE_CHECKING, Final

from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool

if TYPE_CHECKING:
    from google.protobuf.descriptor import FileDescriptor

POOL: Final = DescriptorPool()


@cache
def file_descriptor(api: str) -> FileDescriptor:
    """The descriptor of `runtime.<api>`, for api "v1" or "v1alpha2", loaded into the private pool at first use."""
    if api not in ("v1", "v1alpha2"):
        raise ValueError(f"unknown API version {api!r}: it is v1 or v1alpha2")
    shipped = FileDescriptorSet.FromString(get_data(__package__, f"runtime_{api}.binpb") or b"")
    for file in shipped.file:
        POOL.Add(file)
    return POOL.FindFileByName(f"runtime/{api}/api.proto")
