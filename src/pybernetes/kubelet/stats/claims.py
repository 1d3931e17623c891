"""How full the volumes behind claims are, for metrics."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from pybernetes.api.core.v1 import Pod

from .disk import PodDisk, Volume


def claims_of(
    disks: Mapping[str, PodDisk], pod_of: Callable[[str], Pod | None]
) -> Iterator[tuple[tuple[str, str], Volume]]:
    """Namespace and claim of each volume that was measured; a claim that several pods use comes once."""
    seen = set()
    for uid, disk in disks.items():
        pod = pod_of(uid)
        if pod is None or pod.metadata is None or pod.spec is None:
            continue
        measured = {each.name: each for each in disk.volumes}
        for volume in pod.spec.volumes or ():
            found = measured.get(volume.name or "")
            if volume.persistent_volume_claim is not None:
                claim = volume.persistent_volume_claim.claim_name or ""
            elif volume.ephemeral is not None:
                claim = f"{pod.metadata.name}-{volume.name}"
            else:
                continue
            key = (pod.metadata.namespace or "", claim)
            if found is not None and key not in seen:
                seen.add(key)
                yield key, found
