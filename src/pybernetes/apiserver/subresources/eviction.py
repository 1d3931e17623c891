"""`eviction`: a delete that asks the pod's disruption budget first.

A budget is charged by a conditional write of the pod into its status, BEFORE the pod is deleted: two evictions at once
can therefore never spend the same allowance. A pod that costs nothing, because it is not ready, goes only if it is
still as it was judged.
"""

from __future__ import annotations

import asyncio
import logging
from copy import deepcopy
from typing import Any

import msgspec

from pybernetes.api import labels
from pybernetes.api.core.v1 import PodCondition, PodStatus
from pybernetes.api.errors import APIError, Conflict, Forbidden, Invalid, TooManyRequests
from pybernetes.api.field import invalid
from pybernetes.api.meta.v1 import DeleteOptions, Preconditions
from pybernetes.api.meta.v1.objectmeta import Condition
from pybernetes.api.policy.v1 import Eviction
from pybernetes.net.http import Request, Response
from pybernetes.store.watchers import Item

from ..pipeline.context import context_for
from ..pipeline.options import check_delete_options, write_options
from ..registry.managed_fields import track
from ..registry.registry import Registry
from ..registry.resource_store import ResourceStore
from ..registry.server_context import MANAGER
from ..registry.strategy import Context
from ..verbs.delete import check_preconditions, delete_object
from .body import admit_body, check_namespace, check_place, decode_body, success

log = logging.getLogger(__name__)

_VIOLATES = "Cannot evict pod as it would violate the pod's disruption budget."
_MANY = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
_TARGET, _EVICTED = "DisruptionTarget", "EvictionByEvictionAPI"
_MAX_DISRUPTED = 2000  # upstream's MaxDisruptedPodSize
_ATTEMPTS = 20  # to delete a pod that changes meanwhile; upstream's EvictionsRetry
_ALLOWED, _SYNC_FAILED, _INSUFFICIENT = "DisruptionAllowed", "SyncFailed", "InsufficientPods"
_UNREADABLE = "ignoreStoreReadErrorWithClusterBreakingPotential"


async def evict(registry: Registry, store: ResourceStore, request: Request) -> Response:
    """Answer 201 when the pod is being deleted, 429 when its budget is spent."""
    info = request.info
    options = write_options(info.query, "CreateOptions")
    eviction = decode_body(request, Eviction, "policy/v1", options.field_validation, also=("policy/v1beta1",))
    check_namespace(eviction.metadata, request)
    delete = eviction.delete_options or DeleteOptions()
    check_delete_options(delete)
    dry_run = options.dry_run or bool(delete.dry_run)
    eviction = await admit_body(
        registry, request, store.resource, eviction, "policy/v1", dry_run=dry_run, options=options
    )
    check_place(eviction.metadata, request, "Eviction")  # after authorization, as upstream
    delete = eviction.delete_options or delete
    if delete.ignore_store_read_error_with_cluster_breaking_potential:
        why = "can not be set for pod eviction, try after removing the option"
        raise Invalid("policy", "Eviction", info.name, [invalid(f"deleteOptions.{_UNREADABLE}", True, why)])
    context = context_for(registry, request, dry_run=dry_run)
    context.subresource = ""
    bound = bool(delete.preconditions and delete.preconditions.resource_version)
    attempts = _ATTEMPTS
    while not _counts(pod := store.decode(await store.get(info.namespace, info.name))):
        attempts -= 1
        try:
            await _remove(store, pod, delete, context, as_judged=not bound and not _is_over(pod))
            return success(request)
        except Conflict:
            if bound or not attempts:
                raise
    budget = await _budget(registry, pod)
    if budget is None:
        await _remove(store, pod, delete, context)
        return success(request)
    budgets = registry.store("policy", "v1", "poddisruptionbudgets")
    if _charges(budgets.decode(budget), pod):
        await _charge(budgets, budget.key, pod, context)
        await _remove(store, pod, delete, context)
        return success(request)
    try:
        await _remove(store, pod, delete, context, as_judged=not bound)
    except Conflict:
        if bound:
            raise
        raise _processing(budgets.split(budget.key)[1]) from None
    return success(request)


async def _remove(
    store: ResourceStore, pod: Any, options: DeleteOptions, context: Context, *, as_judged: bool = False
) -> None:
    """Delete the pod, if it is still as it was `as_judged`. Raises Conflict."""
    given = options.preconditions or Preconditions()
    # The pod that was judged is the pod that goes: a new one of the same name is another matter.
    wanted = Preconditions(given.uid or pod.metadata.uid, given.resource_version)
    if as_judged:
        wanted.resource_version = pod.metadata.resource_version
    delete = msgspec.structs.replace(options, preconditions=wanted)
    if not context.dry_run:
        told = await _tell(store, pod, delete, context)
        if wanted.resource_version:
            wanted.resource_version = str(told.revision)
    await delete_object(store, pod.metadata.name, delete, context, admit=False)


async def _tell(store: ResourceStore, pod: Any, options: DeleteOptions, context: Context) -> Item:
    """Write the DisruptionTarget condition, so that the pod's controller can tell an eviction from a failure."""

    async def change(pod: Any) -> Any:
        check_preconditions(store, pod, options)
        pod.status = pod.status or PodStatus()
        present = pod.status.conditions or []
        if not any(each.type == _TARGET and each.reason == _EVICTED for each in present):
            message = "Eviction API: evicting"
            condition = PodCondition(_TARGET, None, "True", None, context.now, _EVICTED, message)
            pod.status.conditions = [*(each for each in present if each.type != _TARGET), condition]
        return pod

    return await store.write(pod.metadata.namespace, pod.metadata.name, change)


