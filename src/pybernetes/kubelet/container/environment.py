"""The environment of a container: `envFrom`, then `env`, each later one over the earlier, then the Services.

A value may use `$(NAME)` of variables that came before it and of Services. What comes from another object and is not
there fails the container (CreateContainerConfigError) unless it is `optional`. Names are taken as they are: since
v1.34 every name that fits into an environment is allowed.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pybernetes.api import errors
from pybernetes.api.core.v1 import ConfigMap, EnvVarSource, FileKeySelector, Pod, PodSpec, Secret, Service
from pybernetes.api.gocompat.quote import quote
from pybernetes.api.meta.v1 import ObjectMeta
from pybernetes.client.keys import uid_of
from pybernetes.component import offload

from ..error_text import why
from ..node.facts import NodeFacts
from ..runtime.labels import CONFIG_SOURCE
from ..runtime.types import AnyContainer
from ..volumes.base import Volumes
from ..volumes.safeopen import read_inside
from ..watched_objects import Objects
from .config_error import ConfigError
from .downward_api import DownwardError, field_value, resource_value
from .env_file import EnvFileError, variable_of
from .expansion import MAX_STRING, TooLong, expand_known
from .service_links import service_environment

MAX_TOTAL: Final = 6 << 20
"""Bytes of all arguments and variables: the most that Linux takes, with any limit of the stack (3/4 of _STK_LIM)."""
FILE_WITHIN: Final = 10.0
"""Seconds for reading a file of variables in a volume."""


@dataclass(frozen=True, slots=True)
class Environments:
    """Makes the environments of the containers of one node."""

    facts: NodeFacts
    objects: Objects | None
    """None: there is no API server."""
    services: Callable[[], Collection[Service] | None]
    """All Services; None while they have not been read."""

    async def of(self, pod: Pod, container: AnyContainer, pod_ips: Sequence[str], volumes: Volumes) -> dict[str, str]:
        """All variables of a container. Bytes that are no UTF-8 are there as surrogates. Raises `ConfigError`.

        Each variable must be short enough for the kernel, and all of them together (`check_size`).
        """
        metadata, spec = pod.metadata or ObjectMeta(), pod.spec or PodSpec()
        namespace = metadata.namespace or ""
        from_services = self._of_services(pod, namespace, spec.enable_service_links is not False)
        variables: dict[str, str] = {}
        size = 0
        for source in container.env_from or ():
            reference = source.config_map_ref or source.secret_ref
            if reference is not None:
                kind: type[Any] = ConfigMap if source.config_map_ref else Secret
                data = await self._data(kind, namespace, reference.name or "", bool(reference.optional)) or {}
                size = _add(variables, size, source.prefix or "", data)
        size = sum(_variable_size(name, value) for name, value in variables.items())
        for variable in container.env or ():
            value: str | None = variable.value or ""
            if variable.value:
                try:
                    value = expand_known(variable.value, variables, from_services)
                except TooLong as error:
                    raise ConfigError(f"environment variable {quote(variable.name or '')}: {error}") from None
            elif variable.value_from:
                value = await self._value(variable.value_from, pod, container, pod_ips, volumes)
            if value is not None:
                variables[variable.name or ""] = value
                size += _variable_size(variable.name or "", value)
                check_size(size)  # as it grows: variables that use others can double with each one
        return variables | {name: value for name, value in from_services.items() if name not in variables}

    def _of_services(self, pod: Pod, namespace: str, links: bool) -> dict[str, str]:
        services = self.services()
        if services is None:
            annotations = (pod.metadata.annotations if pod.metadata else None) or {}
            if annotations.get(CONFIG_SOURCE, "api") == "api":
                raise ConfigError("services have not yet been read at least once, cannot construct envvars")
            return {}
        return service_environment(services, namespace, links)

    async def _data(self, kind: type[Any], namespace: str, name: str, optional: bool) -> dict[str, str] | None:
        if self.objects is None:
            what = "configMap" if kind is ConfigMap else "secret"
            raise ConfigError(f"couldn't get {what} {namespace}/{name}, no kubeClient defined")
        try:
            found = await self.objects.get(kind, namespace, name)
        except errors.NotFound as error:
            if optional:
                return None
            raise ConfigError(str(error)) from None
        except (errors.APIError, OSError) as error:
            raise ConfigError(why(error)) from None
        if kind is ConfigMap:
            return found.data or {}
        return {
            key: base64.b64decode(value).decode(errors="surrogateescape") for key, value in (found.data or {}).items()
        }

    async def _value(
        self, source: EnvVarSource, pod: Pod, container: AnyContainer, pod_ips: Sequence[str], volumes: Volumes
    ) -> str | None:
        namespace = (pod.metadata.namespace if pod.metadata else None) or ""
        try:
            if source.field_ref:
                return field_value(source.field_ref, pod, self.facts, pod_ips)
            if source.resource_field_ref:
                return resource_value(source.resource_field_ref, pod, container, self.facts.allocatable)
        except DownwardError as error:
            raise ConfigError(str(error)) from None
        if source.file_key_ref:
            try:  # in a thread: the volume may be on a file system that does not answer
                return await offload.run(f"pod {uid_of(pod)}", FILE_WITHIN, _from_file, source.file_key_ref, volumes)
            except offload.Overdue:
                raise ConfigError("couldn't read env file: its volume does not answer") from None
        reference = source.config_map_key_ref or source.secret_key_ref
        if reference is None:
            return ""
        kind: type[Any] = ConfigMap if source.config_map_key_ref else Secret
        data = await self._data(kind, namespace, reference.name or "", bool(reference.optional))
        value = None if data is None else data.get(reference.key or "")
        if value is None and not reference.optional:
            raise ConfigError(f"couldn't find key {reference.key} in {kind.__name__} {namespace}/{reference.name}")
        return value


def check_size(size: int) -> None:
    """Raises `ConfigError` for more bytes of arguments and variables than the kernel takes."""
    if size > MAX_TOTAL:
        raise ConfigError(
            f"arguments and environment variables have more than the {MAX_TOTAL} bytes that the kernel takes"
        )


def string_size(text: str) -> int:
    """Bytes that the kernel needs for a string of `execve`, with the pointer to it."""
    return len(text.encode(errors="surrogateescape")) + 9


def _add(variables: dict[str, str], size: int, prefix: str, data: Mapping[str, str]) -> int:
    """Adds the variables of one source; the bytes of all names, which is the least that the variables take.

    Checked with each one: a pod may name the same source thousands of times, each time with another prefix.
    """
    for key, value in data.items():
        name = f"{prefix}{key}"
        if name not in variables:
            size += string_size(name) + 1
            check_size(size)
        variables[name] = value
    return size


def _variable_size(name: str, value: str) -> int:
    size = string_size(name) + len(value.encode(errors="surrogateescape")) + 1
    if size - 9 > MAX_STRING:
        raise ConfigError(
            f"environment variable {quote(name)}: {size - 9} bytes with its name; the kernel takes {MAX_STRING}"
        )
    return size


def _from_file(reference: FileKeySelector, volumes: Volumes) -> str | None:
    volume = volumes.get(reference.volume_name or "")
    if volume is None or volume.image or volume.device:
        raise ConfigError(f"cannot find the volume {quote(reference.volume_name or '')} referenced by FileKeyRef")
    try:
        text = read_inside(volume.path, reference.path or "").decode(errors="surrogateescape")
        value = variable_of(text, reference.key or "")
    except (OSError, EnvFileError):
        raise ConfigError("couldn't parse env file") from None
    if value:
        return value
    if reference.optional:
        return None
    path = volume.path / (reference.path or "")
    raise ConfigError(f"environment variable key {quote(reference.key or '')} not found in file {quote(str(path))}")
