"""What registries offer: catalogue layers, made-up images, closed hosts, credentials."""

from __future__ import annotations

import base64
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakecri.base.reasons import FACTS, CriError, Reason
from fakecri.core.catalogue import Catalogue, ImageConfig, ImageSource, make_up
from fakecri.core.catalogue_builtin import BUSYBOX_EXECUTABLES, PAUSE_IMAGE, builtin_catalogue
from fakecri.core.node import UnknownImages
from fakecri.core.references import is_digest, parse_reference
from fakecri.core.registries import (
    ANONYMOUS,
    TRANSFER_NS,
    Credentials,
    Login,
    Registry,
    RepositoryRule,
    WrongDigest,
    credentials_of,
)

CRI_TOOLS = "gcr.io/k8s-staging-cri-tools"
PULL = UnknownImages.PULL


def ask(catalogue: Catalogue, text: str, credentials: Credentials = ANONYMOUS, unknown: UnknownImages = PULL):
    return catalogue.ask(parse_reference(text), credentials, unknown)


def refusal(catalogue: Catalogue, text: str, credentials: Credentials = ANONYMOUS, unknown: UnknownImages = PULL):
    with pytest.raises(CriError) as refused:
        ask(catalogue, text, credentials, unknown)
    error = refused.value
    assert set(FACTS[error.reason]) <= set(error.facts), "every fact that a text may need"
    return error


# -- the built-in images -----------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def builtin() -> Catalogue:
    return builtin_catalogue()


def test_every_builtin_image_is_plausible(builtin: Catalogue) -> None:
    for source in builtin.sources:
        assert is_digest(source.id)
        assert source.size_bytes > 0
        assert source.config.entrypoint or source.config.command
        command = (*source.config.entrypoint, *source.config.command)[0]
        path = dict(entry.split("=", 1) for entry in source.config.environment)["PATH"].split(":")
        found = [command] if command.startswith("/") else [f"{directory}/{command}" for directory in path]
        assert any(place in source.executables for place in found), source.names
        user, _, group = source.config.user.partition(":")
        assert user.isdigit() or not user or f"\n{user}:x:" in f"\n{source.passwd}"
        assert group.isdigit() or not group or f"\n{group}:x:" in f"\n{source.group}"
    assert len({source.id for source in builtin.sources}) == len(builtin.sources)


def test_one_pause_image_is_there_at_the_start_and_pinned(builtin: Catalogue) -> None:
    (pause,) = builtin.at_start
    assert PAUSE_IMAGE in pause.names
    assert pause.pinned
    assert pause.executables == {"/pause": "pause"}


@pytest.mark.parametrize(
    ("name", "user"),
    [
        ("test-image-user-uid", "1002"),
        ("test-image-user-username", "www-data"),
        ("test-image-user-uid-group", "1003:1004"),
        ("test-image-user-username-group", "www-data:1004"),
        ("test-image-predefined-group", "1000"),
        ("test-image-latest", ""),
    ],
)
def test_users_of_the_images_of_critest(builtin: Catalogue, name: str, user: str) -> None:
    assert ask(builtin, f"{CRI_TOOLS}/{name}").source.config.user == user


def test_aliases_are_one_image_and_others_are_not(builtin: Catalogue) -> None:
    def ids(*names: str) -> set[str]:
        return {ask(builtin, name).source.id for name in names}

    assert len(ids("registry.k8s.io/pause:3.9", "k8s.gcr.io/pause:3.9")) == 1
    assert len(ids(*(f"{CRI_TOOLS}/test-image-tags:{tag}" for tag in "123"))) == 1
    assert len(ids(*(f"{CRI_TOOLS}/test-image-{number}" for number in "123"))) == 3
    assert len(ids(f"{CRI_TOOLS}/test-image-tag:test", f"{CRI_TOOLS}/test-image-tag:all")) == 2
    versions = ("3.5", "3.6", "3.7", "3.8", "3.9", "3.10")
    assert len(ids(*(f"registry.k8s.io/pause:{version}" for version in versions))) == len(versions)


def test_an_image_that_is_known_by_digest_only(builtin: Catalogue) -> None:
    name = f"{CRI_TOOLS}/test-image-digest@sha256:9700f9a2f5bf2c45f2f605a0bd3bce7cf37420ec9d3ed50ac2758413308766bf"
    offer = ask(builtin, name)
    assert offer.source.names == (name,)
    assert offer.digest == name.partition("@")[2]