def _counts(pod: Any) -> bool:
    """Whether the loss of the pod disrupts anything: not if it has ended, is going, or never ran."""
    phase = pod.status.phase if pod.status else ""
    return phase not in ("Succeeded", "Failed", "Pending") and not pod.metadata.deletion_timestamp


def _is_over(pod: Any) -> bool:
    """Whether the pod can disrupt nothing any more, whatever happens to it."""
    return (pod.status and pod.status.phase) in ("Succeeded", "Failed") or bool(pod.metadata.deletion_timestamp)


async def _budget(registry: Registry, pod: Any) -> Item | None:
    budgets = registry.store("policy", "v1", "poddisruptionbudgets")
    await budgets.consistent()
    found = []
    keys = budgets.partition.scan(budgets.scope(pod.metadata.namespace))
    items = [budgets.partition.items[key] for key in keys]
    for item, budget in budgets.decode_all(items):
        spec = budget.spec
        if spec is None or spec.selector is None:
            continue
        await asyncio.sleep(0)  # a selector may have 100,000 values: others have their turn between two
        try:
            selector = labels.from_label_selector(spec.selector)
        except labels.SelectorError as error:  # as upstream: it selects nothing
            log.warning("the selector of %s cannot be read: %s", item.key, error)
            continue
        if selector.matches(pod.metadata.labels or {}):
            found.append(item)
    if len(found) > 1:
        raise APIError(_MANY)
    return found[0] if found else None


def _charges(budget: Any, pod: Any) -> bool:
    """Whether evicting the pod costs: a pod that is not ready costs nothing if the budget says so or is met."""
    if _ready(pod):
        return True
    policy = budget.spec.unhealthy_pod_eviction_policy or "IfHealthyBudget"
    if policy == "AlwaysAllow":
        return False
    status = budget.status
    healthy, desired = (status.current_healthy or 0, status.desired_healthy or 0) if status else (0, 0)
    return not (healthy >= desired > 0)


def _ready(pod: Any) -> bool:
    conditions = (pod.status.conditions if pod.status else None) or ()
    return any(each.type == "Ready" and each.status == "True" for each in conditions)


async def _charge(budgets: ResourceStore, key: str, pod: Any, context: Context) -> None:
    namespace, name = budgets.split(key)
    as_server = msgspec.structs.replace(context, field_manager=MANAGER, subresource="status")

    async def spend(budget: Any) -> Any:
        status = budget.status
        if status is None or (status.observed_generation or 0) < (budget.metadata.generation or 0):
            raise _processing(name)
        allowed = status.disruptions_allowed or 0
        if allowed < 0:
            raise Forbidden("policy", "poddisruptionbudget", name, "pdb disruptions allowed is negative")
        if len(status.disrupted_pods or ()) > _MAX_DISRUPTED:
            why = "DisruptedPods map too big - too many evictions not confirmed by PDB controller"
            raise Forbidden("policy", "poddisruptionbudget", name, why)
        if allowed == 0:
            raise _refused(f"The disruption budget {name} {_spent(status)}", 0)
        old = deepcopy(budget)
        status.disruptions_allowed = allowed - 1
        if allowed == 1:
            _say_spent(status, context.now)
        status.disrupted_pods = {**(status.disrupted_pods or {}), pod.metadata.name: context.now}
        track(budgets, budget, old, as_server)
        return budget

    await budgets.write(namespace, name, spend, dry_run=context.dry_run)


def _spent(status: Any) -> str:
    """Why a budget allows nothing."""
    desired, healthy = status.desired_healthy or 0, status.current_healthy or 0
    refusals = [each for each in status.conditions or () if each.type == _ALLOWED and each.status == "False"]
    said = next(((each.reason, each.message) for each in refusals if each.message), None)
    if said and said[0] == _SYNC_FAILED:
        return f"does not allow evicting pods currently because it failed sync: {said[1]}"
    if healthy <= desired:
        return f"needs {desired} healthy pods and has {healthy} currently"
    return f"does not allow evicting pods currently{f' ({said[0]}): {said[1]}' if said else ''}"


def _say_spent(status: Any, now: str) -> None:
    """Let the condition of a budget say that nothing is left of it."""
    present = list(status.conditions or ())
    before = next((each for each in present if each.type == _ALLOWED), None)
    since = before.last_transition_time if before is not None and before.status == "False" else now
    condition = Condition(
        type=_ALLOWED,
        status="False",
        observed_generation=status.observed_generation,
        last_transition_time=since,
        reason=_INSUFFICIENT,
        message="",
    )
    if before is None:
        status.conditions = [*present, condition]
    else:
        status.conditions = [condition if each is before else each for each in present]


def _processing(name: str) -> APIError:
    return _refused(f"The disruption budget {name} is still being processed by the server.", 10)


def _refused(why: str, seconds: int) -> APIError:
    error = TooManyRequests(_VIOLATES, seconds)
    cause = {"reason": "DisruptionBudget", "message": why}
    error.details = {**({"retryAfterSeconds": seconds} if seconds else {}), "causes": [cause]}
    return error
