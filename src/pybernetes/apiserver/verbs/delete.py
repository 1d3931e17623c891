"""DELETE one object: immediately, after its grace period, or when its last finalizer is removed.

Three things hold an object back: a grace period (pods: the kubelet confirms), finalizers, and the propagation policy,
which is itself turned into a finalizer (`orphan`, `foregroundDeletion`) for the garbage collector to work off.
"""

from __future__ import annotations

from typing import Any

import msgspec

from pybernetes.api.errors import Conflict
from pybernetes.api.meta.v1 import DeleteOptions
from pybernetes.api.times import parse_time, rfc3339
from pybernetes.net.http import Request, Response
from pybernetes.store.watchers import Item

from ..admission.plugin import DELETE, Attributes
from ..large_objects import SMALL, collecting_later, is_large
from ..negotiation import output_format
from ..pipeline.admission import place
from ..pipeline.context import context_for
from ..pipeline.options import delete_options
from ..pipeline.persist import remove
from ..pipeline.respond import TRANSFORMS, answer, write
from ..registry.registry import Registry
from ..registry.resource_store import ResourceStore
from ..registry.strategy import Context

_ORPHAN, _FOREGROUND = "orphan", "foregroundDeletion"


async def delete(registry: Registry, store: ResourceStore, request: Request) -> Response:
    """Answer with the object if it lives on for a while or its kind shows it, else with a Status."""
    info = request.info
    form = output_format(request.headers, info.query, transforms=TRANSFORMS)
    options = delete_options(request)
    context = context_for(registry, request, dry_run=bool(options.dry_run))
    request.warnings.extend(store.strategy.warnings_on_delete(options))
    item, gone = await delete_object(store, info.name, options, context)
    status = 202 if not gone and options.orphan_dependents is False else 200
    if gone and not store.strategy.returns_deleted:
        return write(_success(store, store.decode(item)), form, status)
    return answer(request, store.resource, store.raw(item), form, status)


async def delete_object(
    store: ResourceStore, name: str, options: DeleteOptions, context: Context, *, admit: bool = True
) -> tuple[Item, bool]:
    """Delete, or mark as being deleted; tells which. Raises Conflict if a precondition does not hold.

    Without `admit` admission has had its say before, about what brought the deletion about.
    """
    item = await store.get(context.namespace, name)
    if len(item.raw) > SMALL and is_large(item.raw):
        with collecting_later:
            return await _delete(store, item, name, options, context, admit)
    return await _delete(store, item, name, options, context, admit)


async def _delete(
    store: ResourceStore, item: Item, name: str, options: DeleteOptions, context: Context, admit: bool
) -> tuple[Item, bool]:
    while True:
        obj = store.decode(item)
        check_preconditions(store, obj, options)
        store.strategy.check_delete(obj)
        if admit:
            await _admit(store, obj, options, context)
        registry = context.registry
        decision = decide(store, obj, options, registry.clock.now(), collects=registry.collects_garbage)
        if decision == "wait":
            return item, False
        if decision in ("mark", "finish"):
            marked = await store.replace(item, obj, dry_run=context.dry_run)
            if marked is not None and (decision == "mark" or context.dry_run):
                return marked, decision == "finish"
            removed = await remove(store, marked, obj, context) if marked is not None else None
            if removed is not None:
                return removed, True
        elif context.dry_run:
            return item, True
        else:
            removed = await remove(store, item, obj, context)
            if removed is not None:
                return removed, True
        item = await store.get(context.namespace, name)


def decide(store: ResourceStore, obj: Any, options: DeleteOptions, now: float, *, collects: bool = True) -> str:
    """Decide what a delete does to the object: `remove` it, `mark` it (it has been changed then), or `wait`.

    `finish` marks and then removes it: those who watch a graceful kind see that its time is over before it is gone.
    The propagation policy is ignored unless a garbage collector runs (`collects`).
    """
    meta = obj.metadata
    strategy = store.strategy
    graceful = False
    if strategy.graceful:
        if meta.deletion_timestamp and meta.deletion_grace_period_seconds:
            if not _shorten(meta, options, now):
                return "wait"
            graceful = True
        elif not meta.deletion_timestamp:
            seconds = options.grace_period_seconds
            seconds = strategy.grace_period(obj, 1 if seconds is not None and seconds < 0 else seconds)
            _mark(meta, now, seconds)
            graceful = True
    finalizers = _finalizers(store, obj, options) if collects else list(meta.finalizers or ())
    if finalizers != list(meta.finalizers or ()):
        meta.finalizers = finalizers or None
    if graceful:
        return "mark" if meta.deletion_grace_period_seconds or strategy.held(obj) else "finish"
    if not strategy.held(obj):
        return "remove"
    if not meta.deletion_timestamp:
        _mark(meta, now, 0)
        strategy.mark(obj)
    elif strategy.graceful:
        meta.deletion_grace_period_seconds = 0
    return "mark"


