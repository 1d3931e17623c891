"""A pod that asks for devices tolerates the taint that keeps others off the nodes that have them."""

from __future__ import annotations

from pybernetes.api.core.resourcenames import is_extended
from pybernetes.api.core.v1 import PodSpec, Toleration

from .plugin import CREATE, UPDATE, Attributes, Plugin


class ExtendedResourceToleration(Plugin):
    """Upstream's ExtendedResourceToleration."""

    name = "ExtendedResourceToleration"
    operations = (CREATE, UPDATE)
    resources = ("pods",)

    def admit(self, attributes: Attributes) -> None:
        spec: PodSpec = attributes.new.spec or PodSpec()
        asked = {
            name
            for container in (*(spec.containers or ()), *(spec.init_containers or ()))
            if container.resources is not None
            for name in container.resources.requests or ()
            if is_extended(name)
        }
        for name in sorted(asked):
            _add(spec, Toleration(key=name, operator="Exists", effect="NoSchedule"))


def _add(spec: PodSpec, wanted: Toleration) -> None:
    """One that differs only in its seconds is replaced."""
    present = list(spec.tolerations or ())
    alike = [index for index, each in enumerate(present) if _same_taint(each, wanted)]
    if any(present[index] == wanted for index in alike):
        return
    for index in alike:
        present[index] = wanted
    spec.tolerations = present if alike else [*present, wanted]


def _same_taint(one: Toleration, other: Toleration) -> bool:
    return (one.key, one.effect, one.operator, one.value or "") == (
        other.key,
        other.effect,
        other.operator,
        other.value or "",
    )
