"""How many volumes and claims there are, under upstream's names; counted at each scrape."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from pybernetes.api.core.v1 import PersistentVolume, PersistentVolumeClaim
from pybernetes.api.core.volumebinding import claim_class
from pybernetes.client.informer import Informer
from pybernetes.client.metrics import GaugeFunction, Labels, Registry

Samples = Callable[[], Iterable[tuple[Labels, float]]]


def add_metrics(
    registry: Registry, claims: Informer[PersistentVolumeClaim], volumes: Informer[PersistentVolume]
) -> None:
    """Register them."""

    def count_volumes(bound: bool) -> Samples:
        def read() -> Iterable[tuple[Labels, float]]:
            return Counter(_class(each) for each in volumes.items() if _is_bound(each) == bound).items()

        return read

    def count_claims(bound: bool) -> Samples:
        def read() -> Iterable[tuple[Labels, float]]:
            return Counter(_place(each) for each in claims.items() if _is_bound(each) == bound).items()

        return read

    def count_all() -> Iterable[tuple[Labels, float]]:
        return Counter(_source(each) for each in volumes.items()).items()

    text = "Gauge measuring number of persistent volume{} currently {}bound"
    place = ("namespace", "storage_class", "volume_attributes_class")
    for word, bound in (("", True), ("un", False)):
        name = f"pv_collector_{word}bound"
        registry.add(GaugeFunction(f"{name}_pv_count", text.format("", word), ("storage_class",), count_volumes(bound)))
        registry.add(GaugeFunction(f"{name}_pvc_count", text.format(" claim", word), place, count_claims(bound)))
    total = "Gauge measuring total number of persistent volumes"
    registry.add(GaugeFunction("pv_collector_total_pv_count", total, ("plugin_name", "volume_mode"), count_all))


def _is_bound(obj: PersistentVolume | PersistentVolumeClaim) -> bool:
    return obj.status is not None and obj.status.phase == "Bound"


def _class(volume: PersistentVolume) -> Labels:
    return ((volume.spec.storage_class_name if volume.spec else None) or "",)


def _place(claim: PersistentVolumeClaim) -> Labels:
    namespace = (claim.metadata.namespace if claim.metadata else None) or ""
    attributes = (claim.spec.volume_attributes_class_name if claim.spec else None) or ""
    return namespace, claim_class(claim), attributes


_PLUGINS = {"host_path": "kubernetes.io/host-path", "nfs": "kubernetes.io/nfs", "fc": "kubernetes.io/fc"}


def _source(volume: PersistentVolume) -> Labels:
    spec = volume.spec
    mode = (spec.volume_mode if spec else None) or "Filesystem"
    if spec is None:
        return "N/A", mode
    if spec.csi is not None:
        return f"kubernetes.io/csi:{spec.csi.driver}", mode
    if spec.iscsi is not None:
        return "kubernetes.io/iscsi", mode
    return next((plugin for field, plugin in _PLUGINS.items() if getattr(spec, field) is not None), "N/A"), mode
