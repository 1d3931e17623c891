"""Replaces the pods of a Deployment step by step when its template changes, and scales them when its size does.

Woken by: its Deployment, ReplicaSets it owns, orphans that match; with the Recreate strategy by the end of its pods.
Writes: ReplicaSets, its own status, and the revision in its annotations. Pods are the ReplicaSets' business.
"""

from __future__ import annotations

from collections.abc import Sequence

from pybernetes.api import errors
from pybernetes.api.apps.v1 import Deployment, DeploymentCondition, DeploymentStatus, ReplicaSet, ReplicaSetSpec
from pybernetes.api.core.v1.pod import Pod
from pybernetes.api.labels import from_label_selector
from pybernetes.client.events import NORMAL, WARNING
from pybernetes.client.keys import Key, controller_of, copy, key_of, uid_of

from ..base import Controller, adopts, owns
from ..common.conditions import find_condition, with_condition
from ..common.consistency import CHECK_AGAIN, Consistency
from ..common.history import next_collision
from ..common.meta import annotations_of, generation_of, is_deleting, labels_of, meta, name_of
from ..common.ownership import claim
from ..common.pod_control import is_namespace_terminating
from ..common.pods import is_terminal
from ..common.status import same_status
from ..common.template_hash import POD_TEMPLATE_HASH
from . import progress, scaling
from .annotations import (
    REVISION,
    ROLLBACK_TO,
    last_revision,
    max_revision,
    replicas_annotations_need_update,
    revision,
    rollback_to,
    set_deployment_annotations,
    set_new_replicaset_annotations,
    set_replicas_annotations,
)
from .replicasets import (
    active,
    actual,
    desired,
    equal_ignoring_hash,
    find_new,
    find_old,
    new_replicaset,
    size,
    spec_of,
)
from .scaling import Scale


class DeploymentController(Controller[Deployment]):
    """Replaces and scales the pods of Deployments."""

    name = "deployment-controller"
    kind = Deployment
    watches = (owns(ReplicaSet), adopts(ReplicaSet))

    def setup(self) -> None:
        self.workers = self.options.concurrent_deployment_syncs
        self.replicasets = self.informer(ReplicaSet)
        self.pods = self.informer(Pod)
        self.pods.add_handler(on_delete=self._pod_deleted)
        self.consistency = Consistency()

    async def reconcile(self, key: Key) -> float | None:
        found = self.own.get(key)
        if found is None:
            self.consistency.forget(key)
            return None
        if not self.consistency.ready(key):
            return CHECK_AGAIN
        try:
            return await _Rollout(self, copy(found)).run()
        except errors.APIError as error:
            if is_namespace_terminating(error):
                return None  # it will not get better, and the namespace takes all along
            raise

    def _pod_deleted(self, pod: Pod) -> None:
        """A Recreate goes on when the last old pod is gone."""
        reference = controller_of(pod)
        if reference is None or reference.kind != "ReplicaSet":
            return
        replicaset = self.replicasets.named(reference.name or "", meta(pod).namespace or "")
        if replicaset is None or uid_of(replicaset) != reference.uid:
            return
        key = self.owner_key(replicaset)
        deployment = self.own.get(key) if key else None
        if deployment is not None and not scaling.is_rolling_update(deployment):
            self.enqueue(deployment)


