"""Who a container's process is: user and groups resolved from the image's passwd and group files.

Sources: ``LinuxContainerSecurityContext.run_as_*``, else the image's USER; KEP-3619 for the two policies of
supplementary groups (Merge adds the groups that the image's group file gives the user; Strict does not).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakecri.base.reasons import CriError, Reason
from fakecri.wire import messages

if TYPE_CHECKING:
    from fakecri.core.image import Image


def _rows(text: str) -> list[list[str]]:
    return [line.split(":") for line in text.splitlines() if line.strip() and not line.startswith("#")]


def _passwd_entry(passwd: str, user: str) -> tuple[str, int, int] | None:
    """Name, uid and gid of a user given by name or number."""
    for row in _rows(passwd):
        if len(row) >= 4 and (row[0] == user or row[2] == user) and row[2].isdigit() and row[3].isdigit():
            return row[0], int(row[2]), int(row[3])
    return None


def _group_id(group_file: str, group: str) -> int | None:
    if group.isdigit():
        return int(group)
    for row in _rows(group_file):
        if len(row) >= 3 and row[0] == group and row[2].isdigit():
            return int(row[2])
    return None


def resolve_user(
    context: messages.LinuxContainerSecurityContext, image: Image, container_id: str
) -> messages.LinuxContainerUser:
    """The first process's uid, gid and supplementary groups.

    Raises:
        CriError: GROUP_WITHOUT_USER, or USER_UNKNOWN for a name that the image's files do not have.
    """
    user, _, group = image.user.partition(":")
    if context.HasField("run_as_user"):
        user, group = str(context.run_as_user.value), ""
    elif context.run_as_username:
        user, group = context.run_as_username, ""
    elif context.HasField("run_as_group"):
        raise CriError(Reason.GROUP_WITHOUT_USER, id=container_id, group=context.run_as_group.value)
    if context.HasField("run_as_group"):
        group = str(context.run_as_group.value)
    entry = _passwd_entry(image.passwd, user or "0")
    if entry is None and user and not user.isdigit():
        raise CriError(Reason.USER_UNKNOWN, id=container_id, user=user)
    name, uid, gid = entry if entry is not None else ("", int(user or 0), 0)
    if group:
        found = _group_id(image.group, group)
        if found is None:
            raise CriError(Reason.USER_UNKNOWN, id=container_id, user=f"{user}:{group}")
        gid = found
    groups = [gid]
    if context.supplemental_groups_policy == messages.Merge and name:
        groups += [int(row[2]) for row in _rows(image.group) if len(row) >= 4 and name in row[3].split(",")]
    groups += list(context.supplemental_groups)
    return messages.LinuxContainerUser(uid=uid, gid=gid, supplemental_groups=list(dict.fromkeys(groups)))
