"""Which services a pod's change concerns: those that select it, and those that did."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pybernetes.api.core.v1 import Pod, Service
from pybernetes.client.informer import Informer
from pybernetes.client.keys import Key, key_of

from ..common.meta import labels_of, meta
from .endpoints import membership_changed, selection_changed, selects


class PodWatcher:
    """Wakes services for changes of pods that can matter to their endpoints."""

    def __init__(self, pods: Informer[Pod], services: Informer[Service], wake: Callable[[Key], None]) -> None:
        self._services = services
        self._wake = wake
        pods.add_handler(self._one, self._updated, self._one)

    def _one(self, pod: Pod) -> None:
        for key in self._selecting(pod, labels_of(pod)):
            self._wake(key)

    def _updated(self, old: Pod, new: Pod) -> None:
        if old is new:
            return
        member, selection = membership_changed(old, new), selection_changed(old, new)
        if not member and not selection:
            return
        now = self._selecting(new, labels_of(new))
        if selection:
            before = self._selecting(new, labels_of(old))
            renamed = labels_of(old) == labels_of(new)
            now = now | before if member or renamed else now ^ before
        for key in now:
            self._wake(key)

    def _selecting(self, pod: Pod, labels: Mapping[str, str]) -> set[Key]:
        namespace = meta(pod).namespace or ""
        return {key_of(each) for each in self._services.in_namespace(namespace) if selects(each, labels)}
