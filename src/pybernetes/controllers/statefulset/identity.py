"""The identity of a StatefulSet's pod: its ordinal, its name and labels, its volumes."""

from __future__ import annotations

import re
from typing import Final

from pybernetes.api.apps.v1 import StatefulSet, StatefulSetSpec
from pybernetes.api.core.v1.persistentvolumeclaim import PersistentVolumeClaim
from pybernetes.api.core.v1.pod import Pod, PodSpec, PodTemplateSpec
from pybernetes.api.core.v1.volume import Volume
from pybernetes.api.core.v1.volumesource import PersistentVolumeClaimVolumeSource
from pybernetes.client.keys import controller_reference, copy

from ..common.meta import labels_of, meta, name_of
from ..common.pods import pod_from_template

REVISION: Final = "controller-revision-hash"
POD_NAME: Final = "statefulset.kubernetes.io/pod-name"
POD_INDEX: Final = "apps.kubernetes.io/pod-index"

MAX_ORDINAL: Final = (1 << 31) - 1

_MEMBER = re.compile(r"(.*)-([0-9]+)", re.ASCII | re.DOTALL).fullmatch


def spec_of(statefulset: StatefulSet) -> StatefulSetSpec:
    """The spec, which the server has made sure of."""
    return statefulset.spec or StatefulSetSpec()


def replicas_of(statefulset: StatefulSet) -> int:
    """How many pods there should be."""
    replicas = spec_of(statefulset).replicas
    return 1 if replicas is None else replicas


def start_ordinal(statefulset: StatefulSet) -> int:
    """The ordinal of the first pod."""
    ordinals = spec_of(statefulset).ordinals
    return (ordinals.start if ordinals else None) or 0


def parent_and_ordinal(pod: Pod) -> tuple[str, int]:
    """The name of the set and the ordinal that the pod's name tells; -1 if it tells none."""
    match = _MEMBER(name_of(pod))
    if match is None:
        return "", -1
    ordinal = int(match[2]) if len(match[2]) <= 10 else MAX_ORDINAL + 1
    return match[1], ordinal if ordinal <= MAX_ORDINAL else -1


def ordinal_of(pod: Pod) -> int:
    """The ordinal that the pod's name tells; -1 if it tells none."""
    return parent_and_ordinal(pod)[1]


def is_member(statefulset: StatefulSet, pod: Pod) -> bool:
    """Whether the pod's name is one of this set's."""
    return parent_and_ordinal(pod)[0] == name_of(statefulset)


def in_range(statefulset: StatefulSet, pod: Pod) -> bool:
    """Whether the set wants a pod of this ordinal."""
    start = start_ordinal(statefulset)
    return start <= ordinal_of(pod) < start + replicas_of(statefulset)


def pod_name(statefulset: StatefulSet, ordinal: int) -> str:
    """The name of the pod of an ordinal."""
    return f"{name_of(statefulset)}-{ordinal}"


def claim_name(statefulset: StatefulSet, template: PersistentVolumeClaim, ordinal: int) -> str:
    """The name of the claim of an ordinal."""
    return f"{name_of(template)}-{name_of(statefulset)}-{ordinal}"


def claims_for(statefulset: StatefulSet, ordinal: int) -> dict[str, PersistentVolumeClaim]:
    """The claims of an ordinal, by the name of their volume; labelled as the set's pods are."""
    selector = spec_of(statefulset).selector
    wanted = (selector.match_labels if selector else None) or {}
    claims: dict[str, PersistentVolumeClaim] = {}
    for template in spec_of(statefulset).volume_claim_templates or ():
        claim = copy(template)
        metadata = meta(claim)
        metadata.name = claim_name(statefulset, template, ordinal)
        metadata.namespace = meta(statefulset).namespace
        metadata.labels = {**(metadata.labels or {}), **wanted} or None
        claim.status = None
        claims[name_of(template)] = claim
    return claims


def identity_matches(statefulset: StatefulSet, pod: Pod) -> bool:
    """Whether the pod is labelled with its own name."""
    return is_member(statefulset, pod) and labels_of(pod).get(POD_NAME) == name_of(pod)


def storage_matches(statefulset: StatefulSet, pod: Pod) -> bool:
    """Whether the pod's volumes are the claims of its ordinal."""
    volumes = {volume.name: volume for volume in (pod.spec.volumes if pod.spec else None) or ()}
    for template in spec_of(statefulset).volume_claim_templates or ():
        volume = volumes.get(name_of(template))
        source = volume.persistent_volume_claim if volume else None
        if source is None or source.claim_name != claim_name(statefulset, template, ordinal_of(pod)):
            return False
    return True


def set_identity(statefulset: StatefulSet, pod: Pod) -> None:
    """Label the pod with its name and ordinal."""
    ordinal = ordinal_of(pod)
    metadata = meta(pod)
    metadata.labels = {**labels_of(pod), POD_NAME: pod_name(statefulset, ordinal), POD_INDEX: str(ordinal)}


def set_storage(statefulset: StatefulSet, pod: Pod) -> None:
    """Make the claims of its ordinal volumes of the pod, in place of any of the same names."""
    pod.spec = pod.spec or PodSpec()
    claims = claims_for(statefulset, ordinal_of(pod))
    own = [
        Volume(name=name, persistent_volume_claim=PersistentVolumeClaimVolumeSource(claim_name=name_of(claim)))
        for name, claim in claims.items()
    ]
    rest = [volume for volume in pod.spec.volumes or () if volume.name not in claims]
    pod.spec.volumes = (own + rest) or None


def new_pod(statefulset: StatefulSet, template: PodTemplateSpec, ordinal: int, revision: str) -> Pod:
    """The pod of an ordinal, made from the template of a revision."""
    pod = pod_from_template(
        template,
        meta(statefulset).namespace or "",
        name_of(statefulset),
        controller_reference(statefulset),
        pod_name(statefulset, ordinal),
    )
    pod.spec = pod.spec or PodSpec()
    set_identity(statefulset, pod)
    # These cannot change later: they are what other pods know it by.
    pod.spec.hostname = pod_name(statefulset, ordinal)
    pod.spec.subdomain = spec_of(statefulset).service_name or None
    set_storage(statefulset, pod)
    meta(pod).labels = {**labels_of(pod), REVISION: revision}
    return pod


def revision_of(pod: Pod) -> str:
    """The name of the revision that the pod was made from; empty if it does not say."""
    return labels_of(pod).get(REVISION, "")
