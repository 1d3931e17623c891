"""PersistentVolumes: the server keeps the time of the last change of phase."""

from __future__ import annotations

from typing import Any, Final

from pybernetes.api.core.v1.persistentvolume import PersistentVolume, PersistentVolumeSpec, PersistentVolumeStatus
from pybernetes.api.field import Path
from pybernetes.apiserver.registry.strategy import Context, Strategy

from ..nodelabels import node_selector_term_warnings

_ANNOTATIONS: Final = (
    ("volume.beta.kubernetes.io/storage-class", 'deprecated since v1.8; use "storageClassName" attribute instead'),
    ("volume.beta.kubernetes.io/mount-options", 'deprecated since v1.31; use "mountOptions" attribute instead'),
)
_SOURCES: Final = (
    ("cephfs", "cephfs", "v1.28", "v1.31"),
    ("photon_persistent_disk", "photonPersistentDisk", "v1.11", "v1.16"),
    ("scale_io", "scaleIO", "v1.16", "v1.22"),
    ("storageos", "storageOS", "v1.22", "v1.25"),
    ("glusterfs", "glusterfs", "v1.25", "v1.26"),
    ("rbd", "rbd", "v1.28", "v1.31"),
)


class PersistentVolumeStrategy(Strategy):
    """A new volume is pending since now."""

    returns_deleted = True

    def prepare_for_create(self, obj: Any, context: Context) -> None:
        obj.status = PersistentVolumeStatus(phase="Pending", last_phase_transition_time=context.now)

    def prepare_for_status_update(self, new: Any, old: Any, context: Context) -> None:
        new.spec = old.spec
        status, before = new.status or PersistentVolumeStatus(), old.status or PersistentVolumeStatus()
        new.status = status
        if status.phase == before.phase:
            status.last_phase_transition_time = status.last_phase_transition_time or before.last_phase_transition_time
        elif status.last_phase_transition_time in (None, before.last_phase_transition_time):
            status.last_phase_transition_time = context.now

    def warnings_on_create(self, obj: Any, context: Context) -> list[str]:
        return persistent_volume_warnings(obj)


def persistent_volume_warnings(volume: PersistentVolume) -> list[str]:
    """Annotations, policies and plugins that are on their way out."""
    annotations = (volume.metadata and volume.metadata.annotations) or {}
    spec = volume.spec or PersistentVolumeSpec()
    warnings = [f"metadata.annotations[{key}]: {why}" for key, why in _ANNOTATIONS if key in annotations]
    if spec.persistent_volume_reclaim_policy == "Recycle":
        warnings.append(
            "spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. "
            "Instead, the recommended approach is to use dynamic provisioning."
        )
    selector = spec.node_affinity.required if spec.node_affinity else None
    for index, term in enumerate((selector and selector.node_selector_terms) or ()):
        path = Path("spec", "nodeAffinity", "required", "nodeSelectorTerms").index(index)
        warnings += node_selector_term_warnings(term, path)
    for field, wire, deprecated, gone in _SOURCES:
        if getattr(spec, field) is not None:
            warnings.append(f"spec.{wire}: deprecated in {deprecated}, non-functional in {gone}+")
    return warnings


STRATEGIES: Final[dict[str, type[Strategy]]] = {"persistentvolumes": PersistentVolumeStrategy}
