"""Keeps a pod off nodes whose kubelet has not declared (`status.declaredFeatures`) what the pod needs.

Only two features show in the spec of a new pod; the others that kubelets declare matter when a pod is changed.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from pybernetes.api.core.v1 import Pod, PodSpec

from ..framework import (
    SKIP,
    UNRESOLVABLE,
    Action,
    ClusterEvent,
    CycleState,
    EventWithHint,
    FilterPlugin,
    Hint,
    Mask,
    PodInfo,
    PreFilterPlugin,
    PreFilterResult,
    Refusals,
    Resource,
    RowArray,
    Rows,
    Scope,
    Status,
)

RESTART_ALL = "RestartAllContainersOnContainerExits"
HOST_NETWORK = "UserNamespacesHostNetworkSupport"
_REASON = "node(s) didn't match Pod's required features"


class NodeDeclaredFeatures(PreFilterPlugin, FilterPlugin):
    """Compares the features a pod needs of its kubelet with those the node declares."""

    name = "NodeDeclaredFeatures"
    scope = Scope.NODE

    def sign(self, pod: PodInfo) -> Hashable:
        return required_features(pod.spec)

    def pre_filter(self, state: CycleState, pod: PodInfo) -> PreFilterResult | Status | None:
        wanted = required_features(pod.spec)
        if not wanted:
            return SKIP
        state[self.name] = wanted
        return None

    def filter(self, state: CycleState, pod: PodInfo, rows: Rows) -> Mask:
        # Node by node: hardly any pod needs this, and the answers are kept until a node changes.
        snapshot, wanted = self.handle.snapshot, state[self.name]
        answer = np.zeros(snapshot.count(rows), dtype=np.bool_)
        for index, row in enumerate(snapshot.row_numbers(rows).tolist()):
            if snapshot.alive[row]:
                node = snapshot.info(row).node
                declared = (node.status.declared_features if node and node.status else None) or ()
                answer[index] = wanted <= frozenset(declared)
        return answer

    def refusals(self, state: CycleState, pod: PodInfo, rows: RowArray) -> Refusals:
        return [(Status(UNRESOLVABLE, _REASON), rows)]

    def events_to_register(self) -> Sequence[EventWithHint]:
        return (
            EventWithHint(
                ClusterEvent(Resource.NODE, Action.ADD | Action.UPDATE_NODE_DECLARED_FEATURE), _after_node_change
            ),
            EventWithHint(ClusterEvent(Resource.POD, Action.UPDATE), _after_pod_update),
        )


def required_features(spec: PodSpec) -> frozenset[str]:
    """The features a kubelet must have to run this pod."""
    found: set[str] = set()
    containers = (*(spec.containers or ()), *(spec.init_containers or ()))
    if any(rule.action == "RestartAllContainers" for each in containers for rule in each.restart_policy_rules or ()):
        found.add(RESTART_ALL)
    if spec.host_network and spec.host_users is False:
        found.add(HOST_NETWORK)
    return frozenset(found)


def _after_node_change(pod: Pod, old: Any, new: Any) -> Hint:
    if old is not None and _declared(old) == _declared(new):
        return Hint.SKIP
    return Hint.QUEUE


def _declared(node: Any) -> list[str]:
    return (node.status.declared_features if node.status else None) or []


def _after_pod_update(pod: Pod, old: Any, new: Any) -> Hint:
    if pod.metadata is None or new.metadata.uid != pod.metadata.uid:
        return Hint.SKIP
    return Hint.QUEUE if required_features(old.spec) != required_features(new.spec) else Hint.SKIP
