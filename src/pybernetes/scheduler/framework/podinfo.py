"""A pod, and what the scheduler reads from it again and again, worked out once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from pybernetes.api import labels
from pybernetes.api.core.podrequests import pod_requests
from pybernetes.api.core.podresources import Quantities
from pybernetes.api.core.v1 import Pod, PodSpec
from pybernetes.api.core.v1.affinity import PodAffinityTerm
from pybernetes.api.quantity import Quantity
from pybernetes.client.keys import Key

DEFAULT_MILLI_CPU = 100
"""The CPU that scoring counts for a container without a request."""
DEFAULT_MEMORY = 200 * 1024 * 1024
"""The memory that scoring counts for a container without a request."""
_MISSING = {"cpu": Quantity.milli(DEFAULT_MILLI_CPU), "memory": Quantity(DEFAULT_MEMORY)}

Requests = Mapping[str, int]
"""CPU in thousandths of a core, everything else in units."""
MOST = 2**53
"""The largest amount that the scheduler counts with, 8 PiB of memory: a thousand of them add up to no more than 64 bits
hold, and a percentage of one can be computed. Objects may name more, up to 2**63 - 1."""


class AffinityTerm:
    """A required or (with a weight) preferred term of pod affinity or anti-affinity, ready to be asked."""

    __slots__ = ("_hash", "key", "namespace_selector", "namespaces", "selector", "topology_key", "weight")

    def __init__(self, term: PodAffinityTerm, owner_namespace: str, weight: int = 0) -> None:
        """`labels.SelectorError` when a selector is malformed."""
        self.topology_key = term.topology_key or ""
        self.weight = weight
        self.selector = labels.from_label_selector(term.label_selector)
        self.namespace_selector = labels.from_label_selector(term.namespace_selector)
        named = term.namespaces or ()
        self.namespaces = frozenset(named if named or term.namespace_selector is not None else (owner_namespace,))
        self.key = (self.namespaces, self.namespace_selector, self.selector, self.topology_key, weight)
        """Terms with equal keys mean the same."""
        self._hash = hash(self.key)

    def matches(self, namespace: str, pod_labels: labels.Labels, namespace_labels: labels.Labels) -> bool:
        """Whether the term speaks of a pod with these labels in such a namespace."""
        if namespace not in self.namespaces and not self.namespace_selector.matches(namespace_labels):
            return False
        return self.selector.matches(pod_labels)

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, AffinityTerm) and self.key == other.key)

    def __hash__(self) -> int:
        return self._hash


class PodInfo:
    """A pod as the scheduler sees it. Never changed: a pod that was updated gets a new one."""

    __slots__ = (
        "_affinity",
        "key",
        "labels",
        "name",
        "namespace",
        "nonzero_requests",
        "pod",
        "priority",
        "requests",
        "spec",
        "uid",
    )

    def __init__(self, pod: Pod) -> None:
        metadata = pod.metadata
        assert metadata is not None
        self.pod = pod
        self.spec: PodSpec = pod.spec or PodSpec()
        self.name = metadata.name or ""
        self.namespace = metadata.namespace or ""
        self.key = Key(self.namespace, self.name)
        self.uid = metadata.uid or ""
        self.labels: dict[str, str] = metadata.labels or {}
        self.priority = self.spec.priority or 0
        self.requests: Requests
        """The pod's requests: `cpu` in thousandths, others in units. Without `pods`: one pod is one pod."""
        self.nonzero_requests: tuple[int, int]
        """CPU (thousandths) and memory with scoring's defaults for containers that ask for nothing."""
        self.requests, self.nonzero_requests = _requests(pod, self.spec)
        self._affinity: _Affinity | None = None

    def assumed(self, pod: Pod) -> PodInfo:
        """The same for a copy of the pod that differs only in its node and labels."""
        twin = PodInfo.__new__(PodInfo)  # half the time of copy.copy
        for name in _COPIED:
            setattr(twin, name, getattr(self, name))
        twin.pod = pod
        twin.spec = pod.spec or PodSpec()
        twin.labels = (pod.metadata.labels if pod.metadata else None) or {}
        return twin

    def confirm(self, pod: Pod) -> None:
        """The API server's object in place of the assumed one, when they mean the same. For the cache only."""
        self.pod = pod
        self.spec = pod.spec or PodSpec()

    @property
    def required_affinity(self) -> tuple[AffinityTerm, ...]:
        """Where it must be: beside these."""
        return self._terms().required_affinity

    @property
    def required_anti_affinity(self) -> tuple[AffinityTerm, ...]:
        """Where it must not be: beside these."""
        return self._terms().required_anti_affinity

    @property
    def preferred_affinity(self) -> tuple[AffinityTerm, ...]:
        """Where it likes to be, with weights."""
        return self._terms().preferred_affinity

    @property
    def preferred_anti_affinity(self) -> tuple[AffinityTerm, ...]:
        """Where it does not like to be, with (positive) weights."""
        return self._terms().preferred_anti_affinity

    @property
    def affinity_error(self) -> Exception | None:
        """The error in its affinity terms: an invalid selector, or too many terms; the terms are empty then."""
        return self._terms().error

    @property
    def has_affinity(self) -> bool:
        """Whether it says anything about pods beside it."""
        affinity = self.spec.affinity
        return affinity is not None and (affinity.pod_affinity is not None or affinity.pod_anti_affinity is not None)

    def _terms(self) -> _Affinity:
        found = self._affinity
        if found is None:
            found = self._affinity = _affinity(self.spec, self.namespace) if self.has_affinity else _NO_AFFINITY
        return found

    def __repr__(self) -> str:
        return f"PodInfo({self.key})"


