"""Volumes, their attachment, and their classes."""

from __future__ import annotations

from .cluster import Answer, Cluster, Object, events_of, name_of
from .facts import recent

_STORAGE = "/apis/storage.k8s.io/v1"


async def explain_volume(cluster: Cluster, thing: Object) -> Answer:
    """A PersistentVolume by its phase."""
    spec, status = thing["spec"], thing.get("status") or {}
    holder = spec.get("claimRef") or {}
    who = f"{holder.get('namespace')}/{holder.get('name')}"
    phase = status.get("phase")
    if phase == "Bound":
        return Answer(f"nothing is wrong: it is bound to the claim {who}", healthy=True)
    if phase == "Available":
        return Answer("nothing is wrong: no claim has it yet", healthy=True)
    if phase == "Released":
        if spec.get("persistentVolumeReclaimPolicy") == "Retain":
            return Answer(
                f"its claim {who} is deleted, and its policy Retain keeps it for its data: no claim can have it",
                fix=f'kubectl patch pv/{name_of(thing)} --type=json -p \'[{{"op":"remove","path":"/spec/claimRef"}}]\'',
            )
        return Answer(
            f"its claim {who} is deleted, and its driver has not removed it yet",
            recent(await events_of(cluster, thing)),
        )
    if phase == "Failed":
        return Answer(
            f"it could not be removed: {status.get('message') or 'no message'}", recent(await events_of(cluster, thing))
        )
    return Answer("its controller has not looked at it yet")


async def explain_attachment(cluster: Cluster, thing: Object) -> Answer:
    """A VolumeAttachment."""
    status, node = thing.get("status") or {}, thing["spec"].get("nodeName")
    for key, verb in (("attachError", "attached to"), ("detachError", "detached from")):
        if status.get(key):
            return Answer(f"the volume cannot be {verb} node {node}: {status[key].get('message')}")
    if status.get("attached"):
        return Answer(f"nothing is wrong: the volume is attached to node {node}", healthy=True)
    return Answer(
        f"it waits for the attacher {thing['spec'].get('attacher')} to attach the volume to node {node}",
        fix="see that the driver's controller runs",
    )


async def explain_class(cluster: Cluster, thing: Object) -> Answer:
    """A StorageClass: whether its driver is there."""
    name = str(thing.get("provisioner"))
    if name.startswith("kubernetes.io/"):
        return (
            Answer("nothing is wrong: its volumes are made by hand", healthy=True)
            if name.endswith("no-provisioner")
            else Answer(f"its provisioner {name} is one of those that left Kubernetes: nothing makes its volumes")
        )
    if await cluster.get(_STORAGE, "csidrivers", "", name) is None:
        return Answer(
            f"the CSI driver {name} is not installed: there is no CSIDriver of that name",
            fix="install the driver, or correct the class",
        )
    return Answer(f"nothing is wrong: the CSI driver {name} is installed", healthy=True)
