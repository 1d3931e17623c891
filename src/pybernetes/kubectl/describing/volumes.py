"""The sources of volumes, of pods and of PersistentVolumes, each as a type with its fields."""

from __future__ import annotations

from pybernetes.kubectl.data import dig
from pybernetes.kubectl.describing.text import Writer, cut, write_annotations, write_labels

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Field = tuple[str, str] | tuple[str, str, str]

_DISK = (("FSType", "fsType"), ("Partition", "partition", "number"), ("ReadOnly", "readOnly", "flag"))
_RBD = (
    ("CephMonitors", "monitors", "list"),
    ("RBDImage", "image"),
    ("FSType", "fsType"),
    ("RBDPool", "pool"),
    ("RadosUser", "user"),
    ("Keyring", "keyring"),
    ("SecretRef", "secretRef", "reference"),
    ("ReadOnly", "readOnly", "flag"),
)
_ISCSI = (
    ("TargetPortal", "targetPortal"),
    ("IQN", "iqn"),
    ("Lun", "lun", "number"),
    ("ISCSIInterface", "iscsiInterface", "without colon"),
    ("FSType", "fsType"),
    ("ReadOnly", "readOnly", "flag"),
    ("Portals", "portals", "list"),
    ("DiscoveryCHAPAuth", "chapAuthDiscovery", "flag"),
    ("SessionCHAPAuth", "chapAuthSession", "flag"),
    ("SecretRef", "secretRef", "reference"),
    ("InitiatorName", "initiatorName", "or none"),
)
# Field of the source -> its type, what that is, and its fields: title, field (`secretRef.name`), form of the value.
_SOURCES: dict[str, tuple[str, str, tuple[Field, ...]]] = {
    "hostPath": ("HostPath", "bare host directory volume", (("Path", "path"), ("HostPathType", "type", "or none"))),
    "emptyDir": (
        "EmptyDir",
        "a temporary directory that shares a pod's lifetime",
        (("Medium", "medium"), ("SizeLimit", "sizeLimit", "limit")),
    ),
    "gcePersistentDisk": (
        "GCEPersistentDisk",
        "a Persistent Disk resource in Google Compute Engine",
        (("PDName", "pdName"), *_DISK),
    ),
    "awsElasticBlockStore": (
        "AWSElasticBlockStore",
        "a Persistent Disk resource in AWS",
        (("VolumeID", "volumeID"), *_DISK),
    ),
    "gitRepo": (
        "GitRepo",
        "a volume that is pulled from git when the pod is created",
        (("Repository", "repository"), ("Revision", "revision")),
    ),
    "secret": (
        "Secret",
        "a volume populated by a Secret",
        (("SecretName", "secretName"), ("Optional", "optional", "flag")),
    ),
    "configMap": (
        "ConfigMap",
        "a volume populated by a ConfigMap",
        (("Name", "name"), ("Optional", "optional", "flag")),
    ),
    "nfs": (
        "NFS",
        "an NFS mount that lasts the lifetime of a pod",
        (("Server", "server"), ("Path", "path"), ("ReadOnly", "readOnly", "flag")),
    ),
    "iscsi": (
        "ISCSI",
        "an ISCSI Disk resource that is attached to a kubelet's host machine and then exposed to the pod",
        _ISCSI,
    ),
    "glusterfs": (
        "Glusterfs",
        "a Glusterfs mount on the host that shares a pod's lifetime",
        (("EndpointsName", "endpoints"), ("Path", "path"), ("ReadOnly", "readOnly", "flag")),
    ),
    "persistentVolumeClaim": (
        "PersistentVolumeClaim",
        "a reference to a PersistentVolumeClaim in the same namespace",
        (("ClaimName", "claimName"), ("ReadOnly", "readOnly", "flag")),
    ),
    "ephemeral": (
        "EphemeralVolume",
        "an inline specification for a volume that gets created and deleted with the pod",
        (),
    ),
    "rbd": ("RBD", "a Rados Block Device mount on the host that shares a pod's lifetime", _RBD),
    "quobyte": (
        "Quobyte",
        "a Quobyte mount on the host that shares a pod's lifetime",
        (("Registry", "registry"), ("Volume", "volume"), ("ReadOnly", "readOnly", "flag")),
    ),
    "downwardAPI": ("DownwardAPI", "a volume populated by information about the pod", ()),
    "azureDisk": (
        "AzureDisk",
        "an Azure Data Disk mount on the host and bind mount to the pod",
        (
            ("DiskName", "diskName"),
            ("DiskURI", "diskURI"),
            ("Kind", "kind", "with blank"),
            ("FSType", "fsType"),
            ("CachingMode", "cachingMode"),
            ("ReadOnly", "readOnly", "flag"),
        ),
    ),
    "vsphereVolume": (
        "vSphereVolume",
        "a Persistent Disk resource in vSphere",
        (("VolumePath", "volumePath"), ("FSType", "fsType"), ("StoragePolicyName", "storagePolicyName")),
    ),
    "cinder": (
        "Cinder",
        "a Persistent Disk resource in OpenStack",
        (
            ("VolumeID", "volumeID"),
            ("FSType", "fsType"),
            ("ReadOnly", "readOnly", "flag"),
            ("SecretRef", "secretRef", "reference"),
        ),
    ),
    "photonPersistentDisk": (
        "PhotonPersistentDisk",
        "a Persistent Disk resource in photon platform",
        (("PdID", "pdID"), ("FSType", "fsType")),
    ),
    "portworxVolume": ("PortworxVolume", "a Portworx Volume resource", (("VolumeID", "volumeID"),)),
    "scaleIO": (
        "ScaleIO",
        "a persistent volume backed by a block device in ScaleIO",
        (
            ("Gateway", "gateway"),
            ("System", "system"),
            ("Protection Domain", "protectionDomain"),
            ("Storage Pool", "storagePool"),
            ("Storage Mode", "storageMode"),
            ("VolumeName", "volumeName"),
            ("FSType", "fsType"),
            ("ReadOnly", "readOnly", "flag"),
        ),
    ),
    "local": ("LocalVolume", "a persistent volume backed by local storage on a node", (("Path", "path"),)),
    "cephfs": (
        "CephFS",
        "a CephFS mount on the host that shares a pod's lifetime",
        (
            ("Monitors", "monitors", "list"),
            ("Path", "path"),
            ("User", "user"),
            ("SecretFile", "secretFile"),
            ("SecretRef", "secretRef", "reference"),
            ("ReadOnly", "readOnly", "flag"),
        ),
    ),
    "storageos": (
        "StorageOS",
        "a StorageOS Persistent Disk resource",
        (
            ("VolumeName", "volumeName"),
            ("VolumeNamespace", "volumeNamespace"),
            ("FSType", "fsType"),
            ("ReadOnly", "readOnly", "flag"),
        ),
    ),
    "fc": (
        "FC",
        "a Fibre Channel disk",
        (
            ("TargetWWNs", "targetWWNs", "commas"),
            ("LUN", "lun", "or none"),
            ("FSType", "fsType"),
            ("ReadOnly", "readOnly", "flag"),
        ),
    ),
    "azureFile": (
        "AzureFile",
        "an Azure File Service mount on the host and bind mount to the pod",
        (("SecretName", "secretName"), ("ShareName", "shareName"), ("ReadOnly", "readOnly", "flag")),
    ),
    "flexVolume": (
        "FlexVolume",
        "a generic volume resource that is provisioned/attached using an exec based plugin",
        (
            ("Driver", "driver"),
            ("FSType", "fsType"),
            ("SecretRef", "secretRef", "reference"),
            ("ReadOnly", "readOnly", "flag"),
            ("Options", "options", "map"),
        ),
    ),
    "flocker": (
        "Flocker",
        "a Flocker volume mounted by the Flocker agent",
        (("DatasetName", "datasetName"), ("DatasetUUID", "datasetUUID")),
    ),
    "projected": ("Projected", "a volume that contains injected data from multiple sources", ()),
    "csi": (
        "CSI",
        "a Container Storage Interface (CSI) volume source",
        (("Driver", "driver"), ("FSType", "fsType"), ("ReadOnly", "readOnly", "flag")),
    ),
    "image": ("Image", "a container image or OCI artifact", (("Reference", "reference"), ("PullPolicy", "pullPolicy"))),
}
# The fields that differ where the source is a PersistentVolume's.
_PERSISTENT: dict[str, tuple[Field, ...]] = {
    "glusterfs": (
        ("EndpointsName", "endpoints"),
        ("EndpointsNamespace", "endpointsNamespace", "or unset"),
        ("Path", "path"),
        ("ReadOnly", "readOnly", "flag"),
    ),
    "scaleIO": (
        *_SOURCES["scaleIO"][2][:6],
        ("SecretName", "secretRef.name"),
        ("SecretNamespace", "secretRef.namespace"),
        *_SOURCES["scaleIO"][2][6:],
    ),
    "azureFile": (
        ("SecretName", "secretName"),
        ("SecretNamespace", "secretNamespace"),
        *_SOURCES["azureFile"][2][1:],
    ),
    "csi": (
        ("Driver", "driver"),
        ("FSType", "fsType"),
        ("VolumeHandle", "volumeHandle"),
        ("ReadOnly", "readOnly", "flag"),
    ),
}


