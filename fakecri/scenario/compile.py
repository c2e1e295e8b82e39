"""Documents become plain objects: image sources, registry hosts, runtime handlers. A test may make these by hand too.

Several documents lie on top of each other, in order: a later one takes over every image name, registry host and
runtime handler that it mentions. Within one document a name given twice is an error. A host is described, and so a
closed world, when a document lists it or writes it in an image's name (a short name such as ``busybox:1`` writes none).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from fakecri.core import node as core_node
from fakecri.core import registries as core
from fakecri.core.catalogue import (
    DEFAULT_GROUP,
    DEFAULT_PASSWD,
    DEFAULT_PATH,
    MADE_UP_PROGRAM,
    Catalogue,
    ImageConfig,
    ImageSource,
)
from fakecri.core.catalogue_builtin import BUSYBOX_APPLETS, BUSYBOX_EXECUTABLES, builtin_catalogue
from fakecri.core.references import parse_reference, parse_tagged
from fakecri.scenario import document as written
from fakecri.scenario.load import Loaded, Problem, ScenarioError, load_files, locate, problem_at

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from fakecri.core.node import Node

DEFAULT_SIZE: Final = 4 << 20
_FAULTS: Final = {
    written.HandlerFault.OCI_BINARY_MISSING: core_node.HandlerFault.OCI_BINARY_MISSING,
    written.HandlerFault.SHIM_MISSING: core_node.HandlerFault.SHIM_MISSING,
}


@dataclass(frozen=True, slots=True)
class Layer:
    """What one document adds to the world."""

    images: tuple[ImageSource, ...] = ()
    registries: tuple[core.Registry, ...] = ()
    handlers: tuple[core_node.RuntimeHandler, ...] = ()


@dataclass(frozen=True, slots=True)
class World:
    """What all documents together add, bottom layer first."""

    layers: tuple[Layer, ...] = ()

    def catalogue(self, base: Catalogue | None = None) -> Catalogue:
        """The catalogue (the built-in one unless another is given) under these layers."""
        result = base if base is not None else builtin_catalogue()
        for layer in self.layers:
            result = result.extended(layer.images, layer.registries)
        return result

    def handlers(self) -> tuple[core_node.RuntimeHandler, ...]:
        """All handlers in order of first mention, each as last described; empty when no document has any."""
        found = {handler.name: handler for layer in self.layers for handler in layer.handlers}
        return tuple(found.values())

    def node(self, node: Node) -> Node:
        """A node with these handlers, if there are any."""
        handlers = self.handlers()
        return replace(node, runtime_handlers=handlers) if handlers else node


def load_world(paths: Iterable[str | Path]) -> World:
    """Read and compile files.

    Raises:
        ScenarioError: every problem of every file.
    """
    return compile_documents(load_files(paths))


def compile_documents(documents: Iterable[Loaded]) -> World:
    """The plain objects of loaded documents.

    Raises:
        ScenarioError: names that stand twice in one document, executables that make no sense.
    """
    documents = list(documents)
    problems = [problem for loaded in documents for problem in _problems(loaded)]
    if problems:
        raise ScenarioError(problems)
    return World(tuple(_layer(loaded.document) for loaded in documents))


# -- problems between parts --------------------------------------------------------------------------------------------
def _problems(loaded: Loaded) -> list[Problem]:
    found = [
        *_doubles(loaded, _image_names(loaded.document.images.present, "present"), "an image's name"),
        *_doubles(loaded, _image_names(loaded.document.images.pullable, "pullable"), "an image's name"),
        *_doubles(
            loaded,
            (
                (registry.host, ("images", "registries", index, "host"))
                for index, registry in enumerate(loaded.document.images.registries)
            ),
            "a registry host",
        ),
        *_doubles(
            loaded,
            (
                (handler.name, ("runtime", "handlers", index, "name"))
                for index, handler in enumerate(loaded.document.runtime.handlers)
            ),
            "a runtime handler",
        ),
        *_odd_directories(loaded),
    ]
    return sorted(found)


def _image_names(images: list[written.Image], where: str) -> Iterator[tuple[str, tuple[int | str, ...]]]:
    for index, image in enumerate(images):
        for number, name in enumerate(image.names):
            reference, tag = parse_tagged(name)
            full = f"{reference.repository}:{tag}" if tag else str(reference)
            yield full, ("images", where, index, "names", number)


def _doubles(loaded: Loaded, named: Iterable[tuple[str, tuple[int | str, ...]]], what: str) -> Iterator[Problem]:
    first: dict[str, tuple[int | str, ...]] = {}
    for name, path in named:
        earlier = first.setdefault(name, path)
        if earlier is not path:
            line = locate(loaded.node, earlier)[0].start_mark.line + 1
            node = locate(loaded.node, path)[0]
            yield problem_at(loaded.file, node, path, f"{what} stands twice: {name!r} is in line {line} already")


def _odd_directories(loaded: Loaded) -> Iterator[Problem]:
    for where in ("present", "pullable"):
        for index, image in enumerate(getattr(loaded.document.images, where)):
            for path, program in (image.executables or {}).items():
                if path.endswith("/") and program != "busybox":
                    at = ("images", where, index, "executables")
                    node = locate(loaded.node, at)[0]
                    message = (
                        f"{path!r} is a directory: only 'busybox' fills one, write the path of {program!r} in full"
                    )
                    yield problem_at(loaded.file, node, at, message)


# -- plain objects -----------------------------------------------------------------------------------------------------
def _layer(document: written.Document) -> Layer:
    images = document.images
    sources = (
        *(_source(image, at_start=True) for image in images.present),
        *(_source(image, at_start=False) for image in images.pullable),
    )
    listed = {registry.host: _registry(registry) for registry in images.registries}
    for image in (*images.present, *images.pullable):
        for host in filter(None, map(_written_host, image.names)):
            listed.setdefault(host, core.Registry(host=host))
    return Layer(sources, tuple(listed.values()), tuple(map(_handler, document.runtime.handlers)))


def _written_host(name: str) -> str:
    host = parse_reference(name).host
    return host if name.partition("/")[0] in (host, "index.docker.io") and "/" in name else ""


def _source(image: written.Image, *, at_start: bool) -> ImageSource:
    environment = {"PATH": DEFAULT_PATH.removeprefix("PATH="), **image.environment}
    return ImageSource(
        names=tuple(image.names),
        id=image.id or "",
        config=ImageConfig(
            user=image.user,
            entrypoint=tuple(image.entrypoint),
            command=tuple(image.command),
            environment=tuple(f"{name}={value}" for name, value in environment.items()),
            working_directory=image.working_directory,
            stop_signal=image.stop_signal,
            labels=image.labels,
            volumes=tuple(image.volumes),
            exposed_ports=tuple(image.exposed_ports),
        ),
        size_bytes=image.size if image.size is not None else DEFAULT_SIZE,
        passwd=image.passwd if image.passwd is not None else DEFAULT_PASSWD,
        group=image.group if image.group is not None else DEFAULT_GROUP,
        executables=_executables(image),
        files={path: content.encode() for path, content in image.files.items()},
        annotations=image.annotations,
        at_start=at_start,
        pinned=image.pinned,
    )


def _executables(image: written.Image) -> dict[str, str]:
    if image.executables is None:
        found = dict(BUSYBOX_EXECUTABLES)
        own = [*image.entrypoint, *image.command][:1]
        for command in own:
            path = command if command.startswith("/") else f"/bin/{command}"
            found.setdefault(path, MADE_UP_PROGRAM)
        return found
    found = {}
    for path in image.executables:
        if path.endswith("/"):
            found |= {f"{path}{applet}": applet for applet in ("busybox", *BUSYBOX_APPLETS)}
    return found | {path: program for path, program in image.executables.items() if not path.endswith("/")}


def _registry(registry: written.Registry) -> core.Registry:
    rules = [_rule(repository, match=repository.match) for repository in registry.repositories]
    general = _rule(registry, match="*")
    if general != core.RepositoryRule():
        rules.append(general)
    return core.Registry(
        host=registry.host,
        reachable=not registry.unreachable,
        open=registry.unlisted == "pull",
        rules=tuple(rules),
    )


def _rule(answers: written.Answers, *, match: str) -> core.RepositoryRule:
    wrong: Any = answers.wrong_digest
    return core.RepositoryRule(
        match=match,
        login=None if answers.auth is None else _login(answers.auth),
        status=answers.status,
        wrong_digest=None if wrong is None else core.WrongDigest(got=wrong.got or "", expected=wrong.expected or ""),
        duration_ns=answers.duration,
    )


def _login(login: written.Login) -> core.Login:
    return core.Login(username=login.username, password=login.password, tokens=frozenset(login.tokens))


def _handler(handler: written.Handler) -> core_node.RuntimeHandler:
    return core_node.RuntimeHandler(
        handler.name,
        recursive_read_only_mounts=handler.features.recursive_read_only_mounts,
        user_namespaces=handler.features.user_namespaces,
        fault=None if handler.fault is None else _FAULTS[handler.fault],
        binary=handler.binary,
    )
