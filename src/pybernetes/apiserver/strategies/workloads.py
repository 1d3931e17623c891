"""Shared by kinds with a pod template: a generation for every new spec, and warnings about the template."""

from __future__ import annotations

from typing import Any, ClassVar

from pybernetes.api import names
from pybernetes.api.core.disabled import drop_disabled_pod_fields
from pybernetes.api.equality import semantically_equal
from pybernetes.api.field import Path
from pybernetes.apiserver.registry.strategy import Context, Strategy

from .core.pod_warnings import pod_template_warnings


class WorkloadStrategy(Strategy):
    """A kind whose controller makes pods from a template."""

    has_generation = True
    warns_about_names: ClassVar = True
    """Whether the names of pods come from the object's, so that a name with dots is worth a warning."""

    def template_path(self) -> Path:
        """Where the pod template is."""
        return Path("spec", "template")

    def template(self, obj: Any) -> Any:
        """The pod template of an object."""
        return obj.spec.template

    def new_status(self) -> Any:
        """The status of an object that no controller has seen."""
        raise NotImplementedError

    def prepare_for_create(self, obj: Any, context: Context) -> None:
        super().prepare_for_create(obj, context)
        obj.status = self.new_status()
        drop_disabled_pod_fields(self.template(obj).spec, None)

    def prepare_for_update(self, new: Any, old: Any, context: Context) -> None:
        drop_disabled_pod_fields(self.template(new).spec, self.template(old).spec)
        super().prepare_for_update(new, old, context)

    def changed(self, new: Any, old: Any) -> bool:
        return not semantically_equal(new.spec, old.spec)

    def warnings_on_create(self, obj: Any, context: Context) -> list[str]:
        warnings = name_warnings(obj.metadata.name) if self.warns_about_names else []
        return warnings + self.template_warnings(obj, None)

    def warnings_on_update(self, new: Any, old: Any, context: Context) -> list[str]:
        return self.template_warnings(new, old) if new.metadata.generation != old.metadata.generation else []

    def template_warnings(self, new: Any, old: Any | None) -> list[str]:
        """Warnings about the pod template."""
        return pod_template_warnings(self.template_path(), self.template(new), self.template(old) if old else None)


def name_warnings(name: str) -> list[str]:
    """A name that is no DNS label makes poor host names."""
    problems = names.is_dns1123_label(name)
    if not problems:
        return []
    return [
        "metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; "
        f"a DNS label is recommended: [{' '.join(problems)}]"
    ]