def test_busybox_has_its_applets() -> None:
    assert {"sh", "sleep", "true", "cat", "[", "wget"} <= set(BUSYBOX_EXECUTABLES.values())


# -- ids ---------------------------------------------------------------------------------------------------------------
def test_an_id_follows_from_the_content_and_the_first_name() -> None:
    source = ImageSource(names=("r.example/a:1",))
    assert ImageSource(names=("r.example/a:1", "r.example/a:2")).id == source.id
    assert ImageSource(names=("r.example/a:2",)).id != source.id
    for different in (
        {"config": ImageConfig(user="1")},
        {"size_bytes": 5},
        {"passwd": ""},
        {"files": {"/a": b"x"}},
        {"executables": {"/a": "sleep"}},
    ):
        assert ImageSource(names=("r.example/a:1",), **different).id != source.id


def test_a_name_with_a_bad_reference_or_id_is_refused_when_the_source_is_made() -> None:
    for wrong in ({"names": ("a b",)}, {"names": ("a:1",), "id": "abc"}):
        with pytest.raises(CriError) as refused:
            ImageSource(**wrong)
        assert refused.value.reason is Reason.IMAGE_REFERENCE_INVALID


references = st.from_regex(r"[a-z]{1,5}\.example/[a-z]{1,8}:[a-z0-9]{1,4}", fullmatch=True).map(parse_reference)


@given(references, references)
def test_made_up_images_are_stable_distinct_and_the_same_by_their_digest(one, other) -> None:
    source, digest = make_up(one)
    assert make_up(one) == (source, digest)
    by_digest, same_digest = make_up(one.with_digest(digest))
    assert (by_digest.id, by_digest.size_bytes, same_digest) == (source.id, source.size_bytes, digest)
    assert (make_up(other)[0].id == source.id) == (one == other)
    assert source.made_up
    assert source.config.entrypoint
    assert source.config.user == ""
    assert source.size_bytes > 0


# -- layers ------------------------------------------------------------------------------------------------------------
def test_within_a_layer_the_node_may_have_an_older_image_than_the_registry() -> None:
    old = ImageSource(names=("r.example/a:1",), at_start=True, size_bytes=1)
    new = ImageSource(names=("r.example/a:1",), size_bytes=2)
    for sources in ((old, new), (new, old)):
        catalogue = Catalogue(sources)
        assert catalogue.at_start == (old,)
        assert ask(catalogue, "r.example/a:1").source is new
        assert ask(catalogue, f"r.example/a@{old.manifest_digest}").source is old


def test_of_two_alike_the_later_has_the_name() -> None:
    first = ImageSource(names=("r.example/a:1", "r.example/a:2"), at_start=True)
    second = replace(first, names=("r.example/a:2",), id="", size_bytes=9)
    left, right = Catalogue((first, second)).at_start
    assert (left.names, right.names) == (("r.example/a:1",), ("r.example/a:2",))
    assert left.id == first.id


def test_a_layer_on_top_takes_over_its_names() -> None:
    base = Catalogue([ImageSource(names=("r.example/a:1", "r.example/b:1"), at_start=True)])
    over = ImageSource(names=("r.example/a:1",), size_bytes=7)
    catalogue = base.extended([over], [Registry(host="r.example")])
    assert [source.names for source in catalogue.at_start] == [("r.example/b:1",)]
    assert ask(catalogue, "r.example/a:1").source is over
    assert ask(catalogue, "r.example/b:1").source.id == base.at_start[0].id
    assert {source.id for source in catalogue.sources} == {base.at_start[0].id, over.id}
    assert ask(base, "r.example/a:1").source is base.at_start[0], "the catalogue below is what it was"


# -- hosts -------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("host", ["invalid.registry.k8s.io", "foo.invalid", "foo.invalid:5000", "invalid.x:1"])
def test_invalid_hosts_do_not_resolve(host: str) -> None:
    error = refusal(Catalogue(), f"{host}/a:1")
    assert error.reason is Reason.REGISTRY_HOST_UNKNOWN
    assert error.facts["address"] == (host if ":" in host else f"{host}:443")


