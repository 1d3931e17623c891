"""The quick way to the entry of a create finds what the careful way finds, for every kind and any object."""

from __future__ import annotations

from random import Random
from typing import Any

import msgspec
import pytest

from pybernetes.api import managedfields, schema, scheme
from pybernetes.api.managedfields import fieldset, objects, resetfields
from pybernetes.api.managedfields.compare import compare
from pybernetes.api.managedfields.items import NoIdentity
from pybernetes.api.resources import Resource

KINDS = [each for each in scheme.resources() if each.stored]


@pytest.mark.parametrize("resource", KINDS, ids=lambda each: f"{each.api_version}.{each.kind}")
def test_quick_and_careful_ways_agree(resource: Resource) -> None:
    random = Random(resource.kind)
    reset = resetfields.for_request(resource)
    for _ in range(10):
        new = fill(random, resource.type, 5)
        if new.metadata is not None:
            new.metadata.managed_fields = None
        found = managedfields.record_update(
            new, None, manager="m", api_version=resource.api_version, now="2026-01-01T00:00:00Z", reset_fields=reset
        )
        try:
            expected = carefully(new, resource)
        except NoIdentity:
            continue
        assert (bytes(found[0].fields_v_1) if found else b"{}") == expected


def carefully(new: Any, resource: Resource) -> bytes:
    node = managedfields.node_of(resource.type)
    before = objects.zero(node, resource.api_version)
    change = compare(before, objects.plain(new, node, resource.api_version), node)
    change = change.filtered(resetfields.for_request(resource))
    return fieldset.encode((change.added | change.modified) - objects.STRIPPED)


def test_the_entry() -> None:
    pod = msgspec.convert({"metadata": {"name": "p", "labels": {"a": "b"}}}, scheme.type_for("v1", "Pod"))
    (entry,) = managedfields.record_update(pod, None, manager="", api_version="v1", now="2026-01-01T00:00:00Z")
    assert msgspec.json.decode(msgspec.json.encode(entry)) == {
        "manager": "unknown",
        "operation": "Update",
        "apiVersion": "v1",
        "time": "2026-01-01T00:00:00Z",
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:metadata": {"f:labels": {".": {}, "f:a": {}}}},
    }


def test_owning_nothing_leaves_no_entry() -> None:
    pod = msgspec.convert({"metadata": {"name": "p"}}, scheme.type_for("v1", "Pod"))
    assert managedfields.record_update(pod, None, manager="m", api_version="v1", now="2026-01-01T00:00:00Z") == []


def fill(random: Random, cls: type[Any], depth: int) -> Any:
    """A Struct with random fields, without regard to sense."""
    values = {}
    for info in schema.fields(cls):
        if info.name in ("kind", "api_version") or random.random() < (0.6 if depth < 5 else 0.2):
            continue
        values[info.name] = value(random, info, depth)
    return cls(**values)


def value(random: Random, info: schema.FieldInfo, depth: int) -> Any:
    match info.kind:
        case schema.STRUCT:
            assert info.struct is not None
            return fill(random, info.struct, depth - 1) if depth > 0 else info.struct()
        case schema.LIST:
            assert info.items is not None
            return [value(random, info.items, depth - 1) for _ in range(random.randint(0, 3))] if depth > 0 else []
        case schema.MAP:
            assert info.items is not None
            return (
                {name: value(random, info.items, depth - 1) for name in random.sample('ab<"/é', 2)} if depth > 0 else {}
            )
        case schema.ANY:
            return random.choice([1, "x", {"a": {"b": [1]}}, [1, {"c": 2}], {}, []])
        case "int":
            return random.choice([0, 80, 9])
        case "bool":
            return random.choice([True, False])
        case "float":
            return random.choice([0.0, 1.5])
    return random.choice(["", "a", "b<c", 'q"'])
