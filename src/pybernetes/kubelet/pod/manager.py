"""The pods that this node should have, from all sources, and the mirrors by which the API shows static ones."""

from __future__ import annotations

from pybernetes.api.core.v1 import Pod
from pybernetes.client.keys import uid_of

from .critical import is_mirror, is_static

FullName = tuple[str, str]
"""Namespace and name."""


class PodManager:
    """Pods by uid. A mirror is not a pod of its own: it is found by the name that it shares with its static pod."""

    def __init__(self) -> None:
        self._pods: dict[str, Pod] = {}
        self._mirrors: dict[FullName, Pod] = {}

    def set(self, pod: Pod) -> None:
        """A pod is new, or changed."""
        if is_mirror(pod):
            self._mirrors[name_of(pod)] = pod
        else:
            self._pods[uid_of(pod)] = pod

    def remove(self, pod: Pod) -> None:
        """A pod is not wanted any more, or a mirror is gone."""
        if is_mirror(pod):
            known = self._mirrors.get(name_of(pod))
            if known is not None and uid_of(known) == uid_of(pod):
                del self._mirrors[name_of(pod)]
        else:
            self._pods.pop(uid_of(pod), None)

    def get(self, uid: str) -> Pod | None:
        """The pod with this uid."""
        return self._pods.get(uid)

    def named(self, namespace: str, name: str) -> Pod | None:
        """The pod of this name; a static one, not its mirror."""
        return next((each for each in self._pods.values() if name_of(each) == (namespace, name)), None)

    def all(self) -> list[Pod]:
        """All pods."""
        return list(self._pods.values())

    def mirror_of(self, pod: Pod) -> Pod | None:
        """The mirror of a static pod."""
        return self._mirrors.get(name_of(pod)) if is_static(pod) else None

    def static_of(self, mirror: Pod) -> Pod | None:
        """The static pod that a mirror shows."""
        found = self.named(*name_of(mirror))
        return found if found is not None and is_static(found) else None

    def mirrors(self) -> list[Pod]:
        """All mirrors."""
        return list(self._mirrors.values())

    def api_pod(self, uid: str) -> Pod | None:
        """The pod in the API: itself, or a static pod's mirror."""
        pod = self._pods.get(uid)
        return self.mirror_of(pod) if pod is not None and is_static(pod) else pod


def name_of(pod: Pod) -> FullName:
    """A pod's namespace and name."""
    assert pod.metadata is not None
    return pod.metadata.namespace or "", pod.metadata.name or ""
