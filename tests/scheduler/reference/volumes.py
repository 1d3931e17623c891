"""What the volumes of a pod ask of a node: VolumeRestrictions, NodeVolumeLimits, VolumeZone, VolumeBinding."""

from __future__ import annotations

from pybernetes.api import labels
from pybernetes.api.core.v1 import Node, PersistentVolume, PersistentVolumeClaim, Pod, Volume
from pybernetes.api.quantity import Quantity, parse

from .cluster import UNRESOLVABLE, UNSCHEDULABLE, Cluster, Refusal, labels_of
from .node_rules import term_holds

ZONE_LABELS = (
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
)
BOUND = "pv.kubernetes.io/bind-completed"
SELECTED = "volume.kubernetes.io/selected-node"


def claim_name(pod: Pod, volume: Volume) -> str | None:
    if volume.persistent_volume_claim is not None:
        return volume.persistent_volume_claim.claim_name or ""
    if volume.ephemeral is not None:
        return f"{pod.metadata.name}-{volume.name}"
    return None


def not_found(name: str) -> Refusal:
    return Refusal(UNRESOLVABLE, (f'persistentvolumeclaim "{name}" not found',))


# --- VolumeRestrictions


def volume_restrictions(pod: Pod, node: Node, cluster: Cluster) -> Refusal | None:
    for volume in pod.spec.volumes or []:
        source = volume.persistent_volume_claim
        if source is not None and cluster.claim(pod.metadata.namespace or "", source.claim_name or "") is None:
            return not_found(source.claim_name or "")
    others = [volume for other in cluster.on(node) for volume in other.spec.volumes or []]
    for volume in pod.spec.volumes or []:
        if any(_conflict(volume, other) for other in others):
            return Refusal(UNSCHEDULABLE, ("node(s) had no available disk",))
    for volume in pod.spec.volumes or []:
        source = volume.persistent_volume_claim
        if source is None:
            continue
        claim = cluster.claim(pod.metadata.namespace or "", source.claim_name or "")
        if "ReadWriteOncePod" not in (claim.spec.access_modes or []):
            continue
        for other in cluster.pods:
            if other.metadata.namespace == pod.metadata.namespace and any(
                each.persistent_volume_claim and each.persistent_volume_claim.claim_name == source.claim_name
                for each in other.spec.volumes or []
            ):
                reason = (
                    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already "
                    "in-use by another pod"
                )
                return Refusal(UNSCHEDULABLE, (reason,))
    return None


def _conflict(one: Volume, other: Volume) -> bool:
    if one.gce_persistent_disk and other.gce_persistent_disk:
        a, b = one.gce_persistent_disk, other.gce_persistent_disk
        if a.pd_name == b.pd_name and not (a.read_only and b.read_only):
            return True
    if one.aws_elastic_block_store and other.aws_elastic_block_store:
        same = one.aws_elastic_block_store.volume_id == other.aws_elastic_block_store.volume_id
        if same:
            return True
    if one.iscsi and other.iscsi:
        same = one.iscsi.iqn == other.iscsi.iqn
        if same and not (one.iscsi.read_only and other.iscsi.read_only):
            return True
    if one.rbd and other.rbd:
        c, d = one.rbd, other.rbd
        if (
            set(c.monitors or []) & set(d.monitors or [])
            and (c.pool, c.image) == (d.pool, d.image)
            and not (c.read_only and d.read_only)
        ):
            return True
    return False


# --- NodeVolumeLimits


def node_volume_limits(pod: Pod, node: Node, cluster: Cluster) -> Refusal | None:
    wanted: set[tuple[str, str]] = set()
    for volume in pod.spec.volumes or []:
        name = claim_name(pod, volume)
        if name is None:
            continue
        claim = cluster.claim(pod.metadata.namespace or "", name)
        if claim is None:
            reason = f'looking up PVC {pod.metadata.namespace}/{name}: persistentvolumeclaim "{name}" not found'
            return Refusal(UNRESOLVABLE, (reason,))
        wanted |= _counted(claim, cluster)
    csi_node = next((each for each in cluster.csi_nodes if each.metadata.name == node.metadata.name), None)
    attached: set[tuple[str, str]] = set()
    for other in cluster.on(node):
        for volume in other.spec.volumes or []:
            name = claim_name(other, volume)
            claim = cluster.claim(other.metadata.namespace or "", name) if name is not None else None
            if claim is not None:
                attached |= _counted(claim, cluster)
    new = wanted - attached
    for each in cluster.attachments:
        if each.spec.node_name == node.metadata.name and each.spec.source.persistent_volume_name:
            volume = cluster.volume(each.spec.source.persistent_volume_name)
            if volume is not None and volume.spec.csi is not None and each.spec.attacher:
                attached.add((each.spec.attacher, volume.spec.csi.volume_handle or ""))
    for driver in (csi_node.spec.drivers or []) if csi_node else []:
        if driver.allocatable is None or driver.allocatable.count is None:
            continue
        more = sum(1 for name, _ in new if name == driver.name)
        if more and sum(1 for name, _ in attached if name == driver.name) + more > driver.allocatable.count:
            return Refusal(UNSCHEDULABLE, ("node(s) exceed max volume count",))
    return None


