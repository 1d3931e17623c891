"""Numbers of users and groups, by the files of a stage."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence

from pybernetes.cluster.images.dockerfile.keeping import Kept
from pybernetes.cluster.images.dockerfile.stage import Layer
from pybernetes.cri.embedded import users
from pybernetes.cri.embedded.syscalls import open_in_root


def owner(kept: Kept, layers: Sequence[Layer], text: str, *, same_group: bool) -> tuple[int, int]:
    """The numbers of `user[:group]`. Without a group it is the user's, or (`same_group`) that of the same number.

    ValueError if the stage knows no such name.
    """
    name, colon, group = text.partition(":")
    if not name and not colon:
        return 0, 0
    if name.isdecimal() and (group.isdecimal() or (same_group and not colon)):
        found = int(name), int(group or name)
    else:
        with kept.merged(layers) as root:
            passwd, groups = _read(root, "etc/passwd"), _read(root, "etc/group")
        try:
            user = users.resolve({"user": text}, passwd, groups)
        except users.UserError as error:
            raise ValueError(str(error)) from None
        found = user.uid, user.uid if same_group and not group else user.gid
    if max(found) >= 1 << 32:
        raise ValueError(f"{text!r}: such numbers no user has")
    return found


def _read(root: int, path: str) -> str:
    """A file's text; anything else counts as empty."""
    try:
        descriptor = open_in_root(root, path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return ""
    with open(descriptor, encoding="utf-8", errors="surrogateescape") as file:
        return file.read(users.LARGEST) if stat.S_ISREG(os.fstat(descriptor).st_mode) else ""
