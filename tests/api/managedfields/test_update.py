"""What is around the entries: names of managers, times that do not count, scale, versions."""

from __future__ import annotations

from typing import Any

import pytest

from pybernetes.api import managedfields, scheme
from pybernetes.api.errors import ApplyConflict
from pybernetes.api.managedfields import entries, resetfields, scale
from pybernetes.api.managedfields.paths import show


@pytest.mark.parametrize(
    ("field_manager", "user_agent", "name"),
    [
        ("mine", "curl/8", "mine"),
        ("", "curl/8.5", "curl"),
        ("", "kubectl/v1.36.0 (linux/amd64)", "kubectl"),
        ("", "Mozilla", "Mozilla"),
        ("", "a\x00b\tc/1", "abc"),
        ("", "", ""),
        ("", "ä" * 100, "ä" * 64),
    ],
)
def test_manager_name(field_manager: str, user_agent: str, name: str) -> None:
    assert managedfields.manager_name(field_manager, user_agent) == name


def test_a_write_that_changes_only_times() -> None:
    old = config_map({"a": "1"}, entry("m", "Apply", {"f:data": {"f:a": {}}}, time="2026-01-01T00:00:00Z"))
    new = config_map({"a": "1"}, entry("m", "Apply", {"f:data": {"f:a": {}}}, time="2026-01-02T00:00:00Z"))
    assert managedfields.same_but_times(new, old)
    assert not managedfields.same_but_times(config_map({"a": "2"}, *new["metadata"]["managedFields"]), old)
    assert not managedfields.same_but_times(config_map({"a": "1"}, entry("n", "Apply", {"f:data": {"f:a": {}}})), old)


def test_managers_of_another_version_own_the_same_object() -> None:
    live = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {
            "name": "h",
            "uid": "1",
            "managedFields": [
                entry(
                    "old",
                    "Update",
                    {"f:spec": {"f:maxReplicas": {}, "f:targetCPUUtilizationPercentage": {}}},
                    version="autoscaling/v1",
                ),
                entry("gone", "Update", {"f:spec": {"f:minReplicas": {}}}, version="autoscaling/v2beta2"),
            ],
        },
        "spec": {"maxReplicas": 3, "scaleTargetRef": {"kind": "Deployment", "name": "d"}, "metrics": [cpu(50)]},
    }
    cls = scheme.type_for("autoscaling/v2", "HorizontalPodAutoscaler")
    assert cls is not None
    config = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "h"},
        "spec": {"metrics": [cpu(60)]},
    }
    asked: dict[str, Any] = {
        "node": managedfields.node_of(cls),
        "manager": "m",
        "api_version": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "now": "2026-01-01T00:00:00Z",
    }
    with pytest.raises(ApplyConflict) as caught:
        managedfields.apply(live, config, **asked)
    assert caught.value.message == (
        'Apply failed with 1 conflict: conflict with "old" using autoscaling/v1: .spec.targetCPUUtilizationPercentage'
    )
    assert owners(managedfields.apply(live, config, force=True, **asked)["metadata"]["managedFields"]) == {
        "old autoscaling/v1": [".spec.maxReplicas"],
        "m autoscaling/v2": [".spec.metrics"],
    }


def test_replicas_belong_to_who_scaled() -> None:
    mappings: scale.Mappings = {"apps/v1": ("f:spec", "f:replicas")}
    parent = [
        entry("owner", "Apply", {"f:spec": {"f:replicas": {}, "f:paused": {}}}, version="apps/v1"),
        entry("other", "Update", {"f:spec": {"f:paused": {}}}, version="apps/v1"),
    ]
    before = scale.to_scale(parent, mappings)
    assert owners(before) == {"owner autoscaling/v1": [".spec.replicas"]}
    cls = scheme.type_for("autoscaling/v1", "Scale")
    assert cls is not None
    old = {"metadata": {"uid": "1", "managedFields": before}, "spec": {"replicas": 1}}
    new = {"metadata": {"uid": "1", "managedFields": before}, "spec": {"replicas": 2}}
    after = managedfields.record_update(
        new,
        old,
        node=managedfields.node_of(cls),
        manager="hpa",
        api_version="autoscaling/v1",
        now="2026-01-01T00:00:00Z",
        subresource="scale",
    )
    assert owners(scale.to_parent(parent, after, mappings, "apps/v1", plain=True)) == {
        "owner apps/v1": [".spec.paused"],
        "other apps/v1": [".spec.paused"],
        "hpa apps/v1": [".spec.replicas"],
    }


