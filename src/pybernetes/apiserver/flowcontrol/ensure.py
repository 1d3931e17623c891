"""Keeps the objects of `defaults` in the store, and the status of every FlowSchema right.

The mandatory ones are always restored. The suggested ones are restored unless a user has changed them: an annotation
says whether, and where it is missing, whether the object is still as it was made.
"""

from __future__ import annotations

from typing import Any

import msgspec

from pybernetes.api.equality import semantically_equal
from pybernetes.api.errors import AlreadyExists, APIError, NotFound
from pybernetes.api.flowcontrol import mandatory
from pybernetes.api.flowcontrol.v1 import FlowSchemaCondition, FlowSchemaStatus
from pybernetes.api.gocompat.quote import quote

from ..bootstrap.objects import apply_status, update
from ..pipeline.creation import create_object
from ..pipeline.persist import write_object
from ..registry.lister import lister
from ..registry.managed_fields import track
from ..registry.registry import Registry
from ..registry.resource_store import ResourceStore
from ..registry.server_context import own_context
from .defaults import AUTOUPDATE, flow_schemas, priority_levels

GROUP = "flowcontrol.apiserver.k8s.io"
_PRODUCER = "api-priority-and-fairness-config-producer-v1"
_CONSUMER = "api-priority-and-fairness-config-consumer-v1"


async def ensure_objects(registry: Registry) -> None:
    """Create what is missing and put right what may be put right."""
    for plural, wanted in (("prioritylevelconfigurations", priority_levels()), ("flowschemas", flow_schemas())):
        store = registry.store(GROUP, "v1", plural)
        for each in wanted:
            await _ensure(registry, store, each)


async def ensure_statuses(registry: Registry) -> None:
    """Say of every FlowSchema whether the level it refers to exists."""
    levels = lister(registry, GROUP, "v1", "prioritylevelconfigurations")
    store = registry.store(GROUP, "v1", "flowschemas")
    for schema in list(lister(registry, GROUP, "v1", "flowschemas").list()):
        wanted = _condition(schema, levels.get("", _level(schema)) is not None, "")
        present = next((each for each in _conditions(schema) if each.type == "Dangling"), None)
        if present is None or (present.status, present.message) != (wanted.status, wanted.message):
            try:
                await _write_status(registry, store, schema.metadata.name, levels)
            except (NotFound, APIError):
                continue  # deleted or changed meanwhile; the next change wakes us


async def _ensure(registry: Registry, store: ResourceStore, wanted: Any) -> None:
    name = wanted.metadata.name
    context = own_context(registry, manager=_PRODUCER)
    item = store.peek("", name)
    if item is None:
        store.strategy.default(wanted)
        track(store, wanted, None, context)
        try:
            await create_object(store, wanted, context)
        except AlreadyExists:
            pass  # another server on the same store
        return
    required = name in (mandatory.EXEMPT, mandatory.CATCH_ALL)
    store.strategy.default(wanted)

    async def revise(old: Any) -> Any:
        revised = revision(wanted, old, required)
        if revised is None:
            return old
        return await update(store, revised, old, context)

    present = next((obj for _, obj in store.decode_all((item,))), None)
    if present is not None and revision(wanted, present, required) is not None:
        try:
            await write_object(store, name, revise, context)
        except NotFound:
            pass


def revision(wanted: Any, present: Any, required: bool) -> Any | None:
    """The corrected object; None if it is right, or must not be changed."""
    annotations = dict(present.metadata.annotations or {})
    said = annotations.get(AUTOUPDATE)
    auto = said == "true" if said in ("true", "false") else (present.metadata.generation or 1) == 1
    annotations[AUTOUPDATE] = "true" if required or auto else "false"
    spec = present.spec
    if (required or auto) and not semantically_equal(wanted.spec, present.spec):
        spec = wanted.spec
    if spec is present.spec and annotations == (present.metadata.annotations or {}):
        return None
    meta = msgspec.structs.replace(present.metadata, annotations=annotations)
    return msgspec.structs.replace(present, metadata=meta, spec=spec)


async def _write_status(registry: Registry, store: ResourceStore, name: str, levels: Any) -> None:
    context = own_context(registry, manager=_CONSUMER)
    context.subresource = "status"

    async def write(old: Any) -> Any:
        condition = _condition(old, levels.get("", _level(old)) is not None, context.now)
        before = next((each for each in _conditions(old) if each.type == "Dangling"), None)
        if before is not None and before.status == condition.status:
            condition.last_transition_time = before.last_transition_time
        return await apply_status(store, old, FlowSchemaStatus(conditions=[condition]), context)

    await write_object(store, name, write, context)


def _condition(schema: Any, exists: bool, now: str) -> FlowSchemaCondition:
    what = f"This FlowSchema references the PriorityLevelConfiguration object named {quote(_level(schema))}"
    return FlowSchemaCondition(
        type="Dangling",
        status="False" if exists else "True",
        last_transition_time=now or None,
        reason="Found" if exists else "NotFound",
        message=f"{what} and it exists" if exists else f"{what} but there is no such object",
    )


def _conditions(schema: Any) -> list[FlowSchemaCondition]:
    return (schema.status and schema.status.conditions) or []


def _level(schema: Any) -> str:
    reference = schema.spec and schema.spec.priority_level_configuration
    return (reference and reference.name) or ""
