"""How CustomResourceDefinitions are created and updated.

Every version that objects were ever stored in is remembered in the status. An update must say which version it is for.
"""

from __future__ import annotations

from typing import Final

from pybernetes.api.apiextensions.conditions import CLEANUP, TERMINATING, put
from pybernetes.api.apiextensions.formats import recognized
from pybernetes.api.apiextensions.schemas import all_subschemas
from pybernetes.api.apiextensions.v1 import (
    CustomResourceDefinition,
    CustomResourceDefinitionNames,
    CustomResourceDefinitionSpec,
    CustomResourceDefinitionStatus,
)
from pybernetes.api.equality import semantically_equal
from pybernetes.api.gocompat.quote import quote
from pybernetes.apiserver.registry.strategy import Context, Strategy


class CustomResourceDefinitionStrategy(Strategy):
    """CustomResourceDefinitions. Validation compiles their patterns and rules, so it is done beside the event loop."""

    costly = True
    has_generation = True
    allow_unconditional_update = False

    def prepare_for_create(self, obj: CustomResourceDefinition, context: Context) -> None:
        super().prepare_for_create(obj, context)
        obj.status = CustomResourceDefinitionStatus(accepted_names=CustomResourceDefinitionNames(plural="", kind=""))
        _remember_stored_version(obj)

    collects_garbage = False

    def held(self, obj: CustomResourceDefinition) -> bool:
        """Until its objects are gone: the first request to delete it adds a finalizer for that."""
        meta = obj.metadata
        return meta is not None and (not meta.deletion_timestamp or bool(meta.finalizers))

    def mark(self, obj: CustomResourceDefinition) -> None:
        meta = obj.metadata
        assert meta is not None
        meta.finalizers = [*(each for each in meta.finalizers or () if each != CLEANUP), CLEANUP]
        meta.deletion_grace_period_seconds = None
        meta.generation = (meta.generation or 1) - 1 or None  # nothing else is wanted of it than before
        message = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon"
        now = meta.deletion_timestamp or ""
        put(obj, now, TERMINATING, "True", "InstanceDeletionPending", message)

    def prepare_for_update(
        self, new: CustomResourceDefinition, old: CustomResourceDefinition, context: Context
    ) -> None:
        super().prepare_for_update(new, old, context)
        _remember_stored_version(new)

    def changed(self, new: CustomResourceDefinition, old: CustomResourceDefinition) -> bool:
        return not semantically_equal(new.spec, old.spec)

    def warnings_on_create(self, obj: CustomResourceDefinition, context: Context) -> list[str]:
        return [f"unrecognized format {quote(format)}" for format in _unrecognized_formats(obj)]

    def warnings_on_update(
        self, new: CustomResourceDefinition, old: CustomResourceDefinition, context: Context
    ) -> list[str]:
        known = set(_unrecognized_formats(old))
        return [f"unrecognized format {quote(each)}" for each in _unrecognized_formats(new) if each not in known]


def _remember_stored_version(definition: CustomResourceDefinition) -> None:
    spec, status = definition.spec or CustomResourceDefinitionSpec(), definition.status
    stored = next((version.name or "" for version in spec.versions or () if version.storage), None)
    if stored is not None and status is not None and stored not in (status.stored_versions or ()):
        status.stored_versions = [*(status.stored_versions or ()), stored]


def _unrecognized_formats(definition: CustomResourceDefinition) -> list[str]:
    schemas = all_subschemas(definition.spec or CustomResourceDefinitionSpec())
    return [each.format for each in schemas if each.format and not recognized(each.format, each.type or "")]


STRATEGIES: Final[dict[str, type[Strategy]]] = {"customresourcedefinitions": CustomResourceDefinitionStrategy}
