"""`secret`: the keys of a Secret as files, in memory only."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from typing import Final

from pybernetes.api.core.v1 import KeyToPath, Pod, Secret, SecretVolumeSource, Volume

from .atomic_writer import Payload
from .base import MountedVolume
from .config_map import project, selected
from .contents import NO_MODE, fetch, show
from .host import Host

PLUGIN: Final = "secret"


async def set_up(host: Host, pod: Pod, volume: Volume) -> MountedVolume:
    """Write the files."""
    source = volume.secret or SecretVolumeSource()
    payload = await collect(
        host, pod, source.secret_name or "", source.items or (), source.default_mode, bool(source.optional)
    )
    return await show(host, pod, volume.name or "", PLUGIN, payload, memory=True)


async def collect(
    host: Host, pod: Pod, name: str, items: Iterable[KeyToPath], default_mode: int | None, optional: bool
) -> Payload:
    """The files of a Secret: those of `items`, else all."""
    if default_mode is None:
        raise ValueError(NO_MODE)
    found = await fetch(host, pod, Secret, name, optional=optional)
    items = list(items)
    data = {key: base64.b64decode(value) for key, value in selected(found.data, items)}
    return project(data, items, default_mode, optional, "references non-existent secret key: {}")
