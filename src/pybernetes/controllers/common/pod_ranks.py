"""Which pods a shrinking set gives up first.

The first rule that tells two pods apart decides: no node before a node; pending before unknown before running; not
ready before ready; the lower deletion cost; more related pods on the same node; ready for a shorter time; more
restarts; younger. Times are compared by their order of magnitude, and pods of the same magnitude by uid: the youngest
pods are not always the victims, which would empty the newest node or zone on every scale-down.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cmp_to_key

from pybernetes.api.core.v1.pod import Pod
from pybernetes.client.keys import uid_of

from .meta import annotations_of, created
from .pods import is_active, is_ready, node_of, phase_of, ready_since

DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"

_PHASES = {"Unknown": 1, "Running": 2}  # anything else counts as pending
_COST = re.compile(r"-[0-9]{1,10}|0|[1-9][0-9]{0,9}", re.ASCII).fullmatch


def pods_to_delete(pods: Sequence[Pod], related: Iterable[Pod], count: int, now: float) -> list[Pod]:
    """The pods to delete; `related` are those whose company on a node makes a pod more dispensable."""
    if count >= len(pods):
        return list(pods)
    company = Counter(node_of(pod) for pod in related if is_active(pod))
    entries = [_Entry(pod, company[node_of(pod)], now) for pod in pods]
    entries.sort(key=cmp_to_key(_compare))
    return [entry.pod for entry in entries[:count]]


def deletion_cost(pod: Pod) -> int:
    """The pod deletion cost in the annotation; 0 if it is missing or no 32-bit number."""
    text = annotations_of(pod).get(DELETION_COST, "")
    cost = int(text) if _COST(text) else 0
    return cost if -(1 << 31) <= cost < 1 << 31 else 0


class _Entry:
    """The sort key of a pod, computed once."""

    def __init__(self, pod: Pod, company: int, now: float) -> None:
        self.pod = pod
        ready = is_ready(pod)
        self.first = (bool(node_of(pod)), _PHASES.get(phase_of(pod), 0), ready, deletion_cost(pod), -company)
        self.ready = ready_since(pod) if ready else None
        self.restarts = _restarts(pod)
        self.created = created(pod)
        self.now = now


def _compare(one: _Entry, other: _Entry) -> int:
    if one.first != other.first:
        return -1 if one.first < other.first else 1
    if one.ready is not None and other.ready is not None and one.ready != other.ready:
        return _younger_first(one, other, one.ready, other.ready)
    if one.restarts != other.restarts:
        return -1 if one.restarts > other.restarts else 1
    if one.created != other.created:
        return _younger_first(one, other, one.created, other.created)
    return 0


def _younger_first(one: _Entry, other: _Entry, since: float, since_other: float) -> int:
    if not since or not since_other:  # an unknown moment counts as the present
        return -1 if not since else 1
    difference = _magnitude(one.now - since) - _magnitude(one.now - since_other)
    if difference:
        return difference
    return -1 if uid_of(one.pod) < uid_of(other.pod) else 1


def _magnitude(age: float) -> int:
    # of nanoseconds: the steps between magnitudes lie elsewhere than with seconds
    return int(math.log2(age * 1e9)) if age > 0 else -1


def _restarts(pod: Pod) -> tuple[int, int]:
    """The most restarts of a container, and of a sidecar."""
    status, spec = pod.status, pod.spec
    if status is None or spec is None:
        return 0, 0
    sidecars = {each.name for each in spec.init_containers or () if each.restart_policy == "Always"}
    regular = max((each.restart_count or 0 for each in status.container_statuses or ()), default=0)
    sidecar = (each.restart_count or 0 for each in status.init_container_statuses or () if each.name in sidecars)
    return regular, max(sidecar, default=0)