_COPIED = tuple(name for name in PodInfo.__slots__ if name not in ("pod", "spec"))


MAX_TERMS = 500
"""Pod affinity terms of one pod. Each is compared with every pod of the cluster, and all other pods wait meanwhile."""


class _Affinity:
    __slots__ = (
        "error",
        "preferred_affinity",
        "preferred_anti_affinity",
        "required_affinity",
        "required_anti_affinity",
    )

    def __init__(self, spec: PodSpec | None = None, namespace: str = "") -> None:
        self.required_affinity: tuple[AffinityTerm, ...] = ()
        self.required_anti_affinity: tuple[AffinityTerm, ...] = ()
        self.preferred_affinity: tuple[AffinityTerm, ...] = ()
        self.preferred_anti_affinity: tuple[AffinityTerm, ...] = ()
        self.error: Exception | None = None
        affinity = spec.affinity if spec else None
        if affinity is None:
            return
        count = sum(_count(each) for each in (affinity.pod_affinity, affinity.pod_anti_affinity))
        if count > MAX_TERMS:
            self.error = ValueError(f"it has {count} pod affinity terms, more than {MAX_TERMS}")
            return
        try:
            if affinity.pod_affinity:
                self.required_affinity, self.preferred_affinity = _both(affinity.pod_affinity, namespace)
            if affinity.pod_anti_affinity:
                self.required_anti_affinity, self.preferred_anti_affinity = _both(affinity.pod_anti_affinity, namespace)
        except labels.SelectorError as error:
            self.error = error


def _count(affinity: Any) -> int:
    """How many terms there are."""
    if affinity is None:
        return 0
    required = affinity.required_during_scheduling_ignored_during_execution or ()
    return len(required) + len(affinity.preferred_during_scheduling_ignored_during_execution or ())


def _both(affinity: Any, namespace: str) -> tuple[tuple[AffinityTerm, ...], tuple[AffinityTerm, ...]]:
    required = affinity.required_during_scheduling_ignored_during_execution or ()
    preferred = affinity.preferred_during_scheduling_ignored_during_execution or ()
    return tuple(AffinityTerm(each, namespace) for each in required), tuple(
        AffinityTerm(each.pod_affinity_term or PodAffinityTerm(), namespace, each.weight or 0) for each in preferred
    )


_NO_AFFINITY = _Affinity()
_affinities: dict[tuple[bytes, str], _Affinity] = {}


def _affinity(spec: PodSpec, namespace: str) -> _Affinity:
    affinity = spec.affinity
    assert affinity is not None
    key = (_encode((affinity.pod_affinity, affinity.pod_anti_affinity)), namespace)
    found = _affinities.get(key)
    if found is None:
        if len(_affinities) >= _KEPT:
            del _affinities[next(iter(_affinities))]
        found = _affinities[key] = _Affinity(spec, namespace)
    return found


# Pods of one controller have equal requests: computed once for each distinct spec.
_known: dict[bytes, tuple[Requests, tuple[int, int]]] = {}
_KEPT = 4096


def _requests(pod: Pod, spec: PodSpec) -> tuple[Requests, tuple[int, int]]:
    key = _encode(_what_counts(pod, spec))
    found = _known.get(key)
    if found is None:
        if len(_known) >= _KEPT:
            del _known[next(iter(_known))]
        requests = pod_requests(pod)
        # What the pod as a whole asks for needs no guess about its containers.
        whole = requests if spec.resources is not None and spec.resources.requests else {}
        counted = pod_requests(pod, missing={name: each for name, each in _MISSING.items() if name not in whole})
        amounts = as_requests(counted)
        found = _known[key] = (as_requests(requests), (amounts.get("cpu", 0), amounts.get("memory", 0)))
    return found


def as_requests(quantities: Quantities) -> dict[str, int]:
    """Quantities as whole numbers: `cpu` in thousandths, others in units, both rounded up."""
    return {name: amount_of(name, each) for name, each in quantities.items()}


def amount_of(resource: str, quantity: Quantity) -> int:
    """An amount as the scheduler counts it: `cpu` in thousandths, others in units, from 0 to `MOST`."""
    return max(0, min(MOST, quantity.milli_value() if resource == "cpu" else quantity.value()))


def _what_counts(pod: Pod, spec: PodSpec) -> tuple[Any, ...]:
    status = pod.status
    running: Any = None
    if status is not None and (status.container_statuses or status.init_container_statuses):
        running = [
            (each.name, each.resources, each.allocated_resources)
            for each in (*(status.container_statuses or ()), *(status.init_container_statuses or ()))
            if each.resources is not None
        ]
        if running:
            running.append([each for each in status.conditions or () if each.type == "PodResizePending"])
    containers = spec.containers or ()
    if not running and not spec.init_containers:
        return (spec.resources, spec.overhead, [each.resources for each in containers])
    return (
        spec.resources,
        spec.overhead,
        [(each.name, each.resources) for each in containers],
        [(each.name, each.resources, each.restart_policy) for each in spec.init_containers or ()],
        running,
    )


_encode = msgspec.json.Encoder().encode
