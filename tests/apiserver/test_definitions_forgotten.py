"""Custom resources that came and went leave nothing in the server's memory: a suite of an operator makes hundreds."""

from __future__ import annotations

import asyncio
import gc
import json
from collections import Counter
from pathlib import Path
from typing import Any

from apiserver.in_process import call, serving, watching

from pybernetes.api.managedfields.node import Node
from pybernetes.apiserver.extensions.conversion import Converter
from pybernetes.apiserver.extensions.resource import CustomResource
from pybernetes.apiserver.extensions.store import CustomResourceStore
from pybernetes.apiserver.server import APIServer

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
HELD = (CustomResourceStore, CustomResource, Converter, Node)
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
ROUNDS = 3


async def test_definitions_that_came_and_went_are_forgotten(tmp_path: Path) -> None:
    async with serving(tmp_path) as server:
        await come_and_go(server, 0)
        before = count()
        for number in range(1, 1 + ROUNDS):
            await come_and_go(server, number)
        # The heads of the last definition's requests go when it does, or with the next change of what is served.
        assert count() == before


def count() -> Counter[str]:
    """How many objects of each kind that belongs to a custom resource there are."""
    gc.collect()
    return Counter(type(each).__name__ for each in gc.get_objects() if isinstance(each, HELD))


async def come_and_go(server: APIServer, number: int) -> None:
    """Define a kind, use it in the ways that something is remembered of, and delete it."""
    group, plural = f"g{number}.example.com", f"things{number}"
    objects = f"/apis/{group}/v1/namespaces/default/{plural}"

    async def ask(method: str, path: str, body: Any = None, **headers: str) -> bytes:
        status, answer = await call(server.port, method, path, body, **headers)
        assert status in (200, 201), f"{method} {path}: {status} {answer!r}"
        return answer

    name = f"{plural}.{group}"
    await ask("POST", DEFINITIONS, definition(group, plural))
    await until(server, objects, 200)
    thing = {"apiVersion": f"{group}/v1", "kind": "Thing", "metadata": {"name": "a"}, "spec": {"a": "x", "list": []}}
    async with watching(server.port, f"{objects}?watch=true") as events:
        for manager in ("first", "second"):
            thing["spec"] = {"a": "x", manager: "y", "list": [{"key": manager, "value": "1"}]}
            path = f"{objects}/a?fieldManager={manager}&force=true"
            await ask("PATCH", path, thing, Content_Type="application/apply-patch+yaml")
            await anext(events)
    stored = json.loads(await ask("GET", f"{objects}/a"))
    await ask("PUT", f"{objects}/a", {**stored, "spec": {"a": "z"}})
    await ask("PATCH", f"{objects}/a", {"spec": {"first": "z"}}, Content_Type="application/merge-patch+json")
    await ask("GET", objects, Accept=TABLE)
    await ask("GET", f"/openapi/v3/apis/{group}/v1")
    await ask("DELETE", f"{DEFINITIONS}/{name}")
    await until(server, f"{DEFINITIONS}/{name}", 404)
    await until(server, objects, 404)


async def until(server: APIServer, path: str, status: int) -> None:
    """Ask until this is the answer."""
    async with asyncio.timeout(60):
        while (await call(server.port, "GET", path))[0] != status:  # noqa: ASYNC110 - nothing tells a client
            await asyncio.sleep(0.01)


def definition(group: str, plural: str) -> dict[str, Any]:
    text = {"type": "string", "maxLength": 10}
    item = {"type": "object", "required": ["key"], "properties": {"key": text, "value": text}}
    items = {"type": "array", "items": item, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["key"]}
    spec = {
        "type": "object",
        "properties": {"a": text, "first": text, "second": text, "list": items},
        "x-kubernetes-validations": [{"rule": "has(self.a)"}],
    }
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}},
        "additionalPrinterColumns": [{"name": "A", "type": "string", "jsonPath": ".spec.a"}],
    }
    names = {"plural": plural, "kind": "Thing"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {"group": group, "scope": "Namespaced", "names": names, "versions": [version]},
    }