class _Rollout:
    """One look at one Deployment. `deployment` is a copy and follows what has been written."""

    def __init__(self, controller: DeploymentController, deployment: Deployment) -> None:
        self.controller = controller
        self.client = controller.client
        self.deployment = deployment
        self.key = key_of(deployment)
        self.now = controller.clock.now()

    async def run(self) -> float | None:
        deployment = self.deployment
        selector = spec_of(deployment).selector
        if selector is None or not (selector.match_labels or selector.match_expressions):
            text = "This deployment is selecting all pods. A non-empty selector is required."
            self._event(WARNING, "SelectingAll", text)
            if (progress.status_of(deployment).observed_generation or 0) < generation_of(deployment):
                status = progress.status_of(deployment)
                status.observed_generation = generation_of(deployment)
                await self._write_status(status)
            return None
        chosen = from_label_selector(selector)
        replicasets = await claim(
            self.client,
            deployment,
            [*self.controller.replicasets.controlled_by(deployment), *self._orphans()],
            lambda each: chosen.matches(labels_of(each)),
        )
        if is_deleting(deployment):
            new, old = await self._replicasets(replicasets, create=False)
            await self._sync_status(new, old)
            return None
        paused = progress.paused_condition(deployment, self.now)
        if paused is not None:
            status = progress.status_of(self.deployment)
            status.conditions = with_condition(status.conditions, paused)
            await self._write_status(status)
        if spec_of(deployment).paused:
            return await self._scale(replicasets)
        if rollback_to(deployment) is not None:
            await self._rollback(replicasets)
            return None
        new, old = await self._replicasets(replicasets, create=False)
        if scaling.is_scaling_event(deployment, _all(new, old)):
            return await self._scale(replicasets, new, old)
        strategy = spec_of(deployment).strategy
        kind = strategy.type if strategy else None
        if kind == "Recreate":
            return await self._recreate(replicasets, new, old)
        if kind == "RollingUpdate":
            return await self._rolling(replicasets, new, old)
        raise ValueError(f"unexpected deployment strategy type: {kind}")

    def _orphans(self) -> list[ReplicaSet]:
        return self.controller.replicasets.orphans(self.key.namespace)

    # -- strategies

    async def _rolling(
        self, replicasets: Sequence[ReplicaSet], new: ReplicaSet | None, old: list[ReplicaSet]
    ) -> float | None:
        if new is None:
            new, old = await self._replicasets(replicasets, create=True)
        assert new is not None
        steps = scaling.rolling(self.deployment, new, old)
        new, old = await self._apply(steps, new, old)
        if not steps:
            await self._clean_up_if_complete(old)
        return await self._sync_rollout_status(new, old)

    async def _recreate(
        self, replicasets: Sequence[ReplicaSet], new: ReplicaSet | None, old: list[ReplicaSet]
    ) -> float | None:
        steps = [Scale(each, 0) for each in active(old)]
        if steps or self._old_pods_running(old):
            new, old = await self._apply(steps, new, old)
            return await self._sync_rollout_status(new, old)
        if new is None:
            new, old = await self._replicasets(replicasets, create=True)
        assert new is not None
        new, old = await self._apply([Scale(new, desired(self.deployment))], new, old)
        await self._clean_up_if_complete(old)
        return await self._sync_rollout_status(new, old)

    def _old_pods_running(self, old: Sequence[ReplicaSet]) -> bool:
        """Whether an old pod may still run; one that is being deleted does."""
        if any(map(actual, old)):
            return True
        return any(not is_terminal(pod) for each in old for pod in self.controller.pods.controlled_by(each))

    async def _scale(
        self,
        replicasets: Sequence[ReplicaSet],
        new: ReplicaSet | None = None,
        old: list[ReplicaSet] | None = None,
    ) -> float | None:
        if old is None:
            new, old = await self._replicasets(replicasets, create=False)
        new, old = await self._apply(scaling.proportional(self.deployment, new, old), new, old)
        if spec_of(self.deployment).paused and rollback_to(self.deployment) is None:
            await self._clean_up(old)
        await self._sync_status(new, old)
        return None

    async def _rollback(self, replicasets: Sequence[ReplicaSet]) -> None:
        """Roll back as an old client's annotation asks; `kubectl rollout undo` changes the template itself."""
        new, old = await self._replicasets(replicasets, create=True)
        everything = _all(new, old)
        wanted = rollback_to(self.deployment) or last_revision(everything)
        target = next((each for each in everything if wanted and revision(each) == wanted), None)
        name = name_of(self.deployment)
        if target is None:
            missing = "Unable to find the revision to rollback to." if wanted else "Unable to find last revision."
            self._event(WARNING, "DeploymentRollbackRevisionNotFound", missing)
            await self._clear_rollback()
            return
        template = target.spec.template if target.spec else None
        if equal_ignoring_hash(spec_of(self.deployment).template, template):
            text = f'The rollback revision contains the same template as current deployment "{name}"'
            self._event(WARNING, "DeploymentRollbackTemplateUnchanged", text)
            await self._clear_rollback()
            return
        restored = (copy(target).spec or ReplicaSetSpec()).template
        if restored is not None and restored.metadata is not None and restored.metadata.labels:
            restored.metadata.labels.pop(POD_TEMPLATE_HASH, None)
        spec_of(self.deployment).template = restored
        set_deployment_annotations(self.deployment, target)
        await self._clear_rollback()
        self._event(NORMAL, "DeploymentRollback", f'Rolled back deployment "{name}" to revision {wanted}')

    async def _clear_rollback(self) -> None:
        notes = {key: value for key, value in annotations_of(self.deployment).items() if key != ROLLBACK_TO}
        meta(self.deployment).annotations = notes
        self.deployment = await self.client.update(self.deployment)
        self.controller.consistency.wrote(self.key, self.controller.own, self.deployment)

    # -- ReplicaSets

    async def _replicasets(
        self, replicasets: Sequence[ReplicaSet], *, create: bool
    ) -> tuple[ReplicaSet | None, list[ReplicaSet]]:
        """The new ReplicaSet, made if wanted and not there, with its annotations up to date, and all old ones."""
        old = find_old(self.deployment, replicasets)
        new = find_new(self.deployment, replicasets)
        number = max_revision(old) + 1
        if new is not None:
            new = await self._sync_new(copy(new), number)
        elif create:
            new = await self._create_new(old, number)
        return new, old

    async def _sync_new(self, new: ReplicaSet, number: int) -> ReplicaSet:
        changed = set_new_replicaset_annotations(self.deployment, new, number)
        assert new.spec is not None
        wait = spec_of(self.deployment).min_ready_seconds or 0
        if changed or (new.spec.min_ready_seconds or 0) != wait:
            new.spec.min_ready_seconds = wait
            return await self._update_replicaset(new)
        status = progress.status_of(self.deployment)
        noted = self._note_revision(annotations_of(new).get(REVISION, ""))
        if (
            progress.has_progress_deadline(self.deployment)
            and find_condition(status.conditions, progress.PROGRESSING) is None
        ):
            text = f'Found new replica set "{name_of(new)}"'
            found = progress.condition(progress.PROGRESSING, "True", progress.FOUND, text, self.now)
            self._add_condition(status, found)
            noted = True
        if noted:
            await self._write_status(status)
        return new

    async def _create_new(self, old: Sequence[ReplicaSet], number: int) -> ReplicaSet:
        new = new_replicaset(self.deployment)
        assert new.spec is not None
        new.spec.replicas = scaling.new_replicas(self.deployment, new, [*old, new])
        set_new_replicaset_annotations(self.deployment, new, number)
        most = desired(self.deployment) + scaling.max_surge(self.deployment)
        set_replicas_annotations(new, desired(self.deployment), most)
        status = progress.status_of(self.deployment)
        deadline = progress.has_progress_deadline(self.deployment)
        try:
            made = await self.client.create(new)
        except errors.AlreadyExists:
            existing = await self.client.get(ReplicaSet, name_of(new), self.key.namespace)
            reference = controller_of(existing)
            template = existing.spec.template if existing.spec else None
            if (
                reference is None
                or reference.uid != uid_of(self.deployment)
                or not equal_ignoring_hash(spec_of(self.deployment).template, template)
            ):
                # Of another owner, or another template with the same hash: count it, and the next hash is another one.
                status.collision_count = next_collision(status.collision_count)
                await self._write_status(status)
                raise
            if self._note_revision(str(number)):
                await self._write_status(status)
            return existing
        except errors.APIError as error:
            if is_namespace_terminating(error):
                raise
            text = f'Failed to create new replica set "{name_of(new)}": {error}'
            if deadline:
                failed = progress.condition(progress.PROGRESSING, "False", progress.CREATE_ERROR, text, self.now)
                self._add_condition(status, failed)
                try:
                    await self._write_status(status)
                except errors.APIError:
                    pass  # there is something worse to report
            self._event(WARNING, progress.CREATE_ERROR, text)
            raise
        self.controller.consistency.wrote(self.key, self.controller.replicasets, made)
        if size(made):
            text = f"Scaled up replica set {name_of(made)} from 0 to {size(made)}"
            self._event(NORMAL, "ScalingReplicaSet", text)
        noted = self._note_revision(str(number))
        if deadline:
            text = f'Created new replica set "{name_of(made)}"'
            self._add_condition(
                status, progress.condition(progress.PROGRESSING, "True", progress.CREATED, text, self.now)
            )
        if noted or deadline:
            await self._write_status(status)
        return made

    async def _apply(
        self, steps: Sequence[Scale], new: ReplicaSet | None, old: list[ReplicaSet]
    ) -> tuple[ReplicaSet | None, list[ReplicaSet]]:
        """Scale the ReplicaSets; they come back as they are afterwards."""
        current = {uid_of(each): each for each in _all(new, old)}
        for step in steps:
            uid = uid_of(step.replicaset)
            current[uid] = await self._scale_replicaset(current[uid], step.replicas, step.force)
        return current[uid_of(new)] if new else None, [current[uid_of(each)] for each in old]

    async def _scale_replicaset(self, replicaset: ReplicaSet, replicas: int, force: bool) -> ReplicaSet:
        before = size(replicaset)
        total = desired(self.deployment)
        most = total + scaling.max_surge(self.deployment)
        if before == replicas and not (force and replicas_annotations_need_update(replicaset, total, most)):
            return replicaset
        changed = copy(replicaset)
        assert changed.spec is not None
        changed.spec.replicas = replicas
        set_replicas_annotations(changed, total, most)
        updated = await self._update_replicaset(changed)
        if before != replicas:
            direction = "up" if before < replicas else "down"
            text = f"Scaled {direction} replica set {name_of(updated)} from {before} to {replicas}"
            self._event(NORMAL, "ScalingReplicaSet", text)
        return updated

    async def _update_replicaset(self, replicaset: ReplicaSet) -> ReplicaSet:
        updated = await self.client.update(replicaset)
        self.controller.consistency.wrote(self.key, self.controller.replicasets, updated)
        return updated

    async def _clean_up_if_complete(self, old: Sequence[ReplicaSet]) -> None:
        if progress.is_complete(self.deployment, progress.status_of(self.deployment)):
            await self._clean_up(old)

    async def _clean_up(self, old: Sequence[ReplicaSet]) -> None:
        for each in scaling.to_clean_up(self.deployment, old):
            try:
                await self.client.delete(ReplicaSet, name_of(each), self.key.namespace)
            except errors.NotFound:
                continue

    # -- status

    def _note_revision(self, number: str) -> bool:
        notes = annotations_of(self.deployment)
        meta(self.deployment).annotations = {**notes, REVISION: number}
        return notes.get(REVISION) != number

    @staticmethod
    def _add_condition(status: DeploymentStatus, condition: DeploymentCondition) -> None:
        status.conditions = with_condition(status.conditions, condition)

    async def _sync_status(self, new: ReplicaSet | None, old: Sequence[ReplicaSet]) -> None:
        status = progress.calculate_status(self.deployment, _all(new, old), new, self.now)
        if not same_status(progress.status_of(self.deployment), status):
            await self._write_status(status)

    async def _sync_rollout_status(self, new: ReplicaSet | None, old: Sequence[ReplicaSet]) -> float | None:
        status = progress.rollout_status(self.deployment, _all(new, old), new, self.now)
        if not same_status(progress.status_of(self.deployment), status):
            await self._write_status(status)
        return progress.next_progress_check(self.deployment, status, self.now)

    async def _write_status(self, status: DeploymentStatus) -> None:
        """The status, and the annotations with the revision: the server takes them along here."""
        self.deployment.status = status
        self.deployment = await self.client.update_status(self.deployment)
        self.controller.consistency.wrote(self.key, self.controller.own, self.deployment)

    def _event(self, kind: str, reason: str, message: str) -> None:
        self.controller.recorder.event(self.deployment, kind, reason, message)


def _all(new: ReplicaSet | None, old: Sequence[ReplicaSet]) -> list[ReplicaSet]:
    return [*old, new] if new else list(old)