def volumes(writer: Writer, found: list[dict[str, Any]], level: int) -> None:
    """The volumes of a pod, or of a pod template at level 1."""
    if not found:
        writer.write(level, "Volumes:\t<none>\n")
        return
    writer.write(level, "Volumes:\n")
    for volume in found:
        writer.write(1, f"{' ' if level else ''}{volume['name']}:\n")
        _source(writer, volume, {})


def persistent(writer: Writer, spec: dict[str, Any]) -> None:
    """The source of a PersistentVolume."""
    _source(writer, spec, _PERSISTENT)


def _source(writer: Writer, holder: dict[str, Any], other: dict[str, tuple[Field, ...]]) -> None:
    key = next((key for key in _SOURCES if holder.get(key) is not None), None)
    if key is None:
        writer.write(1, "<unknown>\n")
        return
    name, text, fields = _SOURCES[key]
    value = holder[key]
    writer.write(2, f"Type:\t{name} ({text})\n")
    for title, field, *form in other.get(key, fields):
        _field(writer, title, dig(value, *field.split(".")), form[0] if form else "")
    if key == "csi":
        _attributes(writer, value.get("volumeAttributes") or {})
    elif key == "projected":
        _projected(writer, value)
    elif key == "downwardAPI":
        _downward(writer, value)
    elif key == "ephemeral" and value.get("volumeClaimTemplate") is not None:
        nested = Writer()
        claim(nested, value["volumeClaimTemplate"])
        writer.write(0, "".join(f"    {line}\n" for line in nested.text().splitlines()))


