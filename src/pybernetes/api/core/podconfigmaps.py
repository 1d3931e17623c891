"""Which ConfigMaps a pod names, in all the places where it can."""

from __future__ import annotations

from collections.abc import Iterator

from .containers import all_containers
from .v1.pod import Pod


def config_map_names(pod: Pod) -> Iterator[str]:
    """All ConfigMaps that a pod names."""
    spec = pod.spec
    if spec is None:
        return
    for container in all_containers(spec):
        for source in container.env_from or ():
            if source.config_map_ref:
                yield source.config_map_ref.name or ""
        for variable in container.env or ():
            if variable.value_from and variable.value_from.config_map_key_ref:
                yield variable.value_from.config_map_key_ref.name or ""
    for volume in spec.volumes or ():
        if volume.config_map:
            yield volume.config_map.name or ""
        if volume.projected:
            yield from (each.config_map.name or "" for each in volume.projected.sources or () if each.config_map)
