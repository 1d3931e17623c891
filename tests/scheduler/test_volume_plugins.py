"""The plugins for volumes decide as upstream does, while claims, volumes and pods change under them."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scheduler.reference import changes, storage, volumes, worlds
from scheduler.reference.harness import World, verdicts

from pybernetes.scheduler.config.v1.args import VolumeBindingArgs
from pybernetes.scheduler.plugins.node_volume_limits import NodeVolumeLimits
from pybernetes.scheduler.plugins.volume_binding import VolumeBinding
from pybernetes.scheduler.plugins.volume_restrictions import VolumeRestrictions
from pybernetes.scheduler.plugins.volume_zone import VolumeZone

PLUGINS: tuple[tuple[Any, Any, Any], ...] = (
    (VolumeRestrictions, None, volumes.volume_restrictions),
    (NodeVolumeLimits, None, volumes.node_volume_limits),
    (VolumeZone, None, volumes.volume_zone),
    (VolumeBinding, VolumeBindingArgs(), volumes.volume_binding),
)


def change_storage(random: Random, world: World) -> None:
    """Something happens to a claim, a volume, a CSINode or an attachment."""
    cluster = world.cluster
    names = [node.metadata.name for node in cluster.nodes]
    kind = random.randint(0, 4)
    if kind == 0:
        world.replace(
            cluster.claims, storage.claim(random, random.choice(storage.CLAIMS), random.choice(("red", "blue")), names)
        )
    elif kind == 1:
        world.replace(cluster.volumes, storage.volume(random, f"v{random.randint(0, 9)}", names))
    elif kind == 2:
        world.replace(cluster.csi_nodes, storage.csi_node(random, random.choice(names)))
    elif kind == 3 and cluster.attachments:
        world.drop(cluster.attachments, random.choice(cluster.attachments))
    elif kind == 4 and cluster.volumes:
        world.drop(cluster.volumes, random.choice(cluster.volumes))


def compare(random: Random, nodes: int, steps: int) -> None:
    cluster = worlds.cluster(random, nodes, nodes * 2)
    for pod in cluster.pods:
        storage.use(random, pod)
    storage.furnish(random, cluster)
    world = World(cluster)
    plugins = [(make(args, world.handle), reference) for make, args, reference in PLUGINS]
    pods = [worlds.pod(random, f"new{index}", []) for index in range(4)]
    for pod in pods:
        storage.use(random, pod)
    for step in range(steps):
        changes.change(random, world, step)
        change_storage(random, world)
        for pod in pods:
            for plugin, reference in plugins:
                expected = {node.metadata.name: reference(pod, node, cluster) for node in cluster.nodes}
                assert verdicts(world, plugin, pod) == expected, plugin.name


@settings(max_examples=20, deadline=None)
@given(st.randoms(use_true_random=False), st.integers(1, 4), st.integers(1, 5))
def test_the_same_nodes_and_reasons_as_the_reference(random: Random, nodes: int, steps: int) -> None:
    compare(random, nodes, steps)


@pytest.mark.parametrize("seed", range(30))
def test_the_same_in_larger_clusters(seed: int) -> None:
    compare(Random(seed), 7, 25)
