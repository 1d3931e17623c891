"""Controllers come to the right end although the server hiccups: conflicts, errors, watches that break."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from controllers.conftest import Harness, MakeHarness

from pybernetes.api import errors
from pybernetes.api.core.v1 import ConfigMap, Endpoints, Namespace, Pod, ResourceQuota
from pybernetes.api.discovery.v1 import EndpointSlice
from pybernetes.api.meta.v1 import ObjectMeta, OwnerReference
from pybernetes.client.http import ConnectionFailed
from pybernetes.client.transport import Transport

NAMES = (
    "garbage-collector-controller",
    "namespace-controller",
    "endpoints-controller",
    "endpointslice-controller",
    "resourcequota-controller",
)


class Storm:
    """Makes some of the controllers' requests fail."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.rate = 0.0
        self.hits = 0
        self._chance = random.Random(7)
        original = Transport.request

        async def request(transport: Transport, method: str, target: str, **more: Any) -> Any:
            agent = (more.get("headers") or {}).get("User-Agent", "")
            if "-controller" in agent and self._chance.random() < self.rate:
                self.hits += 1
                raise self._chance.choice(
                    (
                        errors.InternalError("injected"),
                        errors.Conflict("", "things", "x", "injected"),
                        errors.ServiceUnavailable("injected"),
                        ConnectionFailed("injected"),
                    )
                )
            return await original(transport, method, target, **more)

        monkeypatch.setattr(Transport, "request", request)


def within(h: Harness, check: Callable[[], Awaitable[bool]], what: str) -> Any:
    async def ticking() -> bool:
        h.clock.advance(1)  # back-off need not be waited for
        return await check()

    return h.until(ticking, what, within=30)


async def test_the_end_is_right_although_writes_fail(harness: MakeHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    storm = Storm(monkeypatch)
    async with harness(*NAMES) as h:
        storm.rate = 0.2
        await h.client.call("POST", "/api/v1/nodes", {"metadata": {"name": "node-storm"}})
        base = f"/api/v1/namespaces/{h.namespace}"
        await h.client.call(
            "POST", f"{base}/resourcequotas", {"metadata": {"name": "q"}, "spec": {"hard": {"pods": "99"}}}
        )
        await h.client.call(
            "POST",
            f"{base}/services",
            {"metadata": {"name": "web"}, "spec": {"selector": {"a": "b"}, "ports": [{"port": 80}]}},
        )
        for number in range(10):
            pod = {
                "metadata": {"name": f"p{number}", "labels": {"a": "b"}},
                "spec": {"nodeName": "node-storm", "containers": [{"name": "c", "image": "i"}]},
            }
            await h.client.call("POST", f"{base}/pods", pod)
            owner = await h.client.create(ConfigMap(metadata=ObjectMeta(name=f"o{number}", namespace=h.namespace)))
            uid = owner.metadata.uid if owner.metadata else ""
            reference = OwnerReference(api_version="v1", kind="ConfigMap", name=f"o{number}", uid=uid)
            metadata = ObjectMeta(name=f"d{number}", namespace=h.namespace, owner_references=[reference])
            await h.client.create(ConfigMap(metadata=metadata))
            await h.client.delete(ConfigMap, f"o{number}", h.namespace)
        for number in range(5):
            await h.client.delete(Pod, f"p{number}", h.namespace, grace_period_seconds=0)

        async def collected() -> bool:
            return await h.list(ConfigMap) == []

        async def addressed() -> bool:
            slices = await h.list(EndpointSlice)
            endpoints = await h.list(Endpoints)
            new = sum(len(each.endpoints or ()) for each in slices)
            old = sum(len(subset.addresses or ()) for each in endpoints for subset in each.subsets or ())
            return (new, old) == (5, 5)

        async def counted() -> bool:
            (quota,) = await h.list(ResourceQuota)
            return quota.status is not None and (quota.status.used or {}).get("pods") == "5"

        await within(h, collected, "the dependents are gone")
        await within(h, addressed, "five endpoints")
        await within(h, counted, "five pods")
        assert storm.hits
        storm.rate = 0.02  # to empty a namespace takes some sixty requests that must all do well
        await h.client.delete(Namespace, h.namespace)

        async def gone() -> bool:
            try:
                await h.client.get(Namespace, h.namespace)
            except errors.NotFound:
                return True
            return False

        await within(h, gone, "the namespace is gone")
