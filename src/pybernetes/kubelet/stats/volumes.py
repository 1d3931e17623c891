"""In /metrics: what claimed volumes have and use, and what containers' logs take. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from pybernetes.api.core.v1 import Pod

from .disk import PodDisk, Volume
from .exposition import Row, family, text
from .filesystem import FileSystem
from .sampler import NodeSample

_FIGURES: Final[tuple[tuple[str, str, Callable[[Volume, FileSystem], float]], ...]] = (
    ("available_bytes", "Number of available bytes in the volume", lambda volume, on: on.available),
    ("capacity_bytes", "Capacity in bytes of the volume", lambda volume, on: on.capacity),
    ("inodes", "Maximum number of inodes in the volume", lambda volume, on: on.inodes),
    ("inodes_free", "Number of free inodes in the volume", lambda volume, on: on.inodes_free),
    ("inodes_used", "Number of used inodes in the volume", lambda volume, on: volume.size.inodes),
    ("used_bytes", "Number of used bytes in the volume", lambda volume, on: volume.size.bytes),
)


def volume_metrics(sample: NodeSample, disks: Mapping[str, PodDisk], pods: Mapping[str, Pod]) -> bytes:
    """The text: kubelet_volume_stats_* of each claim once, and kubelet_container_log_filesystem_used_bytes."""
    claims: dict[tuple[str, str], Volume] = {}
    logs: list[Row] = []
    for each in sample.pods:
        ref, disk = each.pod.ref, disks.get(each.pod.uid) or PodDisk()
        claimed = dict(_claims(pods.get(ref.uid)))
        for volume in disk.volumes:
            if volume.name in claimed and volume.on is not None:
                claims.setdefault((ref.namespace, claimed[volume.name]), volume)
        who = {"uid": ref.uid, "namespace": ref.namespace, "pod": ref.name}
        logs += [({**who, "container": name}, float(size.bytes), None) for name, size in sorted(disk.logs.items())]
    families = [
        family(f"kubelet_volume_stats_{name}", f"[ALPHA] {help}", "gauge", _rows(claims, figure))
        for name, help, figure in _FIGURES
        if claims
    ]
    if logs:
        name = "kubelet_container_log_filesystem_used_bytes"
        families.append(family(name, "[ALPHA] Bytes used by the container's logs on the filesystem.", "gauge", logs))
    return text(*families) if families else b""


def _rows(claims: Mapping[tuple[str, str], Volume], figure: Callable[[Volume, FileSystem], float]) -> list[Row]:
    return [
        ({"namespace": namespace, "persistentvolumeclaim": claim}, float(figure(volume, volume.on)), None)
        for (namespace, claim), volume in sorted(claims.items())
        if volume.on is not None
    ]


def _claims(pod: Pod | None) -> Iterable[tuple[str, str]]:
    """The claim of each volume that has one, by the volume's name."""
    for volume in (pod.spec.volumes if pod and pod.spec else None) or ():
        if volume.persistent_volume_claim is not None:
            yield volume.name or "", volume.persistent_volume_claim.claim_name or ""
        elif volume.ephemeral is not None and pod is not None and pod.metadata is not None:
            yield volume.name or "", f"{pod.metadata.name}-{volume.name}"
