"""What admission plugins do with an object grows no faster than n log n with any of its lists and maps.

All plugins that need no other server are on, in a namespace with limits, quotas, defaults and restrictions. The kinds
that they look into are created and updated at two sizes, with the lists and maps of one class growing together.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import cases
import pytest
from costs import counting, growing
from costs.steps import Steps, forget
from costs.test_growth import FIRST, IGNORED, LARGE, SMALL
from fuzz.journey import STORED
from fuzz.wild import encode

from pybernetes.api import scheme
from pybernetes.api.errors import APIError
from pybernetes.api.resources import Resource
from pybernetes.api.times import SystemClock
from pybernetes.apiserver.admission.plugin import CREATE, UPDATE, Attributes, Chain
from pybernetes.apiserver.admission.plugins import PLUGINS, chain
from pybernetes.apiserver.registry.registry import Registry
from pybernetes.store.cache import Cache
from pybernetes.store.memory import MemoryStore

ELSEWHERE = {
    "AlwaysDeny",
    "ImagePolicyWebhook",
    "EventRateLimit",
    "NodeRestriction",
    "InitialResources",
    "Initializers",
}
KINDS = ("Pod", "Deployment", "Service", "Node", "PersistentVolumeClaim", "Ingress", "ConfigMap", "Endpoints")
RESOURCES = [each for each in STORED if each.kind in KINDS and each.api_version in ("v1", "apps/v1")]

PLACE = {
    "metadata": {
        "name": "fuzz",
        "labels": {f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("audit", "warn")},
        "annotations": {
            "scheduler.alpha.kubernetes.io/node-selector": "a=b,c=d",
            "scheduler.alpha.kubernetes.io/defaultTolerations": json.dumps([{"key": "x", "operator": "Exists"}]),
        },
    }
}
LIMITS = {
    "metadata": {"name": "limits", "namespace": "fuzz"},
    "spec": {
        "limits": [
            {"type": "Container", "default": {"cpu": "1"}, "defaultRequest": {"cpu": "1"}, "max": {"cpu": "9"}},
            {"type": "Pod", "max": {"cpu": "1000000"}},
        ]
    },
}
QUOTA = {
    "metadata": {"name": "quota", "namespace": "fuzz"},
    "spec": {"hard": {"pods": "100", "requests.cpu": "1000000", "services": "10", "count/configmaps": "1000"}},
}


@asynccontextmanager
async def admission() -> AsyncIterator[Registry]:
    """A server without a network, with all plugins."""
    store = MemoryStore()
    await store.start()
    cache = Cache(store, [each.storage_prefix for each in scheme.resources() if each.stored])
    await cache.start()
    registry = Registry(cache, SystemClock(), Chain([]))
    names = [each.name for each in PLUGINS if each.place and each.name not in ELSEWHERE]
    for plural, document in (("namespaces", PLACE), ("limitranges", LIMITS), ("resourcequotas", QUOTA)):
        objects = registry.store("", "v1", plural)
        await objects.create(scheme.decoder(objects.resource).decode(json.dumps(document)))
    account = {"metadata": {"name": "default", "namespace": "fuzz"}}
    accounts = registry.store("", "v1", "serviceaccounts")
    await accounts.create(scheme.decoder(accounts.resource).decode(json.dumps(account)))
    registry.admission = chain(registry, names, {})
    try:
        yield registry
    finally:
        await cache.close()
        await store.close()


def attributes(resource: Resource, operation: str, new: Any, old: Any) -> Attributes:
    return Attributes(
        operation, resource, "", "fuzz" if resource.namespaced else "", "a", new, old, cases.USER, False, []
    )


async def admit(registry: Registry, steps: Steps, document: dict[str, Any]) -> None:
    """Create the object, and update it to itself and from the base."""
    base = steps.received(steps.way.base())
    for operation, old in ((CREATE, None), (UPDATE, base), (UPDATE, steps.received(document))):
        asked = attributes(steps.way.storage, operation, steps.received(document), old)
        for judge in (registry.admission.admit, registry.admission.validate):
            try:
                await judge(asked)
            except APIError as error:
                error.status()


@pytest.mark.parametrize("resource", RESOURCES, ids=lambda each: each.kind)
def test_admission_grows_with_the_size_of_an_object(resource: Resource) -> None:
    found: list[str] = []

    async def check() -> None:
        async with admission() as registry:
            steps = Steps(resource)
            await admit(registry, steps, steps.way.base())
            for owner, group in growing.groups(resource.type).items():
                if FIRST[owner].kind in KINDS and FIRST[owner] is not resource:
                    continue  # the class is tried with another kind
                for same in (True, False):
                    amounts, sizes = [], []
                    for size in (SMALL, LARGE):
                        document = growing.reachable(steps.way.base(), group[0])
                        for place in group:
                            document = growing.grown(document, place, size, same)
                        sizes.append(len(encode(document)))
                        forget()
                        list(registry.admission.collect())  # what was counted for the metrics is settled now and then
                        amounts.append(await counting.work_of(admit(registry, steps, document)))
                    small, large = amounts
                    name = f"{group[0].name} ({len(group)} fields, {'equal' if same else 'different'} elements)"
                    growth = counting.fast_growing(small, large, max(LARGE / SMALL, sizes[1] / sizes[0]), IGNORED)
                    found.extend(f"{name}: {each}" for each in growth)

    asyncio.run(check())
    assert not found, "\n".join(found)
