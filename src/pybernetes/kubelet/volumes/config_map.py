"""`configMap`: the keys of a ConfigMap as files, followed while it changes."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from typing import Final

from pybernetes.api.core.v1 import ConfigMap, ConfigMapVolumeSource, KeyToPath, Pod, Volume

from .atomic_writer import File, Payload
from .base import MountedVolume
from .contents import NO_MODE, fetch, show
from .host import Host

PLUGIN: Final = "configmap"


async def set_up(host: Host, pod: Pod, volume: Volume) -> MountedVolume:
    """Write the files."""
    source = volume.config_map or ConfigMapVolumeSource()
    payload = await collect(
        host, pod, source.name or "", source.items or (), source.default_mode, bool(source.optional)
    )
    return await show(host, pod, volume.name or "", PLUGIN, payload, memory=False)


async def collect(
    host: Host, pod: Pod, name: str, items: Iterable[KeyToPath], default_mode: int | None, optional: bool
) -> Payload:
    """The files of a ConfigMap: those of `items`, else all."""
    if default_mode is None:
        raise ValueError(NO_MODE)
    found = await fetch(host, pod, ConfigMap, name, optional=optional)
    items = list(items)
    data = {key: value.encode(errors="surrogatepass") for key, value in selected(found.data, items)}
    data = {key: base64.b64decode(value) for key, value in selected(found.binary_data, items)} | data
    return project(data, items, default_mode, optional, "configmap references non-existent config key: {}")


def selected(values: Mapping[str, str] | None, items: list[KeyToPath]) -> list[tuple[str, str]]:
    """The keys that `items` name, else all: a volume may name one small key of a large object many times."""
    names = {each.key or "" for each in items}
    return [(key, value) for key, value in (values or {}).items() if not items or key in names]


def project(
    data: dict[str, bytes], items: Iterable[KeyToPath], default_mode: int, optional: bool, missing: str
) -> Payload:
    """Keys to files, for Secrets too."""
    items = list(items)
    if not items:
        return {key: File(value, default_mode) for key, value in data.items()}
    files = {}
    for item in items:
        value = data.get(item.key or "")
        if value is not None:
            files[item.path or ""] = File(value, default_mode if item.mode is None else item.mode)
        elif not optional:
            raise ValueError(missing.format(item.key))
    return files
