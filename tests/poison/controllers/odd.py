"""Odd objects that the API server accepts and that some controller computes with.

Random ones are mostly refused; these are good objects with one odd value each, where a controller reads it.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from poison.values import INT_OR_STRINGS, INTEGERS, QUANTITIES, SCHEDULES, TIMES

POD = {"containers": [{"name": "c", "image": "i"}]}
TEMPLATE = {"metadata": {"labels": {"app": "odd"}}, "spec": POD}
WORKLOAD = {"replicas": 1, "selector": {"matchLabels": {"app": "odd"}}, "template": TEMPLATE}
JOB = {"template": {"spec": {**POD, "restartPolicy": "Never"}}}
CRON = {"schedule": "* * * * *", "jobTemplate": {"spec": JOB}}
NUMBERS = ("9223372036854775807", "9223372036854775808", "-1", "", "garbage", "1e9", "0x10", " 1", "\u0661")

APPS, BATCH, CORE = "apis/apps/v1", "apis/batch/v1", "api/v1"


@dataclass(frozen=True)
class Case:
    """A good object, where to put which odd values, one at a time; a path that begins with status is written there."""

    group: str
    plural: str
    body: dict[str, Any]
    path: str
    values: tuple[Any, ...]
    status: dict[str, Any] | None = None
    namespaced: bool = True


def _set(body: dict[str, Any], path: str, value: Any) -> None:
    *parents, last = path.split("|")
    for each in parents:
        body = body.setdefault(each, {}) if not each.isdecimal() else body[int(each)]  # type: ignore[index]
    body[last] = value


def _annotated(group: str, plural: str, spec: dict[str, Any], *names: str) -> list[Case]:
    return [Case(group, plural, {"spec": spec}, f"metadata|annotations|{name}", NUMBERS) for name in names]


CASES: tuple[Case, ...] = (
    *(
        Case(APPS, "deployments", {"spec": WORKLOAD}, f"spec|strategy|rollingUpdate|{name}", INT_OR_STRINGS)
        for name in ("maxSurge", "maxUnavailable")
    ),
    *(
        Case(APPS, plural, {"spec": WORKLOAD}, f"spec|{name}", INTEGERS)
        for plural in ("deployments", "replicasets", "statefulsets")
        for name in ("minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds")
    ),
    *_annotated(
        APPS,
        "deployments",
        WORKLOAD,
        "deployment.kubernetes.io/revision",
        "deprecated.deployment.rollback.to",
        "deployment.kubernetes.io/desired-replicas",
    ),
    *_annotated(
        APPS,
        "replicasets",
        WORKLOAD,
        "deployment.kubernetes.io/revision",
        "deployment.kubernetes.io/desired-replicas",
        "deployment.kubernetes.io/max-replicas",
        "deployment.kubernetes.io/revision-history",
    ),
    Case(APPS, "statefulsets", {"spec": WORKLOAD}, "spec|updateStrategy|rollingUpdate|maxUnavailable", INT_OR_STRINGS),
    Case(APPS, "statefulsets", {"spec": WORKLOAD}, "spec|updateStrategy|rollingUpdate|partition", INTEGERS),
    Case(APPS, "statefulsets", {"spec": WORKLOAD}, "spec|ordinals|start", INTEGERS),
    Case(APPS, "statefulsets", {"spec": WORKLOAD}, "status|collisionCount", INTEGERS, status={"replicas": 0}),
    Case(APPS, "deployments", {"spec": WORKLOAD}, "status|collisionCount", INTEGERS, status={}),
    *(
        Case(
            APPS,
            "daemonsets",
            {"spec": {key: WORKLOAD[key] for key in ("selector", "template")}},
            f"spec|updateStrategy|rollingUpdate|{name}",
            INT_OR_STRINGS,
        )
        for name in ("maxSurge", "maxUnavailable")
    ),
    Case(
        APPS,
        "controllerrevisions",
        {"metadata": {"labels": {"app": "odd"}}, "revision": 1, "data": {"a": 1}},
        "revision",
        INTEGERS,
    ),
    Case(
        APPS,
        "controllerrevisions",
        {"metadata": {"labels": {"app": "odd"}}, "revision": 1, "data": {"a": 1}},
        "data",
        ({}, [], "x", 1, {"spec": {"template": 5}}, {"spec": {"template": {"spec": {"containers": "x"}}}}),
    ),
    Case(BATCH, "cronjobs", {"spec": CRON}, "spec|schedule", SCHEDULES),
    Case(BATCH, "cronjobs", {"spec": CRON}, "spec|startingDeadlineSeconds", INTEGERS),
    Case(BATCH, "cronjobs", {"spec": CRON}, "spec|successfulJobsHistoryLimit", INTEGERS),
    Case(BATCH, "cronjobs", {"spec": CRON}, "spec|timeZone", ("Etc/GMT+12", "Pacific/Apia", "America/New_York")),
    *(
        Case(BATCH, "cronjobs", {"spec": {**CRON, **more}}, f"status|{name}", TIMES, status={})
        for name in ("lastScheduleTime", "lastSuccessfulTime")
        for more in ({}, {"startingDeadlineSeconds": 2**63 - 1}, {"timeZone": "Pacific/Apia"})
    ),
    *(Case(BATCH, "jobs", {"spec": JOB}, f"status|{name}", TIMES, status={}) for name in ("startTime",)),
    *(
        Case(BATCH, "jobs", {"spec": {**JOB, "activeDeadlineSeconds": 2**63 - 1}}, "status|startTime", TIMES, status={})
        for _ in range(1)
    ),
    *(
        Case(BATCH, "jobs", {"spec": JOB}, f"spec|{name}", INTEGERS)
        for name in ("activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished")
    ),
    *(
        Case(
            BATCH,
            "jobs",
            {"spec": {**JOB, "ttlSecondsAfterFinished": 2**31 - 1}},
            "status",
            tuple(
                {
                    "startTime": time,
                    "completionTime": time,
                    "conditions": [{"type": kind, "status": "True", "lastTransitionTime": time} for kind in kinds],
                }
                for time in TIMES
                for kinds in (("SuccessCriteriaMet", "Complete"), ("FailureTarget", "Failed"))
            ),
            status={},
        )
        for _ in range(1)
    ),
    Case(
        BATCH,
        "jobs",
        {"spec": {**JOB, "completionMode": "Indexed", "completions": 3}},
        "status|completedIndexes",
        ("", "0-2", "2-0", "-1", "0,", "999999999999999999999", "0-999999999", "a", "1,1,1"),
        status={},
    ),
    Case(CORE, "pods", {"spec": POD}, "spec|activeDeadlineSeconds", INTEGERS),
    *_annotated(
        CORE,
        "pods",
        POD,
        "controller.kubernetes.io/pod-deletion-cost",
        "batch.kubernetes.io/job-completion-index",
        "endpoints.kubernetes.io/last-change-trigger-time",
    ),
    *(
        Case(
            CORE,
            "pods",
            {"metadata": {"labels": {"app": "odd"}}, "spec": {**POD, "nodeName": "odd-node"}},
            "status",
            tuple(
                {
                    "phase": phase,
                    "startTime": time,
                    "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": time}],
                    "containerStatuses": [
                        {
                            "name": "c",
                            "image": "i",
                            "imageID": "i",
                            "ready": True,
                            "restartCount": 2**31 - 1,
                            "state": {"terminated": {"exitCode": 1, "startedAt": time, "finishedAt": time}},
                        }
                    ],
                }
                for time in TIMES
                for phase in ("Running", "Failed")
            ),
            status={},
        )
        for _ in range(1)
    ),
    Case(
        CORE,
        "pods",
        {
            "spec": {
                **POD,
                "nodeName": "odd-node",
                "tolerations": [{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}],
            }
        },
        "spec|tolerations|0|tolerationSeconds",
        INTEGERS,
    ),
    Case(
        "apis/policy/v1",
        "poddisruptionbudgets",
        {"spec": {"selector": {"matchLabels": {"app": "odd"}}}},
        "spec|minAvailable",
        INT_OR_STRINGS,
    ),
    Case(
        "apis/policy/v1",
        "poddisruptionbudgets",
        {"spec": {"selector": {"matchLabels": {"app": "odd"}}}},
        "spec|maxUnavailable",
        INT_OR_STRINGS,
    ),
    Case(
        "apis/policy/v1",
        "poddisruptionbudgets",
        {"spec": {"selector": {"matchLabels": {"app": "odd"}}}},
        "status|disruptedPods",
        tuple({"odd": time} for time in TIMES),
        status={"disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0},
    ),
    Case(
        "apis/autoscaling/v2",
        "horizontalpodautoscalers",
        {"spec": {"maxReplicas": 3, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "x"}}},
        "spec|scaleTargetRef",
        tuple(
            {"apiVersion": version, "kind": kind, "name": "canary"}
            for version in ("apps/v1", "", "a/b/c", "nothing/v1")
            for kind in ("Deployment", "Pod", "Nothing")
        ),
    ),
    Case(
        "apis/autoscaling/v2",
        "horizontalpodautoscalers",
        {
            "spec": {
                "maxReplicas": 3,
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "canary"},
            }
        },
        "status|lastScaleTime",
        TIMES,
        status={"desiredReplicas": 0, "currentReplicas": 0},
    ),
    Case(
        "apis/autoscaling/v2",
        "horizontalpodautoscalers",
        {
            "spec": {
                "maxReplicas": 3,
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "canary"},
            }
        },
        "spec|metrics",
        tuple(
            [
                {
                    "type": "Resource",
                    "resource": {"name": "cpu", "target": {"type": "AverageValue", "averageValue": quantity}},
                }
            ]
            for quantity in QUANTITIES
        ),
    ),
    Case(
        "apis/autoscaling/v2",
        "horizontalpodautoscalers",
        {
            "spec": {
                "maxReplicas": 2**31 - 1,
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "canary"},
            }
        },
        "spec|behavior",
        tuple(
            {"scaleUp": {"policies": [{"type": kind, "value": value, "periodSeconds": 1800}]}}
            for kind in ("Pods", "Percent")
            for value in INTEGERS
        ),
    ),
    Case(
        CORE,
        "resourcequotas",
        {"spec": {"hard": {"pods": "1"}}},
        "spec|hard",
        tuple({"requests.cpu": quantity, "count/pods": quantity} for quantity in QUANTITIES),
    ),
    Case(
        CORE,
        "pods",
        {"spec": POD},
        "spec|containers|0|resources",
        tuple(
            {"requests": {"cpu": quantity, "example.com/x": "1"}, "limits": {"example.com/x": "1"}}
            for quantity in QUANTITIES
        ),
    ),
    Case(
        CORE,
        "services",
        {"spec": {"ports": [{"port": 80}], "selector": {"app": "odd"}}},
        "spec|ports|0|targetPort",
        INT_OR_STRINGS,
    ),
    Case(
        CORE,
        "services",
        {"spec": {"ports": [{"port": 80}], "selector": {"app": "odd"}}},
        "metadata|annotations",
        tuple(
            {"endpoints.kubernetes.io/last-change-trigger-time": value, "service.kubernetes.io/topology-mode": value}
            for value in NUMBERS
        ),
    ),
    Case(
        "apis/discovery.k8s.io/v1",
        "endpointslices",
        {
            "addressType": "IPv4",
            "metadata": {
                "labels": {
                    "kubernetes.io/service-name": "odd",
                    "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
                }
            },
            "endpoints": [{"addresses": ["10.0.0.1"]}],
        },
        "metadata|annotations|endpoints.kubernetes.io/last-change-trigger-time",
        (*TIMES, *NUMBERS),
    ),
    Case(
        CORE,
        "endpoints",
        {"subsets": [{"addresses": [{"ip": "10.0.0.1"}], "ports": [{"port": 80}]}]},
        "metadata|annotations|endpoints.kubernetes.io/last-change-trigger-time",
        (*TIMES, *NUMBERS),
    ),
    Case(
        CORE,
        "secrets",
        {"type": "kubernetes.io/service-account-token"},
        "metadata|annotations",
        tuple({"kubernetes.io/service-account.name": value} for value in ("default", *NUMBERS)),
    ),
    Case(
        CORE,
        "secrets",
        {
            "type": "kubernetes.io/service-account-token",
            "metadata": {"annotations": {"kubernetes.io/service-account.name": "default"}},
        },
        "metadata|labels|kubernetes.io/legacy-token-last-used",
        ("2020-01-01", "0000-00-00", "garbage", "9999-99-99"),
    ),
    Case(
        CORE,
        "persistentvolumeclaims",
        {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}},
        "spec|resources|requests|storage",
        QUANTITIES,
    ),
    Case(
        CORE,
        "persistentvolumeclaims",
        {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}},
        "metadata|annotations",
        tuple(
            {
                "pv.kubernetes.io/bind-completed": value,
                "volume.kubernetes.io/selected-node": value,
                "volume.beta.kubernetes.io/storage-class": value,
                "volume.kubernetes.io/storage-provisioner": value,
            }
            for value in NUMBERS
        ),
    ),
    Case(
        CORE,
        "persistentvolumes",
        {"spec": {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/x"}}},
        "spec|capacity|storage",
        QUANTITIES,
        namespaced=False,
    ),
    Case(
        CORE,
        "persistentvolumes",
        {"spec": {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/x"}}},
        "spec|claimRef",
        tuple(
            {"namespace": space, "name": name, "uid": uid}
            for space in ("poison", "")
            for name in ("odd", "")
            for uid in ("", "x")
        ),
        namespaced=False,
    ),
    Case(
        CORE,
        "nodes",
        {},
        "status|conditions",
        tuple(
            [{"type": "Ready", "status": status, "lastHeartbeatTime": time, "lastTransitionTime": time}]
            for time in TIMES
            for status in ("True", "False")
        ),
        status={},
        namespaced=False,
    ),
    Case(
        CORE,
        "nodes",
        {},
        "status|allocatable",
        tuple({"cpu": each, "pods": each} for each in QUANTITIES),
        status={},
        namespaced=False,
    ),
    Case(
        CORE,
        "nodes",
        {},
        "spec|taints",
        tuple([{"key": "node.kubernetes.io/not-ready", "effect": "NoExecute", "timeAdded": time}] for time in TIMES),
        namespaced=False,
    ),
    Case(CORE, "nodes", {}, "metadata|annotations|node.alpha.kubernetes.io/ttl", NUMBERS, namespaced=False),
    Case(CORE, "nodes", {}, "spec|podCIDRs", (["10.0.0.0/24"], ["0.0.0.0/0"], ["fd00::/64"]), namespaced=False),
    *(
        Case("apis/coordination.k8s.io/v1", "leases", {"spec": {}}, f"spec|{name}", values)
        for name, values in (("renewTime", TIMES), ("leaseDurationSeconds", INTEGERS), ("leaseTransitions", INTEGERS))
    ),
    *(
        Case(
            CORE,
            "configmaps",
            {},
            "metadata|ownerReferences",
            tuple(
                [
                    {
                        "apiVersion": version,
                        "kind": kind,
                        "name": name,
                        "uid": "u",
                        "controller": True,
                        "blockOwnerDeletion": True,
                    }
                ]
                for version in ("v1", "apps/v1", "a/b/c", "nothing/v1")
                for kind in ("ConfigMap", "Node", "Nothing")
                for name in ("odd", "x" * 250)
            ),
        )
        for _ in range(1)
    ),
    Case(
        "apis/resource.k8s.io/v1",
        "resourceclaims",
        {"spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}}},
        "spec|devices|requests|0|exactly|count",
        INTEGERS,
    ),
    Case(
        "apis/rbac.authorization.k8s.io/v1",
        "clusterroles",
        {},
        "aggregationRule",
        (
            {"clusterRoleSelectors": [{}]},
            {"clusterRoleSelectors": []},
            {"clusterRoleSelectors": [{"matchExpressions": [{"key": "a", "operator": "Exists"}]}]},
        ),
        namespaced=False,
    ),
    Case(
        "apis/networking.k8s.io/v1",
        "servicecidrs",
        {"spec": {}},
        "spec|cidrs",
        (["0.0.0.0/32"], ["255.255.255.0/24"], ["ffff::/64"]),
        namespaced=False,
    ),
    Case(
        "apis/certificates.k8s.io/v1",
        "certificatesigningrequests",
        {"spec": {"signerName": "example.com/x", "usages": ["any"], "request": "aGVsbG8="}},
        "spec|expirationSeconds",
        INTEGERS,
        namespaced=False,
    ),
)


def objects(namespace: str) -> Iterator[tuple[str, dict[str, Any], dict[str, Any] | None]]:
    """All of them: the path of the collection, the object, and its status if it is to be written."""
    number = 0
    for case in CASES:
        for value in case.values:
            number += 1
            body = deepcopy(case.body)
            status = deepcopy(case.status)
            if case.path == "status":
                status = deepcopy(value)
            elif case.path.startswith("status|"):
                assert status is not None
                _set(status, case.path.removeprefix("status|"), value)
            else:
                _set(body, case.path, deepcopy(value))
            body.setdefault("metadata", {})["name"] = f"odd-{number}"
            inside = f"/namespaces/{namespace}" if case.namespaced else ""
            yield f"/{case.group}{inside}/{case.plural}", body, status