def test_localhost_without_a_port_refuses_and_with_one_does_not() -> None:
    assert refusal(Catalogue(), "localhost/a:1").reason is Reason.REGISTRY_UNREACHABLE
    assert ask(Catalogue(), "localhost:5000/a:1").source.made_up


def test_a_described_host_is_described_whatever_its_name() -> None:
    source = ImageSource(names=("localhost/a:1",))
    assert ask(Catalogue([source], [Registry(host="localhost")]), "localhost/a:1").source is source


def test_a_described_host_is_a_closed_world_unless_it_is_open() -> None:
    source = ImageSource(names=("r.example/a:1",))
    closed = Catalogue([source], [Registry(host="r.example")])
    assert ask(closed, "r.example/a:1").source is source
    error = refusal(closed, "r.example/a:2")
    assert (error.reason, error.facts["missing"]) == (Reason.IMAGE_NOT_IN_REGISTRY, "manifest")
    error = refusal(closed, "r.example/b:1")
    assert (error.reason, error.facts["missing"]) == (Reason.IMAGE_NOT_IN_REGISTRY, "name")
    assert ask(closed, "other.example/b:1").source.made_up
    assert ask(Catalogue([source], [Registry(host="r.example", open=True)]), "r.example/a:2").source.made_up


def test_unknown_images_may_be_refused_everywhere() -> None:
    error = refusal(builtin_catalogue(), "r.example/a:1", unknown=UnknownImages.FAIL)
    assert error.reason is Reason.IMAGE_NOT_IN_REGISTRY
    assert ask(builtin_catalogue(), "busybox", unknown=UnknownImages.FAIL).source.names


def test_what_a_refusal_tells() -> None:
    assert refusal(Catalogue((), [Registry(host="127.0.0.1:5055")]), "127.0.0.1:5055/no/such:v1").facts == {
        "image": "127.0.0.1:5055/no/such:v1",
        "host": "127.0.0.1:5055",
        "repository": "127.0.0.1:5055/no/such",
        "reference": "v1",
        "url": "http://127.0.0.1:5055/v2/no/such/manifests/v1",
        "missing": "name",
    }
    hub = refusal(Catalogue((), [Registry(host="docker.io", reachable=False)]), "busybox")
    assert hub.facts["url"] == "https://registry-1.docker.io/v2/library/busybox/manifests/latest"
    assert refusal(Catalogue((), [Registry(host="a.b:1", reachable=False)]), "a.b:1/x").facts["address"] == "a.b:1"


# -- rules -------------------------------------------------------------------------------------------------------------
def with_rules(*rules: RepositoryRule) -> Catalogue:
    return Catalogue((), [Registry(host="r.example", open=True, rules=rules)])


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (401, Reason.REGISTRY_UNAUTHORIZED),
        (403, Reason.REGISTRY_FORBIDDEN),
        (404, Reason.IMAGE_NOT_IN_REGISTRY),
        (429, Reason.REGISTRY_FAILED),
        (500, Reason.REGISTRY_FAILED),
        (599, Reason.REGISTRY_FAILED),
    ],
)
def test_statuses(status: int, reason: Reason) -> None:
    error = refusal(with_rules(RepositoryRule(status=status)), "r.example/a")
    assert error.reason is reason
    assert error.facts.get("status", status) == status


def test_the_first_matching_rule_counts() -> None:
    catalogue = with_rules(
        RepositoryRule(match="a/*", status=403),
        RepositoryRule(match="b:v1", status=500),
        RepositoryRule(duration_ns=7),
    )
    assert refusal(catalogue, "r.example/a/x").reason is Reason.REGISTRY_FORBIDDEN
    assert refusal(catalogue, "r.example/b:v1").facts["status_text"] == "Internal Server Error"
    assert ask(catalogue, "r.example/b:v2").transfer_ns == 7
    assert ask(Catalogue(), "r.example/b:v2").transfer_ns == TRANSFER_NS


def test_a_wrong_digest_may_be_given_or_follows_from_the_image() -> None:
    assert ask(with_rules(RepositoryRule(wrong_digest=WrongDigest(got="g", expected="e"))), "r.example/a").mismatch == (
        "g",
        "e",
    )
    got, expected = ask(with_rules(RepositoryRule(wrong_digest=WrongDigest())), "r.example/a").mismatch or ("", "")
    assert is_digest(got)
    assert is_digest(expected)
    assert got != expected


