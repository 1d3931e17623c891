"""Which pod is on which node: what the API server has said, and what we have decided and not yet heard of.

A pod that was given a node is *assumed* to be there until the API server says so too, or the binding fails. An assumed
pod whose binding is finished and never confirmed is expired after a while, if that is asked for (upstream's default is
never: who said yes to a binding does tell).
"""

from __future__ import annotations

import logging

import msgspec

from pybernetes.api.core.v1 import Node, Pod
from pybernetes.client.clock import Clock, Timer

from .framework.podinfo import PodInfo
from .queue.changes import pod_changed
from .snapshot.snapshot import Snapshot

COPIED_LABELS = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region")
log = logging.getLogger(__name__)


class Cache:
    """Keeps the snapshot."""

    def __init__(self, snapshot: Snapshot, clock: Clock, expire_after: float = 0.0) -> None:
        self.snapshot = snapshot
        self._clock = clock
        self._expire_after = expire_after
        self._pods: dict[str, tuple[PodInfo, str]] = {}
        """Every pod in the snapshot by its uid, as it was added, and its node's name."""
        self._assumed: dict[str, Timer | None] = {}
        """Pods that are there by our word only, and when that ends to be believed."""
        self._copies_labels = False
        """Whether the API server writes where a node is into the labels of pods bound to it (PodTopologyLabels). Then
        assumed pods have them too, and the confirmation is no change."""

    def sizes(self) -> dict[str, int]:
        """How many nodes, pods and assumed pods there are."""
        return {
            "nodes": self.snapshot.num_nodes,
            "pods": len(self._pods),
            "assumed_pods": len(self._assumed),
        }

    # -- our own decisions

    def assume(self, pod: PodInfo, node_name: str) -> PodInfo:
        """The pod is on the node from now on; what it is there as."""
        if pod.uid in self._pods:
            raise ValueError(f"pod {pod.key} ({pod.uid}) is in the cache, so can't be assumed")
        spec = msgspec.structs.replace(pod.spec, node_name=node_name)
        metadata = pod.pod.metadata
        copied = self._topology(node_name) if self._copies_labels else None
        if copied and metadata is not None:
            metadata = msgspec.structs.replace(metadata, labels={**pod.labels, **copied})
        assumed = pod.assumed(msgspec.structs.replace(pod.pod, spec=spec, metadata=metadata))
        self._put(assumed, node_name)
        self._assumed[pod.uid] = None
        return assumed

    def is_assumed(self, uid: str) -> bool:
        """Whether only we say that the pod is on a node."""
        return uid in self._assumed

    def get(self, uid: str) -> PodInfo | None:
        """A pod that is on a node."""
        found = self._pods.get(uid)
        return found[0] if found else None

    def binding_finished(self, uid: str) -> None:
        """The binding was accepted; the informer will deliver it."""
        if uid in self._assumed and self._expire_after > 0:
            self._assumed[uid] = self._clock.call_later(self._expire_after, self._expire, uid)

    def forget(self, uid: str) -> bool:
        """The pod is not going there after all; False if it was confirmed or is unknown."""
        if uid not in self._assumed:
            return False
        self._confirm(uid)
        self._take(uid)
        return True

    def _expire(self, uid: str) -> None:
        log.warning("the binding of pod %s was never confirmed", self._pods[uid][0].key)
        self.forget(uid)

    # -- what the API server says

    def add_pod(self, pod: Pod) -> None:
        """A pod is on a node."""
        assert pod.metadata is not None
        assert pod.spec is not None
        uid, node_name = pod.metadata.uid or "", pod.spec.node_name or ""
        known = self._pods.get(uid)
        if uid in self._assumed and known is not None:
            self._learn(known[0], pod, node_name)
        self._confirm(uid)
        if known is not None:
            info, where = known
            if where == node_name and not pod_changed(info.pod, pod):
                info.confirm(pod)
                return
            if where != node_name:
                log.warning("pod %s was assumed on %s and is on %s", info.key, where, node_name)
            self._take(uid)
        self._put(PodInfo(pod), node_name)

    def remove_pod(self, uid: str) -> PodInfo | None:
        """A pod is gone."""
        self._confirm(uid)
        return self._take(uid)

    def set_node(self, node: Node) -> None:
        """A node came or changed."""
        self.snapshot.set_node(node)

    def renew_node(self, node: Node) -> None:
        """A node's object is another, but nothing in it that columns show."""
        row = self.snapshot.row_of.get((node.metadata.name if node.metadata else None) or "")
        if row is not None and self.snapshot.alive[row]:
            self.snapshot.info(row).node = node
        else:
            self.snapshot.set_node(node)

    def remove_node(self, name: str) -> None:
        """A node is gone."""
        self.snapshot.remove_node(name)

    def _topology(self, node_name: str) -> dict[str, str]:
        row = self.snapshot.row_of.get(node_name)
        labels = {} if row is None else self.snapshot.info(row).labels
        return {key: labels[key] for key in COPIED_LABELS if key in labels}

    def _learn(self, assumed: PodInfo, pod: Pod, node_name: str) -> None:
        """Whether the API server copies labels, from what it made of a pod that we assumed."""
        labels = (pod.metadata.labels if pod.metadata else None) or {}
        if labels != assumed.labels:
            copied = self._topology(node_name)
            self._copies_labels = bool(copied) and copied.items() <= labels.items()

    def _confirm(self, uid: str) -> None:
        timer = self._assumed.pop(uid, None)
        if timer is not None:
            timer.cancel()

    def _put(self, info: PodInfo, node_name: str) -> None:
        self.snapshot.add_pod(info, node_name)
        self._pods[info.uid] = (info, node_name)

    def _take(self, uid: str) -> PodInfo | None:
        found = self._pods.pop(uid, None)
        if found is None:
            return None
        self.snapshot.remove_pod(*found)
        return found[0]
