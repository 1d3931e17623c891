"""ConfigMaps and Secrets that a pod cannot start without: mounted as volumes, or in its environment. Pure.

Only whether they are there is looked at, not which keys they have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from pybernetes.api.core.containers import AnyContainer, all_containers
from pybernetes.api.core.v1 import Pod, PodSpec, Volume

CONFIG_MAP, SECRET = "configmap", "secret"

Wanted = tuple[str, str]
"""The kind of object, and its name."""
IsThere = Callable[[str, str, str], bool]
"""`is_there(sort, namespace, name)`"""


@dataclass(slots=True)
class Missing:
    """The missing objects that a pod waits for."""

    volumes: dict[str, str] = field(default_factory=dict)
    """Why each volume cannot be mounted, by name: the pod gets no sandbox."""
    containers: dict[str, str] = field(default_factory=dict)
    """Why each container cannot be made, by name."""
    objects: set[Wanted] = field(default_factory=set)

    def __bool__(self) -> bool:
        return bool(self.objects)


def missing(pod: Pod, is_there: IsThere) -> Missing:
    """All that is not there."""
    spec, namespace = pod.spec or PodSpec(), (pod.metadata.namespace if pod.metadata else None) or ""
    result = Missing()

    def check(wanted: Iterator[Wanted], name: str, into: dict[str, str]) -> None:
        for sort, each in wanted:
            if not is_there(sort, namespace, each):
                into.setdefault(name, f'{sort} "{each}" not found')
                result.objects.add((sort, each))

    for volume in spec.volumes or ():
        check(_of_volume(volume), volume.name or "", result.volumes)
    for container in all_containers(spec):
        if container.env or container.env_from:
            check(_of_environment(container), container.name or "", result.containers)
    return result


def _of_volume(volume: Volume) -> Iterator[Wanted]:
    if volume.config_map is not None and not volume.config_map.optional:
        yield CONFIG_MAP, volume.config_map.name or ""
    if volume.secret is not None and not volume.secret.optional:
        yield SECRET, volume.secret.secret_name or ""
    for source in (volume.projected.sources if volume.projected else None) or ():
        if source.config_map is not None and not source.config_map.optional:
            yield CONFIG_MAP, source.config_map.name or ""
        if source.secret is not None and not source.secret.optional:
            yield SECRET, source.secret.name or ""


def _of_environment(container: AnyContainer) -> Iterator[Wanted]:
    for source in container.env_from or ():
        if source.config_map_ref is not None and not source.config_map_ref.optional:
            yield CONFIG_MAP, source.config_map_ref.name or ""
        if source.secret_ref is not None and not source.secret_ref.optional:
            yield SECRET, source.secret_ref.name or ""
    for variable in container.env or ():
        value = variable.value_from
        if value is None:
            continue
        if value.config_map_key_ref is not None and not value.config_map_key_ref.optional:
            yield CONFIG_MAP, value.config_map_key_ref.name or ""
        if value.secret_key_ref is not None and not value.secret_key_ref.optional:
            yield SECRET, value.secret_key_ref.name or ""
