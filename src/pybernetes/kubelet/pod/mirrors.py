"""Shows static pods in the API as mirror pods: no kubelet runs them; one that differs is deleted and created again."""

from __future__ import annotations

import logging
from collections.abc import Callable

import msgspec

from pybernetes.api import errors
from pybernetes.api.core.v1 import Node, Pod
from pybernetes.api.meta.v1 import OwnerReference
from pybernetes.client.client import Client
from pybernetes.client.keys import copy

from ..runtime import labels
from .manager import PodManager

log = logging.getLogger(__name__)


class Mirrors:
    """Makes and deletes mirrors. `node` is this node's object, once it is there."""

    def __init__(self, client: Client | None, pods: PodManager, node: Callable[[], Node | None]) -> None:
        self._client = client
        self._pods = pods
        self._node = node

    async def ensure(self, pod: Pod) -> None:
        """See to it that a static pod has its mirror. What goes wrong is no reason not to run the pod."""
        mirror = self._pods.mirror_of(pod)
        if mirror is not None and _shows(mirror, pod):
            return
        if mirror is not None and not await self.delete(mirror):
            return
        await self._create(pod)

    async def delete(self, mirror: Pod) -> bool:
        """Delete a mirror; whether it is gone."""
        if self._client is None:
            return False
        assert mirror.metadata is not None
        metadata = mirror.metadata
        try:
            await self._client.delete(
                Pod, metadata.name or "", metadata.namespace or "", grace_period_seconds=0, uid=metadata.uid
            )
        except (errors.NotFound, errors.Conflict):
            return True
        except (errors.APIError, OSError, TimeoutError) as error:
            log.warning("mirror pod %s/%s cannot be deleted: %s", metadata.namespace, metadata.name, error)
            return False
        return True

    async def delete_orphans(self) -> None:
        """Delete the mirrors of static pods that are no more."""
        for mirror in self._pods.mirrors():
            if self._pods.static_of(mirror) is None:
                await self.delete(mirror)

    async def _create(self, pod: Pod) -> None:
        node = self._node()
        if self._client is None or node is None or node.metadata is None or node.metadata.deletion_timestamp:
            return
        shown = copy(pod)
        assert shown.metadata is not None
        metadata = shown.metadata
        hash = (metadata.annotations or {}).get(labels.CONFIG_HASH, "")
        metadata.annotations = {**(metadata.annotations or {}), labels.CONFIG_MIRROR: hash}
        metadata.owner_references = [
            OwnerReference(
                api_version="v1", kind="Node", name=node.metadata.name, uid=node.metadata.uid, controller=True
            )
        ]
        metadata.uid = metadata.resource_version = metadata.creation_timestamp = None
        shown = msgspec.structs.replace(shown, status=None)
        try:
            await self._client.create(shown)
        except errors.AlreadyExists:
            pass
        except (errors.APIError, OSError, TimeoutError) as error:
            log.warning("mirror pod %s/%s cannot be created: %s", metadata.namespace, metadata.name, error)


def _shows(mirror: Pod, pod: Pod) -> bool:
    assert mirror.metadata is not None
    assert pod.metadata is not None
    shown = (mirror.metadata.annotations or {}).get(labels.CONFIG_MIRROR)
    wanted = (pod.metadata.annotations or {}).get(labels.CONFIG_HASH)
    return mirror.metadata.deletion_timestamp is None and shown == wanted
