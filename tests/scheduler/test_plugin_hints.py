"""Which events wake pods that were refused for other pods, volumes or devices: those that may help, and no others."""

from __future__ import annotations

from typing import Any

import pytest
from scheduler.reference.harness import FakeHandle

from pybernetes.api.core.v1 import (
    Namespace,
    Node,
    NodeSpec,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    Pod,
    PodSpec,
    PodStatus,
    Volume,
)
from pybernetes.api.core.v1.affinity import (
    Affinity,
    PodAffinity,
    PodAffinityTerm,
    PodAntiAffinity,
    Taint,
    Toleration,
    TopologySpreadConstraint,
)
from pybernetes.api.core.v1.volumesource import GCEPersistentDiskVolumeSource, PersistentVolumeClaimVolumeSource
from pybernetes.api.meta.v1 import LabelSelector, ObjectMeta
from pybernetes.api.storage.v1 import (
    CSIDriver,
    CSIDriverSpec,
    CSINode,
    CSINodeDriver,
    CSINodeSpec,
    CSIStorageCapacity,
    StorageClass,
    VolumeAttachment,
    VolumeAttachmentSpec,
    VolumeNodeResources,
)
from pybernetes.scheduler.config.v1.args import InterPodAffinityArgs, PodTopologySpreadArgs, VolumeBindingArgs
from pybernetes.scheduler.framework import Action, Hint, Plugin, Resource
from pybernetes.scheduler.plugins.inter_pod_affinity import InterPodAffinity
from pybernetes.scheduler.plugins.node_volume_limits import NodeVolumeLimits
from pybernetes.scheduler.plugins.pod_topology_spread import PodTopologySpread
from pybernetes.scheduler.plugins.volume_binding import VolumeBinding
from pybernetes.scheduler.plugins.volume_restrictions import VolumeRestrictions
from pybernetes.scheduler.plugins.volume_zone import VolumeZone

WEB = LabelSelector(match_labels={"app": "web"})


def wakes(plugin: Plugin, resource: str, action: int, pod: Pod, old: Any, new: Any) -> bool:
    """Whether what happened wakes a pod that the plugin has refused."""
    return any(
        wanted.hint is None or wanted.hint(pod, old, new) is Hint.QUEUE
        for wanted in plugin.events_to_register()
        if wanted.event.resource == resource and wanted.event.action & action
    )


def pod(name: str = "p", app: str = "web", node: str = "", namespace: str = "default", **spec: Any) -> Pod:
    metadata = ObjectMeta(name=name, namespace=namespace, uid=f"uid-{name}", labels={"app": app})
    return Pod(metadata=metadata, spec=PodSpec(node_name=node or None, **spec), status=PodStatus())


def node(taint: str = "", **labels: str) -> Node:
    taints = [Taint(key=taint, effect="NoSchedule")] if taint else None
    return Node(metadata=ObjectMeta(name="n", labels=labels), spec=NodeSpec(taints=taints))


def spread(**more: Any) -> Pod:
    constraint = TopologySpreadConstraint(
        max_skew=1, topology_key="zone", when_unsatisfiable="DoNotSchedule", label_selector=WEB, **more
    )
    return pod("waiting", topology_spread_constraints=[constraint])


HONORS = {"node_taints_policy": "Honor"}


@pytest.mark.parametrize(
    ("waiting", "resource", "action", "old", "new", "expected"),
    [
        (spread(), Resource.POD, Action.ADD, None, pod(node="n"), True),
        (spread(), Resource.POD, Action.ADD, None, pod(), False),
        (spread(), Resource.POD, Action.ADD, None, pod(node="n", app="db"), False),
        (spread(), Resource.POD, Action.ADD, None, pod(node="n", namespace="other"), False),
        (spread(), Resource.POD, Action.DELETE, pod(node="n"), None, True),
        (spread(), Resource.POD, Action.UPDATE_POD_LABEL, pod(node="n"), pod(node="n", app="db"), True),
        (spread(), Resource.POD, Action.UPDATE_POD_LABEL, pod(node="n", app="x"), pod(node="n", app="db"), False),
        (spread(), Resource.NODE, Action.ADD, None, node(zone="a"), True),
        (spread(), Resource.NODE, Action.ADD, None, node(), False),
        (spread(), Resource.NODE, Action.DELETE, node(zone="a"), None, True),
        (spread(), Resource.NODE, Action.UPDATE_NODE_LABEL, node(zone="a"), node(zone="b"), True),
        (spread(), Resource.NODE, Action.UPDATE_NODE_LABEL, node(zone="a"), node(zone="a", x="y"), False),
        (spread(), Resource.NODE, Action.UPDATE_NODE_TAINT, node("t", zone="a"), node(zone="a"), True),
    ],
)
def test_spreading(waiting: Pod, resource: str, action: int, old: Any, new: Any, expected: bool) -> None:
    plugin = PodTopologySpread(PodTopologySpreadArgs(defaulting_type="System"), FakeHandle())
    assert wakes(plugin, resource, action, waiting, old, new) == expected