def _counted(claim: PersistentVolumeClaim, cluster: Cluster) -> set[tuple[str, str]]:
    """(driver, volume) that a claim stands for; one not made yet is named after its claim."""
    volume = cluster.volume(claim.spec.volume_name) if claim.spec.volume_name else None
    if volume is not None:
        csi = volume.spec.csi
        return {(csi.driver, csi.volume_handle)} if csi is not None and csi.driver and csi.volume_handle else set()
    found = cluster.storage_class(claim.spec.storage_class_name or "")
    if found is None or not found.provisioner:
        return set()
    return {(found.provisioner, f"unmade {claim.metadata.namespace}/{claim.metadata.name}")}


# --- VolumeZone


def volume_zone(pod: Pod, node: Node, cluster: Cluster) -> Refusal | None:
    wanted: list[tuple[str, set[str]]] = []
    for each in pod.spec.volumes or []:
        if each.persistent_volume_claim is None:
            continue
        name = each.persistent_volume_claim.claim_name or ""
        claim = cluster.claim(pod.metadata.namespace or "", name)
        if claim is None:
            return not_found(name)
        if not claim.spec.volume_name:
            class_name = claim.spec.storage_class_name
            if not class_name:
                reason = "PersistentVolumeClaim had no pv name and storageClass name"
                return Refusal(UNRESOLVABLE, (reason,))
            found = cluster.storage_class(class_name)
            if found is None:
                return Refusal(UNRESOLVABLE, (f'storageclass.storage.k8s.io "{class_name}" not found',))
            if found.volume_binding_mode == "WaitForFirstConsumer":
                continue
            return Refusal(UNRESOLVABLE, ("PersistentVolume had no name",))
        volume = cluster.volume(claim.spec.volume_name)
        if volume is None:
            return Refusal(UNRESOLVABLE, (f'persistentvolume "{claim.spec.volume_name}" not found',))
        for key in ZONE_LABELS:
            if key in labels_of(volume):
                zones = {zone.strip() for zone in labels_of(volume)[key].split("__")}
                if "" not in zones:
                    wanted.append((key, zones))
    here = labels_of(node)
    if not any(key in here for key in ZONE_LABELS):
        return None
    for key, zones in wanted:
        newer = key.replace("failure-domain.beta.kubernetes.io", "topology.kubernetes.io")
        if here.get(key, here.get(newer)) not in zones:
            return Refusal(UNRESOLVABLE, ("node(s) had no available volume zone",))
    return None


# --- VolumeBinding


def volume_binding(pod: Pod, node: Node, cluster: Cluster) -> Refusal | None:
    bound, waiting, immediate = [], [], []
    for each in pod.spec.volumes or []:
        name = claim_name(pod, each)
        if name is None:
            continue
        claim = cluster.claim(pod.metadata.namespace or "", name)
        if claim is None:
            return not_found(name)
    for each in pod.spec.volumes or []:
        name = claim_name(pod, each)
        claim = cluster.claim(pod.metadata.namespace or "", name) if name is not None else None
        if claim is None:
            continue
        if BOUND in (claim.metadata.annotations or {}) and claim.spec.volume_name:
            bound.append(claim)
            continue
        found = cluster.storage_class(claim.spec.storage_class_name or "")
        late = found is not None and found.volume_binding_mode == "WaitForFirstConsumer"
        (waiting if late and not claim.spec.volume_name else immediate).append(claim)
    if immediate:
        return Refusal(UNRESOLVABLE, ("pod has unbound immediate PersistentVolumeClaims",))
    fits, exist = True, True
    for claim in bound:
        volume = cluster.volume(claim.spec.volume_name or "")
        if volume is None:
            exist = False
            break
        if not affinity_holds(volume, node):
            fits = False
            break
    satisfied, space = _waiting_satisfied(waiting, node, cluster)
    reasons = []
    if not fits:
        reasons.append("node(s) didn't match PersistentVolume's node affinity")
    if not satisfied:
        reasons.append("node(s) didn't find available persistent volumes to bind")
    if not space:
        reasons.append("node(s) did not have enough free storage")
    if not exist:
        reasons.append("node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)")
    return Refusal(UNRESOLVABLE, tuple(reasons)) if reasons else None


