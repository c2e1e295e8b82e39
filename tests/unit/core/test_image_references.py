"""The grammar of image references and their one full form."""

from __future__ import annotations

import re
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakecri.base.reasons import CriError, Reason
from fakecri.core.references import PATH_LIMIT, Reference, is_digest, parse_reference, parse_tagged

HEX = "0123456789abcdef" * 4
DIGEST = f"sha256:{HEX}"


@pytest.mark.parametrize(
    ("text", "full"),
    [
        ("busybox", "docker.io/library/busybox:latest"),
        ("busybox:1.0", "docker.io/library/busybox:1.0"),
        ("library/busybox:1.0", "docker.io/library/busybox:1.0"),
        ("docker.io/busybox", "docker.io/library/busybox:latest"),
        ("index.docker.io/busybox:1", "docker.io/library/busybox:1"),
        ("team/app", "docker.io/team/app:latest"),
        ("localhost/app", "localhost/app:latest"),
        ("localhost:5000/a/b:t", "localhost:5000/a/b:t"),
        ("127.0.0.1:5055/team/pull", "127.0.0.1:5055/team/pull:latest"),
        ("[::1]:5000/app:v1", "[::1]:5000/app:v1"),
        ("registry.k8s.io/pause:3.9", "registry.k8s.io/pause:3.9"),
        ("UPPER/name", "UPPER/name:latest"),
        ("a__b/c-d--e.f_g", "docker.io/a__b/c-d--e.f_g:latest"),
        (f"busybox@{DIGEST}", f"docker.io/library/busybox@{DIGEST}"),
        (f"busybox:1.0@{DIGEST}", f"docker.io/library/busybox@{DIGEST}"),
        (f"sha256:{HEX}", f"docker.io/library/sha256:{HEX}"),
    ],
)
def test_full_form(text: str, full: str) -> None:
    assert str(parse_reference(text)) == full


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("UPPER//case", Reason.IMAGE_REFERENCE_INVALID),
        ("Busybox", Reason.IMAGE_REFERENCE_UPPERCASE),
        ("docker.io/Team/app", Reason.IMAGE_REFERENCE_UPPERCASE),
        ("a..b", Reason.IMAGE_REFERENCE_INVALID),
        ("a:", Reason.IMAGE_REFERENCE_INVALID),
        (":tag", Reason.IMAGE_REFERENCE_INVALID),
        ("a/b/", Reason.IMAGE_REFERENCE_INVALID),
        ("-a", Reason.IMAGE_REFERENCE_INVALID),
        ("a:tag:tag", Reason.IMAGE_REFERENCE_INVALID),
        ("a b", Reason.IMAGE_REFERENCE_INVALID),
        ("a@sha256:123", Reason.IMAGE_REFERENCE_INVALID),
        (f"a@sha256:{HEX[:-1]}", Reason.IMAGE_REFERENCE_INVALID),
        (f"a@sha256:{HEX.upper()}", Reason.IMAGE_REFERENCE_INVALID),
        (f"a@md5:{HEX}", Reason.IMAGE_REFERENCE_INVALID),
        ("a:" + "t" * 129, Reason.IMAGE_REFERENCE_INVALID),
        ("host.example:x/a", Reason.IMAGE_REFERENCE_INVALID),
        ("a\n", Reason.IMAGE_REFERENCE_INVALID),
        (HEX, Reason.IMAGE_REFERENCE_IS_ID),
        ("r.example/" + "a" * (PATH_LIMIT + 1), Reason.IMAGE_REFERENCE_TOO_LONG),
    ],
)
def test_refused(text: str, reason: Reason) -> None:
    with pytest.raises(CriError) as refused:
        parse_reference(text)
    assert refused.value.reason is reason
    assert refused.value.facts["image"] == text


def test_longest_path_is_accepted() -> None:
    assert parse_reference("r.example/" + "a" * PATH_LIMIT).path == "a" * PATH_LIMIT


def test_the_older_rule_takes_a_capital_host_for_a_path() -> None:
    with pytest.raises(CriError) as refused:
        parse_reference("UPPER//case", upper_case_hosts=False)
    assert refused.value.reason is Reason.IMAGE_REFERENCE_UPPERCASE
    assert refused.value.facts["repository"] == "UPPER//case"


def test_the_tag_beside_a_digest_is_told() -> None:
    reference, tag = parse_tagged(f"r.example/a:v1@{DIGEST}")
    assert (str(reference), tag) == (f"r.example/a@{DIGEST}", "v1")
    assert parse_tagged("r.example/a:v1") == (Reference("r.example", "a", tag="v1"), "")


component = st.from_regex(r"[a-z0-9]{1,8}((_|__|\.|-{1,3})[a-z0-9]{1,8}){0,2}", fullmatch=True)
paths = st.lists(component, min_size=1, max_size=4).map("/".join)
hosts = st.from_regex(r"[a-z0-9]{1,6}(\.[a-z0-9]{1,6}){1,3}(:[0-9]{1,5})?", fullmatch=True).filter(
    lambda host: host not in ("docker.io", "index.docker.io")
)
tags = st.text(string.ascii_letters + string.digits + "_.-", min_size=1, max_size=128).filter(
    lambda tag: tag[0] not in ".-"
)
digests = st.text("0123456789abcdef", min_size=64, max_size=64).map("sha256:".__add__)


@given(hosts, paths, tags)
def test_a_full_tagged_reference_is_its_own_full_form(host: str, path: str, tag: str) -> None:
    reference = parse_reference(f"{host}/{path}:{tag}")
    assert reference == Reference(host, path, tag=tag)
    assert parse_reference(str(reference)) == reference


@given(hosts, paths, tags, digests)
def test_only_the_digest_counts_beside_a_tag(host: str, path: str, tag: str, digest: str) -> None:
    reference = parse_reference(f"{host}/{path}:{tag}@{digest}")
    assert reference == parse_reference(f"{host}/{path}@{digest}")
    assert str(reference) == f"{host}/{path}@{digest}"


@given(st.text())
def test_any_text_is_a_reference_or_refused_and_full_forms_are_stable(text: str) -> None:
    try:
        reference = parse_reference(text)
    except CriError:
        return
    assert parse_reference(str(reference)) == reference
    assert bool(reference.tag) != bool(reference.digest)


@given(st.text("0123456789abcdefg:sha256", max_size=80))
def test_digests(text: str) -> None:
    assert is_digest(text) == bool(re.fullmatch("sha256:[0-9a-f]{64}", text))
