"""Builds the fields of CSI requests from PersistentVolume, Pod and CSIDriver. Pure."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any, Final

from pybernetes.api.core.v1 import PersistentVolume, PersistentVolumeSpec, Pod, PodSpec, SecretReference, Volume
from pybernetes.api.core.volumebinding import volume_size
from pybernetes.api.gocompat.quote import quote
from pybernetes.api.storage.v1 import CSIDriver, CSIDriverSpec
from pybernetes.client.keys import uid_of
from pybernetes.csi import v1

from ..volumes.host import fs_group

PERSISTENT: Final = "Persistent"
EPHEMERAL: Final = "Ephemeral"
SERVICE_ACCOUNT_TOKENS: Final = "csi.storage.k8s.io/serviceAccount.tokens"
READ_WRITE_ONCE: Final = "ReadWriteOnce"
READ_WRITE_ONCE_POD: Final = "ReadWriteOncePod"

Reference = tuple[str, str]
"""Namespace and name of a Secret."""


@dataclass(frozen=True, slots=True)
class Source:
    """A volume in its driver's words."""

    driver: str
    handle: str
    spec_name: str
    """The PersistentVolume's name, or the volume's in its pod."""
    lifecycle: str = PERSISTENT
    block: bool = False
    read_only: bool = False
    fs_type: str = ""
    attributes: dict[str, str] = field(default_factory=dict)
    access_modes: tuple[str, ...] = ()
    mount_options: tuple[str, ...] = ()
    stage_secret: Reference | None = None
    publish_secret: Reference | None = None
    expand_secret: Reference | None = None
    capacity: int = 0

    @property
    def unique_name(self) -> str:
        """The volume's name in the status of nodes (`volumesInUse`, `volumesAttached`)."""
        return f"kubernetes.io/csi/{self.driver}^{self.handle}"

    @property
    def persistent(self) -> bool:
        """Whether it outlives the pod."""
        return self.lifecycle == PERSISTENT


def persistent_source(volume: PersistentVolume, *, read_only: bool) -> Source:
    """A PersistentVolume; `read_only` is the claim's use of it."""
    spec = volume.spec or PersistentVolumeSpec()
    csi = spec.csi
    assert csi is not None
    return Source(
        driver=csi.driver or "",
        handle=csi.volume_handle or "",
        spec_name=(volume.metadata.name if volume.metadata else None) or "",
        block=spec.volume_mode == "Block",
        read_only=read_only or bool(csi.read_only),
        fs_type=csi.fs_type or "",
        attributes=dict(csi.volume_attributes or {}),
        access_modes=tuple(spec.access_modes or ()),
        mount_options=tuple(spec.mount_options or ()),
        stage_secret=_reference(csi.node_stage_secret_ref),
        publish_secret=_reference(csi.node_publish_secret_ref),
        expand_secret=_reference(csi.node_expand_secret_ref),
        capacity=volume_size(volume).value(),
    )


def ephemeral_source(pod: Pod, volume: Volume, driver: CSIDriver | None) -> Source:
    """A volume that is declared in the pod itself; raises ValueError if the driver does not have such volumes."""
    csi = volume.csi
    assert csi is not None
    name, volume_name = csi.driver or "", volume.name or ""
    if driver is None:
        raise ValueError(f"volume mode {quote(EPHEMERAL)} not supported by driver {name} (no CSIDriver object)")
    modes = list((driver.spec.volume_lifecycle_modes if driver.spec else None) or [PERSISTENT])
    if EPHEMERAL not in modes:
        supported = " ".join(quote(each) for each in modes)
        raise ValueError(f"volume mode {quote(EPHEMERAL)} not supported by driver {name} (only supports [{supported}])")
    namespace = (pod.metadata.namespace if pod.metadata else None) or ""
    secret = csi.node_publish_secret_ref
    return Source(
        driver=name,
        handle="csi-" + hashlib.sha256(f"{uid_of(pod)}{volume_name}".encode()).hexdigest(),
        spec_name=volume_name,
        lifecycle=EPHEMERAL,
        read_only=bool(csi.read_only),
        fs_type=csi.fs_type or "",
        attributes=dict(csi.volume_attributes or {}),
        publish_secret=(namespace, secret.name or "") if secret is not None else None,
    )


def capability(source: Source, capabilities: set[int], group: int | None) -> Any:
    """The VolumeCapability; the first access mode counts, and a driver that mounts for a group is given it."""
    found = v1.VolumeCapability(access_mode=v1.AccessMode(mode=_access_mode(source, capabilities)))
    if source.block:
        found.block.SetInParent()
    else:
        found.mount.SetInParent()
        found.mount.fs_type = source.fs_type
        found.mount.mount_flags.extend(source.mount_options)
        if group is not None and v1.NodeRPC.VOLUME_MOUNT_GROUP in capabilities:
            found.mount.volume_mount_group = str(group)
    return found


def _access_mode(source: Source, capabilities: set[int]) -> int:
    kinds = v1.AccessMode
    several = v1.NodeRPC.SINGLE_NODE_MULTI_WRITER in capabilities
    match source.access_modes[0] if source.access_modes else READ_WRITE_ONCE:
        case "ReadOnlyMany":
            return int(kinds.MULTI_NODE_READER_ONLY)
        case "ReadWriteMany":
            return int(kinds.MULTI_NODE_MULTI_WRITER)
        case "ReadWriteOncePod" if several:
            return int(kinds.SINGLE_NODE_SINGLE_WRITER)
        case "ReadWriteOnce" if several:
            return int(kinds.SINGLE_NODE_MULTI_WRITER)
    return int(kinds.SINGLE_NODE_WRITER)


def attach_required(driver: CSIDriver | None) -> bool:
    """Whether a controller attaches volumes of this driver; it does unless the CSIDriver says otherwise."""
    return driver is None or driver.spec is None or driver.spec.attach_required is not False


def pod_info(pod: Pod, source: Source, driver: CSIDriver | None) -> dict[str, str]:
    """The pod's fields for the driver's volume context, if the CSIDriver has `podInfoOnMount`."""
    if not (driver and driver.spec and driver.spec.pod_info_on_mount):
        return {}
    metadata, spec = pod.metadata, pod.spec or PodSpec()
    return {
        "csi.storage.k8s.io/pod.name": (metadata.name if metadata else None) or "",
        "csi.storage.k8s.io/pod.namespace": (metadata.namespace if metadata else None) or "",
        "csi.storage.k8s.io/pod.uid": uid_of(pod),
        "csi.storage.k8s.io/serviceAccount.name": spec.service_account_name or "",
        "csi.storage.k8s.io/ephemeral": "false" if source.persistent else "true",
    }


def group_to_set(pod: Pod, source: Source, driver: CSIDriver | None, capabilities: set[int]) -> int | None:
    """The group that the kubelet is to give all files of the volume to."""
    group = fs_group(pod)
    if group is None or source.block or source.read_only or v1.NodeRPC.VOLUME_MOUNT_GROUP in capabilities:
        return None
    policy = ((driver.spec or CSIDriverSpec()).fs_group_policy if driver else None) or "ReadWriteOnceWithFSType"
    if policy == "None":
        return None
    if policy == "File":
        return group
    once = {READ_WRITE_ONCE, READ_WRITE_ONCE_POD} & set(source.access_modes)
    return group if source.fs_type and (once or not source.persistent) else None


def _reference(found: SecretReference | None) -> Reference | None:
    return (found.namespace or "", found.name or "") if found is not None else None