LOGIN = Login(username="user", password="pw", tokens=frozenset({"token"}))


@pytest.mark.parametrize(
    ("credentials", "reason"),
    [
        (ANONYMOUS, Reason.REGISTRY_UNAUTHORIZED),
        (Credentials("user", "nope"), Reason.REGISTRY_BAD_CREDENTIALS),
        (Credentials("other", "pw"), Reason.REGISTRY_BAD_CREDENTIALS),
        (Credentials(token="other"), Reason.REGISTRY_BAD_CREDENTIALS),
        (Credentials(malformed="why"), Reason.REGISTRY_AUTH_MALFORMED),
        (Credentials("user", "pw"), None),
        (Credentials(token="token"), None),
    ],
)
def test_credentials(credentials: Credentials, reason: Reason | None) -> None:
    catalogue = with_rules(RepositoryRule(login=LOGIN))
    if reason is None:
        assert ask(catalogue, "r.example/a", credentials).source
    else:
        assert refusal(catalogue, "r.example/a", credentials).reason is reason


def test_a_login_of_tokens_alone_takes_no_empty_user() -> None:
    catalogue = with_rules(RepositoryRule(login=Login(tokens=frozenset({"t"}))))
    assert refusal(catalogue, "r.example/a").reason is Reason.REGISTRY_UNAUTHORIZED


def test_malformed_credentials_do_not_matter_where_none_are_asked_for() -> None:
    assert ask(Catalogue(), "r.example/a", Credentials(malformed="why")).source.made_up


def parsed(host: str = "r.example", **given_: str) -> Credentials:
    fields = ("username", "password", "auth", "server_address", "identity_token", "registry_token")
    return credentials_of(host, **{**dict.fromkeys(fields, ""), **given_})


def test_which_part_of_an_auth_config_counts() -> None:
    encoded = base64.b64encode(b"user:p:w").decode()
    assert parsed(auth=encoded) == Credentials("user", "p:w")
    assert parsed(username="u", password="p", auth=encoded, identity_token="t") == Credentials("u", "p")
    assert parsed(identity_token="t", auth=encoded) == Credentials(token="t")
    assert parsed(registry_token="t") == Credentials(token="t")
    assert parsed().malformed == "invalid auth config"


@pytest.mark.parametrize(
    ("server", "host", "counts"),
    [
        ("https://r.example/v1/", "r.example", True),
        ("r.example", "r.example", True),
        ("https://other.example", "r.example", False),
        ("https://index.docker.io/v1/", "docker.io", True),
        ("https://registry-1.docker.io", "docker.io", True),
        ("http://127.0.0.1:5055", "127.0.0.1:5055", True),
    ],
)
def test_credentials_for_another_server_count_as_none(server: str, host: str, counts: bool) -> None:
    assert parsed(host, username="u", password="p", server_address=server) == (
        Credentials("u", "p") if counts else ANONYMOUS
    )


@pytest.mark.parametrize(
    ("auth", "detail"),
    [
        ("!!!", "illegal base64 data at input byte 0"),
        ("dXNl!jpwdw==", "illegal base64 data at input byte 4"),
        ("dXNlcjpwd", "illegal base64 data at input byte 8"),
        (base64.b64encode(b"nocolon").decode(), 'invalid decoded auth: "nocolon"'),
    ],
)
def test_malformed_auth(auth: str, detail: str) -> None:
    assert parsed(auth=auth).malformed == detail


@given(st.text())
def test_any_auth_text_gives_credentials_or_says_what_is_wrong(auth: str) -> None:
    found = parsed(auth=auth)
    assert found.given != bool(found.malformed) or found == ANONYMOUS


@given(
    st.text(st.characters(codec="utf-8", exclude_characters=":\0"), min_size=1), st.text(st.characters(codec="utf-8"))
)
def test_auth_is_user_and_password_in_base64(user: str, password: str) -> None:
    found = parsed(auth=base64.b64encode(f"{user}:{password}".encode()).decode())
    assert found == Credentials(user, password.strip("\0"))
