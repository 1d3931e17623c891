"""`downwardAPI`: what a pod may know about itself as files; labels and annotations follow when they change."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Final

from pybernetes.api.core.v1 import DownwardAPIVolumeFile, DownwardAPIVolumeSource, Pod, Volume

from ..container.downward_api import DownwardError, metadata_field, resource_value
from .atomic_writer import File, Payload, pages
from .base import MountedVolume
from .contents import NO_MODE, check_size, show
from .host import Host

PLUGIN: Final = "downward-api"


async def set_up(host: Host, pod: Pod, volume: Volume) -> MountedVolume:
    """Write the files."""
    source = volume.downward_api or DownwardAPIVolumeSource()
    payload = collect(host, pod, source.items or (), source.default_mode)
    return await show(host, pod, volume.name or "", PLUGIN, payload, memory=True)


def collect(host: Host, pod: Pod, items: Iterable[DownwardAPIVolumeFile], default_mode: int | None) -> Payload:
    """The files; all that is wrong with them is said at once."""
    if default_mode is None:
        raise ValueError(NO_MODE)
    files, wrong, size = {}, [], 0
    for item in items:
        try:
            value = _value(host, pod, item)
        except DownwardError as error:
            wrong.append(str(error))
            continue
        mode = default_mode if item.mode is None else item.mode
        file = File(value.encode(errors="surrogatepass"), mode)
        size += pages(file.data)
        check_size(size)  # as they are made: all annotations may be shown thousands of times
        files[os.path.normpath(item.path or "")] = file
    if wrong:
        raise ValueError(joined(wrong))
    return files


def joined(messages: list[str]) -> str:
    """Several errors in one, as Go writes them."""
    unique = list(dict.fromkeys(messages))
    return unique[0] if len(unique) == 1 else f"[{', '.join(unique)}]"


def _value(host: Host, pod: Pod, item: DownwardAPIVolumeFile) -> str:
    if item.field_ref:
        return metadata_field(pod, item.field_ref.field_path or "")
    if item.resource_field_ref:
        return resource_value(item.resource_field_ref, pod, None, host.facts.allocatable)
    return ""
