"""Pods come and go on two nodes; no volume is taken from a node that uses it, or given to two that cannot share it.

The test plays the kubelets, which say what they use before they mount it, and the attacher, which keeps an attachment
by a finalizer until it has detached.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from typing import Any

import pytest
from controllers.conftest import Harness, MakeHarness
from controllers.persistentvolume.test_attachdetach import ATTACH, World

from pybernetes.api import errors
from pybernetes.api.core.v1 import Node, Pod
from pybernetes.api.storage.v1 import VolumeAttachment
from pybernetes.controllers.common.meta import is_deleting, meta, name_of
from pybernetes.controllers.persistentvolume.attachments import attachment_name, node_state

FINALIZER = "external-attacher/example"


class Machines:
    """Two kubelets and an attacher."""

    def __init__(self, h: Harness, nodes: list[str], volumes: dict[str, str], shared: str) -> None:
        self.h, self.nodes, self.shared = h, nodes, shared
        self.volumes = volumes
        """Names of volumes as nodes have them, by claim."""
        self.mounted: dict[str, set[str]] = {node: set() for node in nodes}
        self.attached: dict[str, set[str]] = {node: set() for node in nodes}
        self.wrong: list[str] = []

    async def run(self) -> None:
        while True:
            with contextlib.suppress(errors.APIError):
                await self.step()
            await asyncio.sleep(0.002)

    async def step(self) -> None:
        pods = await self.h.list(Pod)
        for node in self.nodes:
            await self.kubelet(node, pods)
        await self.attacher()

    async def kubelet(self, node: str, pods: list[Pod]) -> None:
        wanted = self.wanted(node, pods)
        self.mounted[node] &= wanted
        state = node_state(await self.h.client.get(Node, node))
        use = wanted | self.mounted[node]
        if state.in_use != use:
            patch = {"status": {"volumesInUse": sorted(use) or None}}
            state = node_state(await self.h.client.patch(Node, node, patch, subresource="status"))
        for name in wanted & set(state.reported):
            if name not in self.attached[node]:
                self.wrong.append(f"{node} may mount {name}, which is not attached")
            self.mounted[node].add(name)

    async def attacher(self) -> None:
        by_name = {attachment_name(name, node): (name, node) for name in self.volumes.values() for node in self.nodes}
        found = (await self.h.client.list(VolumeAttachment)).items or ()
        for each in found:
            if name_of(each) not in by_name:
                continue
            name, node = by_name[name_of(each)]
            if is_deleting(each):
                if name in self.mounted[node]:
                    self.wrong.append(f"{name} is taken from {node}, which has it mounted")
                self.attached[node].discard(name)
                await self.h.client.patch(VolumeAttachment, name_of(each), {"metadata": {"finalizers": None}})
            elif not (each.status and each.status.attached):
                others = [other for other in self.nodes if other != node and name in self.attached[other]]
                if others and name != self.shared:
                    self.wrong.append(f"{name} is on {others} and ordered for {node}")
                if not meta(each).finalizers:
                    await self.h.client.patch(
                        VolumeAttachment, name_of(each), {"metadata": {"finalizers": [FINALIZER]}}
                    )
                self.attached[node].add(name)
                patch = {"status": {"attached": True}}
                await self.h.client.patch(VolumeAttachment, name_of(each), patch, subresource="status")

    def wanted(self, node: str, pods: list[Pod]) -> set[str]:
        found = set()
        for pod in pods:
            if pod.spec is not None and pod.spec.node_name == node:
                for volume in pod.spec.volumes or ():
                    if volume.persistent_volume_claim is not None:
                        found.add(self.volumes[volume.persistent_volume_claim.claim_name or ""])
        return found

    async def is_settled(self) -> bool:
        pods = await self.h.list(Pod)
        everywhere = [name for node in self.nodes for name in self.wanted(node, pods)]
        for node in self.nodes:
            wanted = self.wanted(node, pods)
            # of a volume that two nodes want and one can have, either may have it
            sure = {name for name in wanted if name == self.shared or everywhere.count(name) == 1}
            reported = set(node_state(await self.h.client.get(Node, node)).reported)
            if not sure <= reported <= wanted or self.mounted[node] != reported:
                return False
        return True


@pytest.mark.parametrize("seed", [1, 2])
async def test_random_pods_and_a_bad_server(harness: MakeHarness, seed: int) -> None:
    dice = random.Random(seed)
    async with harness(ATTACH, kubelet=False) as h:
        world = World(h)
        nodes = [await world.node("a"), await world.node("b")]
        volumes = {name: await world.claim(name) for name in ("one", "two", "three")}
        volumes["shared"] = await world.claim("shared", accessModes=["ReadWriteMany"])
        machines = Machines(h, nodes, volumes, volumes["shared"])
        playing = asyncio.create_task(machines.run())
        h.faults.conflict = h.faults.unavailable = h.faults.lost = 0.05
        try:
            live: dict[str, Any] = {}
            for number in range(40):
                if live and dice.random() < 0.45:
                    name = dice.choice(sorted(live))
                    del live[name]
                    await world.gone(name)
                else:
                    live[f"p-{number}"] = None
                    await world.pod(f"p-{number}", dice.choice(nodes), dice.choice(sorted(volumes)))
                if dice.random() < 0.06:
                    await h.restart()
                if dice.random() < 0.06:
                    h.faults.cut()
                await asyncio.sleep(dice.random() * 0.03)
            for name in sorted(live)[4:]:
                await world.gone(name)
            h.faults.stop()
            await h.until(machines.is_settled, "every pod has its volumes")
        finally:
            playing.cancel()
        assert not machines.wrong, "\n".join(machines.wrong)
