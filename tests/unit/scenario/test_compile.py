"""Documents as plain objects."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from fakecri.base.reasons import CriError, Reason
from fakecri.core.catalogue import DEFAULT_GROUP, DEFAULT_PASSWD, Catalogue, ImageConfig, ImageSource
from fakecri.core.node import HandlerFault, Node, RuntimeHandler, UnknownImages
from fakecri.core.references import parse_reference
from fakecri.core.registries import ANONYMOUS, Credentials, Login, Registry, RepositoryRule, WrongDigest
from fakecri.scenario.compile import World, compile_documents, load_world
from fakecri.scenario.load import ScenarioError, load_text

HEAD = "apiVersion: fakecri.dev/v1alpha1\nkind: Scenario\n"
REFERENCE_DOCUMENT = Path(__file__).parents[2] / "reference" / "images.yaml"


def world(*texts: str) -> World:
    return compile_documents(
        loaded for number, text in enumerate(texts) for loaded in load_text(HEAD + dedent(text), f"{number}.yaml")
    )


def ask(catalogue: Catalogue, text: str, credentials: Credentials = ANONYMOUS):
    return catalogue.ask(parse_reference(text), credentials, UnknownImages.PULL)


def reason(catalogue: Catalogue, text: str, credentials: Credentials = ANONYMOUS) -> Reason:
    with pytest.raises(CriError) as refused:
        ask(catalogue, text, credentials)
    return refused.value.reason


# -- images ------------------------------------------------------------------------------------------------------------
def test_an_image_written_in_full_is_the_object_that_one_would_make_by_hand() -> None:
    digest = "sha256:" + "12" * 32
    (layer,) = world(
        f"""\
        images:
          present:
            - names: [r.example/app:1, "r.example/app:2@{digest}"]
              user: 1000
              entrypoint: [/app]
              command: ["-x", on]
              environment: {{PATH: /opt, DEBUG: "1"}}
              workingDirectory: /srv/
              stopSignal: SIGINT
              labels: {{a: b}}
              annotations: {{c: d}}
              volumes: [/vol]
              exposedPorts: [80/tcp]
              passwd: "x:x:1:1:::"
              group: ""
              files: {{/etc/conf: hello}}
              executables: {{/app: sleep}}
              size: 2Mi
              pinned: true
        """
    ).layers
    (image,) = layer.images
    assert image == ImageSource(
        names=("r.example/app:1", f"r.example/app:2@{digest}"),
        config=ImageConfig(
            user="1000",
            entrypoint=("/app",),
            command=("-x", "on"),
            environment=("PATH=/opt", "DEBUG=1"),
            working_directory="/srv",
            stop_signal="SIGINT",
            labels={"a": "b"},
            volumes=("/vol",),
            exposed_ports=("80/tcp",),
        ),
        annotations={"c": "d"},
        passwd="x:x:1:1:::",
        group="",
        files={"/etc/conf": b"hello"},
        executables={"/app": "sleep"},
        size_bytes=2 << 20,
        pinned=True,
        at_start=True,
    )


def test_what_is_not_written_has_a_use() -> None:
    (layer,) = world("images: {pullable: [{names: ['r.example/app:1'], entrypoint: [/app]}]}").layers
    (image,) = layer.images
    assert not image.at_start
    assert image.size_bytes > 0
    assert (image.passwd, image.group) == (DEFAULT_PASSWD, DEFAULT_GROUP)
    assert image.executables["/bin/sleep"] == "sleep"
    assert image.executables["/app"] == "wait"
    assert image.config.environment == ("PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",)


def test_executables_that_are_written_are_all_there_are() -> None:
    (layer,) = world(
        """\
        images:
          present:
            - {names: ["a:1"], executables: {/usr/bin/: busybox, /app: sleep}}
            - {names: ["b:1"], entrypoint: [/app], executables: {}}
        """
    ).layers
    first, second = layer.images
    assert first.executables["/usr/bin/cat"] == "cat"
    assert first.executables["/usr/bin/busybox"] == "busybox"
    assert first.executables["/app"] == "sleep"
    assert "/bin/cat" not in first.executables
    assert second.executables == {}


def test_the_node_may_begin_with_an_older_image_than_the_registry_has() -> None:
    catalogue = world(
        """\
        images:
          present: [{names: ["r.example/app:1"], user: "1"}]
          pullable: [{names: ["r.example/app:1"], user: "2"}]
        """
    ).catalogue()
    assert [source.config.user for source in catalogue.at_start][-1] == "1"
    assert ask(catalogue, "r.example/app:1").source.config.user == "2"


# -- clashes and layers ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            "images:\n  present:\n    - names: ['busybox:1']\n    - names: [docker.io/library/busybox:1]\n",
            (
                "0.yaml:6:15: images.present[1].names[0]: an image's name stands twice:"
                " 'docker.io/library/busybox:1' is in line 5 already"
            ),
        ),
        (
            "images: {pullable: [{names: ['a:1', 'a:1']}]}",
            (
                "0.yaml:3:37: images.pullable[0].names[1]: an image's name stands twice:"
                " 'docker.io/library/a:1' is in line 3 already"
            ),
        ),
        (
            "images: {registries: [{host: a.b}, {host: a.b}]}",
            "0.yaml:3:43: images.registries[1].host: a registry host stands twice: 'a.b' is in line 3 already",
        ),
        (
            "runtime: {handlers: [{name: x}, {name: x}]}",
            "0.yaml:3:40: runtime.handlers[1].name: a runtime handler stands twice: 'x' is in line 3 already",
        ),
        (
            "images: {present: [{names: ['a:1'], executables: {/bin/: sleep}}]}",
            (
                "0.yaml:3:50: images.present[0].executables: '/bin/' is a directory: only 'busybox' fills one,"
                " write the path of 'sleep' in full"
            ),
        ),
    ],
)
def test_what_contradicts_itself_within_a_document(text: str, problem: str) -> None:
    with pytest.raises(ScenarioError) as failure:
        world(text)
    assert str(failure.value) == problem


def test_a_later_document_takes_over_what_it_mentions() -> None:
    both = world(
        """\
        runtime: {handlers: [{name: runc}, {name: kata, fault: shimMissing}]}
        images:
          present: [{names: ["r.example/a:1", "r.example/b:1"], user: "1"}]
          registries: [{host: r.example, status: 500}]
        """,
        """\
        runtime: {handlers: [{name: kata}, {name: gvisor}]}
        images:
          pullable: [{names: ["r.example/a:1"], user: "2"}]
          registries: [{host: r.example}]
        """,
    )
    catalogue = both.catalogue(Catalogue())
    assert [source.names for source in catalogue.at_start] == [("r.example/b:1",)]
    assert ask(catalogue, "r.example/a:1").source.config.user == "2"
    assert both.handlers() == (RuntimeHandler("runc"), RuntimeHandler("kata"), RuntimeHandler("gvisor"))


def test_the_built_in_images_stay_under_documents() -> None:
    catalogue = world("images: {present: [{names: [docker.io/library/mine:1]}]}").catalogue()
    assert ask(catalogue, "busybox:latest").source.executables["/bin/sh"] == "sh"
    assert len(catalogue.at_start) == 2


# -- hosts -------------------------------------------------------------------------------------------------------------
def test_a_host_that_is_written_is_a_closed_world() -> None:
    text = "images: {{{where}: [{{names: [{name}]}}]}}"
    for where in ("present", "pullable"):
        closed = world(text.format(where=where, name="r.example/app:1")).catalogue()
        assert ask(closed, "r.example/app:1").source.names == ("r.example/app:1",)
        assert reason(closed, "r.example/other:1") is Reason.IMAGE_NOT_IN_REGISTRY
        assert ask(closed, "elsewhere.example/other:1").source.made_up
    short = world(text.format(where="present", name="mine:1")).catalogue()
    assert ask(short, "unheard-of:1").source.made_up, "a short name writes no host"
    hub = world(text.format(where="present", name="docker.io/mine:1")).catalogue()
    assert reason(hub, "unheard-of:1") is Reason.IMAGE_NOT_IN_REGISTRY


def test_a_written_host_can_be_opened() -> None:
    catalogue = world("images: {registries: [{host: r.example, unlisted: pull}]}").catalogue()
    assert ask(catalogue, "r.example/any:1").source.made_up


def test_registries_as_objects() -> None:
    (layer,) = world(
        f"""\
        images:
          registries:
            - host: r.example
              auth: {{username: u, password: p, tokens: [t]}}
              duration: 1.5s
              repositories:
                - {{match: a/*, status: 403}}
                - {{match: b, wrongDigest: true}}
                - {{match: c, wrongDigest: {{got: "sha256:{"1" * 64}"}}}}
                - {{match: d, wrongDigest: false, auth: null}}
            - {{host: "127.0.0.1:5999", unreachable: true}}
        """
    ).layers
    assert layer.registries == (
        Registry(
            host="r.example",
            rules=(
                RepositoryRule(match="a/*", status=403),
                RepositoryRule(match="b", wrong_digest=WrongDigest()),
                RepositoryRule(match="c", wrong_digest=WrongDigest(got="sha256:" + "1" * 64)),
                RepositoryRule(match="d"),
                RepositoryRule(
                    login=Login(username="u", password="p", tokens=frozenset({"t"})), duration_ns=1_500_000_000
                ),
            ),
        ),
        Registry(host="127.0.0.1:5999", reachable=False),
    )


# -- handlers ----------------------------------------------------------------------------------------------------------
def test_handlers_of_the_node() -> None:
    found = world(
        """\
        runtime:
          handlers:
            - name: runc
              features: {recursiveReadOnlyMounts: false, userNamespaces: false}
            - {name: broken, fault: ociBinaryMissing, binary: /nonexistent/runc}
        """
    )
    assert found.node(Node(processors=7)) == Node(
        processors=7,
        runtime_handlers=(
            RuntimeHandler("runc", recursive_read_only_mounts=False, user_namespaces=False),
            RuntimeHandler("broken", fault=HandlerFault.OCI_BINARY_MISSING, binary="/nonexistent/runc"),
        ),
    )
    assert world("images: {}").node(Node()) == Node()


# -- the document of the measured cases --------------------------------------------------------------------------------
def test_the_document_of_the_measured_cases() -> None:
    found = load_world([REFERENCE_DOCUMENT])
    assert [(handler.name, handler.fault) for handler in found.handlers()] == [
        ("runc", None),
        ("broken", HandlerFault.OCI_BINARY_MISSING),
        ("noshim", HandlerFault.SHIM_MISSING),
    ]
    catalogue = found.catalogue(Catalogue())
    assert [source.names[0] for source in catalogue.at_start] == [
        "docker.io/library/busybox:1.0",
        "registry.k8s.io/pause:3.6",
        "example.com/team/app:v1",
        "example.com/team/named:v1",
        "example.com/team/nocmd:v1",
    ]
    for source in catalogue.sources:
        assert "\nnobody:x:65534:" in source.passwd
        assert "\nalice:x:1001:1002:" in source.passwd
    host = "127.0.0.1:5055"
    assert ask(catalogue, f"{host}/team/pull:v1").source is ask(catalogue, f"{host}/team/pull:idx").source
    assert len({ask(catalogue, f"{host}/team/pull:{tag}").source.id for tag in ("v1", "v2", "latest")}) == 3
    assert reason(catalogue, f"{host}/team/pull:nope") is Reason.IMAGE_NOT_IN_REGISTRY
    assert reason(catalogue, f"{host}/forbid/app:v1") is Reason.REGISTRY_FORBIDDEN
    assert reason(catalogue, f"{host}/err500/app:v1") is Reason.REGISTRY_FAILED
    assert reason(catalogue, f"{host}/private/app:v1") is Reason.REGISTRY_UNAUTHORIZED
    assert ask(catalogue, f"{host}/private/app:v1", Credentials("user", "pw")).source
    assert ask(catalogue, f"{host}/slow/app:v1").transfer_ns == 5_000_000_000
    assert ask(catalogue, f"{host}/corrupt/app:v1").mismatch is not None
    assert reason(catalogue, "127.0.0.1:5999/a/b:v1") is Reason.REGISTRY_UNREACHABLE
