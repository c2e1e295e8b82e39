"""An image as CRI shows it: ``runtime.v1.Image``, and the OCI image specification inside verbose ``info``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from fakecri.core.catalogue import layer_digest
from fakecri.core.go_json import dumps, omit_empty
from fakecri.core.traits import ImageSpecShown, Shown
from fakecri.wire import messages

if TYPE_CHECKING:
    from collections.abc import Callable

    from fakecri.core.image import Image
    from fakecri.core.runtime import Runtime

#: When every image was built: ids depend on content alone, so there is no better time.
CREATED: Final = "2024-01-02T03:04:05Z"


def image_message(runtime: Runtime, image: Image) -> messages.Image:
    """The image as ListImages and ImageStatus show it."""
    message = messages.Image(
        id=image.id, repo_tags=image.repo_tags, repo_digests=image.repo_digests, size=image.size_bytes
    )
    uid, username = split_user(image.user)
    if uid is not None:
        message.uid.value = uid
    message.username = username
    shown = runtime.traits.image_spec
    if shown is ImageSpecShown.ALWAYS or (shown is ImageSpecShown.WHEN_ANNOTATED and image.annotations):
        message.spec.SetInParent()
        message.spec.annotations.update(image.annotations)
    if runtime.traits.image_pinned is Shown.YES:
        message.pinned = image.pinned
    return message


def split_user(user: str) -> tuple[int | None, str]:
    """An image's USER as CRI's ``uid`` (None: unset) and ``username``; a group after the colon is dropped."""
    name = user.partition(":")[0]
    if re.fullmatch(r"[0-9]{1,18}", name):
        return int(name), ""
    return None, name


def image_info(runtime: Runtime, image: Image) -> dict[str, str]:
    """Verbose ``info``: one JSON document with the keys that the runtime has."""
    known: dict[str, Callable[[], Any]] = {
        "chainID": lambda: layer_digest(image.source),
        "imageSpec": lambda: _image_spec(image),
    }
    keys = runtime.behaviour.info_keys.get("ImageStatus", tuple(known))
    return {"info": dumps({key: known[key]() for key in keys})}


def _image_spec(image: Image) -> dict[str, Any]:
    """The OCI image configuration, fields in the order of the specification's Go struct."""
    config = image.config
    return {
        "created": CREATED,
        "architecture": "amd64",
        "os": "linux",
        "config": omit_empty(
            {
                "User": config.user,
                "ExposedPorts": {port: {} for port in sorted(config.exposed_ports)},
                "Env": list(config.environment),
                "Entrypoint": list(config.entrypoint),
                "Cmd": list(config.command),
                "Volumes": {volume: {} for volume in sorted(config.volumes)},
                "WorkingDir": config.working_directory,
                "Labels": dict(sorted(config.labels.items())),
                "StopSignal": config.stop_signal,
            }
        ),
        "rootfs": {"type": "layers", "diff_ids": [layer_digest(image.source)]},
        "history": [{"created": CREATED, "created_by": "fakecri"}],
    }