def test_spreading_where_taints_count_wakes_a_pod_that_bears_more() -> None:
    plugin = PodTopologySpread(PodTopologySpreadArgs(defaulting_type="System"), FakeHandle())
    for waiting, expected in ((spread(**HONORS), True), (spread(), False)):
        new = pod("waiting", tolerations=[Toleration(operator="Exists")])
        assert wakes(plugin, Resource.POD, Action.UPDATE_POD_TOLERATION, waiting, waiting, new) == expected


def wants(affinity: str, *terms: PodAffinityTerm) -> Pod:
    kind = PodAffinity if affinity == "pod_affinity" else PodAntiAffinity
    terms_of_kind = kind(required_during_scheduling_ignored_during_execution=list(terms))
    return pod("waiting", affinity=Affinity(**{affinity: terms_of_kind}))


NEAR_WEB = PodAffinityTerm(label_selector=WEB, topology_key="zone")
NEAR_DB = PodAffinityTerm(label_selector=LabelSelector(match_labels={"app": "db"}), topology_key="zone")
TEAM = PodAffinityTerm(
    label_selector=WEB, topology_key="zone", namespace_selector=LabelSelector(match_labels={"team": "a"})
)
LIKES, HATES = wants("pod_affinity", NEAR_WEB), wants("pod_anti_affinity", NEAR_WEB, NEAR_DB)
HATED = pod("hater", node="n", affinity=HATES.spec.affinity)


@pytest.mark.parametrize(
    ("waiting", "resource", "action", "old", "new", "expected"),
    [
        (LIKES, Resource.POD, Action.ADD, None, pod(node="n"), True),
        (LIKES, Resource.POD, Action.ADD, None, pod(), False),
        (LIKES, Resource.POD, Action.ADD, None, pod(node="n", app="db"), False),
        (LIKES, Resource.POD, Action.DELETE, pod(node="n"), None, False),
        (LIKES, Resource.POD, Action.UPDATE_POD_LABEL, pod(node="n", app="x"), pod(node="n"), True),
        (wants("pod_affinity", TEAM), Resource.POD, Action.ADD, None, pod(node="n", namespace="theirs"), True),
        (wants("pod_affinity", TEAM), Resource.POD, Action.ADD, None, pod(node="n", namespace="others"), False),
        (HATES, Resource.POD, Action.DELETE, pod(node="n", app="db"), None, True),
        (HATES, Resource.POD, Action.DELETE, pod(node="n", app="x"), None, False),
        (HATES, Resource.POD, Action.ADD, None, pod(node="n", app="db"), False),
        (HATES, Resource.POD, Action.UPDATE_POD_LABEL, pod(node="n", app="db"), pod(node="n", app="x"), True),
        (pod("waiting"), Resource.POD, Action.DELETE, HATED, None, True),
        (pod("waiting", app="x"), Resource.POD, Action.DELETE, HATED, None, False),
        (LIKES, Resource.POD, Action.UPDATE_POD_LABEL, LIKES, LIKES, True),
        (LIKES, Resource.NODE, Action.ADD, None, node(zone="a"), True),
        (LIKES, Resource.NODE, Action.ADD, None, node(), False),
        (LIKES, Resource.NODE, Action.UPDATE_NODE_LABEL, node(zone="a"), node(zone="b"), True),
        (LIKES, Resource.NODE, Action.UPDATE_NODE_LABEL, node(zone="a"), node(), False),
        (HATES, Resource.NODE, Action.ADD, None, node(), True),
        (HATES, Resource.NODE, Action.UPDATE_NODE_LABEL, node(zone="a"), node(), True),
        (HATES, Resource.NODE, Action.UPDATE_NODE_LABEL, node(), node(zone="a"), False),
        (pod("waiting"), Resource.NODE, Action.ADD, None, node(), True),
    ],
)
def test_affinity(waiting: Pod, resource: str, action: int, old: Any, new: Any, expected: bool) -> None:
    handle = FakeHandle()
    handle.tell(Namespace(metadata=ObjectMeta(name="theirs", labels={"team": "a"})))
    plugin = InterPodAffinity(InterPodAffinityArgs(), handle)
    assert wakes(plugin, resource, action, waiting, old, new) == expected


def using(name: str = "data") -> Pod:
    source = PersistentVolumeClaimVolumeSource(claim_name=name)
    return pod("waiting", volumes=[Volume(name="v", persistent_volume_claim=source)])


def on_disk(read_only: bool) -> Pod:
    disk = GCEPersistentDiskVolumeSource(pd_name="disk", read_only=read_only)
    return pod("other", node="n", volumes=[Volume(name="v", gce_persistent_disk=disk)])


def placed(waiting: Pod) -> Pod:
    return pod("other", node="n", volumes=waiting.spec.volumes)


def claim(name: str = "data", namespace: str = "default") -> PersistentVolumeClaim:
    return PersistentVolumeClaim(metadata=ObjectMeta(name=name, namespace=namespace), spec=PersistentVolumeClaimSpec())


