"""Which events may let a pod in that affinity or anti-affinity kept out.

Upstream misses three of them and lets such pods wait for their five minutes: a pod goes that one of several
anti-affinity terms speaks of; the other pod's namespace is chosen by a selector; a node comes for a pod that only
others keep out. We wake those pods too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pybernetes.api import labels
from pybernetes.api.core.v1 import Node, Pod

from ...framework import Action, AffinityTerm, ClusterEvent, EventWithHint, Hint, PodInfo, Resource


class Hints:
    """Asks the terms of the waiting pod and of the pod that changed."""

    def __init__(self, labels_of_namespace: Callable[[str], labels.Labels]) -> None:
        self._labels_of_namespace = labels_of_namespace

    def events(self) -> Sequence[EventWithHint]:
        """Upstream's."""
        pods = Action.ADD | Action.UPDATE_POD_LABEL | Action.DELETE
        return (
            EventWithHint(ClusterEvent(Resource.POD, pods), self.after_pod),
            EventWithHint(ClusterEvent(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL), self.after_node),
        )

    def after_pod(self, pod: Pod, old: Pod | None, new: Pod | None) -> Hint:
        """Another pod came, changed its labels or went; or this one changed its labels."""
        waiting = PodInfo(pod)
        if old is not None and new is not None and new.metadata and new.metadata.uid == waiting.uid:
            return Hint.QUEUE
        if any(other is not None and not _placed(other) for other in (old, new)):
            return Hint.SKIP
        liked = self._liked(waiting, new)
        if old is None:
            return _queue_if(liked)
        disliked = self._spoken_of(waiting.required_anti_affinity, old)
        if new is None:
            return _queue_if(bool(disliked or self._spoken_of(PodInfo(old).required_anti_affinity, pod)))
        came = liked and not self._liked(waiting, old)
        went = disliked - self._spoken_of(waiting.required_anti_affinity, new)
        return _queue_if(bool(came or went))

    def after_node(self, pod: Pod, old: Node | None, new: Node | None) -> Hint:
        """A node came, or changed its labels."""
        waiting = PodInfo(pod)
        before, after = _labels(old), _labels(new)
        for key in {each.topology_key for each in waiting.required_affinity}:
            if key in after and (old is None or before.get(key) != after[key]):
                return Hint.QUEUE
        for key in {each.topology_key for each in waiting.required_anti_affinity}:
            if old is None or (key in before and before[key] != after.get(key)):
                return Hint.QUEUE
        return _queue_if(not waiting.required_affinity and not waiting.required_anti_affinity)

    def _liked(self, waiting: PodInfo, other: Pod | None) -> bool:
        """Whether all of its affinity terms, and at least one, speak of the other pod."""
        terms = waiting.required_affinity
        return other is not None and bool(terms) and self._spoken_of(terms, other) == set(terms)

    def _spoken_of(self, terms: Sequence[AffinityTerm], other: Pod) -> set[AffinityTerm]:
        """The terms that speak of the pod."""
        namespace = (other.metadata.namespace if other.metadata else None) or ""
        other_labels = (other.metadata.labels if other.metadata else None) or {}
        namespace_labels = self._labels_of_namespace(namespace)
        return {each for each in terms if each.matches(namespace, other_labels, namespace_labels)}


def _placed(pod: Pod) -> bool:
    return bool((pod.spec and pod.spec.node_name) or (pod.status and pod.status.nominated_node_name))


def _labels(node: Node | None) -> dict[str, str]:
    return (node.metadata.labels if node and node.metadata else None) or {}


def _queue_if(condition: bool) -> Hint:
    return Hint.QUEUE if condition else Hint.SKIP
