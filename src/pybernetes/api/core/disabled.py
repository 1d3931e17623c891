"""Fields of pods that belong to features which are off in v1.36 by default.

They are dropped without a word when an object is written, except from objects that have them already.
"""

from __future__ import annotations

from .containers import all_containers
from .v1.container import ContainerStatus
from .v1.pod import PodSpec, PodStatus
from .v1.probe import Lifecycle

_PROJECTIONS = ("cluster_trust_bundle", "pod_certificate")


def drop_disabled_pod_fields(spec: PodSpec | None, old: PodSpec | None) -> None:
    """Certificates and trust bundles as files, groups of pods, stop signals."""
    if spec is None:
        return
    if spec.scheduling_group is not None and (old is None or old.scheduling_group is None):
        spec.scheduling_group = None
    if spec.volumes:
        for field in _PROJECTIONS:
            if _uses_projection(spec, field) and not _uses_projection(old, field):
                _drop_projection(spec, field)
    if _uses_stop_signal(spec) and not _uses_stop_signal(old):
        for container in all_containers(spec):
            if container.lifecycle is not None and container.lifecycle.stop_signal is not None:
                container.lifecycle.stop_signal = None
                if container.lifecycle == Lifecycle():
                    container.lifecycle = None


def drop_disabled_status_fields(status: PodStatus | None, old: PodStatus | None) -> None:
    """Digests of image volumes, and node resources that come from claims."""
    if status is None:
        return
    if status.node_allocatable_resource_claim_statuses and not (
        old is not None and old.node_allocatable_resource_claim_statuses
    ):
        status.node_allocatable_resource_claim_statuses = None
    if not _has_volume_status(old):
        for each in _all_statuses(status):
            for mount in each.volume_mounts or ():
                mount.volume_status = None


def _all_statuses(status: PodStatus) -> list[ContainerStatus]:
    return [
        *(status.container_statuses or ()),
        *(status.init_container_statuses or ()),
        *(status.ephemeral_container_statuses or ()),
    ]


def _has_volume_status(status: PodStatus | None) -> bool:
    return status is not None and any(
        mount.volume_status is not None for each in _all_statuses(status) for mount in each.volume_mounts or ()
    )


def _uses_projection(spec: PodSpec | None, field: str) -> bool:
    return spec is not None and any(
        getattr(source, field) is not None
        for volume in spec.volumes or ()
        if volume.projected is not None
        for source in volume.projected.sources or ()
    )


def _drop_projection(spec: PodSpec, field: str) -> None:
    for volume in spec.volumes or ():
        if volume.projected is not None:
            for source in volume.projected.sources or ():
                setattr(source, field, None)


def _uses_stop_signal(spec: PodSpec | None) -> bool:
    return spec is not None and any(
        each.lifecycle is not None and each.lifecycle.stop_signal is not None for each in all_containers(spec)
    )