def _field(writer: Writer, title: str, value: Any, form: str) -> None:
    if form == "without colon":
        writer.write(2, f"{title}\t{value or ''}\n")
        return
    writer.write(2, f"{title}:{' ' if form == 'with blank' else ''}\t{_shown(value, form)}\n")


def _shown(value: Any, form: str) -> str:
    """A field's value as its form prints it."""
    if form == "flag":
        return "true" if value else "false"
    if form == "reference":
        return _reference(value)
    if form == "list":
        return f"[{' '.join(value or ())}]"
    if form == "commas":
        return ", ".join(value or ())
    if form == "map":
        return f"map[{' '.join(f'{key}:{value[key]}' for key in sorted(value or ()))}]"
    if form == "limit":
        return "<unset>" if value in (None, "0", 0) else str(value)
    absent = {"number": "0", "or none": "<none>", "or unset": "<unset>"}
    return absent.get(form, "") if value is None else str(value)


def _reference(value: dict[str, Any] | None) -> str:
    """A reference to a Secret as Go prints the struct."""
    if value is None:
        return "nil"
    if "namespace" in value:
        return f"&SecretReference{{Name:{value.get('name', '')},Namespace:{value['namespace']},}}"
    return f"&LocalObjectReference{{Name:{value.get('name', '')},}}"