def limits(count: int | None) -> CSINode:
    allocatable = None if count is None else VolumeNodeResources(count=count)
    drivers = [CSINodeDriver(name="d", node_id="n", allocatable=allocatable)]
    return CSINode(metadata=ObjectMeta(name="n"), spec=CSINodeSpec(drivers=drivers))


def driver(capacity: bool) -> CSIDriver:
    return CSIDriver(metadata=ObjectMeta(name="d"), spec=CSIDriverSpec(storage_capacity=capacity))


def space(capacity: str | None) -> CSIStorageCapacity:
    return CSIStorageCapacity(metadata=ObjectMeta(name="s"), storage_class_name="c", capacity=capacity)


def volume(**labels: str) -> PersistentVolume:
    return PersistentVolume(metadata=ObjectMeta(name="v", labels=labels))


def storage_class(mode: str) -> StorageClass:
    return StorageClass(metadata=ObjectMeta(name="c"), provisioner="d", volume_binding_mode=mode)


ATTACHMENT = VolumeAttachment(metadata=ObjectMeta(name="a"), spec=VolumeAttachmentSpec(attacher="d"))
CLAIM, PV = Resource.PERSISTENT_VOLUME_CLAIM, Resource.PERSISTENT_VOLUME


@pytest.mark.parametrize(
    ("kind", "waiting", "resource", "action", "old", "new", "expected"),
    [
        (VolumeRestrictions, using(), Resource.POD, Action.DELETE, placed(using()), None, True),
        (VolumeRestrictions, using(), Resource.POD, Action.DELETE, placed(using("x")), None, False),
        (VolumeRestrictions, on_disk(True), Resource.POD, Action.DELETE, on_disk(False), None, True),
        (VolumeRestrictions, on_disk(True), Resource.POD, Action.DELETE, on_disk(True), None, False),
        (VolumeRestrictions, using(), CLAIM, Action.ADD, None, claim(), True),
        (VolumeRestrictions, using(), CLAIM, Action.ADD, None, claim("x"), False),
        (VolumeRestrictions, using(), CLAIM, Action.ADD, None, claim(namespace="x"), False),
        (VolumeRestrictions, using(), Resource.NODE, Action.ADD, None, node(), True),
        (NodeVolumeLimits, using(), Resource.CSI_NODE, Action.UPDATE, limits(1), limits(2), True),
        (NodeVolumeLimits, using(), Resource.CSI_NODE, Action.UPDATE, limits(2), limits(1), False),
        (NodeVolumeLimits, using(), Resource.CSI_NODE, Action.ADD, None, limits(1), True),
        (NodeVolumeLimits, using(), Resource.POD, Action.DELETE, placed(using("x")), None, True),
        (NodeVolumeLimits, using(), Resource.POD, Action.DELETE, pod(node="n"), None, False),
        (NodeVolumeLimits, using(), Resource.VOLUME_ATTACHMENT, Action.DELETE, ATTACHMENT, None, True),
        (NodeVolumeLimits, pod(), Resource.VOLUME_ATTACHMENT, Action.DELETE, ATTACHMENT, None, False),
        (VolumeZone, using(), PV, Action.UPDATE, volume(), volume(**{"topology.kubernetes.io/zone": "a"}), True),
        (VolumeZone, using(), PV, Action.UPDATE, volume(), volume(x="y"), False),
        (VolumeZone, using(), Resource.STORAGE_CLASS, Action.ADD, None, storage_class("WaitForFirstConsumer"), True),
        (VolumeZone, using(), Resource.STORAGE_CLASS, Action.ADD, None, storage_class("Immediate"), False),
        (VolumeBinding, using(), CLAIM, Action.UPDATE, claim(), claim(), True),
        (VolumeBinding, using(), CLAIM, Action.UPDATE, claim("x"), claim("x"), False),
        (VolumeBinding, using(), PV, Action.ADD, None, volume(), True),
        (VolumeBinding, using(), Resource.CSI_DRIVER, Action.UPDATE, driver(True), driver(False), True),
        (VolumeBinding, using(), Resource.CSI_DRIVER, Action.UPDATE, driver(False), driver(True), False),
        (VolumeBinding, using(), Resource.CSI_STORAGE_CAPACITY, Action.UPDATE, space("1Gi"), space("2Gi"), True),
        (VolumeBinding, using(), Resource.CSI_STORAGE_CAPACITY, Action.UPDATE, space("2Gi"), space("1Gi"), False),
        (VolumeBinding, using(), Resource.CSI_STORAGE_CAPACITY, Action.UPDATE, space(None), space("1Gi"), True),
        (VolumeBinding, using(), Resource.CSI_NODE, Action.UPDATE, limits(1), limits(2), False),
    ],
)
def test_volumes(kind: Any, waiting: Pod, resource: str, action: int, old: Any, new: Any, expected: bool) -> None:
    plugin = kind(VolumeBindingArgs() if kind is VolumeBinding else None, FakeHandle())
    assert wakes(plugin, resource, action, waiting, old, new) == expected
