"""Keeps the CSINode of this node, and on the Node the annotation and labels that come from CSI drivers.

Woken by: the node's registration, drivers that come and go. Writes: CSINode (made with the Node as its owner), of the
Node `csi.volume.kubernetes.io/nodeid` and the labels of the drivers' topology. One write at a time, each from what the
server has, so that a retry after a conflict changes nothing else.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable
from typing import Any, Final

from pybernetes.api import errors
from pybernetes.api.core.v1 import Node
from pybernetes.api.meta.v1 import ObjectMeta, OwnerReference
from pybernetes.api.storage.v1 import CSINode, CSINodeDriver, CSINodeSpec, VolumeNodeResources
from pybernetes.client.client import Client
from pybernetes.client.keys import copy

NODE_ID: Final = "csi.volume.kubernetes.io/nodeid"
MIGRATED: Final = "storage.alpha.kubernetes.io/migrated-plugins"
MIGRATED_PLUGINS: Final = (
    "kubernetes.io/aws-ebs,kubernetes.io/azure-disk,kubernetes.io/azure-file,kubernetes.io/cinder,"
    "kubernetes.io/gce-pd,kubernetes.io/portworx-volume,kubernetes.io/vsphere-volume"
)
"""In-tree kinds whose volumes go to CSI drivers on this node; upstream's since all migrations are done."""
MAX_NODE_ID: Final = 256
"""Bytes of a node's id; the limit of the API and of the specification."""
MAX_COUNT: Final = 2**31 - 1
TRIES: Final = 5
RETRY: Final = 0.5
MAX_RETRY: Final = 30.0
log = logging.getLogger(__name__)


class CSINodeKeeper:
    """The CSINode of one node."""

    def __init__(self, client: Client, node: str, registered: asyncio.Event) -> None:
        """`registered` is set when the API server has the Node."""
        self._client, self._node, self._registered = client, node, registered
        self._turn = asyncio.Lock()

    async def run(self) -> None:
        """Make the CSINode when the node is registered, so that the cluster knows that this node takes drivers."""
        await self._registered.wait()
        delay = RETRY
        while True:
            try:
                async with self._turn:
                    await self._update_csi_node(lambda _: False)
                return
            except (errors.APIError, OSError, TimeoutError) as error:
                log.warning("CSINode %s cannot be made yet: %s", self._node, error)
            await asyncio.sleep(delay)
            delay = min(2 * delay, MAX_RETRY)

    async def install(self, driver: str, node_id: str, max_volumes: int, topology: dict[str, str]) -> None:
        """Note what a driver says about this node; raises ValueError, APIError or OSError."""
        if not node_id:
            raise ValueError("error adding CSI driver node info: driverNodeID must not be empty")
        if len(node_id.encode()) > MAX_NODE_ID:
            raise ValueError(f"NodeGetInfo: node_id has more than {MAX_NODE_ID} bytes")
        await self._registered.wait()
        async with self._turn:
            await self._update_node(driver, node_id, topology)
            entry = CSINodeDriver(name=driver, node_id=node_id, topology_keys=sorted(topology) or None)
            if max_volumes > 0:
                entry.allocatable = VolumeNodeResources(count=min(max_volumes, MAX_COUNT))
            await self._update_csi_node(lambda found: _drop(found, driver, unless=entry))
            await self._update_csi_node(lambda found: _put(found, entry))

    async def uninstall(self, driver: str) -> None:
        """Forget a driver; the labels of its topology stay, as volumes may still be bound to them."""
        if not self._registered.is_set():
            return
        async with self._turn:
            await self._update_csi_node(lambda found: _drop(found, driver))
            await self._update_node(driver, "", {})

    async def _update_node(self, driver: str, node_id: str, topology: dict[str, str]) -> None:
        for left in reversed(range(TRIES)):
            node = await self._client.get(Node, self._node)
            metadata = node.metadata or ObjectMeta()
            patch = _node_patch(metadata, driver, node_id, topology)
            if not patch:
                return
            patch["resourceVersion"] = metadata.resource_version
            try:
                await self._client.patch(Node, self._node, {"metadata": patch})
                return
            except errors.Conflict:
                if not left:
                    raise

    async def _update_csi_node(self, change: Callable[[CSINode], bool]) -> None:
        """Make the CSINode if it is not there, and change it; `change` says whether it did."""
        for left in reversed(range(TRIES)):
            try:
                found = await self._client.get(CSINode, self._node)
            except errors.NotFound:
                found = await self._new()
                change(found)
                try:
                    await self._client.create(found)
                    return
                except errors.AlreadyExists:
                    if not left:
                        raise
                    continue
            changed = copy(found)
            updates = change(changed)
            annotations = (changed.metadata.annotations if changed.metadata else None) or {}
            if annotations.get(MIGRATED) != MIGRATED_PLUGINS:
                assert changed.metadata is not None
                changed.metadata.annotations = {**annotations, MIGRATED: MIGRATED_PLUGINS}
                updates = True
            if not updates:
                return
            try:
                await self._client.update(changed)
                return
            except errors.Conflict:
                if not left:
                    raise

    async def _new(self) -> CSINode:
        node = await self._client.get(Node, self._node)
        owner = OwnerReference(
            api_version="v1", kind="Node", name=self._node, uid=node.metadata.uid if node.metadata else None
        )
        metadata = ObjectMeta(name=self._node, owner_references=[owner], annotations={MIGRATED: MIGRATED_PLUGINS})
        return CSINode(api_version="storage.k8s.io/v1", kind="CSINode", metadata=metadata, spec=CSINodeSpec(drivers=[]))


def _node_patch(metadata: ObjectMeta, driver: str, node_id: str, topology: dict[str, str]) -> dict[str, Any]:
    """A merge patch for the Node's metadata; empty if nothing changes. Without `node_id` the driver is taken out."""
    patch: dict[str, Any] = {}
    text = (metadata.annotations or {}).get(NODE_ID, "")
    try:
        ids = json.loads(text) if text else {}
        if not isinstance(ids, dict):
            raise ValueError("not a JSON object")
    except ValueError as error:
        raise ValueError(f"annotation {NODE_ID} of node {metadata.name}: {error}") from None
    wanted = {key: value for key, value in ids.items() if key != driver} | ({driver: node_id} if node_id else {})
    if wanted != ids:
        patch["annotations"] = {NODE_ID: json.dumps(wanted, sort_keys=True, separators=(",", ":")) if wanted else None}
    labels = metadata.labels or {}
    for key, value in topology.items():
        if labels.get(key, value) != value:
            raise ValueError(
                f'detected topology value collision: driver reported "{key}":"{value}" but existing label is '
                f'"{key}":"{labels[key]}"'
            )
    added = {key: value for key, value in topology.items() if key not in labels}
    if added:
        patch["labels"] = added
    return patch


def _put(found: CSINode, entry: CSINodeDriver) -> bool:
    found.spec = found.spec or CSINodeSpec()
    drivers = list(found.spec.drivers or ())
    if any(each.name == entry.name for each in drivers):
        return False
    found.spec.drivers = [*drivers, entry]
    return True


def _drop(found: CSINode, driver: str, unless: CSINodeDriver | None = None) -> bool:
    """Take a driver out, unless it is exactly this: the API lets nothing of an entry change."""
    found.spec = found.spec or CSINodeSpec()
    drivers = list(found.spec.drivers or ())
    found.spec.drivers = [each for each in drivers if each.name != driver or each == unless]
    return len(found.spec.drivers) != len(drivers)
