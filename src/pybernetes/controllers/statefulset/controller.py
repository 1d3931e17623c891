"""Keeps the pods of a StatefulSet: each with its name, its place in the order, and its storage.

Woken by: its StatefulSet, pods it owns, orphans with a name of its, the end of a claim. Writes: pods, claims,
ControllerRevisions, its own status.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from pybernetes.api import errors
from pybernetes.api.apps.v1 import ControllerRevision, StatefulSet
from pybernetes.api.core.v1.persistentvolumeclaim import PersistentVolumeClaim
from pybernetes.api.core.v1.pod import Pod
from pybernetes.api.labels import Selector, SelectorError, from_label_selector
from pybernetes.client.keys import Key, uid_of

from ..base import Controller, adopts, owns
from ..common.consistency import CHECK_AGAIN, Consistency
from ..common.meta import labels_of, meta, name_of
from ..common.ownership import claim
from ..common.pod_control import slow_start
from ..common.pods import next_availability_check
from ..common.status import update_status
from .identity import is_member, spec_of
from .plan import Plan, Step, is_parallel, make_plan
from .podcontrol import StatefulPodControl
from .revisions import find_revisions, to_truncate

BATCH = 500
"""The most pods of a parallel set made or deleted at once."""
STATUS_RETRIES = 5
_FAILURES = (errors.APIError, OSError, TimeoutError)


class StatefulSetController(Controller[StatefulSet]):
    """Keeps pods with identity."""

    name = "statefulset-controller"
    kind = StatefulSet
    watches = (owns(Pod), adopts(Pod))

    def setup(self) -> None:
        self.workers = self.options.concurrent_statefulset_syncs
        self.pods = self.informer(Pod)
        self.revisions = self.informer(ControllerRevision)
        self.claims = self.informer(PersistentVolumeClaim)
        self.claims.add_handler(on_delete=self._claim_deleted)
        self.consistency = Consistency()

    async def reconcile(self, key: Key) -> float | None:
        statefulset = self.own.get(key)
        if statefulset is None:
            self.expectations.forget(key)
            self.consistency.forget(key)
            return None
        if not self.consistency.ready(key):
            return CHECK_AGAIN
        if not self.expectations.satisfied(key):
            return None  # pods that we deleted are still there as far as the cache knows; their end will wake us
        try:
            selector = from_label_selector(spec_of(statefulset).selector)
        except SelectorError as error:
            self.log.error("%s: %s", key, error)
            return None
        known = await self._claim_revisions(statefulset, selector)
        pods = await claim(
            self.client,
            statefulset,
            [*self.pods.controlled_by(statefulset), *self.pods.orphans(key.namespace)],
            lambda pod: selector.matches(labels_of(pod)) and is_member(statefulset, pod),
        )
        found = await find_revisions(
            self.client, statefulset, known, lambda each: self.consistency.wrote(key, self.revisions, each)
        )
        now = self.clock.now()
        control = StatefulPodControl(
            self.client,
            self.recorder,
            self.claims,
            statefulset,
            lambda obj: self.consistency.wrote(key, self.pods if isinstance(obj, Pod) else self.claims, obj),
        )
        plan = make_plan(statefulset, found.current, found.update, found.collisions, pods, control.claim, now)
        failure = await self._carry_out(key, statefulset, plan, control)
        updated = await update_status(self.client, statefulset, plan.status, STATUS_RETRIES)
        if updated is not None:
            self.consistency.wrote(key, self.own, updated)
        for each in to_truncate(statefulset, known, found, pods):
            await self.client.delete(ControllerRevision, name_of(each), key.namespace)
        if failure is not None:
            raise failure
        if (plan.status.ready_replicas or 0) == (plan.status.available_replicas or 0):
            return None
        wait = spec_of(statefulset).min_ready_seconds or 0
        return next_availability_check(pods, wait, now) or float(wait)

    async def _claim_revisions(self, statefulset: StatefulSet, selector: Selector) -> list[ControllerRevision]:
        orphans = self.revisions.orphans(meta(statefulset).namespace or "")
        candidates = [
            each for each in [*self.revisions.controlled_by(statefulset), *orphans] if selector.matches(labels_of(each))
        ]
        return await claim(self.client, statefulset, candidates, lambda _: True)

    async def _carry_out(
        self, key: Key, statefulset: StatefulSet, plan: Plan, control: StatefulPodControl
    ) -> Exception | None:
        """Do what the plan says, group by group; the failure that ended it."""
        victims = {uid_of(step.pod) for group in plan.groups for step in group if step.do == "delete"}
        if victims:
            # All of them now: while the first steps are done, the cache may see others delete the rest.
            self.expectations.expect_deletions(key, victims)

        async def do(step: Step) -> None:
            try:
                await _VERBS[step.do](control, step.pod)
            except errors.NotFound:
                if step.do != "delete":
                    raise
                return  # its end may have been seen before we expected it: it stays among those not to wait for
            victims.discard(uid_of(step.pod))

        failure = None
        for group in plan.groups:
            failure = await _do_all(group, do, at_once=is_parallel(statefulset))
            if failure is not None:
                break
        for uid in victims:
            self.expectations.deletion_observed(key, uid)
        return failure

    def _claim_deleted(self, deleted: PersistentVolumeClaim) -> None:
        """A pod may wait for a claim of its name to go away."""
        for statefulset in self.own.in_namespace(meta(deleted).namespace or ""):
            for template in spec_of(statefulset).volume_claim_templates or ():
                prefix = f"{name_of(template)}-{name_of(statefulset)}-"
                if name_of(deleted).startswith(prefix) and name_of(deleted)[len(prefix) :].isdigit():
                    self.enqueue(statefulset)


async def _do_all(group: list[Step], do: Callable[[Step], Awaitable[None]], *, at_once: bool) -> Exception | None:
    if at_once:
        _, failure = await slow_start(len(group), lambda number: do(group[number]), BATCH)
        return failure
    for step in group:
        try:
            await do(step)
        except _FAILURES as error:
            return error
    return None


_VERBS = {
    "create": StatefulPodControl.create,
    "delete": StatefulPodControl.delete,
    "update": StatefulPodControl.update,
    "ensure-claims": StatefulPodControl.ensure_claims,
    "fix-claims": StatefulPodControl.fix_claims,
}
