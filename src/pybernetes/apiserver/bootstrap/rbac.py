"""Sees to it at every start that the roles and bindings every cluster has grant at least what they should.

Removed rules and subjects are restored, added ones stay; `autoupdate: "false"` on an object keeps it from
being changed. A binding that refers to another role is made anew, since that cannot be changed.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from typing import Any

import msgspec

from pybernetes.api.equality import semantically_equal
from pybernetes.api.errors import AlreadyExists, NotFound
from pybernetes.api.rbac.defaults import GROUP
from pybernetes.api.rbac.v1 import ClusterRole, Role
from pybernetes.api.times import rfc3339

from ..authz.bootstrap_policy import AUTOUPDATE, RBACObject, bootstrap_policy, metrics_reader, span_writers
from ..authz.coverage import missing
from ..pipeline.change import update_object
from ..pipeline.creation import create_object
from ..pipeline.persist import write_object
from ..registry.managed_fields import track
from ..registry.registry import Registry
from ..registry.resource_store import ResourceStore, Transform
from ..registry.strategy import Context
from ..user import User

log = logging.getLogger(__name__)
_USER = User("system:apiserver", groups=("system:masters",))
_MANAGER = "kube-apiserver"
_ATTEMPTS = 3


async def reconcile_policy(registry: Registry) -> None:
    """Create or complete all roles and bindings; at once, so that the store writes them together."""
    policy = list(bootstrap_policy())
    if registry.served("metrics.k8s.io", "v1beta1", "pods") is not None:
        policy.append(metrics_reader())
    if registry.records:
        policy += span_writers()
    await asyncio.gather(*[_reconcile(registry, wanted) for wanted in policy])


async def _reconcile(registry: Registry, wanted: RBACObject) -> None:
    store = registry.store(GROUP, "v1", f"{type(wanted).__name__.lower()}s")
    meta = wanted.metadata
    assert meta is not None
    assert meta.name is not None
    namespace, name = meta.namespace or "", meta.name
    context = Context(registry, _USER, rfc3339(registry.clock.now()), namespace, field_manager=_MANAGER, warnings=[])
    for _ in range(_ATTEMPTS):
        item = store.peek(namespace, name)
        try:
            if item is None:
                new = msgspec.structs.replace(wanted, metadata=msgspec.structs.replace(meta))
                store.strategy.default(new)
                track(store, new, None, context)
                await create_object(store, new, context)
                return
            present = next((obj for _, obj in store.decode_all((item,))), None)
            if present is None:
                return  # it cannot be read, and is not ours to overwrite
            if (present.metadata.annotations or {}).get(AUTOUPDATE) == "false":
                return
            if _refers_elsewhere(wanted, present):
                await store.delete(item)
                continue
            if completed(wanted, present) is not None:
                await write_object(store, name, _completing(store, wanted, context), context)
            return
        except (AlreadyExists, NotFound):
            continue  # another server on the same store
    log.warning("unable to reconcile %s %s", store.resource.plural, name)


def completed(wanted: Any, present: Any) -> Any | None:
    """The present object with what it lacks of the wanted one; None if it lacks nothing."""
    meta, before = wanted.metadata, present.metadata
    changes: dict[str, Any] = {}
    labels = {**(meta.labels or {}), **(before.labels or {})}
    annotations = {**(meta.annotations or {}), **(before.annotations or {})}
    if labels != (before.labels or {}) or annotations != (before.annotations or {}):
        changes["metadata"] = msgspec.structs.replace(before, labels=labels, annotations=annotations)
    if isinstance(wanted, Role | ClusterRole):
        changes |= _completed_role(wanted, present)
    else:
        lacking = [each for each in wanted.subjects or () if each not in (present.subjects or ())]
        if lacking:
            changes["subjects"] = [*(present.subjects or ()), *lacking]
    if not changes:
        return None
    changes.setdefault("metadata", msgspec.structs.replace(before))
    return msgspec.structs.replace(present, **changes)


def _completed_role(wanted: Any, present: Any) -> dict[str, Any]:
    changes: dict[str, Any] = {}
    lacking = missing(present.rules or [], wanted.rules or [], sys.maxsize).rules
    if lacking:
        changes["rules"] = [*(present.rules or ()), *lacking]
    if isinstance(wanted, ClusterRole):
        rule, before = wanted.aggregation_rule, present.aggregation_rule
        if rule is None:
            if before is not None:
                changes["aggregation_rule"] = None
            return changes
        selectors = (before.cluster_role_selectors if before else None) or []
        absent = [
            each
            for each in rule.cluster_role_selectors or ()
            if not any(semantically_equal(each, other) for other in selectors)
        ]
        if absent:
            changes["aggregation_rule"] = msgspec.structs.replace(rule, cluster_role_selectors=[*selectors, *absent])
    return changes


def _completing(store: ResourceStore, wanted: Any, context: Context) -> Transform:
    async def complete(old: Any) -> Any:
        new = completed(wanted, old)
        if new is None:
            return old
        track(store, new, old, context)
        return await update_object(store, new, old, context)

    return complete


def _refers_elsewhere(wanted: Any, present: Any) -> bool:
    return not isinstance(wanted, Role | ClusterRole) and wanted.role_ref != present.role_ref
