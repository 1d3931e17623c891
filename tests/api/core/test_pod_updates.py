"""Rules about changes that need a pod with a past: gates, ended containers, resizes, exceptions for old objects."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import msgspec
import pytest

from pybernetes.api.core.binding import assign_pod
from pybernetes.api.core.defaults.pod import default_pod
from pybernetes.api.core.v1 import Binding, ObjectReference, Pod
from pybernetes.api.core.validation.pod import validate_pod_create, validate_pod_update
from pybernetes.api.core.validation.podresize import validate_ephemeral_containers_update, validate_pod_resize
from pybernetes.api.core.validation.podstatus import validate_pod_status_update
from pybernetes.api.errors import Conflict
from pybernetes.api.meta.v1 import ObjectMeta

NOW = "2025-01-01T00:00:00Z"
MIRROR = {"kubernetes.io/config.mirror": "x"}
AFFINITY = {
    "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Exists"}]}]
        }
    }
}


def pod(spec: dict[str, Any] | None = None, status: dict[str, Any] | None = None, **meta: Any) -> Pod:
    body = {
        "metadata": {"name": "p", "namespace": "n", **meta},
        "spec": {"containers": [{"name": "c", "image": "x"}], **(spec or {})},
        "status": status or {},
    }
    obj = msgspec.convert(body, Pod)
    default_pod(obj)
    return obj


def fields(errors: list[Any]) -> list[tuple[str, str]]:
    return [(error.field, error.type) for error in errors]


@pytest.mark.parametrize(
    "change",
    [
        {"schedulingGates": [{"name": "b"}]},
        {"schedulingGates": None},
        {"nodeSelector": {"x": "y", "z": "w"}},
        {
            "affinity": {
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [
                            {
                                "matchExpressions": [
                                    {"key": "a", "operator": "Exists"},
                                    {"key": "b", "operator": "Exists"},
                                ]
                            }
                        ]
                    }
                }
            }
        },
    ],
)
def test_a_gated_pod_may_lose_gates_and_be_placed_more_narrowly(change: dict[str, Any]) -> None:
    spec = {"schedulingGates": [{"name": "a"}, {"name": "b"}], "nodeSelector": {"x": "y"}, "affinity": AFFINITY}
    assert validate_pod_update(pod({**spec, **change}), pod(spec)) == []


def test_a_pod_that_is_not_gated_stays_where_it_may_run() -> None:
    errors = validate_pod_update(pod({"nodeSelector": {"x": "y"}}), pod())
    assert fields(errors) == [("spec", "FieldValueForbidden")]
    assert errors[0].detail.startswith("pod updates may not change fields other than `spec.containers[*].image`,")
    assert '+ "NodeSelector": {\n' in errors[0].detail


def test_no_gate_is_added() -> None:
    errors = validate_pod_update(pod({"schedulingGates": [{"name": "a"}]}), pod())
    assert [str(error) for error in errors] == [
        "spec.schedulingGates[0].name: Forbidden: only deletion is allowed, but found new scheduling gate 'a'"
    ]


def test_tolerations_and_a_deadline_stay_once_they_are_there() -> None:
    old = pod({"tolerations": [{"key": "a", "operator": "Exists"}], "activeDeadlineSeconds": 5})
    assert fields(validate_pod_update(pod(), old)) == [
        ("spec.activeDeadlineSeconds", "FieldValueInvalid"),
        ("spec.tolerations", "FieldValueForbidden"),
    ]


def test_a_pod_that_broke_a_rule_before_it_was_made_can_still_be_changed() -> None:
    spec = {
        "hostNetwork": True,
        "securityContext": {"sysctls": [{"name": "net.ipv4.ip_forward", "value": "1"}]},
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [
                        {"matchExpressions": [{"key": "a", "operator": "In", "values": ["no label value"]}]}
                    ]
                }
            }
        },
    }
    old, new = pod(spec), pod(spec, labels={"a": "b"})
    assert len(validate_pod_create(deepcopy(old))) == 2
    assert validate_pod_update(new, old) == []


def status(state: dict[str, Any], field: str = "containerStatuses") -> dict[str, Any]:
    return {field: [{"name": "c", "state": state}]}


@pytest.mark.parametrize(
    ("spec", "code", "restarts"),
    [
        ({}, 0, True),
        ({"restartPolicy": "Never"}, 0, False),
        ({"restartPolicy": "Never"}, 1, False),
        ({"restartPolicy": "OnFailure"}, 0, False),
        ({"restartPolicy": "OnFailure"}, 1, True),
        ({"restartPolicy": "Never", "containers": [{"name": "c", "image": "x", "restartPolicy": "Always"}]}, 0, True),
        (
            {
                "restartPolicy": "Never",
                "containers": [
                    {
                        "name": "c",
                        "image": "x",
                        "restartPolicy": "Never",
                        "restartPolicyRules": [
                            {"action": "Restart", "exitCodes": {"operator": "In", "values": [42]}},
                        ],
                    }
                ],
            },
            42,
            True,
        ),
    ],
)
def test_a_container_that_ended_runs_again_only_if_it_may_restart(
    spec: dict[str, Any], code: int, restarts: bool
) -> None:
    old = pod(spec, status({"terminated": {"exitCode": code}}))
    new = pod(spec, status({"running": {}}))
    expected = [] if restarts else [("status.containerStatuses[0].state", "FieldValueForbidden")]
    assert fields(validate_pod_status_update(new, old)) == expected


def test_an_ephemeral_container_never_runs_again() -> None:
    old = pod({}, status({"terminated": {"exitCode": 1}}, "ephemeralContainerStatuses"))
    new = pod({}, status({"running": {}}, "ephemeralContainerStatuses"))
    assert fields(validate_pod_status_update(new, old)) == [
        ("status.ephemeralContainerStatuses[0].state", "FieldValueForbidden")
    ]


def test_no_node_is_nominated_for_a_pod_that_has_one() -> None:
    old = pod({"nodeName": "n1"})
    new = pod({"nodeName": "n1"}, {"nominatedNodeName": "n2"})
    assert [str(error) for error in validate_pod_status_update(new, old)] == [
        "status.nominatedNodeName: Forbidden: may not be set on pods that are already bound to a node"
    ]


def test_ephemeral_containers_stay_as_they_are() -> None:
    old = pod({"ephemeralContainers": [{"name": "e", "image": "x"}, {"name": "f", "image": "x"}]})
    new = pod({"ephemeralContainers": [{"name": "g", "image": "x"}, {"name": "f", "image": "y"}]})
    errors = validate_ephemeral_containers_update(new, old)
    assert [error.detail.splitlines()[0] for error in errors] == [
        'existing ephemeral containers "e" may not be removed',
        'existing ephemeral containers "f" may not be changed',
    ]


def test_mirrors_of_static_pods_are_left_alone() -> None:
    old = pod({"nodeName": "n"}, annotations=MIRROR)
    assert [error.detail for error in validate_ephemeral_containers_update(old, old)] == [
        "static pods do not support ephemeral containers"
    ]
    assert [error.detail for error in validate_pod_resize(old, old)] == ["static pods cannot be resized"]


def sized(cpu: str, **status: Any) -> Pod:
    container = {"name": "c", "image": "x", "resources": {"requests": {"cpu": cpu}}}
    return pod({"containers": [container]}, status)


def test_a_resize_needs_a_node_that_can() -> None:
    running = {"containerStatuses": [{"name": "c", "state": {"running": {}}}]}
    old = sized("1", **running)
    assert [error.detail for error in validate_pod_resize(sized("2", **running), old)] == [
        "Pod running on node without support for resize"
    ]
    running["containerStatuses"][0]["resources"] = {"requests": {"cpu": "1"}}
    assert validate_pod_resize(sized("2", **running), sized("1", **running)) == []


def test_a_binding_writes_the_node_once() -> None:
    target = Binding(
        metadata=ObjectMeta(annotations={"a": "b"}, labels={"zone": "z"}),
        target=ObjectReference(kind="Node", name="n1"),
    )
    bound = pod({}, {"nominatedNodeName": "n0"})
    assign_pod(bound, target, NOW)
    assert bound.spec is not None
    assert bound.status is not None
    assert bound.metadata is not None
    assert (bound.spec.node_name, bound.status.nominated_node_name) == ("n1", None)
    assert (bound.metadata.annotations, bound.metadata.labels) == ({"a": "b"}, {"zone": "z"})
    assert [(each.type, each.status, each.last_transition_time) for each in bound.status.conditions or ()] == [
        ("PodScheduled", "True", NOW)
    ]
    with pytest.raises(Conflict, match='pods/binding "p": pod p is already assigned to node "n1"'):
        assign_pod(bound, target, NOW)


@pytest.mark.parametrize(
    ("obj", "why"),
    [
        (pod({"schedulingGates": [{"name": "a"}]}), "pod p has non-empty .spec.schedulingGates"),
        (pod(deletionTimestamp=NOW), "pod p is being deleted, cannot be assigned to a host"),
    ],
)
def test_a_pod_that_is_held_back_or_leaving_is_not_bound(obj: Pod, why: str) -> None:
    with pytest.raises(Conflict, match=why):
        assign_pod(obj, Binding(target=ObjectReference(name="n1")), NOW)
