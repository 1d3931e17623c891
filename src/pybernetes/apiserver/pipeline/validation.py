"""Validation stage: the strategy of a resource prepares an object and finds what is wrong with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pybernetes.api.errors import Invalid
from pybernetes.api.field import FieldError
from pybernetes.api.meta.validation import validate_common_create, validate_common_update
from pybernetes.trace import recorder

from ..initializers import is_pending
from ..registry.resource_store import ResourceStore
from ..registry.strategy import Context, Strategy


def check(store: ResourceStore, name: str, errors: list[FieldError]) -> None:
    """Raise Invalid if there are errors."""
    if errors:
        raise Invalid(store.storage.group, store.storage.kind, name, errors)


def check_new(store: ResourceStore, obj: Any, context: Context) -> None:
    """Raise Invalid if there is something wrong with a new object."""
    strategy = store.strategy
    strategy.prepare_for_create(obj, context)
    errors = strategy.validate(obj, context)
    if not errors and not strategy.checks_metadata:
        errors = validate_common_create(obj.metadata, store.resource.namespaced)
    if errors:
        check(store, obj.metadata.name or "", errors)
    context.warnings.extend(strategy.warnings_on_create(obj, context))
    recorder.mark("validated")


def check_change(store: ResourceStore, new: Any, old: Any, context: Context) -> None:
    """Raise Invalid if there is something wrong with a changed object."""
    strategy = store.strategy
    prepare, validate = strategy.rules(context.subresource)
    if store.initializes and not context.subresource and is_pending(old):
        validate = _as_new(strategy)  # no client has seen it yet, so no field is immutable
    prepare(new, old, context)
    common = validate_common_update(new.metadata, old.metadata, store.resource.namespaced)
    check(store, old.metadata.name, common + validate(new, old, context))
    if not context.subresource:
        context.warnings.extend(strategy.warnings_on_update(new, old, context))


def _as_new(strategy: Strategy) -> Callable[[Any, Any, Context], list[FieldError]]:
    return lambda new, old, context: strategy.validate(new, context)
