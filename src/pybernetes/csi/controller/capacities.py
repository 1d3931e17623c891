"""Tells the scheduler how much storage a driver has left, and where: the capacity half of upstream's provisioner.

Woken by: StorageClasses of the driver that wait for a consumer, nodes that the driver registers on, volumes that come
and go, and every minute. Writes: a CSIStorageCapacity for each class and topology segment, named after both, so that
another process finds what an earlier one made. The scheduler reads them where CSIDriver has `storageCapacity`.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any, Final

from pybernetes.api import errors
from pybernetes.api.core.v1 import Node, PersistentVolume
from pybernetes.api.meta.v1 import LabelSelector, ObjectMeta
from pybernetes.api.storage.v1 import CSINode, CSIStorageCapacity, StorageClass
from pybernetes.client.keys import Key, key_of
from pybernetes.csi import v1

from . import requests, topology
from .loop import Context, Loop

POLL: Final = 60.0
"""Seconds after which the driver is asked again; upstream's."""
SETTLE: Final = 1.0
"""Seconds after a volume has come or gone: many do so together."""
MANAGED_BY: Final = "csi.storage.k8s.io/managed-by"
DRIVER: Final = "csi.storage.k8s.io/drivername"


class Capacities:
    """CSIStorageCapacities of one driver."""

    def __init__(self, context: Context, namespace: str) -> None:
        """`namespace` is where the objects are; they count for the whole cluster."""
        self._context, self._namespace = context, namespace
        self._manager = f"pyb-csi-{context.node}" if context.node else "pyb-csi"
        informers = context.informers
        self.classes = informers.informer(StorageClass)
        self.nodes = informers.informer(Node)
        self.csi_nodes = informers.informer(CSINode)
        self.volumes = informers.informer(PersistentVolume)
        self.capacities = informers.informer(CSIStorageCapacity)
        self._loop = Loop("capacities", context.clock, self.sync, workers=2)
        self._topology = False
        self.classes.add_handler(self._class_seen, lambda _, new: self._class_seen(new), self._class_seen)
        self.csi_nodes.add_handler(lambda _: self._all(), lambda _, __: self._all(), lambda _: self._all())
        self.nodes.add_handler(lambda _: self._all(), self._node_updated, lambda _: self._all())
        self.volumes.add_handler(self._volume_seen, None, self._volume_seen)
        self.capacities.add_handler(self._capacity_seen, None, self._capacity_seen)

    async def run(self) -> None:
        """Work until cancelled; nothing is done for a driver that does not know its capacity."""
        if v1.ControllerRPC.GET_CAPACITY not in await self._context.driver.controller_capabilities():
            raise ValueError(f"driver {self._context.name} does not know its capacity (no GET_CAPACITY)")
        plugin = await self._context.driver.plugin_capabilities()
        self._topology = v1.PluginService.VOLUME_ACCESSIBILITY_CONSTRAINTS in plugin
        await self._loop.run(self.classes, self.nodes, self.csi_nodes, self.volumes, self.capacities)

    # -- being woken

    def _class_seen(self, found: StorageClass) -> None:
        self._loop.queue.add(Key("", key_of(found).name))

    def _all(self) -> None:
        for each in self.classes.items():
            if each.provisioner == self._context.name:
                self._class_seen(each)

    def _node_updated(self, old: Node, new: Node) -> None:
        if (old.metadata and old.metadata.labels) != (new.metadata and new.metadata.labels):
            self._all()

    def _volume_seen(self, volume: PersistentVolume) -> None:
        spec = volume.spec
        if spec is not None and spec.csi is not None and spec.csi.driver == self._context.name:
            self._loop.queue.add_after(Key("", spec.storage_class_name or ""), SETTLE)

    def _capacity_seen(self, found: CSIStorageCapacity) -> None:
        if self._is_ours(found):
            self._loop.queue.add(Key("", found.storage_class_name or ""))

    def _is_ours(self, found: CSIStorageCapacity) -> bool:
        labels = (found.metadata.labels if found.metadata else None) or {}
        return labels.get(DRIVER) == self._context.name and labels.get(MANAGED_BY) == self._manager

    # -- working

    async def sync(self, key: Key) -> float | None:
        """Bring the capacities of one class up to date."""
        found = self.classes.named(key.name)
        segments = self._segments() if found is not None and self._counts(found) else []
        wanted = {self._name(key.name, each): each for each in segments}
        there = {
            key_of(each).name: each
            for each in self.capacities.items()
            if self._is_ours(each) and each.storage_class_name == key.name
        }
        for name in there.keys() - wanted.keys():
            try:
                await self._context.client.delete(CSIStorageCapacity, name, self._namespace)
            except errors.NotFound:
                continue
        if found is None or not wanted:
            return None
        for name, where in wanted.items():
            await self._ask(name, found, where, there.get(name))
        return POLL

    def _counts(self, found: StorageClass) -> bool:
        return found.provisioner == self._context.name and found.volume_binding_mode == "WaitForFirstConsumer"

    def _segments(self) -> list[dict[str, str]]:
        """Where the driver is, each place once; one place without labels for a driver that is everywhere."""
        if not self._topology:
            return [{}]
        made: list[dict[str, str]] = []
        for each in self.nodes.items():
            name = key_of(each).name
            if self._context.node and name != self._context.node:
                continue
            keys = topology.keys_of(self.csi_nodes.named(name), self._context.name)
            where = topology.segments(each, keys) if keys else None
            if where and where not in made:
                made.append(where)
        return made

    def _name(self, storage_class: str, where: dict[str, str]) -> str:
        text = json.dumps([self._context.name, storage_class, where], sort_keys=True)
        return f"csisc-{hashlib.sha256(text.encode()).hexdigest()[:16]}"

    async def _ask(
        self, name: str, found: StorageClass, where: dict[str, str], there: CSIStorageCapacity | None
    ) -> None:
        response = await self._context.driver.call(
            "GetCapacity",
            parameters=requests.drivers_parameters(found),
            accessible_topology=v1.Topology(segments=where) if where else None,
        )
        changed: dict[str, Any] = {"capacity": requests.amount(response.available_capacity)}
        largest = response.maximum_volume_size.value if response.HasField("maximum_volume_size") else None
        changed["maximumVolumeSize"] = requests.amount(largest) if largest is not None else None
        if there is None:
            made = CSIStorageCapacity(
                api_version="storage.k8s.io/v1",
                kind="CSIStorageCapacity",
                metadata=ObjectMeta(
                    name=name,
                    namespace=self._namespace,
                    labels={DRIVER: self._context.name, MANAGED_BY: self._manager},
                ),
                node_topology=LabelSelector(match_labels=where or None),
                storage_class_name=key_of(found).name,
                capacity=changed["capacity"],
                maximum_volume_size=changed["maximumVolumeSize"],
            )
            await self._context.client.create(made)
        elif (_text(there.capacity), _text(there.maximum_volume_size)) != tuple(changed.values()):
            await self._context.client.patch(CSIStorageCapacity, name, changed, self._namespace)


def _text(value: object) -> str | None:
    return None if value is None else str(value)