def _waiting_satisfied(claims: list[PersistentVolumeClaim], node: Node, cluster: Cluster) -> tuple[bool, bool]:
    """Whether there are volumes, or they can be made, and whether there is space to make them."""
    selected = [(claim.metadata.annotations or {}).get(SELECTED) for claim in claims]
    if any(each not in (None, node.metadata.name) for each in selected):
        return False, True
    to_match = [claim for claim, each in zip(claims, selected, strict=True) if each is None]
    to_make = [claim for claim, each in zip(claims, selected, strict=True) if each is not None]
    taken: set[str] = set()
    for claim in sorted(to_match, key=lambda each: wanted_size(each)):
        volume = match(claim, node, cluster, taken)
        if volume is None:
            to_make.append(claim)
        else:
            taken.add(volume.metadata.name or "")
    for claim in to_make:
        found = cluster.storage_class(claim.spec.storage_class_name or "")
        if found is None or found.provisioner in (None, "", "kubernetes.io/no-provisioner"):
            return False, True
        allowed = found.allowed_topologies or []
        if allowed and not any(
            all(
                labels_of(node).get(each.key or "") in (each.values or [])
                for each in term.match_label_expressions or []
            )
            for term in allowed
            if term.match_label_expressions
        ):
            return False, True
        if not has_space(claim, found.provisioner or "", node, cluster):
            return True, False
    return True, True


def has_space(claim: PersistentVolumeClaim, provisioner: str, node: Node, cluster: Cluster) -> bool:
    driver = next((each for each in cluster.drivers if each.metadata.name == provisioner), None)
    if driver is None or not driver.spec.storage_capacity:
        return True
    for each in cluster.capacities:
        limit = each.maximum_volume_size if each.maximum_volume_size is not None else each.capacity
        if each.storage_class_name != claim.spec.storage_class_name or limit is None or each.node_topology is None:
            continue
        reached = labels.from_label_selector(each.node_topology).matches(labels_of(node))
        if reached and parse(str(limit)).value() >= wanted_size(claim).value():
            return True
    return False


def affinity_holds(volume: PersistentVolume, node: Node) -> bool:
    affinity = volume.spec.node_affinity
    if affinity is None or affinity.required is None:
        return True
    return any(term_holds(term, node) for term in affinity.required.node_selector_terms or [])


def wanted_size(claim: PersistentVolumeClaim) -> Quantity:
    requests = (claim.spec.resources.requests if claim.spec.resources else None) or {}
    return parse(str(requests.get("storage", "0")))


def match(claim: PersistentVolumeClaim, node: Node, cluster: Cluster, taken: set[str]) -> PersistentVolume | None:
    """The volume that was reserved for the claim, else the smallest that will do."""
    best: PersistentVolume | None = None
    for volume in cluster.volumes:
        spec = volume.spec
        if volume.metadata.name in taken or (spec.storage_class_name or "") != (claim.spec.storage_class_name or ""):
            continue
        mine = spec.claim_ref is not None and (
            spec.claim_ref.name == claim.metadata.name
            and spec.claim_ref.namespace == claim.metadata.namespace
            and spec.claim_ref.uid in (None, "", claim.metadata.uid)
        )
        if spec.claim_ref is not None and not mine:
            continue
        size = parse(str((spec.capacity or {}).get("storage", "0")))
        if size < wanted_size(claim) or volume.metadata.deletion_timestamp is not None:
            continue
        if (spec.volume_mode or "Filesystem") != (claim.spec.volume_mode or "Filesystem"):
            continue
        if (spec.volume_attributes_class_name or "") != (claim.spec.volume_attributes_class_name or ""):
            continue
        if mine:
            return volume if affinity_holds(volume, node) else None
        if volume.status is None or volume.status.phase != "Available":
            continue
        chosen = labels.EVERYTHING if claim.spec.selector is None else labels.from_label_selector(claim.spec.selector)
        if not chosen.matches(labels_of(volume)):
            continue
        if not set(claim.spec.access_modes or []) <= set(spec.access_modes or []) or not affinity_holds(volume, node):
            continue
        if best is None or size < parse(str((best.spec.capacity or {}).get("storage", "0"))):
            best = volume
    return best
