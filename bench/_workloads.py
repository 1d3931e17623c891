"""The clusters and pods of `bench/scheduler.py`, shaped after upstream's own scheduling benchmarks."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

Body = dict[str, Any]
ZONES = 3
ZONE, HOSTNAME = "topology.kubernetes.io/zone", "kubernetes.io/hostname"


@dataclass
class Workload:
    """What is there before, what is measured, and what must be true in the end."""

    pods: Callable[[int], Iterator[Body]]
    before: Callable[[int, int], Iterator[Body]] = lambda nodes, pods: iter(())
    """Pods that are there, and bound unless `stay_pending`, before the measurement."""
    stay_pending: bool = False
    zones: int = ZONES
    most: Callable[[int], int] = lambda nodes: nodes * 30
    """How many pods fit at all."""
    check: Callable[[list[Body], list[Body]], str] = lambda nodes, pods: ""
    """From nodes and pods to what is wrong."""
    extra: list[tuple[str, Body]] = field(default_factory=list)


def nodes(number: int, zones: int) -> Iterator[Body]:
    for index in range(number):
        amounts = {"cpu": "4", "memory": "32Gi", "pods": "110"}
        yield {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": f"node-{index}",
                "labels": {HOSTNAME: f"node-{index}", ZONE: f"zone-{index % zones}"},
            },
            "status": {
                "capacity": amounts,
                "allocatable": amounts,
                "conditions": [{"type": "Ready", "status": "True", "reason": "Fake"}],
            },
        }


def pod(name: str, *, cpu: str = "100m", labels: dict[str, str] | None = None, **spec: Any) -> Body:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": labels or {"app": "load"}},
        "spec": {
            "automountServiceAccountToken": False,
            "terminationGracePeriodSeconds": 0,
            "containers": [
                {
                    "name": "pause",
                    "image": "registry.k8s.io/pause:3.10",
                    "ports": [{"containerPort": 80}],
                    "resources": {
                        "requests": {"cpu": cpu, "memory": "500Mi"},
                        "limits": {"cpu": cpu, "memory": "500Mi"},
                    },
                }
            ],
            **copy.deepcopy(spec),
        },
    }


def _many(prefix: str, **options: Any) -> Callable[[int], Iterator[Body]]:
    return lambda number: (pod(f"{prefix}-{index}", **options) for index in range(number))


def _term(color: str, topology: str) -> Body:
    return {"labelSelector": {"matchLabels": {"color": color}}, "topologyKey": topology}


def _required(terms: Any) -> Body:
    return {"requiredDuringSchedulingIgnoredDuringExecution": terms}


_ZONES_0_1 = {
    "nodeSelectorTerms": [{"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["zone-0", "zone-1"]}]}]
}
_SPREAD = [
    {
        "maxSkew": 5,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"color": "blue"}},
    }
]


def _in_zones_0_1(nodes: list[Body], pods: list[Body]) -> str:
    zone = _zones(nodes)
    wrong = [each for each in pods if zone[each["spec"]["nodeName"]] == "zone-2"]
    return f"{len(wrong)} pods are in the wrong zone" if wrong else ""


def _one_zone(nodes: list[Body], pods: list[Body]) -> str:
    zone = _zones(nodes)
    found = {zone[each["spec"]["nodeName"]] for each in pods}
    return f"pods are in {len(found)} zones" if len(found) > 1 else ""


def _alone(nodes: list[Body], pods: list[Body]) -> str:
    most = max(Counter(each["spec"]["nodeName"] for each in pods).values(), default=0)
    return f"{most} pods are on one node" if most > 1 else ""


def _even(nodes: list[Body], pods: list[Body]) -> str:
    zone = _zones(nodes)
    counts = Counter(zone[each["spec"]["nodeName"]] for each in pods)
    skew = max(counts.values()) - min(counts.values()) if counts else 0
    return f"the skew is {skew}" if skew > 5 else ""


def _zones(nodes: list[Body]) -> dict[str, str]:
    return {each["metadata"]["name"]: each["metadata"]["labels"][ZONE] for each in nodes}


WORKLOADS: dict[str, Workload] = {
    "basic": Workload(_many("pod")),
    "node-affinity": Workload(
        _many("pod", affinity={"nodeAffinity": _required(_ZONES_0_1)}),
        most=lambda nodes: nodes * 2 // 3 * 30,
        check=_in_zones_0_1,
    ),
    "pod-affinity": Workload(
        _many("pod", labels={"color": "blue"}, affinity={"podAffinity": _required([_term("blue", ZONE)])}),
        zones=1,
        check=_one_zone,
    ),
    "pod-anti-affinity": Workload(
        _many("pod", labels={"color": "green"}, affinity={"podAntiAffinity": _required([_term("green", HOSTNAME)])}),
        most=lambda nodes: nodes,
        check=_alone,
    ),
    "topology-spread": Workload(
        _many("pod", labels={"color": "blue"}, topologySpreadConstraints=_SPREAD),
        check=_even,
    ),
    "preemption": Workload(
        _many("pod", cpu="3", priorityClassName="bench-high"),
        before=lambda nodes, pods: (pod(f"low-{index}", cpu="900m") for index in range(4 * nodes)),
        most=lambda nodes: nodes,
        extra=[
            (
                "/apis/scheduling.k8s.io/v1/priorityclasses",
                {
                    "apiVersion": "scheduling.k8s.io/v1",
                    "kind": "PriorityClass",
                    "metadata": {"name": "bench-high"},
                    "value": 10,
                },
            )
        ],
    ),
    "unschedulable": Workload(
        _many("pod"),
        before=lambda nodes, pods: (pod(f"huge-{index}", cpu="9") for index in range(max(1, pods // 10))),
        stay_pending=True,
    ),
}


def overcommitted(nodes: list[Body], pods: list[Body]) -> str:
    """Whether a node has more CPU given away than it has."""
    used: Counter[str] = Counter()
    for each in pods:
        if name := each["spec"].get("nodeName"):
            used[name] += sum(_milli(c["resources"]["requests"]["cpu"]) for c in each["spec"]["containers"])
    has = {each["metadata"]["name"]: _milli(each["status"]["allocatable"]["cpu"]) for each in nodes}
    wrong = [name for name, amount in used.items() if amount > has[name]]
    return f"{len(wrong)} nodes have too many pods, as {wrong[0]}" if wrong else ""


def _milli(text: str) -> int:
    return int(text[:-1]) if text.endswith("m") else int(text) * 1000
