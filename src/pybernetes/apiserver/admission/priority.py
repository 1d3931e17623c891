"""A pod's priority is the number behind the name of its PriorityClass, and only one class is the default."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from pybernetes.api.core.v1 import Pod, PodSpec
from pybernetes.api.scheduling.v1 import PriorityClass

from ..registry.lister import Lister, lister
from .plugin import CREATE, UPDATE, Attributes, Plugin, forbidden

if TYPE_CHECKING:
    from ..registry.registry import Registry

_PREEMPT = "PreemptLowerPriority"


class Priority(Plugin):
    """Upstream's Priority."""

    name = "Priority"
    operations = (CREATE, UPDATE)
    resources = ("pods", "priorityclasses.scheduling.k8s.io")

    def __init__(self, registry: Registry, configuration: Any = None) -> None:
        super().__init__(registry)
        self._default: PriorityClass | None = None
        self._seen = -1

    def admit(self, attributes: Attributes) -> None:
        if attributes.resource.group:
            return
        pod: Pod = attributes.new
        spec = pod.spec = pod.spec or PodSpec()
        if attributes.operation == UPDATE:
            before = attributes.old.spec or PodSpec()
            if spec.priority is None:
                spec.priority = before.priority
            if spec.preemption_policy is None:
                spec.preemption_policy = before.preemption_policy
            return
        name = spec.priority_class_name
        found = self._named(name, attributes) if name else self.default()
        value, policy = (0, _PREEMPT) if found is None else (found.value or 0, found.preemption_policy)
        if spec.priority is not None and spec.priority != value:
            raise forbidden(
                attributes,
                f"the integer value of priority ({spec.priority}) must not be provided in pod spec; priority admission "
                f"controller computed {value} from the given PriorityClass name",
            )
        spec.priority = value
        if found is not None and found.metadata is not None:
            spec.priority_class_name = found.metadata.name
        if policy is None:
            return
        if spec.preemption_policy is not None and spec.preemption_policy != policy:
            raise forbidden(
                attributes,
                f"the string value of PreemptionPolicy ({spec.preemption_policy}) must not be provided in pod spec; "
                f"priority admission controller computed {policy} from the given PriorityClass name",
            )
        spec.preemption_policy = policy

    def validate(self, attributes: Attributes) -> None:
        if not attributes.resource.group or not attributes.new.global_default:
            return
        present = self.default()
        name = present.metadata.name if present is not None and present.metadata is not None else None
        if name is not None and (attributes.operation == CREATE or name != attributes.new.metadata.name):
            raise forbidden(
                attributes, f"PriorityClass {name} is already marked as default. Only one default can exist"
            )

    def default(self) -> PriorityClass | None:
        """The default class; of several, which only a race can bring about, the lowest."""
        classes = self._classes
        if self._seen != classes.changed:
            self._seen = classes.changed
            marked = [each for each in classes.list() if each.global_default]
            self._default = min(marked, key=lambda each: each.value or 0, default=None)
        return self._default

    def _named(self, name: str, attributes: Attributes) -> PriorityClass:
        found = self._classes.get("", name)
        if found is None:
            raise forbidden(attributes, f"no PriorityClass with name {name} was found")
        return found

    @cached_property
    def _classes(self) -> Lister[PriorityClass]:
        return lister(self.registry, "scheduling.k8s.io", "v1", "priorityclasses")
