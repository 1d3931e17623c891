"""Folders of pods that could not be removed: a runtime that may open no more files, or whose disk fails, cannot.

They are tried again with each folder that is removed or made, so that nothing is left when the trouble has passed. The
next runtime finds them too: what it knows nothing of it takes away.
"""

from __future__ import annotations

import logging
from pathlib import Path

from pybernetes.component.removal import remove_tree

AT_ONCE = 16
"""Folders that are tried again at a time."""
log = logging.getLogger(__name__)


class Leftovers:
    """The folders that are left, those first that were tried longest ago."""

    def __init__(self) -> None:
        self._left: dict[Path, None] = {}

    def remove(self, folder: Path) -> None:
        """Remove a folder, now or later; one that is not there is fine."""
        self.retry()
        self._try(folder)

    def retry(self) -> None:
        """Try some of those again that are left."""
        for each in list(self._left)[:AT_ONCE]:
            self._try(each)

    def _try(self, folder: Path) -> None:
        try:
            remove_tree(folder)
        except OSError as error:
            if folder not in self._left:
                log.error("%s cannot be removed and is left for later: %s", folder, error)
            self._left.pop(folder, None)
            self._left[folder] = None
        else:
            self._left.pop(folder, None)
