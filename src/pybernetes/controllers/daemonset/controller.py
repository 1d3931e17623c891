"""Keeps one pod of a DaemonSet on every node that fits.

Woken by: its DaemonSet, pods it owns, orphans that match, its revisions, and nodes that begin or cease to fit.
Writes: pods, ControllerRevisions, its own status. Pods ask the scheduler for their node by its name.
"""

from __future__ import annotations

import asyncio
from typing import Final

from pybernetes.api import errors
from pybernetes.api.apps.v1 import ControllerRevision, DaemonSet
from pybernetes.api.core.v1.node import Node
from pybernetes.api.core.v1.pod import Pod
from pybernetes.api.labels import SelectorError, from_label_selector
from pybernetes.client.events import WARNING
from pybernetes.client.keys import Key, controller_of, controller_reference, key_of, uid_of

from ..base import Controller, adopts, maps, owns
from ..common.consistency import CHECK_AGAIN, Consistency
from ..common.meta import is_deleting, labels_of, name_of
from ..common.ownership import claim
from ..common.pod_control import PodControl, first_failure, is_namespace_terminating, slow_start
from ..common.pods import next_availability_check, phase_of, pod_from_template
from ..common.status import update_status
from .nodes import REVISION_HASH, fits, target_node, template_for_node
from .plan import (
    BURST_REPLICAS,
    Changes,
    Ended,
    calculate_status,
    ended_message,
    group_by_node,
    is_rolling_update,
    manage,
    min_ready_seconds,
    rolling_update,
)
from .revisions import clean_up_history, construct_history

# How long a pod that failed on a node is not replaced there: upstream's limits, doubled at each failure.
FIRST_BACKOFF: Final = 1.0
LAST_BACKOFF: Final = 15 * 60.0
NODE = "node"


def _of_revision(controller: DaemonSetController, revision: ControllerRevision) -> list[Key]:
    if controller_of(revision) is not None:
        key = controller.owner_key(revision)
        return [key] if key else []
    return [key_of(each) for each in controller.selecting(revision)]


