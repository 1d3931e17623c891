"""Waits until volumes that a controller attaches are attached to this node, and says which of them are in use.

Order: the node's status says that the volume is in use (`volumesInUse`), so that it will not be detached; the
controller says that it is attached (`volumesAttached`); the VolumeAttachment has what the driver needs to know.
Woken by: the Node. Writes: nothing; the node's status asks for `in_use`.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable
from typing import Final

from pybernetes.api import errors
from pybernetes.api.core.v1 import Node
from pybernetes.api.storage.v1 import VolumeAttachment
from pybernetes.client.client import Client

from ..error_text import why
from ..volumes.base import StepError
from .source import Source

WAIT_SECONDS: Final = 123.0
"""How long a pod waits for its volumes before an event reports the reason; upstream's value."""
READ_EVERY: Final = 1.0
"""Seconds until a VolumeAttachment that is not attached yet is read again."""


class Attachments:
    """The volumes of this node that are attached by a controller."""

    def __init__(
        self, client: Client, node: str, found: Callable[[], Node | None], report: Callable[[], None], *, managed: bool
    ) -> None:
        """`found` is the Node as last seen; `report` has the status sent; `managed`: enableControllerAttachDetach."""
        self.node = node
        self._client, self._found, self._report = client, found, report
        self._managed = managed
        self._in_use: set[str] = set()
        """Unique names."""
        self._changed = asyncio.Event()

    def in_use(self) -> list[str]:
        """For `volumesInUse`."""
        return sorted(self._in_use)

    def hold(self, name: str) -> None:
        """A volume is, or is about to be, in use."""
        if name not in self._in_use:
            self._in_use.add(name)
            self._report()

    def release(self, name: str) -> None:
        """It is not any more."""
        if name in self._in_use:
            self._in_use.discard(name)
            self._report()

    def node_changed(self) -> None:
        """The Node is not what it was."""
        self._changed.set()

    def attachment_name(self, source: Source) -> str:
        """The name of the VolumeAttachment."""
        return "csi-" + hashlib.sha256(f"{source.handle}{source.driver}{self.node}".encode()).hexdigest()

    async def wait(self, source: Source) -> dict[str, str]:
        """The publish context of a volume that is held, once it is attached; raises `StepError` after a while."""
        problem = ""
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                while self._managed and (problem := self._problem(source)):
                    self._changed.clear()
                    await self._changed.wait()
                while True:
                    problem, context = await self._attachment(source)
                    if not problem:
                        return context
                    await asyncio.sleep(READ_EVERY)
        except TimeoutError:
            raise StepError("MountVolume.WaitForAttach failed", source.spec_name, problem) from None

    def _problem(self, source: Source) -> str:
        status = node.status if (node := self._found()) is not None else None
        if source.unique_name not in ((status.volumes_in_use if status else None) or ()):
            return "volume has not been added to the list of VolumesInUse in the node's volume status"
        attached = {each.name for each in (status.volumes_attached if status else None) or ()}
        return "" if source.unique_name in attached else "volume not attached according to node status"

    async def _attachment(self, source: Source) -> tuple[str, dict[str, str]]:
        name = self.attachment_name(source)
        try:
            found = await self._client.get(VolumeAttachment, name)
        except (errors.APIError, OSError, TimeoutError) as error:
            return f"unable to find VolumeAttachment {name}: {why(error)}", {}
        status = found.status
        if status is None or not status.attached:
            problem = status.attach_error.message if status and status.attach_error else ""
            return f"VolumeAttachment {name} is not attached{': ' if problem else ''}{problem}", {}
        return "", dict(status.attachment_metadata or {})
