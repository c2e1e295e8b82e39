"""``echo`` as busybox has it: ``-n``, ``-e``, ``-E``, and what ``-e`` makes of backslashes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from fakecri.workload.registry import program

if TYPE_CHECKING:
    from fakecri.kernel.context import ProcessContext

_ESCAPE: Final = re.compile(rb"\\(?:0[0-7]{0,3}|x[0-9a-fA-F]{1,2}|[\\abcefnrtv])")
_SINGLE: Final = {
    b"\\": b"\\",
    b"a": b"\a",
    b"b": b"\b",
    b"e": b"\x1b",
    b"f": b"\f",
    b"n": b"\n",
    b"r": b"\r",
    b"t": b"\t",
    b"v": b"\v",
}


def expand(text: bytes) -> tuple[bytes, bool]:
    """``text`` with its escapes replaced, and whether ``\\c`` cut it off there."""
    for found in _ESCAPE.finditer(text):
        if found[0] == b"\\c":
            return _ESCAPE.sub(_replacement, text[: found.start()]), True
    return _ESCAPE.sub(_replacement, text), False


def _replacement(found: re.Match[bytes]) -> bytes:
    code = found[0][1:]
    if code in _SINGLE:
        return _SINGLE[code]
    if code.startswith(b"x"):
        return bytes([int(code[1:], 16)])
    return bytes([int(code, 8) & 0xFF])


@program("echo", memory_bytes=640 << 10)
def echo(context: ProcessContext) -> int:
    """Print the arguments: ``echo [-neE] [TEXT]...``."""
    words = list(context.argv[1:])
    newline, escapes = True, False
    while words and re.fullmatch(r"-[neE]+", words[0]):
        for option in words.pop(0)[1:]:
            newline = newline and option != "n"
            escapes = option == "e" if option != "n" else escapes
    text = " ".join(words).encode("utf-8", "surrogateescape")
    if escapes:
        text, cut = expand(text)
        newline = newline and not cut
    context.write(1, text + (b"\n" if newline else b""))
    return 0
