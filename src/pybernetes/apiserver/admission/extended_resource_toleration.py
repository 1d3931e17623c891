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
        wanted = [Toleration(key=name, operator="Exists", effect="NoSchedule") for name in sorted(asked)]
        if wanted:
            spec.tolerations = _added(list(spec.tolerations or ()), wanted)


def _added(tolerations: list[Toleration], wanted: list[Toleration]) -> list[Toleration]:
    """The tolerations with those that are wanted; one that differs only in its seconds is replaced."""
    places: dict[tuple[str | None, ...], list[int]] = {}
    for index, each in enumerate(tolerations):
        places.setdefault(_taint(each), []).append(index)
    for each in wanted:
        alike = places.get(_taint(each), ())
        if any(tolerations[index] == each for index in alike):
            continue
        for index in alike:
            tolerations[index] = each
        if not alike:
            tolerations.append(each)
    return tolerations


def _taint(toleration: Toleration) -> tuple[str | None, ...]:
    return toleration.key, toleration.effect, toleration.operator, toleration.value or ""
