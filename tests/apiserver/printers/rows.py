"""What a printer makes of an object, at a fixed time, by the names of the columns."""

from __future__ import annotations

import json
from typing import Any

from pybernetes.api import scheme
from pybernetes.api.resources import Resource
from pybernetes.api.times import FakeClock, parse_time
from pybernetes.apiserver.partial_metadata import ListMeta
from pybernetes.apiserver.printers.table import render

NOW = FakeClock(parse_time("2024-01-10T12:00:00Z"))
CREATED = "2024-01-10T11:55:00Z"
AGE = "5m"


def resource(plural: str, group: str = "", version: str = "v1") -> Resource:
    found = scheme.resource(group, version, plural)
    assert found is not None
    return found


def encoded(of: Resource, obj: dict[str, Any]) -> bytes:
    """An object as the store has it: kind, apiVersion, metadata first."""
    metadata = {"name": "x", "resourceVersion": "7", "creationTimestamp": CREATED, **obj.get("metadata", {})}
    rest = {key: value for key, value in obj.items() if key != "metadata"}
    head = {"kind": of.kind, "apiVersion": of.api_version, "metadata": metadata}
    return json.dumps({**head, **rest}, separators=(",", ":")).encode()


def table(of: Resource, *objects: dict[str, Any], include: str = "None") -> Any:
    """The Table of a list."""
    raws = [encoded(of, each) for each in objects]
    meta = ListMeta(resource_version="9")
    return json.loads(render(of, raws, version="v1", include_object=include, meta=meta, columns=True, clock=NOW))


def row(of: Resource, obj: dict[str, Any]) -> dict[str, Any]:
    """The cells of one object, by column."""
    made = table(of, obj)
    names = [column["name"] for column in made["columnDefinitions"]]
    cells = made["rows"][0]["cells"]
    assert len(cells) >= len(names)
    return dict(zip(names, cells, strict=False))


def shown(of: Resource, obj: dict[str, Any], *columns: str) -> list[Any]:
    """Some cells of one object."""
    cells = row(of, obj)
    return [cells[each] for each in columns]
