"""Which objects lead to which node: a Secret to the pod that mounts it, the pod to its node.

Pods are written far more often than nodes ask about them. So a write only notes that an object is to be looked at
again; it is looked at when the next question comes, once, however often it was written meanwhile.

    secret, configmap, serviceaccount, persistentvolumeclaim, resourceclaim  →  pod  →  node
    secret  →  persistentvolume  →  persistentvolumeclaim  →  pod  →  node
    volumeattachment, resourceslice  →  node
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from pybernetes.store.watchers import Change

from .references import Vertex, pod_references, volume_secrets

if TYPE_CHECKING:
    from ...registry.registry import Registry

Read = Callable[[Any], tuple[str, Iterable[Vertex]]]
"""The node of an object ("" = none), and what leads to the object."""


class _Followed:
    """One kind of objects, and what leads to each of them."""

    def __init__(self, registry: Registry, group: str, plural: str, read: Read) -> None:
        self._store = registry.store(group, "v1", plural)
        self._partition = self._store.partition
        self._read = read
        self._stale: set[str] = set()
        self._references: dict[str, list[Vertex]] = {}
        self.nodes: dict[str, str] = {}
        """The node of each object, by key."""
        self.incoming: dict[Vertex, set[str]] = {}
        """The keys of the objects that something leads to."""
        self._partition.followers.append(self._told)
        self._told(None)

    def key(self, namespace: str, name: str) -> str:
        """How an object is known here."""
        return self._store.key(namespace, name)

    def refresh(self) -> None:
        """Look at what has changed."""
        while self._stale:
            key = self._stale.pop()
            self._forget(key)
            item = self._partition.items.get(key)
            for _, obj in self._store.decode_all(() if item is None else (item,)):
                node, references = self._read(obj)
                found = list(references)
                if node:
                    self.nodes[key] = node
                if found:
                    self._references[key] = found
                for vertex in found:
                    self.incoming.setdefault(vertex, set()).add(key)

    def _told(self, change: Change | None) -> None:
        if change is not None:
            self._stale.add(change.key)
            return
        self.nodes.clear()
        self.incoming.clear()
        self._references.clear()
        self._stale = set(self._partition.items)

    def _forget(self, key: str) -> None:
        self.nodes.pop(key, None)
        for vertex in self._references.pop(key, ()):
            keys = self.incoming.get(vertex)
            if keys is not None:
                keys.discard(key)
                if not keys:
                    del self.incoming[vertex]


class Graph:
    """Answers whether an object leads to a node."""

    def __init__(self, registry: Registry) -> None:
        self._pods = _Followed(registry, "", "pods", _read_pod)
        self._volumes = _Followed(registry, "", "persistentvolumes", _read_volume)
        self._attachments = _Followed(registry, "storage.k8s.io", "volumeattachments", _read_node)
        self._slices = _Followed(registry, "resource.k8s.io", "resourceslices", _read_node)

    def leads_to(self, node: str, resource: str, namespace: str, name: str) -> bool:
        """Whether the node needs the object."""
        if resource in ("volumeattachments", "resourceslices"):
            followed = self._attachments if resource == "volumeattachments" else self._slices
            followed.refresh()
            return followed.nodes.get(followed.key("", name)) == node
        pods = self._pods
        pods.refresh()
        if resource == "pods":
            return pods.nodes.get(pods.key(namespace, name)) == node
        if resource == "persistentvolumes":
            self._volumes.refresh()
            return self._volume_leads_to(node, self._volumes.key("", name))
        if self._used(node, (resource, namespace, name)):
            return True
        if resource != "secrets":
            return False
        self._volumes.refresh()
        keys = self._volumes.incoming.get((resource, namespace, name), ())
        return any(self._volume_leads_to(node, key) for key in keys)

    def _used(self, node: str, vertex: Vertex) -> bool:
        nodes = self._pods.nodes
        return any(nodes.get(key) == node for key in self._pods.incoming.get(vertex, ()))

    def _volume_leads_to(self, node: str, key: str) -> bool:
        namespace, _, claim = self._volumes.nodes.get(key, "").partition("/")
        return bool(claim) and self._used(node, ("persistentvolumeclaims", namespace, claim))


def _read_pod(pod: Any) -> tuple[str, Iterable[Vertex]]:
    node = (pod.spec and pod.spec.node_name) or ""
    return node, pod_references(pod) if node else ()


def _read_volume(volume: Any) -> tuple[str, Iterable[Vertex]]:
    """A volume leads to its claim, which stands here in the place of a node."""
    claim = volume.spec and volume.spec.claim_ref
    return (f"{claim.namespace or ''}/{claim.name or ''}" if claim else ""), volume_secrets(volume)


def _read_node(obj: Any) -> tuple[str, Iterable[Vertex]]:
    return (obj.spec and obj.spec.node_name) or "", ()
