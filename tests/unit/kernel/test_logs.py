"""Container log lines: the same file however output was split, and nothing lost."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakecri.clock import DEFAULT_EPOCH_NS, SECOND
from fakecri.kernel.logs import LOG_STYLES, LogFileMade, LogLines, LogStyle, LogTimes, log_time

T = DEFAULT_EPOCH_NS
AT = b"2026-01-01T00:00:00Z"
CONTAINERD = LOG_STYLES["containerd"]
CRIO = LOG_STYLES["cri-o"]
SMALL = LogStyle(chunk_bytes=4)

TEXT = st.lists(st.sampled_from([b"a", b"bc", b"\n", b"\r", b"\r\n", b"\xff", b"longer text", b" "]), max_size=30).map(
    b"".join
)


def log(style: LogStyle, *writes: tuple[int, bytes], tty: bool = False) -> list[bytes]:
    lines = LogLines(style, tty=tty)
    return [line for descriptor, chunk in writes for line in lines.feed(descriptor, chunk, T)] + lines.end(T)


def contents(lines: list[bytes], stream: bytes = b"stdout") -> list[tuple[bytes, bytes]]:
    """(tag, content) of one stream's lines, as a client parses them."""
    found = []
    for line in lines:
        assert line.endswith(b"\n")
        assert line.count(b"\n") == 1
        _, of, tag, content = line[:-1].split(b" ", 3)
        if of == stream:
            found.append((tag, content))
    return found


def joined(lines: list[bytes], stream: bytes = b"stdout") -> bytes:
    """What a client that joins partial lines shows."""
    return b"".join(content + (b"\n" if tag == b"F" else b"") for tag, content in contents(lines, stream))


def split(text: bytes, cuts: list[int]) -> list[bytes]:
    edges = [0, *sorted(cut % (len(text) + 1) for cut in cuts), len(text)]
    return [text[start:end] for start, end in pairwise(edges)]


# -- lines -------------------------------------------------------------------------------------------------------------
def test_lines_of_both_streams_in_the_order_of_writing() -> None:
    assert log(CONTAINERD, (1, b"out\nmo"), (2, b"err\n"), (1, b"re\n")) == [
        AT + b" stdout F out\n",
        AT + b" stderr F err\n",
        AT + b" stdout F more\n",
    ]


def test_an_empty_line_has_an_empty_content() -> None:
    assert log(CONTAINERD, (1, b"\n")) == [AT + b" stdout F \n"]


def test_a_line_without_an_end_is_partial() -> None:
    assert contents(log(CONTAINERD, (1, b"a\nb"))) == [(b"F", b"a"), (b"P", b"b")]


def test_both_streams_may_end_without_a_newline() -> None:
    assert log(CONTAINERD, (2, b"e"), (1, b"o")) == [AT + b" stdout P o\n", AT + b" stderr P e\n"]


@pytest.mark.parametrize(
    ("length", "sizes"),
    [
        (16384, [(b"F", 16384)]),
        (16385, [(b"P", 16384), (b"F", 1)]),
        (32768, [(b"P", 16384), (b"F", 16384)]),
        (40000, [(b"P", 16384), (b"P", 16384), (b"F", 7232)]),
    ],
)
def test_long_lines_are_cut(length: int, sizes: list[tuple[bytes, int]]) -> None:
    lines = log(CONTAINERD, (1, b"x" * length + b"\n"))
    assert [(tag, len(content)) for tag, content in contents(lines)] == sizes


def test_a_long_line_is_written_as_soon_as_it_is_too_long() -> None:
    lines = LogLines(CONTAINERD)
    assert lines.feed(1, b"x" * 16384, T) == []
    assert len(lines.feed(1, b"x", T)) == 1
    assert contents(lines.feed(1, b"\n", T)) == [(b"F", b"x")]


def test_the_time_of_a_line_is_when_its_end_was_written() -> None:
    lines = LogLines(CONTAINERD)
    lines.feed(1, b"begun", T)
    (line,) = lines.feed(1, b" ended\n", T + SECOND)
    assert line == b"2026-01-01T00:00:01Z stdout F begun ended\n"


