"""A client of autoscaling/v1 loses nothing of a v2 object, and the annotations are byte for byte upstream's."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from pybernetes.api.autoscaling import v1, v2
from pybernetes.api.autoscaling.conversion import v1_to_v2, v2_to_v1

PREFIX = "autoscaling.alpha.kubernetes.io/"
REFERENCE = {"kind": "Deployment", "name": "web", "apiVersion": "apps/v1"}
CPU = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 60}}}
METRICS = [
    {"type": "Resource", "resource": {"name": "memory", "target": {"type": "AverageValue", "averageValue": "1Gi"}}},
    {
        "type": "Pods",
        "pods": {"metric": {"name": "packets"}, "target": {"type": "AverageValue", "averageValue": "1k"}},
    },
    {
        "type": "Object",
        "object": {
            "describedObject": REFERENCE,
            "target": {"type": "Value", "value": "2k"},
            "metric": {"name": "requests", "selector": {"matchLabels": {"a": "b"}}},
        },
    },
    {
        "type": "Object",
        "object": {
            "describedObject": {"kind": "Service", "name": "s"},
            "target": {"type": "AverageValue", "averageValue": "10"},
            "metric": {"name": "requests"},
        },
    },
    {
        "type": "External",
        "external": {"metric": {"name": "queue"}, "target": {"type": "AverageValue", "averageValue": "30"}},
    },
    {
        "type": "ContainerResource",
        "containerResource": {
            "name": "cpu",
            "target": {"type": "Utilization", "averageUtilization": 70},
            "container": "app",
        },
    },
]
BEHAVIOR = {
    "scaleDown": {
        "stabilizationWindowSeconds": 300,
        "selectPolicy": "Max",
        "policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}],
    }
}
STATUS = {
    "observedGeneration": 3,
    "currentReplicas": 2,
    "desiredReplicas": 3,
    "currentMetrics": [
        {"type": "Resource", "resource": {"name": "cpu", "current": {"averageValue": "5m", "averageUtilization": 50}}},
        {"type": "Pods", "pods": {"metric": {"name": "packets"}, "current": {"averageValue": "3"}}},
    ],
    "conditions": [{"type": "AbleToScale", "status": "True", "lastTransitionTime": "2024-01-01T00:00:00Z"}],
}


def to_v1(value: dict[str, Any]) -> dict[str, Any]:
    return plain(v2_to_v1(msgspec.convert(value, v2.HorizontalPodAutoscaler)))


def to_v2(value: dict[str, Any]) -> dict[str, Any]:
    return plain(v1_to_v2(msgspec.convert(value, v1.HorizontalPodAutoscaler)))


def plain(obj: Any) -> dict[str, Any]:
    value: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(obj))
    return value


def full() -> dict[str, Any]:
    return {
        "kind": "HorizontalPodAutoscaler",
        "apiVersion": "autoscaling/v2",
        "metadata": {"name": "web", "annotations": {"mine": "1"}},
        "spec": {
            "scaleTargetRef": REFERENCE,
            "minReplicas": 1,
            "maxReplicas": 5,
            "metrics": [*METRICS, CPU],
            "behavior": BEHAVIOR,
        },
        "status": STATUS,
    }


def test_a_v2_object_survives_the_way_through_v1() -> None:
    assert to_v2(to_v1(full())) == full()


def test_v1_has_a_field_for_cpu_and_annotations_for_the_rest() -> None:
    shown = to_v1(full())
    assert shown["apiVersion"] == "autoscaling/v1"
    assert shown["spec"] == {
        "scaleTargetRef": REFERENCE,
        "minReplicas": 1,
        "maxReplicas": 5,
        "targetCPUUtilizationPercentage": 60,
    }
    assert shown["status"] == {
        "observedGeneration": 3,
        "currentReplicas": 2,
        "desiredReplicas": 3,
        "currentCPUUtilizationPercentage": 50,
    }
    annotations = shown["metadata"]["annotations"]
    assert annotations["mine"] == "1"
    assert json.loads(annotations[f"{PREFIX}metrics"])[2]["object"] == {
        "target": REFERENCE,
        "metricName": "requests",
        "targetValue": "2k",
        "selector": {"matchLabels": {"a": "b"}},
    }
    assert annotations[f"{PREFIX}behavior"] == (
        '{"ScaleUp":null,"ScaleDown":{"StabilizationWindowSeconds":300,"SelectPolicy":"Max",'
        '"Policies":[{"Type":"Percent","Value":100,"PeriodSeconds":15}],"Tolerance":null}}'
    )
    assert annotations[f"{PREFIX}current-metrics"] == (
        '[{"type":"Resource","resource":{"name":"cpu","currentAverageUtilization":50,"currentAverageValue":"5m"}},'
        '{"type":"Pods","pods":{"metricName":"packets","currentAverageValue":"3"}}]'
    )
    assert annotations[f"{PREFIX}conditions"] == (
        '[{"type":"AbleToScale","status":"True","lastTransitionTime":"2024-01-01T00:00:00Z"}]'
    )


def test_a_v1_object_without_a_target_aims_at_eighty_percent() -> None:
    made = to_v2({"spec": {"scaleTargetRef": REFERENCE, "maxReplicas": 5}})
    assert made["spec"]["metrics"] == [
        {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}}
    ]


@pytest.mark.parametrize("value", ["", "{", "[1]", '[{"type":"Pods","pods":{"targetAverageValue":"lots"}}]'])
def test_annotations_that_make_no_sense_are_dropped(value: str) -> None:
    made = to_v2(
        {
            "metadata": {"annotations": {f"{PREFIX}{name}": value for name in ("metrics", "behavior", "conditions")}},
            "spec": {"targetCPUUtilizationPercentage": 60},
        }
    )
    assert made["metadata"] == {}
    assert made["spec"] == {"metrics": [CPU]}


def test_converting_leaves_the_input_alone() -> None:
    given = msgspec.convert(full(), v2.HorizontalPodAutoscaler)
    v2_to_v1(given)
    assert plain(given) == full()


def test_a_v2_object_does_not_bring_annotations_of_its_own() -> None:
    value = {"metadata": {"annotations": {f"{PREFIX}metrics": "[]", "mine": "1"}}, "spec": {"metrics": [CPU]}}
    assert to_v1(value)["metadata"] == {"annotations": {"mine": "1"}}
