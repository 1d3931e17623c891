"""Random storage: classes, claims in every state, volumes for any node, one zone or one node, and their users."""

from __future__ import annotations

from random import Random

from pybernetes.api.core.v1 import (
    ObjectReference,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    PersistentVolumeClaimStatus,
    PersistentVolumeSpec,
    PersistentVolumeStatus,
    Pod,
    Volume,
)
from pybernetes.api.core.v1.affinity import (
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    TopologySelectorLabelRequirement,
    TopologySelectorTerm,
)
from pybernetes.api.core.v1.persistentvolume import CSIPersistentVolumeSource, VolumeNodeAffinity
from pybernetes.api.core.v1.persistentvolumeclaim import VolumeResourceRequirements
from pybernetes.api.core.v1.volumesource import (
    AWSElasticBlockStoreVolumeSource,
    GCEPersistentDiskVolumeSource,
    ISCSIVolumeSource,
    PersistentVolumeClaimVolumeSource,
    RBDVolumeSource,
)
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
    VolumeAttachmentSource,
    VolumeAttachmentSpec,
    VolumeNodeResources,
)

from . import worlds
from .cluster import Cluster
from .spread import HOSTNAME, ZONE
from .volumes import BOUND, SELECTED

CLAIMS = [f"claim{index}" for index in range(6)]
CLASSES = ("late", "local", "now", "far", "gone")
MODES = ("ReadWriteOnce", "ReadOnlyMany", "ReadWriteOncePod")


def furnish(random: Random, cluster: Cluster) -> None:
    """Put storage into a cluster."""
    names = [node.metadata.name for node in cluster.nodes]
    cluster.classes = [
        StorageClass(metadata=ObjectMeta(name="late"), provisioner="d1", volume_binding_mode="WaitForFirstConsumer"),
        StorageClass(
            metadata=ObjectMeta(name="local"),
            provisioner="kubernetes.io/no-provisioner",
            volume_binding_mode="WaitForFirstConsumer",
        ),
        StorageClass(metadata=ObjectMeta(name="now"), provisioner="d2", volume_binding_mode="Immediate"),
        StorageClass(
            metadata=ObjectMeta(name="far"),
            provisioner="d2",
            volume_binding_mode="WaitForFirstConsumer",
            allowed_topologies=[
                TopologySelectorTerm(
                    match_label_expressions=[TopologySelectorLabelRequirement(key=ZONE, values=["z1", "z2"])]
                )
            ],
        ),
    ]
    cluster.drivers = [
        CSIDriver(metadata=ObjectMeta(name="d1"), spec=CSIDriverSpec(storage_capacity=worlds.maybe(random, 0.5)))
    ]
    cluster.capacities = [
        CSIStorageCapacity(
            metadata=ObjectMeta(name=f"s{index}", namespace="red"),
            storage_class_name="late",
            node_topology=random.choice(
                (None, LabelSelector(), LabelSelector(match_labels={ZONE: random.choice(("z1", "z2"))}))
            ),
            capacity=random.choice((None, "1Gi", "5Gi")),
            maximum_volume_size=random.choice((None, None, "2Gi")),
        )
        for index in range(3)
    ]
    cluster.volumes = [volume(random, f"v{index}", names) for index in range(8)]
    cluster.claims = [
        claim(random, name, namespace, names)
        for name in CLAIMS
        for namespace in ("red", "blue")
        if worlds.maybe(random, 0.9)
    ]
    cluster.csi_nodes = [csi_node(random, name) for name in names if worlds.maybe(random, 0.8)]
    cluster.attachments = [
        VolumeAttachment(
            metadata=ObjectMeta(name=f"a{index}"),
            spec=VolumeAttachmentSpec(
                attacher=random.choice(("d1", "d2")),
                node_name=random.choice(names),
                source=VolumeAttachmentSource(persistent_volume_name=f"v{random.randint(0, 9)}"),
            ),
        )
        for index in range(random.randint(0, 4))
    ]


def csi_node(random: Random, name: str) -> CSINode:
    drivers = [
        CSINodeDriver(
            name=driver,
            node_id=name,
            allocatable=random.choice((None, VolumeNodeResources(count=random.randint(1, 3)))),
        )
        for driver in ("d1", "d2")
    ]
    return CSINode(metadata=ObjectMeta(name=name), spec=CSINodeSpec(drivers=drivers))