class DaemonSetController(Controller[DaemonSet]):
    """Keeps one pod on every node that fits."""

    name = "daemonset-controller"
    kind = DaemonSet
    # Not `owns` for revisions: its handlers cross out expected pods.
    watches = (owns(Pod), adopts(Pod), maps(ControllerRevision, _of_revision))
    burst = BURST_REPLICAS

    def setup(self) -> None:
        self.workers = self.options.concurrent_daemonset_syncs
        self.pods = self.informer(Pod)
        self.nodes = self.informer(Node)
        self.revisions = self.informer(ControllerRevision)
        self.pods.add_index(NODE, _node_index)
        self.nodes.add_handler(self._node_added, self._node_updated, self._node_deleted)
        self.pod_control = PodControl(self.client, self.recorder)
        self.consistency = Consistency()
        self.failures = FailureBackoff()

    # -- being woken by nodes

    def _node_added(self, node: Node) -> None:
        for daemonset in self.own.items():
            if fits(daemonset, node).run:
                self.enqueue(daemonset)

    def _node_updated(self, old: Node, new: Node) -> None:
        """A node changes all the time (heartbeats, images); only a change of what it is fit for matters."""
        if _suitability(old) == _suitability(new) and uid_of(old) == uid_of(new):
            return
        occupied = {uid for pod in self.pods.by_index(NODE, name_of(new)) if (uid := _owner_uid(pod))}
        for daemonset in self.own.items():
            run, keep = fits(daemonset, new)
            there = uid_of(daemonset) in occupied
            misscheduled = daemonset.status.number_misscheduled if daemonset.status else 0
            if run != there or (there and not keep) or misscheduled or fits(daemonset, old) != (run, keep):
                self.enqueue(daemonset)

    def _node_deleted(self, node: Node) -> None:
        self._node_added(node)

    # -- working

    async def reconcile(self, key: Key) -> float | None:
        daemonset = self.own.get(key)
        if daemonset is None:
            self.expectations.forget(key)
            self.consistency.forget(key)
            return None
        if not self.consistency.ready(key):
            return CHECK_AGAIN
        spec_selector = daemonset.spec.selector if daemonset.spec else None
        if spec_selector is None or not (spec_selector.match_labels or spec_selector.match_expressions):
            text = "This daemon set is selecting all pods. A non-empty selector is required."
            self.recorder.event(daemonset, WARNING, "SelectingAll", text)
            return None
        if is_deleting(daemonset):
            return None  # its revisions may be gone before its pods: nothing true could be said
        try:
            selector = from_label_selector(spec_selector)
        except SelectorError as error:
            self.log.error("%s: %s", key, error)
            return None
        settled = self.expectations.satisfied(key)
        pods = await self._claim_pods(daemonset)
        revisions = await claim(
            self.client,
            daemonset,
            [*self.revisions.controlled_by(daemonset), *self.revisions.orphans(key.namespace)],
            lambda each: selector.matches(labels_of(each)),
        )
        current, old = await construct_history(
            self.client,
            daemonset,
            revisions,
            pods,
            lambda each: self.consistency.wrote(key, self.revisions, each),
        )
        revision_hash = labels_of(current).get(REVISION_HASH, "")
        failure: Exception | None = None
        again: float | None = None
        if settled:
            try:
                again = await self._act(key, daemonset, pods, revision_hash)
                await clean_up_history(self.client, daemonset, old, pods)
            except (errors.APIError, OSError, TimeoutError) as error:
                failure = error
        check = await self._report(key, daemonset, revision_hash, observed=settled)
        if failure is not None:
            raise failure
        return min((each for each in (again, check) if each is not None), default=None)

    async def _claim_pods(self, daemonset: DaemonSet) -> list[Pod]:
        key = key_of(daemonset)
        selector = from_label_selector(daemonset.spec.selector if daemonset.spec else None)
        candidates = [*self.pods.controlled_by(daemonset), *self.pods.orphans(key.namespace)]
        return await claim(self.client, daemonset, candidates, lambda pod: selector.matches(labels_of(pod)))

    async def _act(self, key: Key, daemonset: DaemonSet, pods: list[Pod], revision_hash: str) -> float | None:
        now = self.clock.now()
        held_back: list[float] = []

        def may_replace(ended: Ended) -> bool:
            if phase_of(ended.pod) == "Failed":
                wait = self.failures.wait((uid_of(daemonset), ended.node), now)
                if wait > 0:
                    held_back.append(wait)
                    return False
            self.recorder.event(daemonset, *ended_message(ended))
            return True

        nodes = self.nodes.items()
        grouped = group_by_node(pods)
        changes = manage(daemonset, nodes, grouped, revision_hash, now, may_replace)
        await self._apply(key, daemonset, changes, revision_hash)
        if self.expectations.satisfied(key) and is_rolling_update(daemonset):
            changes = rolling_update(daemonset, nodes, grouped, revision_hash, now)
            await self._apply(key, daemonset, changes, revision_hash)
        return min(held_back, default=None)

    async def _apply(self, key: Key, daemonset: DaemonSet, changes: Changes, revision_hash: str) -> None:
        """Make and delete pods, at most `burst` of each; the rest when these have been seen."""
        nodes, victims = changes.create[: self.burst], changes.delete[: self.burst]
        if not nodes and not victims:
            return
        self.expectations.expect(key, len(nodes), map(uid_of, victims))
        reference = controller_reference(daemonset)

        async def create(number: int) -> None:
            template = template_for_node(daemonset, nodes[number], revision_hash)
            try:
                await self.pod_control.create(
                    pod_from_template(template, key.namespace, key.name, reference), daemonset
                )
            except errors.APIError as error:
                if not is_namespace_terminating(error):
                    raise
                self.expectations.creation_observed(key)

        async def delete(pod: Pod) -> None:
            try:
                await self.pod_control.delete(pod, daemonset)
            except (errors.APIError, OSError, TimeoutError) as error:
                self.expectations.deletion_observed(key, uid_of(pod))
                if not isinstance(error, errors.NotFound):
                    raise

        successes, failure = await slow_start(len(nodes), create)
        if successes < len(nodes):
            self.expectations.creation_observed(key, len(nodes) - successes)
        deleted = first_failure(await asyncio.gather(*map(delete, victims), return_exceptions=True))
        if failure or deleted:
            raise failure or deleted or AssertionError

    async def _report(self, key: Key, daemonset: DaemonSet, revision_hash: str, *, observed: bool) -> float | None:
        now = self.clock.now()
        pods = self.pods.controlled_by(daemonset)
        status = calculate_status(
            daemonset, self.nodes.items(), group_by_node(pods), revision_hash, now, observed=observed
        )
        updated = await update_status(self.client, daemonset, status)
        if updated is not None:
            self.consistency.wrote(key, self.own, updated)
        if (status.number_ready or 0) == (status.number_available or 0):
            return None
        wait = min_ready_seconds(daemonset)
        return next_availability_check(pods, wait, now) or float(wait)


class FailureBackoff:
    """For each set and node: how long to wait before a failed pod is replaced again."""

    def __init__(self) -> None:
        self._entries: dict[tuple[str, str], tuple[float, float]] = {}
        """When the pod was last replaced, and how long to wait from then on."""

    def wait(self, key: tuple[str, str], now: float) -> float:
        """Seconds to wait; 0 means go ahead, and is noted as a failure more."""
        since, delay = self._entries.get(key, (0.0, 0.0))
        if now - since < delay:
            return since + delay - now
        if now - since > 2 * LAST_BACKOFF:
            delay = 0.0  # that was long ago: a new story
            self._entries = {each: entry for each, entry in self._entries.items() if now - entry[0] <= 2 * LAST_BACKOFF}
        self._entries[key] = (now, min(LAST_BACKOFF, delay * 2 or FIRST_BACKOFF))
        return 0.0


def _node_index(pod: Pod) -> list[str]:
    node = target_node(pod)
    return [node] if node else []


def _owner_uid(pod: Pod) -> str | None:
    reference = controller_of(pod)
    return reference.uid if reference else None


def _suitability(node: Node) -> tuple[object, ...]:
    return labels_of(node), (node.spec.taints if node.spec else None) or []
