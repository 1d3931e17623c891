"""Pods and nodes for tests of the scheduler's parts, in few words."""

from __future__ import annotations

import itertools
from typing import Any

from pybernetes.api.core.v1 import (
    Container,
    Node,
    NodeSpec,
    NodeStatus,
    Pod,
    PodSpec,
    PodStatus,
    ResourceRequirements,
)
from pybernetes.api.meta.v1 import ObjectMeta
from pybernetes.scheduler.framework.podinfo import PodInfo

_numbers = itertools.count(1)


def pod(
    name: str,
    *,
    labels: dict[str, str] | None = None,
    nominated: str | None = None,
    uid: str = "",
    requests: dict[str, Any] | None = None,
    **spec: Any,
) -> Pod:
    container = Container(name="c", image="image", resources=ResourceRequirements(requests=requests))
    return Pod(
        metadata=ObjectMeta(
            name=name,
            namespace="default",
            uid=uid or f"uid-{name}",
            labels=labels,
            resource_version=str(next(_numbers)),
        ),
        spec=PodSpec(**{"containers": [container], "scheduler_name": "default-scheduler", **spec}),
        status=PodStatus(nominated_node_name=nominated),
    )


def info(name: str, **more: Any) -> PodInfo:
    return PodInfo(pod(name, **more))


def node(name: str, *, labels: dict[str, str] | None = None, pods: str = "110", **more: Any) -> Node:
    fields = {key: more.pop(key) for key in ("taints", "unschedulable") if key in more}
    return Node(
        metadata=ObjectMeta(name=name, labels=labels),
        spec=NodeSpec(**fields),
        status=NodeStatus(allocatable={"cpu": "4", "memory": "8Gi", "pods": pods, **more}),
    )
