"""Makes the ResourceClaims that pods ask for by templates, and takes back what pods no longer use.

Woken by: pods with claims, claims, templates. Writes: claims, their `reservedFor` and allocation, and the pods'
`status.resourceClaimStatuses`, which say what the claims are called. A pod that was bound by hand gets its
reservation here; for all others the scheduler makes it. A claim made for a pod is deleted when the pod has ended,
even if the pod itself stays for a while.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import Final

from pybernetes.api import errors
from pybernetes.api.core.v1 import Pod, PodResourceClaim
from pybernetes.api.resource.v1 import ResourceClaim, ResourceClaimConsumerReference, ResourceClaimTemplate
from pybernetes.client.events import WARNING
from pybernetes.client.keys import Key, is_controlled_by, key_of, uid_of
from pybernetes.client.metrics import GaugeFunction, Labels

from ..base import Controller
from ..common.meta import annotations_of, is_deleting, meta, name_of
from ..common.pods import node_of
from .claims import (
    POD_CLAIM_ANNOTATION,
    ClaimError,
    claim_name,
    claim_names,
    entries,
    from_template,
    has_finalizer,
    is_allocated,
    is_done,
    is_for_entry,
    is_reserved_for,
    needs_work,
    owning_pod,
    released,
    reservations,
    reserved,
    statuses,
    wants_admin_access,
    without_finalizer,
)

FIELD_MANAGER: Final = "ResourceClaimController"
MAX_DELETED: Final = 500
EXTENDED_ANNOTATION: Final = "resource.kubernetes.io/extended-resource-claim"
_BY_CLAIM: Final = "podResourceClaim"
_BY_TEMPLATE: Final = "podResourceClaimTemplate"


class ResourceClaimController(Controller[ResourceClaim]):
    """Two loops: `reconcile` for claims, `sync_pod` for pods."""

    name = "resourceclaim-controller"
    kind = ResourceClaim

    def setup(self) -> None:
        """Follow pods by their claims and templates."""
        self.workers = self.options.concurrent_resourceclaim_syncs
        self.recorder = self.context.events.recorder("resource_claim")
        self._pod_queue = self.new_queue("resource_claim_pods")
        self._deleted: OrderedDict[str, None] = OrderedDict()
        """Uids of pods that we saw going: their reservations need no question to the server."""
        self._made: dict[tuple[str, str], str] = {}
        """Names of claims that we made for (uid of a pod, entry) and have not seen in the cache."""
        self.pods = self.informer(Pod)
        self.pods.add_index(_BY_CLAIM, lambda pod: [f"{meta(pod).namespace}/{name}" for name in claim_names(pod)])
        self.pods.add_index(_BY_TEMPLATE, _templates)
        self.templates = self.informer(ResourceClaimTemplate)
        self.pods.add_handler(self._pod_seen, self._pod_updated, self._pod_gone)
        self.own.add_handler(self._claim_changed, lambda _, new: self._claim_changed(new), self._claim_changed)
        self.templates.add_handler(self._template_seen, lambda _, new: self._template_seen(new))
        metrics = self.context.metrics
        self._creates = metrics.counter(
            "resourceclaim_controller_creates_total",
            "Number of ResourceClaims creation requests, categorized by creation status and admin access",
            ("status", "admin_access"),
        )
        metrics.add(
            GaugeFunction(
                "resourceclaim_controller_resource_claims",
                "Number of ResourceClaims, categorized by allocation status, admin access, and source. Source can be "
                "'resource_claim_template' (created from a template), 'extended_resource' (extended resources), or "
                "empty (manually created by a user).",
                ("allocated", "admin_access", "source"),
                self._count,
            )
        )

    def queue_name(self) -> str:
        """The name of the queue in metrics, as upstream names it."""
        return "resource_claim"

    def concerns(self, old: ResourceClaim | None, new: ResourceClaim | None) -> bool:
        """All that exist: at the start each may be reserved for pods that are gone."""
        return new is not None

    async def run(self) -> None:
        """Work on claims and pods."""
        await self.wait_synced()
        async with asyncio.TaskGroup() as group:
            group.create_task(self.work(self.queue, self.reconcile, self.workers))
            group.create_task(self.work(self._pod_queue, self.sync_pod, self.workers))

    # -- being woken

    def _pod_seen(self, pod: Pod) -> None:
        names = list(claim_names(pod))
        if not names and not entries(pod):
            return
        if is_done(pod):
            self._wake_claims(pod, names)
        if needs_work(pod, lambda name: self.own.get(Key(meta(pod).namespace or "", name))):
            self._pod_queue.add(key_of(pod))

    def _pod_updated(self, old: Pod, new: Pod) -> None:
        if uid_of(old) != uid_of(new):
            self._pod_gone(old)
        self._pod_seen(new)

    def _pod_gone(self, pod: Pod) -> None:
        names = list(claim_names(pod))
        if not names and not entries(pod):
            return
        self._deleted[uid_of(pod)] = None
        if len(self._deleted) > MAX_DELETED:
            self._deleted.popitem(last=False)
        for entry in entries(pod):
            self._made.pop((uid_of(pod), entry.name or ""), None)
        self._wake_claims(pod, names)

    def _wake_claims(self, pod: Pod, names: list[str]) -> None:
        for name in names:
            self.queue.add(Key(meta(pod).namespace or "", name))

    def _claim_changed(self, claim: ResourceClaim) -> None:
        owner = owning_pod(claim)
        if owner is not None:  # the cache has it now, or it is gone: it speaks for itself
            self._made.pop((owner.uid or "", annotations_of(claim).get(POD_CLAIM_ANNOTATION, "")), None)
        for pod in self.pods.by_index(_BY_CLAIM, str(key_of(claim))):
            self._pod_seen(pod)

    def _template_seen(self, template: ResourceClaimTemplate) -> None:
        for pod in self.pods.by_index(_BY_TEMPLATE, str(key_of(template))):
            self._pod_seen(pod)

    # -- pods

    async def sync_pod(self, key: Key) -> float | None:
        """Make the claims of a pod, and reserve them if the scheduler does not."""
        pod = self.pods.get(key)
        if pod is None or is_deleting(pod) or is_done(pod):
            return None
        made: dict[str, str] = {}
        for entry in entries(pod):
            try:
                name = await self._claim_for(key, pod, entry)
            except (ClaimError, errors.APIError) as error:
                self._failed_claim(pod, entry, error)
                if isinstance(error, ClaimError):
                    return None  # the template, or another release of ours, will wake it
                raise
            if name is not None:
                made[entry.name or ""] = name
        if made:
            pod = await self._write_names(key, pod, made)
        if node_of(pod):
            await self._reserve(key, pod)
        return None

    async def _claim_for(self, key: Key, pod: Pod, entry: PodResourceClaim) -> str | None:
        """The name of the claim for an entry if the pod's status does not have it yet."""
        found = claim_name(pod, entry)
        if found.made and found.name is None:
            return None
        if found.name is not None:
            existing = self.own.get(Key(key.namespace, found.name))
            if existing is not None and (not found.generated or is_controlled_by(existing, pod)):
                return None
        template_name = entry.resource_claim_template_name
        if template_name is None:
            return None
        orphan = next((each for each in self.own.controlled_by(pod) if is_for_entry(each, entry)), None)
        if orphan is not None:  # made before, and then the status could not be written
            return name_of(orphan)
        remembered = self._made.get((uid_of(pod), entry.name or ""))
        if remembered is not None:
            return remembered
        template = self.templates.get(Key(key.namespace, template_name))
        if template is None:
            raise ClaimError(
                f'resource claim template "{template_name}": '
                f'resourceclaimtemplate.resource.k8s.io "{template_name}" not found'
            )
        wanted = from_template(pod, entry, template)
        admin = str(wants_admin_access(wanted)).lower()
        try:
            made = await self.client.create(wanted)
        except (errors.APIError, OSError, TimeoutError):
            self._creates.inc("failure", admin)
            raise
        self._creates.inc("success", admin)
        if self.own.get(key_of(made)) is None:
            self._made[uid_of(pod), entry.name or ""] = name_of(made)
        return name_of(made)

    async def _write_names(self, key: Key, pod: Pod, made: dict[str, str]) -> Pod:
        # All of them: what is left out of an apply is taken out of the object.
        known = {each.name or "": each.resource_claim_name for each in statuses(pod)}
        body = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": key.name, "namespace": key.namespace, "uid": uid_of(pod)},
            "status": {
                "resourceClaimStatuses": [
                    {"name": name, **({"resourceClaimName": claim} if claim is not None else {})}
                    for name, claim in {**known, **made}.items()
                ]
            },
        }
        return await self.client.patch(
            Pod,
            key.name,
            body,
            key.namespace,
            type="apply",
            subresource="status",
            field_manager=FIELD_MANAGER,
            force=True,
        )

    async def _reserve(self, key: Key, pod: Pod) -> None:
        """The pod was bound by a scheduler that does not support claims."""
        for entry in entries(pod):
            found = claim_name(pod, entry)
            if found.name is None:
                continue
            claim = self.own.get(Key(key.namespace, found.name))
            if claim is None or (found.generated and not is_controlled_by(claim, pod)):
                return  # seen later, and then the pod is woken
            if is_allocated(claim) and not is_reserved_for(claim, pod):
                await self.client.update_status(reserved(claim, pod))

    def _failed_claim(self, pod: Pod, entry: PodResourceClaim, error: Exception) -> None:
        message = f"PodResourceClaim {entry.name}: {error}"
        self.log.warning("pod %s: %s", key_of(pod), message)
        self.recorder.event(pod, WARNING, "FailedResourceClaimCreation", message)

    # -- claims

    async def reconcile(self, key: Key) -> float | None:
        """Take back reservations of pods that are gone; let the claim go when it may."""
        claim = self.own.get(key)
        if claim is None:
            return None
        present = reservations(claim)
        remaining = [each for each in present if await self._is_used(key, each)]
        if len(remaining) < len(present):
            # An update, not a patch: it must fail if the claim was reserved meanwhile.
            claim = await self.client.update_status(released(claim, remaining))
            if has_finalizer(claim) and not is_allocated(claim):
                claim = await self.client.update(without_finalizer(claim))
        elif has_finalizer(claim) and is_deleting(claim) and not remaining:
            if is_allocated(claim):
                claim = await self.client.update_status(released(claim, []))
            claim = await self.client.update(without_finalizer(claim))
        if not remaining:
            await self._delete_unused(key, claim)
        return None

    async def _is_used(self, key: Key, consumer: ResourceClaimConsumerReference) -> bool:
        if consumer.api_group or consumer.resource != "pods":
            return True  # not ours to judge
        if consumer.uid in self._deleted:
            return False
        pod = self.pods.get(Key(key.namespace, consumer.name or ""))
        if pod is not None:
            return uid_of(pod) == consumer.uid and not is_done(pod)
        try:  # the cache may be behind a scheduler that is quick
            fresh = await self.client.get(Pod, consumer.name or "", key.namespace)
        except errors.NotFound:
            return False
        return uid_of(fresh) == consumer.uid

    async def _delete_unused(self, key: Key, claim: ResourceClaim) -> None:
        """A claim that was made for a pod that has ended. If the pod is gone the garbage collector does it."""
        owner = owning_pod(claim)
        pod = self.pods.get(Key(key.namespace, owner.name or "")) if owner else None
        if owner is None or pod is None or is_deleting(claim):
            return
        if uid_of(pod) != owner.uid or is_done(pod):
            try:
                await self.client.delete(ResourceClaim, key.name, key.namespace, uid=uid_of(claim))
            except errors.NotFound:
                return

    # -- telling

    def _count(self) -> list[tuple[Labels, float]]:
        counts: dict[Labels, float] = {}
        for claim in self.own.items():
            annotations = annotations_of(claim)
            source = ""
            if annotations.get(EXTENDED_ANNOTATION) == "true":
                source = "extended_resource"
            elif annotations.get(POD_CLAIM_ANNOTATION):
                source = "resource_claim_template"
            labels = (str(is_allocated(claim)).lower(), str(wants_admin_access(claim)).lower(), source)
            counts[labels] = counts.get(labels, 0) + 1
        return list(counts.items())


def _templates(pod: Pod) -> list[str]:
    names = (entry.resource_claim_template_name for entry in entries(pod))
    return [f"{meta(pod).namespace}/{name}" for name in names if name is not None]
