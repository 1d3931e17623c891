"""`eviction`: a delete that asks the pod's disruption budget first.

A budget is charged by writing the pod into its status, on condition that nobody else was faster, BEFORE the pod is
deleted: two evictions at once can therefore never spend the same allowance.
"""

from __future__ import annotations

from typing import Any

from pybernetes.api import labels
from pybernetes.api.core.v1 import PodCondition, PodStatus
from pybernetes.api.errors import APIError, InternalError, TooManyRequests
from pybernetes.api.meta.v1 import DeleteOptions, Preconditions
from pybernetes.api.policy.v1 import Eviction
from pybernetes.net.http import Request, Response
from pybernetes.store.cache import Item

from ..registry.registry import Registry
from ..registry.resource_store import ResourceStore
from ..registry.strategy import Context
from ..verbs.admitting import admit_body
from ..verbs.delete import check_preconditions, delete_object
from ..verbs.options import check_delete_options, write_options
from ..verbs.writing import context_for
from .body import check_namespace, check_place, decode_body, success

_VIOLATES = "Cannot evict pod as it would violate the pod's disruption budget."
_MANY = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
_TARGET, _EVICTED = "DisruptionTarget", "EvictionByEvictionAPI"
_MAX_DISRUPTED = 2000  # upstream's MaxDisruptedPodSize


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
    check_place(eviction.metadata, request, "Eviction")  # only now: who may not evict is told that, as upstream
    delete = eviction.delete_options or delete
    context = context_for(registry, request, dry_run=dry_run)
    context.subresource = ""
    pod = store.decode(await store.get(info.namespace, info.name))
    budget = await _budget(registry, pod) if _counts(pod) else None
    if budget is not None:
        budgets = registry.store("policy", "v1", "poddisruptionbudgets")
        if _charges(budgets.decode(budget), pod):
            await _charge(budgets, budget.key, pod, context)
            # The pod that was judged is the pod that goes: a new one of the same name is another matter.
            wanted = delete.preconditions or Preconditions()
            wanted.uid = wanted.uid or pod.metadata.uid
            delete.preconditions = wanted
    if not context.dry_run:
        await _tell(store, pod, delete, context)
        if delete.preconditions:
            delete.preconditions.resource_version = None  # it held when the pod was told, which made a new version
    await delete_object(store, info.name, delete, context, admit=False)
    return success(request)


async def _tell(store: ResourceStore, pod: Any, options: DeleteOptions, context: Context) -> None:
    """Write into the pod why it goes. Whoever made it can then tell an eviction from a failure."""

    async def change(pod: Any) -> Any:
        check_preconditions(store, pod, options)
        pod.status = pod.status or PodStatus()
        present = pod.status.conditions or []
        if not any(each.type == _TARGET and each.reason == _EVICTED for each in present):
            message = "Eviction API: evicting"
            condition = PodCondition(_TARGET, None, "True", None, context.now, _EVICTED, message)
            pod.status.conditions = [*(each for each in present if each.type != _TARGET), condition]
        return pod

    await store.write(pod.metadata.namespace, pod.metadata.name, change)


def _counts(pod: Any) -> bool:
    """Whether the loss of the pod disrupts anything: not if it has ended, is going, or never ran."""
    phase = pod.status.phase if pod.status else ""
    return phase not in ("Succeeded", "Failed", "Pending") and not pod.metadata.deletion_timestamp


async def _budget(registry: Registry, pod: Any) -> Item | None:
    budgets = registry.store("policy", "v1", "poddisruptionbudgets")
    await budgets.consistent()
    found = []
    for key in budgets.partition.scan(budgets.scope(pod.metadata.namespace)):
        item = budgets.partition.items[key]
        spec = budgets.decode(item).spec
        if spec is None or spec.selector is None:
            continue
        if labels.from_label_selector(spec.selector).matches(pod.metadata.labels or {}):
            found.append(item)
    if len(found) > 1:
        raise InternalError(_MANY)
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

    async def spend(budget: Any) -> Any:
        status = budget.status
        if status is None or (status.observed_generation or 0) < (budget.metadata.generation or 0):
            raise _refused(f"The disruption budget {name} is still being processed by the server.", 10)
        allowed = status.disruptions_allowed or 0
        if allowed < 0:
            raise InternalError("pdb disruptions allowed is negative")
        if len(status.disrupted_pods or ()) > _MAX_DISRUPTED:
            raise InternalError("DisruptedPods map too big - too many evictions not confirmed by PDB controller")
        if allowed == 0:
            desired, healthy = status.desired_healthy or 0, status.current_healthy or 0
            raise _refused(f"The disruption budget {name} needs {desired} healthy pods and has {healthy} currently", 0)
        status.disruptions_allowed = allowed - 1
        status.disrupted_pods = {**(status.disrupted_pods or {}), pod.metadata.name: context.now}
        return budget

    await budgets.write(namespace, name, spend, dry_run=context.dry_run)


def _refused(why: str, seconds: int) -> APIError:
    error = TooManyRequests(_VIOLATES, seconds)
    cause = {"reason": "DisruptionBudget", "message": why}
    error.details = {**({"retryAfterSeconds": seconds} if seconds else {}), "causes": [cause]}
    return error
