"""Plans the next step of a DaemonSet: pods to create and delete, a step of a rolling update, the status.

Pure: the set, nodes, pods and the time in, names out. Pods come grouped by the node they are on or were made for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from pybernetes.api.apps.v1 import DaemonSet, DaemonSetStatus
from pybernetes.api.core.v1.node import Node
from pybernetes.api.core.v1.pod import Pod
from pybernetes.api.intstr import scaled_value

from ..common.meta import by_creation, generation_of, is_deleting, labels_of, name_of
from ..common.pods import is_available, is_ready, is_terminal, node_of, phase_of
from .nodes import REVISION_HASH, fits, is_updated, target_node

PodsByNode: TypeAlias = Mapping[str, Sequence[Pod]]

BURST_REPLICAS = 250
"""The most pods made or deleted in one go; more at once is too much for a registry of images."""


class Changes(NamedTuple):
    """Pods to delete, and nodes that need a pod."""

    delete: list[Pod]
    create: list[str]


class Ended(NamedTuple):
    """A pod that has ended and is to be replaced."""

    pod: Pod
    node: str


def group_by_node(pods: Iterable[Pod], *, include_deleted_terminal: bool = False) -> dict[str, list[Pod]]:
    """Pods by the node they are on or were made for; without those that have ended and are being deleted."""
    grouped: dict[str, list[Pod]] = {}
    for pod in pods:
        if is_terminal(pod) and is_deleting(pod) and not include_deleted_terminal:
            continue
        node = target_node(pod)
        if node:
            grouped.setdefault(node, []).append(pod)
    return grouped


def min_ready_seconds(daemonset: DaemonSet) -> int:
    """How long a pod must be ready to be available."""
    return (daemonset.spec.min_ready_seconds if daemonset.spec else None) or 0


def is_rolling_update(daemonset: DaemonSet) -> bool:
    """Whether a changed template replaces pods by itself."""
    strategy = daemonset.spec.update_strategy if daemonset.spec else None
    return strategy is not None and strategy.type == "RollingUpdate"


def max_surge(daemonset: DaemonSet, nodes: int) -> int:
    """On how many nodes the new pod may come before the old one goes."""
    strategy = daemonset.spec.update_strategy if daemonset.spec else None
    rolling = strategy.rolling_update if strategy else None
    if not is_rolling_update(daemonset) or rolling is None or rolling.max_surge is None:
        return 0
    return scaled_value(rolling.max_surge, nodes, round_up=True)


def max_unavailable(daemonset: DaemonSet, nodes: int) -> int:
    """On how many nodes the pod may be missing; at least one if there can be no surge either."""
    strategy = daemonset.spec.update_strategy if daemonset.spec else None
    rolling = strategy.rolling_update if strategy else None
    if not is_rolling_update(daemonset) or rolling is None or rolling.max_unavailable is None:
        count = 0
    else:
        count = scaled_value(rolling.max_unavailable, nodes, round_up=True)
    return 1 if nodes and not count and not max_surge(daemonset, nodes) else count


def manage(
    daemonset: DaemonSet,
    nodes: Sequence[Node],
    pods: PodsByNode,
    revision_hash: str,
    now: float,
    may_replace: Callable[[Ended], bool] = lambda _: True,
) -> Changes:
    """One pod on each node that fits and none elsewhere. `may_replace` holds back pods that fail again and again."""
    changes = Changes([], [])
    for node in nodes:
        _manage_node(daemonset, node, pods.get(name_of(node)), revision_hash, now, may_replace, changes)
    known = {name_of(node) for node in nodes}
    for name, there in pods.items():
        if name not in known:  # made for a node that is gone: only this controller deletes it
            changes.delete.extend(pod for pod in there if not node_of(pod))
    return changes


def _manage_node(
    daemonset: DaemonSet,
    node: Node,
    there: Sequence[Pod] | None,
    revision_hash: str,
    now: float,
    may_replace: Callable[[Ended], bool],
    changes: Changes,
) -> None:
    run, keep = fits(daemonset, node)
    if run and there is None:
        changes.create.append(name_of(node))
        return
    present = [pod for pod in there or () if not is_deleting(pod)]
    if not keep:
        changes.delete.extend(present)
        return
    ended = [pod for pod in present if is_terminal(pod)]
    changes.delete.extend(pod for pod in ended if may_replace(Ended(pod, name_of(node))))
    running = sorted((pod for pod in present if not is_terminal(pod)), key=_scheduled_and_oldest_first)
    if not max_surge(daemonset, 1):
        changes.delete.extend(running[1:])
    elif not running:
        if run:
            changes.create.append(name_of(node))
    elif len(running) > 1:
        changes.delete.extend(_superfluous(daemonset, running, revision_hash, now))


def _superfluous(daemonset: DaemonSet, running: Sequence[Pod], revision_hash: str, now: float) -> list[Pod]:
    """Two pods may be on a node for as long as the old one is ready and the new one is not available."""
    new = [pod for pod in running if labels_of(pod).get(REVISION_HASH) == revision_hash]
    old = [pod for pod in running if labels_of(pod).get(REVISION_HASH) != revision_hash]
    excess = new[1:] + old[1:]
    if new and old and (not is_ready(old[0]) or is_available(new[0], min_ready_seconds(daemonset), now)):
        excess.append(old[0])
    return excess


def _scheduled_and_oldest_first(pod: Pod) -> tuple[object, ...]:
    return not node_of(pod), *by_creation(pod)


def rolling_update(
    daemonset: DaemonSet, nodes: Sequence[Node], pods: PodsByNode, revision_hash: str, now: float
) -> Changes:
    """The next step of a rolling update."""
    by_name = {name_of(node): node for node in nodes}
    wanted = [name for name, node in by_name.items() if fits(daemonset, node).run]
    everywhere: dict[str, Sequence[Pod]] = {**dict.fromkeys(wanted, ()), **pods}
    surge = max_surge(daemonset, len(wanted))
    if surge:
        return _surge(daemonset, by_name, everywhere, revision_hash, now, surge, len(wanted))
    return _replace(daemonset, everywhere, revision_hash, now, max_unavailable(daemonset, len(wanted)))


def _old_and_new(daemonset: DaemonSet, there: Sequence[Pod], revision_hash: str) -> tuple[list[Pod], list[Pod]]:
    present = [pod for pod in there if not is_deleting(pod)]
    old = [pod for pod in present if not is_updated(daemonset, pod, revision_hash)]
    return old, [pod for pod in present if is_updated(daemonset, pod, revision_hash)]


def _replace(daemonset: DaemonSet, pods: PodsByNode, revision_hash: str, now: float, unavailable: int) -> Changes:
    """Delete old pods; the next round makes new ones in their place. Old pods that are broken can go at any time."""
    wait = min_ready_seconds(daemonset)
    missing, broken, candidates = 0, [], []
    for there in pods.values():
        old, new = _old_and_new(daemonset, there, revision_hash)
        if len(old) == 1 and not new:
            if is_available(old[0], wait, now):
                candidates.append(old[0])
            else:
                broken.append(old[0])
                missing += 1
        elif not (len(new) == 1 and not old and is_available(new[0], wait, now)):
            missing += 1  # nothing there, too much, or not there yet
    return Changes(broken + candidates[: max(0, unavailable - missing)], [])


def _surge(
    daemonset: DaemonSet,
    nodes: Mapping[str, Node],
    pods: PodsByNode,
    revision_hash: str,
    now: float,
    surge: int,
    wanted: int,
) -> Changes:
    """Make new pods beside old ones, and delete the old ones when the new ones are available."""
    wait = min_ready_seconds(daemonset)
    surging, usable = 0, 0
    delete: list[Pod] = []
    unwanted: list[Pod] = []
    urgent: list[str] = []
    candidates: list[str] = []
    for name, there in pods.items():
        old, new = _old_and_new(daemonset, there, revision_hash)
        if len(old) > 1 or len(new) > 1:
            surging += 1  # `manage` clears that up first
            continue
        usable += any(is_available(pod, wait, now) for pod in old or new)
        if not old:
            continue
        if new:
            if is_available(new[0], wait, now):
                delete.append(old[0])
            else:
                surging += 1
            continue
        run = name in nodes and fits(daemonset, nodes[name]).run
        if not is_available(old[0], wait, now):
            if run:
                urgent.append(name)
            else:
                delete.append(old[0])
        elif not run:
            unwanted.append(old[0])
        else:
            candidates.append(name)
    delete.extend(unwanted[: max(0, usable - wanted)])
    return Changes(delete, urgent + candidates[: max(0, surge - surging)])


def calculate_status(
    daemonset: DaemonSet,
    nodes: Sequence[Node],
    pods: PodsByNode,
    revision_hash: str,
    now: float,
    *,
    observed: bool,
) -> DaemonSetStatus:
    """The counters; `observed`: the current generation has been acted upon."""
    desired = current = misscheduled = ready = updated = available = 0
    for node in nodes:
        there = pods.get(name_of(node)) or ()
        if not fits(daemonset, node).run:
            misscheduled += bool(there)
            continue
        desired += 1
        if there:
            current += 1
            pod = min(there, key=_scheduled_and_oldest_first)
            ready += is_ready(pod)
            available += is_available(pod, min_ready_seconds(daemonset), now)
            updated += is_updated(daemonset, pod, revision_hash)
    before = daemonset.status or DaemonSetStatus()
    return DaemonSetStatus(
        current_number_scheduled=current,
        number_misscheduled=misscheduled,
        desired_number_scheduled=desired,
        number_ready=ready,
        observed_generation=generation_of(daemonset) if observed else before.observed_generation,
        updated_number_scheduled=updated,
        number_available=available,
        number_unavailable=desired - available,
        collision_count=before.collision_count,
        conditions=before.conditions,
    )


def ended_message(ended: Ended) -> tuple[str, str, str]:
    """Type, reason and message of the event about a pod that has ended."""
    metadata = ended.pod.metadata
    subject = f"{metadata.namespace if metadata else ''}/{name_of(ended.pod)} on node {ended.node}"
    if phase_of(ended.pod) == "Failed":
        return "Warning", "FailedDaemonPod", f"Found failed daemon pod {subject}, will try to kill it"
    return "Normal", "SucceededDaemonPod", f"Found succeeded daemon pod {subject}, will try to delete it"
