"""The shape of a scenario document: what may be written where, and what each key means.

Everything is strict: an unknown key, a number where text belongs, a malformed image name is an error where it stands.
Parts so far: ``runtime.handlers`` and ``images``.
"""

from __future__ import annotations

import posixpath
from enum import Enum
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field
from pydantic.alias_generators import to_camel

from fakecri.base.reasons import CriError, Reason
from fakecri.core.references import is_digest, parse_reference
from fakecri.kernel.signals import UnknownSignal, parse_signal
from fakecri.scenario.quantities import parse_duration, parse_size

API_VERSION = "fakecri.dev/v1alpha1"
KIND = "Scenario"

_REFERENCE_PROBLEMS = {
    Reason.IMAGE_REFERENCE_UPPERCASE: "repository names are lower-case",
    Reason.IMAGE_REFERENCE_TOO_LONG: "the repository path has more than 255 characters",
    Reason.IMAGE_REFERENCE_IS_ID: "that is an image id, a name is needed",
}


def _reference(text: str) -> str:
    try:
        parse_reference(text)
    except CriError as error:
        detail = _REFERENCE_PROBLEMS.get(error.reason, "write such as registry.example/team/app:v1")
        raise ValueError(f"{text!r} is no image reference: {detail}") from None
    return text


def _digest(text: str) -> str:
    if not is_digest(text):
        raise ValueError(f"{text!r} is no digest; write sha256: and 64 lower-case hex digits")
    return text


def _path(text: str) -> str:
    if not text.startswith("/") or ".." in text.split("/"):
        raise ValueError(f"{text!r} is not an absolute path without '..'")
    normal = posixpath.normpath(text)
    return f"{normal.rstrip('/')}/" if text.endswith("/") else normal


def _file_path(text: str) -> str:
    if text.endswith("/"):
        raise ValueError(f"{text!r} is a directory; a file's path does not end with '/'")
    return _path(text)


def _signal(text: str) -> str:
    try:
        parse_signal(text)
    except UnknownSignal:
        raise ValueError(f"{text!r} is no signal; write such as SIGINT or 2") from None
    return text


def _host(text: str) -> str:
    try:
        parsed = parse_reference(f"{text}/name").host
    except CriError:
        parsed = ""
    if parsed != text:
        raise ValueError(f"{text!r} is no registry host; write such as registry.example or 127.0.0.1:5000")
    return text


def _text_of_number(value: Any) -> Any:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _empty_mapping_of_true(value: Any) -> Any:
    return {} if value is True else None if value is False else value


ImageName = Annotated[str, AfterValidator(_reference)]
Digest = Annotated[str, AfterValidator(_digest)]
AbsolutePath = Annotated[str, AfterValidator(lambda text: _path(text).rstrip("/") or "/")]
#: Ends with a slash when it is a directory.
ProgramPath = Annotated[str, AfterValidator(_path)]
FilePath = Annotated[str, AfterValidator(_file_path)]
SignalName = Annotated[str, BeforeValidator(_text_of_number), AfterValidator(_signal)]
Host = Annotated[str, AfterValidator(_host)]
#: Text in a document, bytes afterwards.
Size = Annotated[
    int, BeforeValidator(lambda value: parse_size(value) if isinstance(value, str) else value), Field(ge=0)
]
#: Text in a document, ns afterwards.
Duration = Annotated[
    int, BeforeValidator(lambda value: parse_duration(value) if isinstance(value, str) else _no_unit(value))
]
#: A user may be written as a number.
User = Annotated[str, BeforeValidator(_text_of_number)]


def _no_unit(value: Any) -> int:
    raise ValueError(f"{value!r} has no unit; write such as 250ms, 5s, 1m30s")


class Part(BaseModel):
    """Keys are written in camelCase; what is not known is refused."""

    model_config = ConfigDict(alias_generator=to_camel, extra="forbid", strict=True, frozen=True)


class HandlerFault(Enum):
    """Why every sandbox of a handler fails to start."""

    OCI_BINARY_MISSING = "ociBinaryMissing"
    SHIM_MISSING = "shimMissing"


class HandlerFeatures(Part):
    """``RuntimeHandlerFeatures`` of the Status reply."""

    recursive_read_only_mounts: bool = True
    user_namespaces: bool = True


class Handler(Part):
    """One runtime handler. The first of a document is the default one, which also has the empty name."""

    name: Annotated[str, Field(min_length=1)]
    features: HandlerFeatures = HandlerFeatures()
    fault: Annotated[HandlerFault, Field(strict=False)] | None = None
    #: The missing OCI binary's path, or the shim's runtime type, as the fault's text names it.
    binary: str = ""


class RuntimePart(Part):
    """The runtime itself."""

    handlers: list[Handler] = []


class Image(Part):
    """One image; the keys of its configuration mean what they mean in a Dockerfile.

    A name may fix its manifest's digest: ``repo:tag@sha256:…``. Of ``executables``, a path names a program, and a
    directory (ending with ``/``) may be ``busybox``: all its applets. Without that key an image holds busybox in
    ``/bin``, and what its entrypoint or command names as a program that waits.
    """

    names: Annotated[list[ImageName], Field(min_length=1)]
    id: Digest | None = None
    user: User = ""
    entrypoint: list[str] = []
    command: list[str] = []
    environment: dict[str, str] = {}
    working_directory: AbsolutePath = ""
    stop_signal: SignalName = ""
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    volumes: list[AbsolutePath] = []
    exposed_ports: list[str] = []
    passwd: str | None = None
    group: str | None = None
    files: dict[FilePath, str] = {}
    executables: dict[ProgramPath, str] | None = None
    size: Size | None = None
    pinned: bool = False


class Login(Part):
    """Credentials that a registry accepts: a user with a password, or one of some tokens."""

    username: str = ""
    password: str = ""
    tokens: list[str] = []


class WrongDigest(Part):
    """The digest of the layer that arrives, and the one that the manifest names."""

    got: Digest | None = None
    expected: Digest | None = None


class Answers(Part):
    """How a registry answers pulls."""

    auth: Login | None = None
    status: Annotated[int, Field(ge=400, le=599)] | None = None
    wrong_digest: Annotated[WrongDigest | None, BeforeValidator(_empty_mapping_of_true)] = None
    #: How long the transfer takes of an image whose content is not on the node.
    duration: Duration | None = None


class Repository(Answers):
    """Answers for the repositories whose path, or ``path:tag``, matches a glob; they replace the host's."""

    match: Annotated[str, Field(min_length=1)]


class Registry(Answers):
    """One registry host, with answers for all its repositories and for some. The first match counts."""

    host: Host
    unreachable: bool = False
    #: What a pull of an image finds that no document and no catalogue has.
    unlisted: Literal["notFound", "pull"] = "notFound"
    repositories: list[Repository] = []


class ImagesPart(Part):
    """Images on the node at the start, images that can be pulled (those on the node can be, too), registry hosts.

    A host that is written in an image's name, or listed here, has only the images that are listed for it.
    """

    present: list[Image] = []
    pullable: list[Image] = []
    registries: list[Registry] = []


class Document(Part):
    """One scenario document."""

    api_version: Literal["fakecri.dev/v1alpha1"]
    kind: Literal["Scenario"]
    runtime: RuntimePart = RuntimePart()
    images: ImagesPart = ImagesPart()
