"""Controllers that find their resources by discovery take custom ones for what they are: resources."""

from __future__ import annotations

import itertools
from typing import Any

from controllers.conftest import Harness, MakeHarness

from pybernetes.api import errors
from pybernetes.api.core.v1 import ConfigMap, Namespace
from pybernetes.api.meta.v1 import ObjectMeta, OwnerReference

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_numbers = itertools.count(1)


def reference(owner: dict[str, Any]) -> dict[str, Any]:
    """What a dependent says of its owner."""
    meta = owner["metadata"]
    return {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": meta["name"], "uid": meta["uid"]}


class Widgets:
    """A kind of the test's own."""

    def __init__(self, h: Harness) -> None:
        self.h = h
        self.group = f"ctl{next(_numbers)}.example.com"
        self.path = f"/apis/{self.group}/v1/namespaces/{h.namespace}/widgets"

    async def define(self) -> Widgets:
        schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
        spec = {"group": self.group, "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"}}
        name = f"widgets.{self.group}"
        body = {"metadata": {"name": name}, "spec": {**spec, "versions": [version]}}
        await self.h.client.call("POST", DEFINITIONS, body)

        async def served() -> bool:
            found = await self.h.client.call("GET", f"{DEFINITIONS}/{name}")
            conditions = found["status"].get("conditions") or []
            return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)

        await self.h.until(served, "the definition is established")
        return self

    async def create(self, name: str, *owners: dict[str, Any], **metadata: Any) -> dict[str, Any]:
        references = [
            {
                "apiVersion": each["apiVersion"],
                "kind": each["kind"],
                **{k: each["metadata"][k] for k in ("name", "uid")},
            }
            for each in owners
        ]
        body = {
            "apiVersion": f"{self.group}/v1",
            "kind": "Widget",
            "metadata": {"name": name, "ownerReferences": references, **metadata},
        }
        made: dict[str, Any] = await self.h.client.call("POST", self.path, body)
        return made

    async def names(self) -> list[str]:
        found = await self.h.client.call("GET", self.path)
        return [each["metadata"]["name"] for each in found["items"]]

    async def left(self, *names: str) -> None:
        async def check() -> bool:
            self.h.clock.advance(30)  # discovery is asked now and then
            return await self.names() == sorted(names)

        await self.h.until(check, f"only {names} are left")


async def test_garbage_is_collected_over_custom_owners_and_dependents(harness: MakeHarness) -> None:
    async with harness("garbage-collector-controller") as h:
        widgets = await Widgets(h).define()
        owner = await widgets.create("owner")
        middle = await widgets.create("middle", owner)
        owned = OwnerReference(
            api_version=f"{widgets.group}/v1", kind="Widget", name="middle", uid=middle["metadata"]["uid"]
        )
        leaf = ObjectMeta(name="leaf", namespace=h.namespace, owner_references=[owned])
        await h.client.create(ConfigMap(metadata=leaf))
        await widgets.create("other")
        await h.client.call("DELETE", f"{widgets.path}/owner")
        await widgets.left("other")

        async def no_leaf() -> bool:
            return [each for each in await h.list(ConfigMap) if each.metadata and each.metadata.name == "leaf"] == []

        await h.until(no_leaf, "the built-in dependent is gone, too")


async def test_foreground_deletion_waits_for_custom_dependents(harness: MakeHarness) -> None:
    async with harness("garbage-collector-controller") as h:
        widgets = await Widgets(h).define()
        owner = await widgets.create("owner")
        owners = [{**reference(owner), "blockOwnerDeletion": True}]
        await widgets.create("held", finalizers=["example.com/x"], ownerReferences=owners)
        await h.client.call("DELETE", f"{widgets.path}/owner", {"propagationPolicy": "Foreground"})

        async def dependent_is_deleted() -> bool:
            h.clock.advance(30)
            found = await h.client.call("GET", f"{widgets.path}/held")
            return bool(found["metadata"].get("deletionTimestamp"))

        await h.until(dependent_is_deleted, "the dependent is being deleted")
        assert "owner" in await widgets.names()
        patch = {"Content-Type": "application/merge-patch+json"}
        await h.client.call("PATCH", f"{widgets.path}/held", {"metadata": {"finalizers": None}}, headers=patch)
        await widgets.left()


