"""Admission stages: what mutating and validating admission are asked about.

The plugins are in `admission/`; `registry.admission` has those of this server.
"""

from __future__ import annotations

from typing import Any

from ..admission.plugin import Attributes
from ..registry.resource_store import ResourceStore
from ..registry.strategy import Context


def attributes_of(store: ResourceStore, operation: str, new: Any, old: Any, context: Context, name: str) -> Attributes:
    """The admission attributes of a create or update."""
    return Attributes(
        operation,
        store.storage,
        context.subresource,
        context.namespace or place(store, name),
        name,
        new,
        old,
        context.user,
        context.dry_run,
        context.warnings,
        context.options,
        store.resource,
        annotations=context.annotations,
    )


def place(store: ResourceStore, name: str) -> str:
    """The namespace of admission's attributes for cluster-scoped objects: a Namespace is in itself."""
    return name if store.resource.fullname == "namespaces" else ""
