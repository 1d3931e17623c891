"""The cluster as it was at a revision, as far as the store's history goes (`--etcd-compaction-interval`)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from difflib import unified_diff
from typing import Any
from urllib.parse import quote, urlencode

from pybernetes.api import errors
from pybernetes.api.resources import Resource
from pybernetes.client.transport import Transport
from pybernetes.cluster.errors import ClusterError

Object = dict[str, Any]
PAGE = 500  # objects
_TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


class History:
    """Lists at a revision."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def now(self) -> int:
        """The newest revision."""
        found = await self._get("/api/v1/namespaces?limit=1", "application/json")
        return int(found["metadata"]["resourceVersion"])

    async def objects(self, resource: Resource, revision: int, namespace: str = "", name: str = "") -> list[Object]:
        """The objects of a resource as they were."""
        found: list[Object] = []
        token = ""
        while True:
            query: dict[str, str | int] = {"limit": PAGE}
            if token:
                query["continue"] = token
            else:
                query |= {"resourceVersion": revision, "resourceVersionMatch": "Exact"}
            if name:
                query["fieldSelector"] = f"metadata.name={name}"
            page = await self._get(_path(resource, namespace, query), "application/json")
            for each in page.get("items") or ():
                found.append({"apiVersion": resource.api_version, "kind": resource.kind, **each})
            token = page["metadata"].get("continue") or ""
            if not token:
                return found

    async def table(self, resource: Resource, revision: int, namespace: str = "", name: str = "") -> Object:
        """The same as a Table, with the columns that `kubectl get` shows."""
        query: dict[str, str | int] = {"resourceVersion": revision, "resourceVersionMatch": "Exact", "limit": PAGE}
        if name:
            query["fieldSelector"] = f"metadata.name={name}"
        return await self._get(_path(resource, namespace, query), _TABLE)

    async def _get(self, target: str, accept: str) -> Object:
        try:
            response = await self._transport.request("GET", target, headers={"Accept": accept})
        except errors.ResourceExpired as error:
            raise ClusterError(f"the history does not go back so far: {error}") from error
        except errors.APIError as error:
            raise ClusterError(str(error)) from error
        except (OSError, TimeoutError) as error:
            raise ClusterError(f"the API server does not answer: {error}") from error
        found: Object = json.loads(response.body)
        return found


def _path(resource: Resource, namespace: str, query: dict[str, str | int]) -> str:
    place = f"/namespaces/{quote(namespace)}" if namespace and resource.namespaced else ""
    return f"{resource.path}{place}/{resource.plural}?{urlencode(query)}"


def key_of(thing: Object) -> str:
    """How a difference names an object."""
    metadata = thing["metadata"]
    place = f"{metadata['namespace']}/" if metadata.get("namespace") else ""
    return f"{thing['kind']} {place}{metadata['name']}"


def changes(before: Iterable[Object], after: Iterable[Object]) -> Iterator[tuple[str, Object | None, Object | None]]:
    """The differences: the object's name, the object before and after; None = it did not exist."""
    old = {key_of(each): each for each in before}
    new = {key_of(each): each for each in after}
    for key in sorted(old.keys() | new.keys()):
        one, two = old.get(key), new.get(key)
        if one is None or two is None or _version(one) != _version(two):
            yield key, one, two


def _version(thing: Object) -> str:
    return str(thing["metadata"].get("resourceVersion"))


def difference(one: Object | None, two: Object | None) -> Iterator[str]:
    """The lines that differ, as YAML, without managed fields."""
    yield from list(unified_diff(_lines(one), _lines(two), lineterm="", n=2))[2:]


def _lines(thing: Object | None) -> list[str]:
    import yaml

    if thing is None:
        return []
    metadata = {key: value for key, value in thing["metadata"].items() if key != "managedFields"}
    return str(yaml.safe_dump({**thing, "metadata": metadata}, sort_keys=True)).splitlines()


def text_of(table: Object, *, namespaces: bool) -> Iterator[str]:
    """A Table as `kubectl get` prints it."""
    columns = [number for number, each in enumerate(table["columnDefinitions"]) if not each.get("priority")]
    rows = [[table["columnDefinitions"][number]["name"].upper() for number in columns]]
    rows += [[str(row["cells"][number]) for number in columns] for row in table.get("rows") or ()]
    if namespaces:
        places = [row["object"]["metadata"].get("namespace", "") for row in table.get("rows") or ()]
        rows = [[place, *row] for place, row in zip(["NAMESPACE", *places], rows, strict=True)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "   ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()
