"""Archives of named contents: plain tar (ustar), written and read here, so that equal contents are equal bytes.

Anybody can look into one with ``tar tf``. The rules kept: entries in the order given, every owner and date as given or
zero, and a reader that trusts nothing: a header whose sum is wrong, an entry that is not a plain file, or an archive
that ends early is a ``ValueError`` that names the place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

BLOCK: Final = 512
_NAME_LIMIT: Final = 100
_PLAIN_FILE: Final = b"0"
_SUM = slice(148, 156)


def pack(contents: Mapping[str, bytes], modified_s: int = 0) -> bytes:
    """One archive of all entries; ``modified_s`` is Unix time in seconds.

    Raises:
        ValueError: a name is empty, longer than 100 bytes, or not a plain relative name.
    """
    parts: list[bytes] = []
    for name, content in contents.items():
        parts += (_header(name, len(content), modified_s), content, b"\0" * (-len(content) % BLOCK))
    parts.append(b"\0" * (2 * BLOCK))
    return b"".join(parts)


def unpack(archive: bytes) -> dict[str, bytes]:
    """The entries of an archive that ``pack`` wrote.

    Raises:
        ValueError: it is not such an archive; the text names the byte offset.
    """
    contents: dict[str, bytes] = {}
    at = 0
    while True:
        block = archive[at : at + BLOCK]
        if len(block) < BLOCK:
            raise ValueError(f"ends at byte {len(archive)}, inside the header at byte {at}")
        if not any(block):
            return contents
        name, size = _parsed(block, at)
        content = archive[at + BLOCK : at + BLOCK + size]
        if len(content) < size:
            raise ValueError(f"entry {name!r} at byte {at} has {len(content)} of its {size} bytes")
        if name in contents:
            raise ValueError(f"entry {name!r} at byte {at} is there twice")
        contents[name] = content
        at += BLOCK + size + -size % BLOCK


def _header(name: str, size: int, modified_s: int) -> bytes:
    encoded = name.encode()
    if not encoded or len(encoded) > _NAME_LIMIT or name.startswith("/") or ".." in name.split("/") or "\0" in name:
        raise ValueError(f"{name!r} cannot name an entry: give a relative name of 1 to {_NAME_LIMIT} bytes")
    block = bytearray(BLOCK)
    block[0 : len(encoded)] = encoded
    block[100:108] = b"0000600\0"
    block[108:116] = b"0000000\0"
    block[116:124] = b"0000000\0"
    block[124:136] = b"%011o\0" % size
    block[136:148] = b"%011o\0" % modified_s
    block[156:157] = _PLAIN_FILE
    block[257:265] = b"ustar\x0000"
    block[_SUM] = b"%06o\0 " % _sum(block)
    return bytes(block)


def _sum(block: bytes | bytearray) -> int:
    return sum(block) - sum(block[_SUM]) + 8 * ord(" ")


def _parsed(block: bytes, at: int) -> tuple[str, int]:
    try:
        given = int(block[_SUM].rstrip(b"\0 "), 8)
        size = int(block[124:136].rstrip(b"\0 "), 8)
        name = block[:_NAME_LIMIT].rstrip(b"\0").decode()
    except ValueError as problem:
        raise ValueError(f"no archive header at byte {at}") from problem
    if given != _sum(block):
        raise ValueError(f"the header at byte {at} is damaged: its sum is {_sum(block)}, not {given}")
    if block[156:157] != _PLAIN_FILE or size < 0:
        raise ValueError(f"entry {name!r} at byte {at} is not a plain file")
    return name, size