def _mark(meta: Any, now: float, seconds: int) -> None:
    meta.deletion_timestamp = rfc3339(now + seconds)
    meta.deletion_grace_period_seconds = seconds
    if meta.generation:
        meta.generation += 1


def _shorten(meta: Any, options: DeleteOptions, now: float) -> bool:
    """Bring a deletion that is under way forward; it can never be put off."""
    wanted = options.grace_period_seconds
    if wanted is None:
        return False
    wanted = 1 if wanted < 0 else wanted
    if wanted >= meta.deletion_grace_period_seconds:
        return False
    moment = parse_time(meta.deletion_timestamp) - meta.deletion_grace_period_seconds + wanted
    if moment < now:
        moment = now
        wanted = 1 if wanted else 0
    meta.deletion_timestamp = rfc3339(moment)
    meta.deletion_grace_period_seconds = wanted
    return True


def _finalizers(store: ResourceStore, obj: Any, options: DeleteOptions) -> list[str]:
    """The finalizers with that of the propagation policy."""
    present = list(obj.metadata.finalizers or ())
    if not store.strategy.collects_garbage:
        return present
    policy = options.propagation_policy
    if policy is None and options.orphan_dependents is not None:
        policy = "Orphan" if options.orphan_dependents else "Background"
    if policy is None:
        if _ORPHAN in present:
            policy = "Orphan"
        elif _FOREGROUND in present:
            policy = "Foreground"
        else:
            policy = store.strategy.default_propagation()
    kept = [each for each in present if each not in (_ORPHAN, _FOREGROUND)]
    wanted = {"Orphan": _ORPHAN, "Foreground": _FOREGROUND}.get(policy)
    if wanted and wanted in present:
        return [each for each in present if each in kept or each == wanted]
    return [*kept, wanted] if wanted else kept


def check_preconditions(store: ResourceStore, obj: Any, options: DeleteOptions) -> None:
    """The object is the one the client wants to delete. Raises Conflict."""
    wanted = options.preconditions
    if wanted is None:
        return
    meta = obj.metadata
    resource = store.resource
    if wanted.uid is not None and wanted.uid != meta.uid:
        raise Conflict(
            resource.group,
            resource.kind,
            meta.name,
            f"the UID in the precondition ({wanted.uid}) does not match the UID in record ({meta.uid}). "
            "The object might have been deleted and then recreated",
        )
    if wanted.resource_version is not None and wanted.resource_version != meta.resource_version:
        raise Conflict(
            resource.group,
            resource.kind,
            meta.name,
            f"the ResourceVersion in the precondition ({wanted.resource_version}) does not match the ResourceVersion "
            f"in record ({meta.resource_version}). The object might have been modified",
        )


async def _admit(store: ResourceStore, obj: Any, options: DeleteOptions, context: Context) -> None:
    admission = context.registry.admission
    attributes = Attributes(
        DELETE,
        store.storage,
        "",
        context.namespace or place(store, obj.metadata.name),
        obj.metadata.name,
        None,
        obj,
        context.user,
        context.dry_run,
        context.warnings,
        options,
        store.resource,
        annotations=context.annotations,
    )
    await admission.admit(attributes)
    await admission.validate(attributes)


def _success(store: ResourceStore, obj: Any) -> bytes:
    """The Status that stands for an object that is gone."""
    resource = store.resource
    details = {"name": obj.metadata.name, "group": resource.group, "kind": resource.plural, "uid": obj.metadata.uid}
    return msgspec.json.encode(
        {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Success",
            "details": {name: value for name, value in details.items() if value},
        }
    )