async def test_a_namespace_takes_its_custom_resources_along(harness: MakeHarness) -> None:
    async with harness("namespace-controller") as h:
        widgets = await Widgets(h).define()
        await widgets.create("a")
        await widgets.create("b")
        await h.client.delete(Namespace, h.namespace)

        async def gone() -> bool:
            h.clock.advance(6)
            try:
                await h.client.get(Namespace, h.namespace)
            except errors.NotFound:
                return True
            return False

        await h.until(gone, "the namespace is gone")
        assert await widgets.names() == []


async def test_quotas_count_custom_resources(harness: MakeHarness) -> None:
    async with harness("resourcequota-controller") as h:
        widgets = await Widgets(h).define()
        name = f"count/widgets.{widgets.group}"
        await widgets.create("a")
        body = {"metadata": {"name": "q"}, "spec": {"hard": {name: "2"}}}
        await h.client.call("POST", f"/api/v1/namespaces/{h.namespace}/resourcequotas", body)

        async def used(count: str) -> bool:
            h.clock.advance(30)
            found = await h.client.call("GET", f"/api/v1/namespaces/{h.namespace}/resourcequotas/q")
            return bool(found.get("status", {}).get("used", {}).get(name) == count)

        await h.until(lambda: used("1"), "the quota counts one")
        await widgets.create("b")
        await h.until(lambda: used("2"), "the quota counts two")
        message = f"exceeded quota: q, requested: {name}=1, used: {name}=2, limited: {name}=2"

        async def refused() -> bool:
            """A recount that has not heard of b yet says one for a moment, and then there is room for c."""
            try:
                await widgets.create("c")
            except errors.Forbidden as error:
                return message in str(error)
            await h.client.call("DELETE", f"{widgets.path}/c")
            return False

        await h.until(refused, "a third is refused")
        await h.client.call("DELETE", f"{widgets.path}/a")
        await h.until(lambda: used("1"), "the quota counts one again")


async def test_quotas_count_a_custom_resource_whose_definition_was_deleted_and_made_again(harness: MakeHarness) -> None:
    async with harness("resourcequota-controller", "garbage-collector-controller") as h:
        widgets = await Widgets(h).define()
        name = f"count/widgets.{widgets.group}"
        await widgets.create("a")
        body = {"metadata": {"name": "q"}, "spec": {"hard": {name: "5"}}}
        await h.client.call("POST", f"/api/v1/namespaces/{h.namespace}/resourcequotas", body)

        async def used(count: str) -> bool:
            h.clock.advance(30)
            found = await h.client.call("GET", f"/api/v1/namespaces/{h.namespace}/resourcequotas/q")
            return bool(found.get("status", {}).get("used", {}).get(name) == count)

        collector: Any = h.controller("garbage-collector-controller")

        quotas: Any = h.controller("resourcequota-controller")

        def collector_knows() -> bool:
            h.clock.advance(1)
            quotas._discovered = h.clock.monotonic()  # it looks again only when the definition is back
            return any(group == widgets.group for group, _, _ in collector.monitors)

        await h.until(lambda: used("1"), "the quota counts one")
        await h.until(collector_knows, "the garbage collector has the same informer")
        await h.client.call("DELETE", f"{DEFINITIONS}/widgets.{widgets.group}")
        await h.until(lambda: not collector_knows(), "the garbage collector has seen that the resource is gone")
        await widgets.define()
        await widgets.create("b")
        await widgets.create("c")
        await widgets.create("d")
        await h.client.call("DELETE", f"{widgets.path}/d")  # admission counts what comes, only the controller what goes
        await h.until(lambda: used("2"), "the quota counts two")
