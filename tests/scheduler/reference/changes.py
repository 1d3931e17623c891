"""Random things that happen to a cluster."""

from __future__ import annotations

from random import Random

from pybernetes.client.keys import copy

from . import worlds
from .harness import World


def change(random: Random, world: World, step: int) -> None:
    """One thing happens: pods come, go, change and end; nodes too."""
    cluster = world.cluster
    names = [node.metadata.name for node in cluster.nodes]
    kind = random.randint(0, 10)
    if kind <= 3 and names:
        new = worlds.pod(random, f"b{step}", names)
        if cluster.pods and worlds.maybe(random, 0.6):  # replicas have the same affinity
            new = copy(random.choice(cluster.pods))
            new.metadata.name, new.metadata.uid = f"b{step}", f"uid-b{step}"
            new.metadata.deletion_timestamp = None
        world.bind(new, random.choice(names))
    elif kind <= 5 and cluster.pods:
        world.remove_pod(random.choice(cluster.pods))
    elif kind == 6 and cluster.pods:
        old = random.choice(cluster.pods)
        new = copy(old)
        if worlds.maybe(random, 0.5):
            new.metadata.deletion_timestamp = "2026-01-01T00:00:00Z"
        else:
            new.metadata.labels = worlds.labels(random, worlds.POD_LABELS) or None
        world.replace_pod(old, new)
    elif kind == 7 and names:
        world.set_node(worlds.node(random, random.choice(names)))
    elif kind == 8:
        world.set_node(worlds.node(random, f"m{step}"))
    elif kind == 9 and len(names) > 1:
        world.remove_node(random.choice(cluster.nodes))
    elif kind == 10 and cluster.namespaces:
        index = random.randrange(len(cluster.namespaces))
        changed = copy(cluster.namespaces[index])
        changed.metadata.labels = worlds.labels(random, worlds.NAMESPACE_LABELS) or None
        cluster.namespaces[index] = changed
        world.handle.tell(changed, "MODIFIED")
