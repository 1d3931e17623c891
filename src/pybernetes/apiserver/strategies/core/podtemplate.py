"""How PodTemplates are created and updated: every change of the template is a new generation."""

from __future__ import annotations

from typing import Any, Final

from pybernetes.api.core.disabled import drop_disabled_pod_fields
from pybernetes.api.core.v1 import PodTemplate
from pybernetes.api.equality import semantically_equal
from pybernetes.api.field import Path
from pybernetes.apiserver.registry.strategy import Context, Strategy

from .pod_warnings import pod_template_warnings

_TEMPLATE: Final = Path("template")


class PodTemplateStrategy(Strategy):
    """PodTemplates."""

    has_generation = True
    returns_deleted = True

    def prepare_for_create(self, obj: PodTemplate, context: Context) -> None:
        super().prepare_for_create(obj, context)
        drop_disabled_pod_fields(obj.template.spec if obj.template is not None else None, None)

    def prepare_for_update(self, new: PodTemplate, old: PodTemplate, context: Context) -> None:
        before = old.template.spec if old.template is not None else None
        drop_disabled_pod_fields(new.template.spec if new.template is not None else None, before)
        super().prepare_for_update(new, old, context)

    def changed(self, new: PodTemplate, old: PodTemplate) -> bool:
        return not semantically_equal(new.template, old.template)

    def warnings_on_create(self, obj: PodTemplate, context: Context) -> list[str]:
        return pod_template_warnings(_TEMPLATE, obj.template)

    def warnings_on_update(self, new: Any, old: Any, context: Context) -> list[str]:
        same = new.metadata.generation == old.metadata.generation
        return [] if same else pod_template_warnings(_TEMPLATE, new.template, old.template)


STRATEGIES: Final = {"podtemplates": PodTemplateStrategy}
