"""Namespaces: two lists of finalizers, and a phase that follows deletion.

`spec.finalizers` is set on creation and changes only through the `finalize` subresource. A deleted Namespace first
turns to Terminating; it goes when nothing is left in its `spec.finalizers`.
"""

from __future__ import annotations

from typing import Any, Final

from pybernetes.api.core.defaults.namespace import label_with_name
from pybernetes.api.core.v1.namespace import NamespaceSpec, NamespaceStatus
from pybernetes.api.core.validation.namespace import validate_namespace_finalize
from pybernetes.api.field import FieldError
from pybernetes.apiserver.registry.strategy import Context, Strategy

FINALIZER: Final = "kubernetes"


class NamespaceStrategy(Strategy):
    """The label with the name is set again here: a generated name was not known to the defaults."""

    returns_deleted = True

    def prepare_for_create(self, obj: Any, context: Context) -> None:
        label_with_name(obj)
        obj.status = NamespaceStatus(phase="Active")
        if obj.spec is None:
            obj.spec = NamespaceSpec()
        finalizers = obj.spec.finalizers or []
        if FINALIZER not in finalizers:
            obj.spec.finalizers = [*finalizers, FINALIZER]

    def prepare_for_update(self, new: Any, old: Any, context: Context) -> None:
        label_with_name(new)
        new.status = old.status
        if context.subresource != "finalize":
            if new.spec is None:
                new.spec = NamespaceSpec()
            new.spec.finalizers = old.spec.finalizers if old.spec else None

    def validate_update(self, new: Any, old: Any, context: Context) -> list[FieldError]:
        if context.subresource == "finalize":
            return validate_namespace_finalize(new, old)
        return super().validate_update(new, old, context)

    def held(self, obj: Any) -> bool:
        return bool(obj.metadata.finalizers) or bool(obj.spec and obj.spec.finalizers)

    def mark(self, obj: Any) -> None:
        obj.status = obj.status or NamespaceStatus()
        obj.status.phase = "Terminating"
        obj.metadata.deletion_grace_period_seconds = None  # a namespace has no grace period


STRATEGIES: Final[dict[str, type[Strategy]]] = {"namespaces": NamespaceStrategy}
