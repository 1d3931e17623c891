from __future__ import annotations

import json
from typing import Any

import pytest
from apiserver.client import Client
from apiserver.printers.rows import AGE, CREATED, NOW, encoded, resource, table

from pybernetes.api import scheme
from pybernetes.api.errors import BadRequest
from pybernetes.api.resources import Resource
from pybernetes.apiserver.partial_metadata import ListMeta
from pybernetes.apiserver.printers.table import render

NAMESPACES = resource("namespaces")
ACTIVE = {"status": {"phase": "Active"}}


def one(of: Resource, raw: bytes, *, include: str = "None", columns: bool = True, version: str = "v1") -> Any:
    return json.loads(render(of, [raw], version=version, include_object=include, meta=None, columns=columns, clock=NOW))


def test_a_list_gives_its_metadata_and_a_row_for_each_object() -> None:
    raws = [encoded(NAMESPACES, {"metadata": {"name": name}, **ACTIVE}) for name in "ab"]
    meta = ListMeta(resource_version="9", continue_="more", remaining_item_count=3)
    made = json.loads(render(NAMESPACES, raws, version="v1", include_object="None", meta=meta, columns=True, clock=NOW))
    assert (made["kind"], made["apiVersion"]) == ("Table", "meta.k8s.io/v1")
    assert made["metadata"] == {"resourceVersion": "9", "continue": "more", "remainingItemCount": 3}
    assert made["rows"] == [
        {"cells": ["a", "Active", AGE], "object": None},
        {"cells": ["b", "Active", AGE], "object": None},
    ]
    name = made["columnDefinitions"][0]
    assert {**name, "description": ""} == {
        "name": "Name",
        "type": "string",
        "format": "name",
        "description": "",
        "priority": 0,
    }


def test_a_single_object_gives_its_resource_version() -> None:
    made = one(NAMESPACES, encoded(NAMESPACES, ACTIVE), version="v1beta1")
    assert made["apiVersion"] == "meta.k8s.io/v1beta1"
    assert made["metadata"] == {"resourceVersion": "7"}


def test_later_events_carry_no_columns() -> None:
    assert one(NAMESPACES, encoded(NAMESPACES, ACTIVE), columns=False)["columnDefinitions"] is None


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
@pytest.mark.parametrize("include", ["", "Metadata"])
def test_a_row_has_the_metadata_of_its_object(include: str, version: str) -> None:
    raw = encoded(NAMESPACES, {"metadata": {"labels": {"a": "b"}}})
    made = one(NAMESPACES, raw, include=include, version=version)["rows"][0]["object"]
    assert (made["kind"], made["apiVersion"]) == ("PartialObjectMetadata", f"meta.k8s.io/{version}")
    assert made["metadata"] == json.loads(raw)["metadata"]
    assert set(made) == {"kind", "apiVersion", "metadata"}


def test_a_row_has_the_whole_object_if_asked() -> None:
    raw = encoded(NAMESPACES, ACTIVE)
    assert one(NAMESPACES, raw, include="Object")["rows"][0]["object"] == json.loads(raw)


def test_the_initial_events_bookmark_is_sent_even_without_objects() -> None:
    mark = {"metadata": {"annotations": {"k8s.io/initial-events-end": "true"}}}
    made = one(NAMESPACES, encoded(NAMESPACES, mark))["rows"][0]["object"]
    assert made["metadata"]["annotations"] == mark["metadata"]["annotations"]
    other = {"metadata": {"annotations": {"k8s.io/initial-events-end": "false"}}}
    assert one(NAMESPACES, encoded(NAMESPACES, other))["rows"][0]["object"] is None


def test_another_include_object_is_refused() -> None:
    with pytest.raises(BadRequest) as refused:
        table(NAMESPACES, include="All")
    assert refused.value.message == (
        'Unable to convert to Table as requested: includeObject: Invalid value: "All": '
        "must be 'Metadata', 'Object', 'None', or empty"
    )


def test_kinds_without_a_printer_show_when_they_were_created() -> None:
    roles = resource("roles", "rbac.authorization.k8s.io")
    made = table(roles, {"rules": []}, {"metadata": {"creationTimestamp": None}})
    assert [(each["name"], each["type"]) for each in made["columnDefinitions"]] == [
        ("Name", "string"),
        ("Created At", "date"),
    ]
    assert [each["cells"] for each in made["rows"]] == [["x", CREATED], ["x", "0001-01-01T00:00:00Z"]]


def test_an_empty_list_has_no_rows() -> None:
    assert table(NAMESPACES)["rows"] == []
    assert table(resource("roles", "rbac.authorization.k8s.io"))["rows"] is None  # as upstream's default table


def test_a_subresource_is_printed_as_what_it_is() -> None:
    scale = {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {"name": "web", "resourceVersion": "3", "creationTimestamp": CREATED},
        "spec": {"replicas": 3},
        "status": {"replicas": 2, "selector": "a=b"},
    }
    made = one(resource("deployments", "apps"), json.dumps(scale).encode())
    assert [each["name"] for each in made["columnDefinitions"]] == ["Name", "Desired", "Available", "Age"]
    assert made["rows"][0]["cells"] == ["web", 3, 2, AGE]


@pytest.mark.parametrize("of", scheme.resources(), ids=lambda each: f"{each.fullname}-{each.version}")
def test_every_kind_prints_an_object_with_nothing_in_it(of: Resource) -> None:
    """A bookmark is such an object."""
    bookmark = {"kind": of.kind, "apiVersion": of.api_version}
    raw = json.dumps({**bookmark, "metadata": {"resourceVersion": "5", "creationTimestamp": None}}).encode()
    made = one(of, raw)
    cells, columns = made["rows"][0]["cells"], made["columnDefinitions"]
    assert len(cells) == len(columns) + (of.kind == "IPAddress")
    assert all(isinstance(each, str | int) for each in cells)
    assert all(each["description"] for each in columns)


def test_the_server_answers_with_tables(client: Client, namespace: str) -> None:
    accept = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"}
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    client.post(path, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "v"}})
    made = client.get(f"{path}/a", **accept).json
    assert made["rows"][0]["cells"][:2] == ["a", 1]
    assert made["rows"][0]["object"]["kind"] == "PartialObjectMetadata"
    refused = client.get(f"{path}?includeObject=All", **accept)
    assert refused.status == 400