def _attributes(writer: Writer, values: dict[str, str]) -> None:
    writer.write(2, "VolumeAttributes:\t")
    if not values:
        writer.line("<none>")
    for at, key in enumerate(sorted(values)):
        if at:
            writer.write(2, "")
            writer.write(2, "\t")
        writer.write(2, f"{cut(f'{key}={values[key]}')}\n")


def _downward(writer: Writer, value: dict[str, Any]) -> None:
    writer.write(2, "Items:\n")
    for item in value.get("items") or ():
        if item.get("fieldRef") is not None:
            writer.write(3, f"{item['fieldRef'].get('fieldPath', '')} -> {item.get('path', '')}\n")
        if item.get("resourceFieldRef") is not None:
            writer.write(3, f"{item['resourceFieldRef'].get('resource', '')} -> {item.get('path', '')}\n")


def _projected(writer: Writer, value: dict[str, Any]) -> None:
    for source in value.get("sources") or ():
        if source.get("secret") is not None:
            writer.write(2, f"SecretName:\t{source['secret'].get('name', '')}\n")
            _field(writer, "Optional", source["secret"].get("optional"), "flag")
        elif source.get("downwardAPI") is not None:
            writer.write(2, "DownwardAPI:\ttrue\n")
        elif source.get("configMap") is not None:
            writer.write(2, f"ConfigMapName:\t{source['configMap'].get('name', '')}\n")
            _field(writer, "Optional", source["configMap"].get("optional"), "flag")
        elif source.get("serviceAccountToken") is not None:
            seconds = source["serviceAccountToken"].get("expirationSeconds", 3600)
            writer.write(2, f"TokenExpirationSeconds:\t{seconds}\n")


_MODES = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}
_CLASS = "volume.beta.kubernetes.io/storage-class"


def modes(found: list[str] | None) -> str:
    """Access modes in their short form, in the order of the API; unknown modes are left out."""
    return ",".join(short for mode, short in _MODES.items() if mode in (found or ()))


def class_name(obj: dict[str, Any]) -> str:
    """The storage class of a volume or a claim: the annotation of old counts before the field."""
    annotated = dig(obj, "metadata", "annotations", _CLASS)
    return str(dig(obj, "spec", "storageClassName", default="") if annotated is None else annotated)


def claim(writer: Writer, obj: dict[str, Any], status: str | None = None) -> None:
    """A claim; of a template (which has no status) only what one has."""
    metadata, spec = obj.get("metadata") or {}, obj.get("spec") or {}
    if status is not None:
        writer.write(0, f"Name:\t{metadata.get('name', '')}\nNamespace:\t{metadata.get('namespace', '')}\n")
    writer.write(0, f"StorageClass:\t{class_name(obj)}\n")
    if status is not None:
        writer.write(0, f"Status:\t{status}\n")
    writer.write(0, f"Volume:\t{spec.get('volumeName', '')}\n")
    write_labels(writer, "Labels", metadata.get("labels"))
    write_annotations(writer, "Annotations", metadata.get("annotations"))
    if status is not None:
        writer.write(0, f"Finalizers:\t[{' '.join(metadata.get('finalizers') or ())}]\n")
    bound = bool(spec.get("volumeName"))
    writer.write(0, f"Capacity:\t{dig(obj, 'status', 'capacity', 'storage', default='0') if bound else ''}\n")
    writer.write(0, f"Access Modes:\t{modes(dig(obj, 'status', 'accessModes')) if bound else ''}\n")
    if spec.get("volumeMode") is not None:
        writer.write(0, f"VolumeMode:\t{spec['volumeMode']}\n")
    source = spec.get("dataSource")
    if source is not None:
        writer.write(0, "DataSource:\n")
        if source.get("apiGroup") is not None:
            writer.write(1, f"APIGroup:\t{source['apiGroup']}\n")
        writer.write(1, f"Kind:\t{source.get('kind', '')}\n")
        writer.write(1, f"Name:\t{source.get('name', '')}\n")
