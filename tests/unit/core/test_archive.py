"""Archives: what goes in comes out, any tar reads them, and nothing that is damaged is believed."""

from __future__ import annotations

import io
import tarfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakecri.core import archive

NAMES = st.text(alphabet="abcdefghij-._é", min_size=1, max_size=40).filter(lambda name: name not in {".", ".."})
CONTENTS = st.dictionaries(NAMES, st.binary(max_size=1500), max_size=5)


@given(contents=CONTENTS, modified_s=st.integers(0, 2**32))
def test_round_trip(contents: dict[str, bytes], modified_s: int) -> None:
    packed = archive.pack(contents, modified_s)
    assert archive.unpack(packed) == contents
    assert list(archive.unpack(packed)) == list(contents)
    assert packed == archive.pack(dict(contents), modified_s)


@given(contents=CONTENTS)
def test_tar_reads_it(contents: dict[str, bytes]) -> None:
    with tarfile.open(fileobj=io.BytesIO(archive.pack(contents, 86400))) as tar:
        assert tar.getnames() == list(contents)
        for name, content in contents.items():
            member = tar.extractfile(name)
            assert member is not None
            assert member.read() == content
            assert tar.getmember(name).mtime == 86400
            assert tar.getmember(name).mode == 0o600


@given(contents=CONTENTS, cut=st.integers(1, 5000), flip=st.integers(0, 1 << 20))
def test_damage_is_an_error_or_leaves_the_contents(contents: dict[str, bytes], cut: int, flip: int) -> None:
    packed = archive.pack(contents)
    with pytest.raises(ValueError, match="byte"):
        archive.unpack(packed[: max(0, len(packed) - 2 * archive.BLOCK - cut)])
    at = flip % len(packed)
    damaged = bytearray(packed)
    damaged[at] ^= 1
    try:
        read = archive.unpack(bytes(damaged))
    except ValueError:
        return
    # Only the bytes of a content, or padding, may change without a sum that tells.
    assert set(read) == set(contents)


@pytest.mark.parametrize("name", ["", "/etc/passwd", "../up", "a/../../b", "x" * 101, "nul\0"])
def test_names_that_lead_elsewhere_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="cannot name an entry"):
        archive.pack({name: b""})


def test_a_link_is_not_followed() -> None:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        link = tarfile.TarInfo("config")
        link.type = tarfile.SYMTYPE
        link.linkname = "/etc/shadow"
        tar.addfile(link)
    with pytest.raises(ValueError, match="not a plain file"):
        archive.unpack(made.getvalue())


def test_an_entry_twice_is_refused() -> None:
    one = archive.pack({"a": b"1"})[: -2 * archive.BLOCK]
    with pytest.raises(ValueError, match="twice"):
        archive.unpack(one + archive.pack({"a": b"2"}))
