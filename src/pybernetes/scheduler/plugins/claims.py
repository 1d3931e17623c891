"""PersistentVolumeClaims as plugins see them: which a pod uses, and what they say."""

from __future__ import annotations

from pybernetes.api.core.v1 import PersistentVolumeClaim, Pod, PodSpec, Volume
from pybernetes.client.keys import controller_of


def claim_name(pod_name: str, volume: Volume) -> str | None:
    """The claim behind a volume: the one it names, or the one made for it; None if there is none."""
    if volume.persistent_volume_claim is not None:
        return volume.persistent_volume_claim.claim_name or ""
    if volume.ephemeral is not None:
        return f"{pod_name}-{volume.name}"
    return None


def claim_names(pod: Pod) -> list[tuple[str, bool]]:
    """The claims of a pod, and whether each was made for it."""
    pod_name = (pod.metadata.name if pod.metadata else None) or ""
    found = []
    for volume in (pod.spec or PodSpec()).volumes or ():
        name = claim_name(pod_name, volume)
        if name is not None:
            found.append((name, volume.persistent_volume_claim is None))
    return found


def uses_claim(pod: Pod, claim: PersistentVolumeClaim) -> bool:
    """Whether the claim is behind a volume of the pod."""
    metadata = claim.metadata
    if metadata is None or pod.metadata is None or metadata.namespace != pod.metadata.namespace:
        return False
    return any(name == metadata.name for name, _ in claim_names(pod))


def not_made_for(pod: Pod, claim: PersistentVolumeClaim) -> str | None:
    """The error if a claim has the name of a pod's ephemeral claim but was not made for it; None if it was."""
    owner = controller_of(claim)
    if owner is not None and pod.metadata is not None and owner.uid == pod.metadata.uid:
        return None
    one, other = _full_name(claim), _full_name(pod)
    return f"PVC {one} was not created for pod {other} (pod is not owner)"


def not_found(name: str) -> str:
    """The API's message for a claim that does not exist."""
    return f'persistentvolumeclaim "{name}" not found'


def _full_name(obj: Pod | PersistentVolumeClaim) -> str:
    metadata = obj.metadata
    return f"{metadata.namespace}/{metadata.name}" if metadata else ""
