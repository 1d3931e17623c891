"""Descriptions of PersistentVolumes, their claims, StorageClasses, VolumeAttributesClasses and CSINodes."""

from __future__ import annotations

from pybernetes.kubectl.data import dig
from pybernetes.kubectl.describing.description import Description
from pybernetes.kubectl.describing.text import joined, when, write_annotations, write_labels

_MODES = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}


def _modes(found: list[str] | None) -> str:
    return ",".join(_MODES.get(each, each) for each in found or ())


def claim(this: Description) -> None:
    """A PersistentVolumeClaim and the pods that use it."""
    spec, status = this.obj["spec"], this.obj.get("status") or {}
    this.write(0, f"Name:\t{this.info.name}\nNamespace:\t{this.info.namespace}\n")
    this.write(0, f"StorageClass:\t{spec.get('storageClassName', '')}\n")
    phase = status.get("phase", "")
    if this.get("metadata", "deletionTimestamp"):
        from pybernetes.kubectl.ages import age

        this.write(0, f"Status:\tTerminating (lasts {age(this.get('metadata', 'deletionTimestamp'))})\n")
    else:
        this.write(0, f"Status:\t{phase}\n")
    this.write(0, f"Volume:\t{spec.get('volumeName', '')}\n")
    write_labels(this, "Labels", this.get("metadata", "labels"))
    write_annotations(this, "Annotations", this.get("metadata", "annotations"))
    this.write(0, f"Finalizers:\t[{' '.join(this.get('metadata', 'finalizers', default=[]))}]\n")
    bound = bool(spec.get("volumeName"))
    this.write(0, f"Capacity:\t{dig(status, 'capacity', 'storage', default='') if bound else ''}\n")
    this.write(0, f"Access Modes:\t{_modes(status.get('accessModes')) if bound else ''}\n")
    if spec.get("volumeMode"):
        this.write(0, f"VolumeMode:\t{spec['volumeMode']}\n")
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
    this.events()


def volume(this: Description) -> None:
    """A PersistentVolume and its source."""
    spec, status = this.obj["spec"], this.obj.get("status") or {}
    this.head(namespace=False)
    this.write(0, f"Finalizers:\t[{' '.join(this.get('metadata', 'finalizers', default=[]))}]\n")
    this.write(0, f"StorageClass:\t{spec.get('storageClassName', '')}\n")
    this.write(0, f"Status:\t{status.get('phase', '')}\n")
    reference = spec.get("claimRef")
    claim = f"{reference.get('namespace', '')}/{reference.get('name', '')}" if reference is not None else ""
    this.write(0, f"Claim:\t{claim}\n")
    this.write(0, f"Reclaim Policy:\t{spec.get('persistentVolumeReclaimPolicy', '')}\n")
    this.write(0, f"Access Modes:\t{_modes(spec.get('accessModes'))}\n")
    if spec.get("volumeMode"):
        this.write(0, f"VolumeMode:\t{spec['volumeMode']}\n")
    this.write(0, f"Capacity:\t{dig(spec, 'capacity', 'storage', default='')}\n")
    this.write(0, "Node Affinity:\t<none>\n" if not spec.get("nodeAffinity") else "Node Affinity:\t\n")
    for at, term in enumerate(dig(spec, "nodeAffinity", "required", "nodeSelectorTerms", default=[])):
        if not at:
            this.write(1, "Required Terms:\t\n")
        this.write(2, f"Term {at}:\t")
        for index, each in enumerate(term.get("matchExpressions") or ()):
            if index:
                this.write(2, "\t")
            values = f" [{', '.join(each.get('values') or ())}]" if each.get("values") else ""
            this.line(f"{each['key']} {each['operator'].lower()}{values}")
    this.write(0, f"Message:\t{status.get('message', '')}\nSource:\n")
    from pybernetes.kubectl.describing.pods import _VOLUMES

    for key, (name, text, fields) in _VOLUMES.items():
        if key in spec:
            this.write(2, f"Type:\t{name} ({text})\n")
            for title, field in fields:
                value = spec[key].get(field)
                value = ("true" if value else "false") if field in ("readOnly", "optional") else value
                this.write(2, f"{title}:\t{value if value is not None else ''}\n")
            if key == "csi":
                this.write(2, f"VolumeHandle:\t{spec[key].get('volumeHandle', '')}\n")
                this.write(2, f"VolumeAttributes:\t{joined(spec[key].get('volumeAttributes'))}\n")
    this.events()


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
    this.write(0, f"ReclaimPolicy:\t{obj.get('reclaimPolicy', '')}\n")
    if obj.get("volumeBindingMode"):
        this.write(0, f"VolumeBindingMode:\t{obj['volumeBindingMode']}\n")
    if obj.get("allowedTopologies"):
        this.write(0, "AllowedTopologies:\t\n")
    for at, term in enumerate(obj.get("allowedTopologies") or ()):
        this.write(1, f"Term {at}:\t")
        for index, each in enumerate(term.get("matchLabelExpressions") or ()):
            if index:
                this.write(1, "\t")
            this.line(f"{each['key']} in [{', '.join(each.get('values') or ())}]")
        if not term.get("matchLabelExpressions"):
            this.line("<none>")
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
