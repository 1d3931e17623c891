"""The default selector of a pod without constraints: the selectors of its services and its controller, together."""

from __future__ import annotations

from typing import Any

from pybernetes.api import labels
from pybernetes.api.apps.v1 import ReplicaSet, StatefulSet
from pybernetes.api.base import Kind
from pybernetes.api.core.v1 import Pod, ReplicationController, Service
from pybernetes.client.informer import Informer
from pybernetes.client.keys import controller_of

from ...framework import Handle

_MOST = 4096


class DefaultSelectors:
    """Remembers the answer for pods that are alike until one of the selectors it came from changes."""

    def __init__(self, handle: Handle) -> None:
        self._services = handle.informer(Service)
        self._owners: dict[tuple[str, str], Informer[Any]] = {
            ("v1", "ReplicationController"): handle.informer(ReplicationController),
            ("apps/v1", "ReplicaSet"): handle.informer(ReplicaSet),
            ("apps/v1", "StatefulSet"): handle.informer(StatefulSet),
        }
        self._known: dict[tuple[object, ...], labels.Selector] = {}
        for informer in (self._services, *self._owners.values()):
            informer.add_handler(self._forget, self._updated, self._forget)

    def selector(self, pod: Pod) -> labels.Selector:
        """Empty when no service and no controller selects the pod."""
        metadata = pod.metadata
        namespace = (metadata.namespace if metadata else None) or ""
        pod_labels = (metadata.labels if metadata else None) or {}
        owner = controller_of(pod)
        kind = (owner.api_version or "", owner.kind or "") if owner else ("", "")
        owner_name = (owner.name or "") if owner and kind in self._owners else ""
        known = (namespace, tuple(pod_labels.items()), kind, owner_name)
        found = self._known.get(known)
        if found is None:
            if len(self._known) >= _MOST:
                self._known.clear()
            found = self._known[known] = self._select(namespace, pod_labels, kind, owner_name)
        return found

    def _select(
        self, namespace: str, pod_labels: dict[str, str], kind: tuple[str, str], owner_name: str
    ) -> labels.Selector:
        wanted: dict[str, str] = {}
        for service in self._services.in_namespace(namespace):
            chosen = service.spec.selector if service.spec else None
            if chosen is not None and labels.from_set(chosen).matches(pod_labels):
                wanted.update(chosen)
        owner = self._owners[kind].named(owner_name, namespace) if owner_name else None
        if isinstance(owner, ReplicationController):
            wanted.update((owner.spec.selector if owner.spec else None) or {})
        selector = labels.from_set(wanted)
        if isinstance(owner, ReplicaSet | StatefulSet) and owner.spec is not None:
            try:
                more = labels.from_label_selector(owner.spec.selector)
            except labels.SelectorError:
                return selector
            if more.requirements:
                selector = labels.Selector((*selector.requirements, *more.requirements))
        return selector

    def _forget(self, obj: Kind) -> None:
        self._known.clear()

    def _updated(self, old: Any, new: Any) -> None:
        before = old.spec.selector if old.spec else None
        if before != (new.spec.selector if new.spec else None):
            self._known.clear()
