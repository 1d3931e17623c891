"""Metadata of every kind: what cannot be a name, a label or an owner never gets in."""

from __future__ import annotations

from typing import Any

import pytest
from apiserver.client import Client

from pybernetes.api.resources import RESOURCES, Resource

CREATED = [each for each in RESOURCES if each.stored and "create" in each.verbs]
BAD: list[tuple[str, dict[str, Any]]] = [
    ("metadata.name", {}),
    ("metadata.name", {"name": "a%b"}),
    ("metadata.name", {"name": ".."}),
    ("metadata.labels", {"name": "a", "labels": {"bad!": "x"}}),
    ("metadata.annotations", {"name": "a", "annotations": {"bad key!": "x"}}),
    ("metadata.ownerReferences", {"name": "a", "ownerReferences": [{}]}),
    ("metadata.finalizers", {"name": "a", "finalizers": ["bad value"]}),
]


@pytest.mark.parametrize("resource", CREATED, ids=lambda each: f"{each.api_version}/{each.plural}")
def test_bad_metadata_is_refused(client: Client, namespace: str, resource: Resource) -> None:
    where = f"/namespaces/{namespace}" if resource.namespaced else ""
    path = f"{resource.path}{where}/{resource.plural}?dryRun=All"
    # Events must be about something in their namespace, or else that is their only error.
    about = {"involvedObject": {"namespace": namespace}} if resource.kind == "Event" and not resource.group else {}
    for field, meta in BAD:
        if not meta and resource.kind == "LimitRange":  # it makes a name of its own
            continue
        answer = client.post(path, {"metadata": meta, **about})
        assert answer.status == 422, (meta, answer.body)
        causes = [cause["field"] for cause in answer.json["details"].get("causes", ())]
        if len(causes) == len([each for each in causes if each.startswith("metadata")]):
            assert any(each.startswith(field) for each in causes), (meta, causes)
