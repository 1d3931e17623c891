"""Three controllers that work on a quiet day, each with a bug of a class that Sieve found in published operators.

- stale state: `clean_up` believes that what its cache does not have is not there
- unobserved state: `count` adds up what it sees happen, and does not see what happens while it is down
- intermediate state: `provision` does a step twice removed from the note that it was done
"""

from __future__ import annotations

import asyncio

from pybernetes.api import errors
from pybernetes.api.apps.v1 import Deployment
from pybernetes.api.core.v1 import ConfigMap, Pod, Secret
from pybernetes.api.meta.v1 import ObjectMeta
from pybernetes.client.client import Client
from pybernetes.client.informers import InformerFactory

FOR = "for-deployment"


async def clean_up(client: Client) -> None:
    """Delete ConfigMaps whose Deployment is gone."""
    informers = InformerFactory(client)
    maps, deployments = informers.informer(ConfigMap), informers.informer(Deployment)
    informers.start()
    await informers.wait_synced()
    while True:
        for each in maps.in_namespace("default"):
            owner = (each.metadata.labels or {}).get(FOR)
            # The bug: the cache of Deployments may be behind that of ConfigMaps. It has to ask the server, and to
            # delete with the resourceVersion that it has seen.
            if owner and deployments.named(owner, "default") is None:
                await _patiently(client.delete(ConfigMap, each.metadata.name, "default"))
        await asyncio.sleep(1)


async def count(client: Client) -> None:
    """Keep the number of pods that ever were in a ConfigMap."""
    informers = InformerFactory(client)
    seen: set[str] = set()
    pods = informers.informer(Pod)

    def came(pod: Pod) -> None:
        # The bug: who starts later never sees a pod without a node. It has to count what is, not what it saw happen.
        if pod.spec.node_name is None:
            seen.add(pod.metadata.uid)

    pods.add_handler(came, lambda old, new: None, lambda old: None)
    informers.start()
    await informers.wait_synced()
    while True:
        made = ConfigMap(metadata=ObjectMeta(name="count", namespace="default"), data={"pods": str(len(seen))})
        await _patiently(client.apply(made, field_manager="count", force=True))
        await asyncio.sleep(1)


async def provision(client: Client) -> None:
    """Make a Secret for each ConfigMap with the label `wants-secret`, once."""
    informers = InformerFactory(client)
    maps = informers.informer(ConfigMap)
    informers.start()
    await informers.wait_synced()
    while True:
        for each in maps.in_namespace("default"):
            name, annotations = each.metadata.name, each.metadata.annotations or {}
            if not (each.metadata.labels or {}).get("wants-secret") or "provisioned" in annotations:
                continue
            # The bug: the note comes first. Who crashes after it has noted what is not there, and never makes it.
            await _patiently(
                client.patch(ConfigMap, name, {"metadata": {"annotations": {"provisioned": "yes"}}}, "default")
            )
            await asyncio.sleep(5)  # whatever it has to ask elsewhere
            await _patiently(client.create(Secret(metadata=ObjectMeta(name=name, namespace="default"))))
        await asyncio.sleep(1)


async def _patiently(request) -> None:
    try:
        await request
    except (errors.APIError, OSError, TimeoutError):
        pass  # the next round
