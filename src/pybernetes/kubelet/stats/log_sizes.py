"""In /metrics: what the logs of containers take of the node's disk. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from .disk import PodDisk
from .exposition import Row, family, text
from .sampler import NodeSample

NAME: Final = "kubelet_container_log_filesystem_used_bytes"


def log_metrics(sample: NodeSample, disks: Mapping[str, PodDisk]) -> bytes:
    """The text; `disks` by the pod's uid."""
    rows: list[Row] = []
    for each in sample.pods:
        ref, disk = each.pod.ref, disks.get(each.pod.uid) or PodDisk()
        who = {"uid": ref.uid, "namespace": ref.namespace, "pod": ref.name}
        rows += [({**who, "container": name}, float(size.bytes), None) for name, size in sorted(disk.logs.items())]
    if not rows:
        return b""
    return text(family(NAME, "[ALPHA] Bytes used by the container's logs on the filesystem.", "gauge", rows))
