"""Descriptions of PersistentVolumes, their claims, StorageClasses, VolumeAttributesClasses and CSINodes."""

from __future__ import annotations

from pybernetes.kubectl.data import dig
from pybernetes.kubectl.describing.description import Description
from pybernetes.kubectl.describing.text import ZERO, joined, when
from pybernetes.kubectl.describing.volumes import claim as write_claim
from pybernetes.kubectl.describing.volumes import class_name, modes, persistent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def claim(this: Description) -> None:
    """A PersistentVolumeClaim and the pods that use it."""
    write_claim(this, this.obj, _status(this))
    pods = [
        pod["metadata"]["name"]
        for pod in this.fetch(f"/api/v1/namespaces/{this.info.namespace}/pods")
        if any(
            dig(volume, "persistentVolumeClaim", "claimName") == this.info.name
            for volume in dig(pod, "spec", "volumes", default=[])
        )
    ]
    if not pods:
        this.write(0, "Used By:\t<none>\n")
    for at, name in enumerate(sorted(pods)):
        this.write(0, f"{'Used By:' if not at else ''}\t{name}\n")
    conditions = this.get("status", "conditions", default=[])
    if conditions:
        this.write(0, "Conditions:\n")
        this.write(1, "Type\tStatus\tLastProbeTime\tLastTransitionTime\tReason\tMessage\n")
        this.write(1, "----\t------\t-----------------\t------------------\t------\t-------\n")
    for each in conditions:
        times = (when(each.get(name), ZERO) for name in ("lastProbeTime", "lastTransitionTime"))
        words = (each.get("type", ""), each.get("status", ""), *times, each.get("reason", ""))
        this.write(1, " \t".join(words) + f" \t{each.get('message', '')}\n")
    this.events()


def _status(this: Description) -> str:
    from pybernetes.kubectl.ages import age

    ending = this.get("metadata", "deletionTimestamp")
    return f"Terminating (lasts {age(ending)})" if ending else this.get("status", "phase", default="")


def volume(this: Description) -> None:
    """A PersistentVolume and its source."""
    spec = this.obj.get("spec") or {}
    this.head(namespace=False)
    this.write(0, f"Finalizers:\t[{' '.join(this.get('metadata', 'finalizers', default=[]))}]\n")
    this.write(0, f"StorageClass:\t{class_name(this.obj)}\n")
    this.write(0, f"Status:\t{_status(this)}\n")
    reference = spec.get("claimRef")
    claimed = f"{reference.get('namespace', '')}/{reference.get('name', '')}" if reference is not None else ""
    this.write(0, f"Claim:\t{claimed}\n")
    this.write(0, f"Reclaim Policy:\t{spec.get('persistentVolumeReclaimPolicy', '')}\n")
    this.write(0, f"Access Modes:\t{modes(spec.get('accessModes'))}\n")
    if spec.get("volumeMode") is not None:
        this.write(0, f"VolumeMode:\t{spec['volumeMode']}\n")
    this.write(0, f"Capacity:\t{dig(spec, 'capacity', 'storage', default='0')}\n")
    _affinity(this, dig(spec, "nodeAffinity", "required"))
    this.write(0, f"Message:\t{this.get('status', 'message', default='')}\nSource:\n")
    persistent(this, spec)
    this.events()


def _affinity(this: Description, required: dict[str, Any] | None) -> None:
    """The terms for nodes that can reach a volume."""
    if required is None:
        this.write(0, "Node Affinity:\t<none>\n")
        return
    this.write(0, "Node Affinity:\t\n")
    terms = required.get("nodeSelectorTerms") or []
    this.write(1, f"Required Terms:\t{'' if terms else '<none>'}\n")
    for at, term in enumerate(terms):
        found = [
            (each.get("key", ""), f" {each.get('operator', '').lower()}", each.get("values"))
            for each in term.get("matchExpressions") or ()
        ]
        _term(this, 2, at, found)


def _values(values: list[str] | None) -> str:
    return f" [{', '.join(values)}]" if values else ""


def _term(this: Description, level: int, at: int, found: list[tuple[str, str, list[str] | None]]) -> None:
    """One term of a selector of nodes, an expression a line."""
    this.write(level, f"Term {at}:\t")
    if not found:
        this.line("<none>")
    for index, (key, operator, values) in enumerate(found):
        if index:
            this.write(level, "\t")
        this.line(f"{key}{operator}{_values(values)}")


def storage_class(this: Description) -> None:
    """A StorageClass."""
    obj = this.obj
    default = this.get("metadata", "annotations", "storageclass.kubernetes.io/is-default-class", default="")
    this.write(0, f"Name:\t{this.info.name}\nIsDefaultClass:\t{'Yes' if default == 'true' else 'No'}\n")
    this.write(0, f"Annotations:\t{joined(this.get('metadata', 'annotations'))}\n")
    this.write(0, f"Provisioner:\t{obj.get('provisioner', '')}\n")
    this.write(0, f"Parameters:\t{joined(obj.get('parameters'))}\n")
    expansion = obj.get("allowVolumeExpansion")
    this.write(0, f"AllowVolumeExpansion:\t{'<unset>' if expansion is None else 'True' if expansion else 'False'}\n")
    options = obj.get("mountOptions") or []
    this.write(0, "MountOptions:\n" if options else "MountOptions:\t<none>\n")
    for each in options:
        this.write(1, f"{each}\n")
    if obj.get("reclaimPolicy") is not None:
        this.write(0, f"ReclaimPolicy:\t{obj['reclaimPolicy']}\n")
    if obj.get("volumeBindingMode"):
        this.write(0, f"VolumeBindingMode:\t{obj['volumeBindingMode']}\n")
    terms = obj.get("allowedTopologies")
    if terms is not None:
        this.write(0, f"AllowedTopologies:\t{'' if terms else '<none>'}\n")
    for at, term in enumerate(terms or ()):
        found = [(each.get("key", ""), " in", each.get("values")) for each in term.get("matchLabelExpressions") or ()]
        _term(this, 1, at, found)
    this.events()


def csi_node(this: Description) -> None:
    """A CSINode with the drivers of its node."""
    this.head(namespace=False)
    this.write(0, f"CreationTimestamp:\t{when(this.get('metadata', 'creationTimestamp'))}\nSpec:\n")
    drivers = this.get("spec", "drivers")
    if drivers is not None:
        this.write(1, "Drivers:\n")
    for driver in drivers or ():
        this.write(2, f"{driver.get('name', '')}:\n")
        this.write(3, f"Node ID:\t{driver.get('nodeID', '')}\n")
        count = dig(driver, "allocatable", "count")
        if count is not None:
            this.write(3, "Allocatables:\n")
            this.write(4, f"Count:\t{count}\n")
        if driver.get("topologyKeys") is not None:
            this.write(3, f"Topology Keys:\t[{' '.join(driver['topologyKeys'])}]\n")
    this.events()


def volume_attributes_class(this: Description) -> None:
    """A VolumeAttributesClass."""
    this.write(0, f"Name:\t{this.info.name}\n")
    this.write(0, f"Annotations:\t{joined(this.get('metadata', 'annotations'))}\n")
    this.write(0, f"DriverName:\t{this.obj.get('driverName', '')}\n")
    this.write(0, f"Parameters:\t{joined(this.obj.get('parameters'))}\n")
    this.events()
