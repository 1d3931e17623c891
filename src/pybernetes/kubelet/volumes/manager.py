"""Keeps the volumes of this node's pods ready: made before their containers, fresh while they run, gone after them.

State is on the disk alone (`pods/<uid>/volumes/<plugin>/<name>`, mounts): a kubelet that starts again finds
everything by calling `ensure` for the pods that are there and `teardown` for those in `orphans`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path

from pybernetes.api.core.v1 import Pod
from pybernetes.client.client import Client
from pybernetes.client.clock import Clock

from .base import Volumes


class VolumeManager:
    """`changed(uid)` is called when something that a pod's volumes show has changed: call `ensure` again then."""

    def __init__(
        self,
        client: Client | None,
        root: Path,
        node: str,
        clock: Clock,
        *,
        changed: Callable[[str], None] | None = None,
    ) -> None:
        raise NotImplementedError

    async def ensure(self, pod: Pod) -> Volumes:
        """Make all volumes ready, or bring their contents up to date; raises `VolumeError` for the first that cannot.

        Cheap when nothing has changed; call it at every sync of a pod.
        """
        raise NotImplementedError

    async def teardown(self, uid: str) -> None:
        """Unmount and remove everything of a pod whose containers are gone; may be called again after a failure."""
        raise NotImplementedError

    def has_volumes(self, uid: str) -> bool:
        """Whether anything of a pod is still there: its Node status `volumesInUse`, and whether it may be deleted."""
        raise NotImplementedError

    def orphans(self, known: Collection[str]) -> list[str]:
        """The uids of pods that have a folder here and are not known."""
        raise NotImplementedError