# -- properties --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("style", [CONTAINERD, SMALL])
@pytest.mark.parametrize("tty", [False, True])
@given(text=TEXT, cuts=st.lists(st.integers(0, 200), max_size=8))
def test_any_split_into_writes_gives_the_same_file(style: LogStyle, tty: bool, text: bytes, cuts: list[int]) -> None:
    whole = log(style, (1, text), tty=tty)
    assert log(style, *((1, part) for part in split(text, cuts)), tty=tty) == whole


@pytest.mark.parametrize("style", [CONTAINERD, SMALL, CRIO, LogStyle(chunk_bytes=3, buffered=False)])
@given(text=TEXT, cuts=st.lists(st.integers(0, 200), max_size=8))
def test_the_joined_lines_are_what_was_written(style: LogStyle, text: bytes, cuts: list[int]) -> None:
    lines = log(style, *((1, part) for part in split(text, cuts)))
    assert joined(lines) == text
    assert all(len(content) <= style.chunk_bytes for _, content in contents(lines))


@given(writes=st.lists(st.tuples(st.sampled_from([1, 2]), TEXT), max_size=10))
def test_streams_do_not_mix(writes: list[tuple[int, bytes]]) -> None:
    lines = log(SMALL, *writes)
    for descriptor, stream in ((1, b"stdout"), (2, b"stderr")):
        assert joined(lines, stream) == b"".join(chunk for number, chunk in writes if number == descriptor)


@given(text=TEXT, cuts=st.lists(st.integers(0, 200), max_size=8))
def test_a_terminal_has_one_stream_and_no_carriage_returns_before_line_feeds(text: bytes, cuts: list[int]) -> None:
    parts = split(text, cuts)
    lines = log(SMALL, *((1 + number % 2, part) for number, part in enumerate(parts)), tty=True)
    assert contents(lines, b"stderr") == []
    assert joined(lines) == text.replace(b"\r\n", b"\n")


# -- CRI-O -------------------------------------------------------------------------------------------------------------
def test_unbuffered_writes_are_partial_at_once() -> None:
    assert contents(log(CRIO, (1, b"ab"), (1, b"c\n"))) == [(b"P", b"ab"), (b"F", b"c")]


def test_unbuffered_long_lines_end_in_an_empty_line() -> None:
    lines = log(CRIO, (1, b"x" * 16384 + b"\n"))
    assert [(tag, len(content)) for tag, content in contents(lines)] == [(b"P", 8192), (b"P", 8192), (b"F", 0)]


def test_the_styles_differ_as_measured() -> None:
    assert (CONTAINERD.file_mode, CONTAINERD.file_made) == (0o640, LogFileMade.AT_START)
    assert (CRIO.file_mode, CRIO.file_made) == (0o600, LogFileMade.AT_CREATE)
    assert log(CRIO, (1, b"x\n")) == [b"2026-01-01T00:00:00.000000000+00:00 stdout F x\n"]


# -- times -------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("nanoseconds", "fraction"),
    [(0, ""), (126216724, ".126216724"), (860000000, ".86"), (1, ".000000001"), (100, ".0000001")],
)
def test_trailing_zeros_are_left_out(nanoseconds: int, fraction: str) -> None:
    assert log_time(T + nanoseconds) == f"2026-01-01T00:00:00{fraction}Z"


@given(st.integers(0, 4 * 10**18))
def test_a_time_reads_back_as_it_was(wall_ns: int) -> None:
    for style, zone in ((LogTimes.TRIMMED_ZULU, "Z"), (LogTimes.FIXED_OFFSET, "+00:00")):
        found = re.fullmatch(r"(.{19})(?:\.(\d{1,9}))?(Z|\+00:00)", log_time(wall_ns, style))
        assert found is not None
        assert found[3] == zone
        seconds = datetime.fromisoformat(found[1]).replace(tzinfo=UTC).timestamp()
        assert int(seconds) * SECOND + int((found[2] or "").ljust(9, "0")) == wall_ns
