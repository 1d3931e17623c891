"""When reading a file changes its access time: never (the default), as relatime does, or always."""

from __future__ import annotations

import logging
from collections.abc import Callable

from pybernetes.objectfs.meta.namespace import Namespace
from pybernetes.objectfs.meta.records import Attributes

log = logging.getLogger(__name__)
SECOND, DAY = 10**9, 86400 * 10**9


def is_due(mode: str, attributes: Attributes, now: int) -> bool:
    """Whether a read at `now` is to be noted: with strictatime once a second, for each note is a transaction."""
    age = now - attributes.atime
    if mode == "relatime":
        changed = max(attributes.mtime, attributes.ctime)
        # A change that is dated later than now, by another clock, stays newer than any note for a while.
        return age >= DAY or (attributes.atime <= changed and (changed <= now or age >= SECOND))
    return mode == "strictatime" and age >= SECOND


class AccessTimes:
    """Notes the reads of one client."""

    def __init__(self, names: Namespace, now: Callable[[], int], mode: str) -> None:
        self._names, self._now, self._mode = names, now, mode

    def read(self, attributes: Attributes) -> None:
        """A program has read a file; that it cannot be noted is no error of the read."""
        if self._mode == "noatime":
            return
        now = self._now()
        if is_due(self._mode, attributes, now):
            try:
                self._names.touch(attributes.inode, now)
            except OSError as error:
                log.warning("the access time of inode %d is not noted: %s", attributes.inode, error)