def volume(random: Random, name: str, nodes: list[str]) -> PersistentVolume:
    labels = {ZONE: random.choice(("z1", "z2__z3"))} if worlds.maybe(random, 0.3) else {}
    if worlds.maybe(random, 0.1):
        labels["failure-domain.beta.kubernetes.io/zone"] = "z1"
    where = random.choice(
        (None, (HOSTNAME, [random.choice(nodes)]), (HOSTNAME, [random.choice(nodes)]), (ZONE, ["z1", "z2"]))
    )
    affinity = None
    if where:
        needed = NodeSelectorRequirement(key=where[0], operator="In", values=where[1])
        affinity = VolumeNodeAffinity(
            required=NodeSelector(node_selector_terms=[NodeSelectorTerm(match_expressions=[needed])])
        )
    reference = None
    if worlds.maybe(random, 0.2):
        reference = ObjectReference(namespace="red", name=random.choice(CLAIMS))
        if worlds.maybe(random, 0.3):
            reference.uid = "another"
    return PersistentVolume(
        metadata=ObjectMeta(name=name, labels=labels or None, resource_version="1"),
        spec=PersistentVolumeSpec(
            capacity={"storage": random.choice(("1Gi", "2Gi", "10Gi"))},
            storage_class_name=random.choice(("late", "local", "local", "now")),
            access_modes=random.sample(MODES, random.randint(1, 3)),
            node_affinity=affinity,
            claim_ref=reference,
            csi=CSIPersistentVolumeSource(driver=random.choice(("d1", "d2")), volume_handle=f"h{name}"),
            volume_mode=random.choice((None, "Filesystem", "Filesystem", "Block")),
        ),
        status=PersistentVolumeStatus(phase=random.choice(("Available", "Available", "Available", "Released"))),
    )


def claim(random: Random, name: str, namespace: str, nodes: list[str]) -> PersistentVolumeClaim:
    annotations = {}
    bound = None
    if worlds.maybe(random, 0.4):
        bound = f"v{random.randint(0, 8)}"
        annotations[BOUND] = "yes"
    elif worlds.maybe(random, 0.2):
        annotations[SELECTED] = random.choice(nodes)
    return PersistentVolumeClaim(
        metadata=ObjectMeta(
            name=name, namespace=namespace, uid=f"uid-{namespace}-{name}", annotations=annotations, resource_version="1"
        ),
        spec=PersistentVolumeClaimSpec(
            storage_class_name=random.choice(("late", "late", "local", "local", "far", "now")),
            access_modes=[random.choice(MODES)],
            volume_name=bound,
            selector=random.choice((None, None, None, LabelSelector(match_labels={ZONE: "z1"}))),
            resources=VolumeResourceRequirements(requests={"storage": random.choice(("1Gi", "2Gi", "3Gi"))}),
        ),
        status=PersistentVolumeClaimStatus(phase="Bound" if bound else "Pending"),
    )


def use(random: Random, pod: Pod) -> None:
    """Give a pod volumes."""
    names = worlds.some(random, CLAIMS, 3)
    pod.spec.volumes = [
        Volume(name=f"vol{index}", persistent_volume_claim=PersistentVolumeClaimVolumeSource(claim_name=name))
        for index, name in enumerate(names)
    ]
    read_only = worlds.maybe(random, 0.5) or None
    disk = random.choice(("one", "two"))
    kind = random.randint(0, 12)
    if kind == 0:
        source = GCEPersistentDiskVolumeSource(pd_name=disk, read_only=read_only)
        pod.spec.volumes.append(Volume(name="disk", gce_persistent_disk=source))
    elif kind == 1:
        ebs = AWSElasticBlockStoreVolumeSource(volume_id=disk, read_only=read_only)
        pod.spec.volumes.append(Volume(name="disk", aws_elastic_block_store=ebs))
    elif kind == 2:
        pod.spec.volumes.append(Volume(name="disk", iscsi=ISCSIVolumeSource(iqn=disk, read_only=read_only)))
    elif kind == 3:
        monitors = random.sample(("m1", "m2", "m3"), 2)
        rbd = RBDVolumeSource(monitors=monitors, pool="p", image=disk, read_only=read_only)
        pod.spec.volumes.append(Volume(name="disk", rbd=rbd))
