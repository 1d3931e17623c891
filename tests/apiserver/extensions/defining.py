"""Definitions for tests: made in groups of their own, waited for, and taken away again."""

from __future__ import annotations

import itertools
from typing import Any

from apiserver.client import Answer, Client

from tools import wait_until

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_numbers = itertools.count(1)

Schema = dict[str, Any]


def version(schema: Schema | None = None, name: str = "v1", **more: Any) -> dict[str, Any]:
    """A version that is served and, unless said otherwise, stored."""
    schema = schema or {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {"name": name, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}, **more}


def spec_schema(**properties: Schema) -> Schema:
    """A schema with these fields in `spec`."""
    return {"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}}


class Kind:
    """A kind that a test defined."""

    def __init__(self, client: Client, *versions: dict[str, Any], namespaced: bool = True, **spec: Any) -> None:
        self.client = client
        self.group = f"g{next(_numbers)}.example.com"
        names = {"plural": "widgets", "kind": "Widget", **spec.pop("names", {})}
        self.kind = names["kind"]
        self.plural = names["plural"]
        self.name = f"{self.plural}.{self.group}"
        self.namespaced = namespaced
        self.definition = {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": self.name},
            "spec": {
                "group": self.group,
                "scope": "Namespaced" if namespaced else "Cluster",
                "names": names,
                "versions": list(versions) or [version()],
                **spec,
            },
        }

    def create(self) -> Answer:
        """Create the definition."""
        return self.client.post(DEFINITIONS, self.definition)

    def established(self) -> Kind:
        """Create it and wait until it is served."""
        made = self.create()
        assert made.status == 201, made.message
        wait_until(lambda: self.condition("Established") == "True", f"{self.name} is established")
        return self

    def read(self) -> dict[str, Any]:
        found: dict[str, Any] = self.client.get(f"{DEFINITIONS}/{self.name}").json
        return found

    def condition(self, type: str) -> str | None:
        conditions = self.read().get("status", {}).get("conditions") or []
        return next((each["status"] for each in conditions if each["type"] == type), None)

    def change(self, patch: Any, kind: str = "merge") -> Answer:
        """Patch the definition."""
        return self.client.patch(f"{DEFINITIONS}/{self.name}", patch, kind)

    def delete(self) -> Answer:
        return self.client.delete(f"{DEFINITIONS}/{self.name}")

    def path(self, name: str = "", version: str = "v1", namespace: str = "default") -> str:
        inside = f"/namespaces/{namespace}" if self.namespaced and namespace else ""
        return f"/apis/{self.group}/{version}{inside}/{self.plural}{'/' + name if name else ''}"

    def object(self, name: str = "a", version: str = "v1", metadata: Any = None, **content: Any) -> dict[str, Any]:
        return {
            "apiVersion": f"{self.group}/{version}",
            "kind": self.kind,
            "metadata": {"name": name, **(metadata or {})},
            **content,
        }

    def post(
        self, name: str = "a", version: str = "v1", query: str = "", metadata: Any = None, **content: Any
    ) -> Answer:
        return self.client.post(self.path(version=version) + query, self.object(name, version, metadata, **content))

    def get(self, name: str = "a", version: str = "v1") -> Answer:
        return self.client.get(self.path(name, version))

    def patch(self, patch: Any, name: str = "a", kind: str = "merge", version: str = "v1", sub: str = "") -> Answer:
        return self.client.patch(self.path(name, version) + sub, patch, kind)
