"""The stages of a changed object, from the decoded and defaulted one to what may be stored.

metadata kept → mutating admission → reservation → validation → validating admission
"""

from __future__ import annotations

from typing import Any

from pybernetes.trace import recorder

from ..admission.plugin import UPDATE, Attributes
from ..large_objects import beside_loop
from ..registry.resource_store import ResourceStore
from ..registry.strategy import Context
from .admission import attributes_of
from .metadata import keep_metadata
from .validation import check_change


async def update_object(
    store: ResourceStore, new: Any, old: Any, context: Context, *, admitted: Attributes | None = None
) -> Any:
    """Check a changed object and complete it; what is returned may be stored in place of `old`.

    `admitted` is for a subresource with a kind of its own: admission sees that kind, and has changed it already.
    """
    keep_metadata(store, new, old, context)
    strategy, admission = store.strategy, context.registry.admission
    attributes = admitted
    if attributes is None:
        attributes = attributes_of(store, UPDATE, new, old, context, old.metadata.name)
        recorder.mark("decoded")
        await admission.admit(attributes)
        recorder.mark("mutating admission")
        new = attributes.new
    if strategy.guards:
        await strategy.guard(new, old, context)
    reservation = await strategy.reserve(new, old, context) if strategy.reserves else None
    try:
        if context.large or strategy.costly:
            await beside_loop(lambda: check_change(store, new, old, context))
        else:
            check_change(store, new, old, context)
        recorder.mark("validated")
        await admission.validate(attributes)
        recorder.mark("validating admission")
    except BaseException:
        if reservation is not None:
            await reservation.rollback()
        raise
    context.reservation = reservation
    return new
