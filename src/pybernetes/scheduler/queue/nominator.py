"""Which pods are to get which node, once those that must make room for them are gone."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..framework.podinfo import PodInfo


class PodNominator:
    """Nominated pods, by node and by pod. What `status.nominatedNodeName` says, and what was decided since."""

    def __init__(self) -> None:
        self.followers: list[Callable[[int, PodInfo, str], None]] = []
        """Called for each pod that is nominated to a node (1) or no more (-1)."""
        self._by_node: dict[str, dict[str, PodInfo]] = {}
        self._node_of: dict[str, str] = {}

    def add(self, pod: PodInfo, node_name: str | None = None) -> None:
        """Nominate; without a node's name to the one that the pod's status says, if any. "" takes it back."""
        self.remove(pod.uid)
        if node_name is None:
            node_name = (pod.pod.status.nominated_node_name if pod.pod.status else None) or ""
        if node_name:
            self._node_of[pod.uid] = node_name
            self._by_node.setdefault(node_name, {})[pod.uid] = pod
            for follower in self.followers:
                follower(1, pod, node_name)

    def update(self, old: PodInfo, new: PodInfo) -> None:
        """A pod has changed. One whose status has never said a node keeps what was decided here."""
        kept = None
        if not _nominated(old) and not _nominated(new):
            kept = self._node_of.get(old.uid)
        self.remove(old.uid)
        self.add(new, kept)

    def remove(self, uid: str) -> None:
        """Forget it."""
        node_name = self._node_of.pop(uid, None)
        if node_name is not None:
            pods = self._by_node[node_name]
            pod = pods.pop(uid)
            if not pods:
                del self._by_node[node_name]
            for follower in self.followers:
                follower(-1, pod, node_name)

    def on_node(self, node_name: str) -> Sequence[PodInfo]:
        """The pods nominated to this node."""
        found = self._by_node.get(node_name)
        return list(found.values()) if found else ()

    def nodes(self) -> Sequence[str]:
        """All nodes with nominated pods."""
        return list(self._by_node) if self._by_node else ()

    def node_of(self, uid: str) -> str | None:
        """Which node a pod is nominated to."""
        return self._node_of.get(uid)


def _nominated(pod: PodInfo) -> str | None:
    return pod.pod.status.nominated_node_name if pod.pod.status else None