def test_who_owned_only_replicas_owns_nothing_after_another_scaled() -> None:
    mappings: scale.Mappings = {"apps/v1": ("f:spec", "f:replicas")}
    parent = [entry("owner", "Apply", {"f:spec": {"f:replicas": {}}}, version="apps/v1")]
    after = [entry("hpa", "Update", {"f:spec": {"f:replicas": {}}}, version="autoscaling/v1")]
    merged = scale.to_parent(parent, after, mappings, "apps/v1", plain=True)
    assert owners(merged) == {"hpa apps/v1": [".spec.replicas"]}


def test_unchanged_scale_leaves_the_entries_alone() -> None:
    mappings: scale.Mappings = {"apps/v1": ("f:spec", "f:replicas")}
    parent = [entry("owner", "Apply", {"f:spec": {"f:replicas": {}}}, version="apps/v1")]
    assert scale.to_parent(parent, scale.to_scale(parent, mappings), mappings, "apps/v1", plain=True) == parent


@pytest.mark.parametrize(
    ("group", "plural", "subresource", "kept"),
    [
        ("", "pods", "", "ephemeral labels resources spec"),
        ("", "pods", "status", "labels status"),
        ("", "pods", "ephemeralcontainers", "ephemeral labels resources spec status"),
        ("", "pods", "resize", "ephemeral labels resources spec status"),
        ("", "configmaps", "", "ephemeral labels resources spec status"),
        ("apps", "deployments", "", "ephemeral labels resources spec"),
        ("apps", "deployments", "status", "status"),
        ("apps", "replicasets", "status", "labels status"),
        ("certificates.k8s.io", "certificatesigningrequests", "", "labels"),
        ("storage.k8s.io", "volumeattachments", "status", "status"),
    ],
)
def test_reset_fields(group: str, plural: str, subresource: str, kept: str) -> None:
    fields = {
        ("f:metadata", "f:labels"): "labels",
        ("f:spec", "f:replicas"): "spec",
        ("f:spec", "f:ephemeralContainers", 'k:{"name":"a"}', "f:image"): "ephemeral",
        ("f:spec", "f:containers", 'k:{"name":"a"}', "f:resources", "f:limits"): "resources",
        ("f:status", "f:phase"): "status",
    }
    resource = scheme.resource(group, "v1", plural)
    assert resource is not None
    keep = resetfields.for_request(resource, subresource)
    left = keep(frozenset(fields)) if keep is not None else frozenset(fields)
    assert " ".join(sorted(fields[path] for path in left)) == kept


def entry(manager: str, operation: str, fields: Any, version: str = "v1", time: str | None = None) -> dict[str, Any]:
    found = {"manager": manager, "operation": operation, "apiVersion": version}
    if time is not None:
        found["time"] = time
    return {**found, "fieldsType": "FieldsV1", "fieldsV1": fields}


def config_map(data: dict[str, str], *managed: Any) -> dict[str, Any]:
    return {"metadata": {"name": "c", "managedFields": list(managed)}, "data": data}


def cpu(percent: int) -> dict[str, Any]:
    target = {"type": "Utilization", "averageUtilization": percent}
    return {"type": "Resource", "resource": {"name": "cpu", "target": target}}


def owners(found: list[Any]) -> dict[str, list[str]]:
    return {
        f"{who.manager} {owned.api_version}": sorted(map(show, owned.fields))
        for who, owned in entries.decode(found).items()
    }
