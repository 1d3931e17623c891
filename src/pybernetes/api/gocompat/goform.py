"""How upstream shows a whole struct inside a message: its internal type as JSON, with every field, under Go's names.

`spec: Invalid value: {"Attacher":"a",...}: field is immutable` prints the new spec that way. What is absent shows as
zero, or as null where Go has a pointer.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec import UNSET

from ..base import Struct
from ..schema import STRUCT, FieldInfo, fields

_NAMES: Final = {
    "apiGroup": "APIGroup",
    "apiGroups": "APIGroups",
    "apiVersion": "APIVersion",
    "awsElasticBlockStore": "AWSElasticBlockStore",
    "cel": "CEL",
    "cephfs": "CephFS",
    "chapAuthDiscovery": "DiscoveryCHAPAuth",
    "chapAuthSession": "SessionCHAPAuth",
    "csi": "CSI",
    "diskURI": "DataDiskURI",
    "dnsConfig": "DNSConfig",
    "dnsPolicy": "DNSPolicy",
    "fc": "FC",
    "fsGroup": "FSGroup",
    "fsGroupChangePolicy": "FSGroupChangePolicy",
    "fsType": "FSType",
    "gcePersistentDisk": "GCEPersistentDisk",
    "gmsaCredentialSpec": "GMSACredentialSpec",
    "gmsaCredentialSpecName": "GMSACredentialSpecName",
    "grpc": "GRPC",
    "httpGet": "HTTPGet",
    "httpHeaders": "HTTPHeaders",
    "ip": "IP",
    "ips": "IPs",
    "iqn": "IQN",
    "iscsi": "ISCSI",
    "iscsiInterface": "ISCSIInterface",
    "nfs": "NFS",
    "os": "OS",
    "pdID": "PdID",
    "pdName": "PDName",
    "rbd": "RBD",
    "scaleIO": "ScaleIO",
    "seLinuxChangePolicy": "SELinuxChangePolicy",
    "seLinuxOptions": "SELinuxOptions",
    "sslEnabled": "SSLEnabled",
    "storageos": "StorageOS",
    "targetWWNs": "TargetWWNs",
    "tcpSocket": "TCPSocket",
    "tty": "TTY",
    "uid": "UID",
    "wwids": "WWIDs",
}
# Fields whose internal name has little to do with the one on the wire.
_GLUSTERFS: Final = {"endpoints": "EndpointsName"}
_RBD: Final = {"image": "RBDImage", "monitors": "CephMonitors", "pool": "RBDPool", "user": "RadosUser"}
_NAMES_IN: Final[dict[str, dict[str, str]]] = {
    "GlusterfsPersistentVolumeSource": _GLUSTERFS,
    "GlusterfsVolumeSource": _GLUSTERFS,
    "RBDPersistentVolumeSource": _RBD,
    "RBDVolumeSource": _RBD,
}
# Fields that stand elsewhere in the internal type, and those behind which they stand there.
_BEHIND: Final[dict[str, dict[str, str]]] = {
    "PersistentVolumeSpec": {"Quobyte": "RBD", "FlexVolume": "ISCSI"},
    "PodSecurityContext": {"FSGroupChangePolicy": "FSGroup"},
    "PodSpec": {"SetHostnameAsFQDN": "Subdomain", "PreemptionPolicy": "Priority", "Overhead": "RuntimeClassName"},
    "Volume": {"Quobyte": "RBD", "FlexVolume": "Quobyte", "ConfigMap": "AzureFile", "StorageOS": "ScaleIO"},
}
# Of a pod's spec: what belongs to its security context there, and what is not there at all.
_OF_SECURITY_CONTEXT: Final = ("HostNetwork", "HostPID", "HostIPC", "ShareProcessNamespace", "HostUsers")
# Types that are the same inside and outside, and print as they do on the wire.
_AS_ON_THE_WIRE: Final = frozenset({"LabelSelector", "ObjectMeta"})
_ZEROES: Final[dict[str, Any]] = {"string": "", "int": 0, "bool": False, "float": 0}
_ZEROES_OF_FORMATS: Final[dict[str | None, Any]] = {
    "byte": None,
    "date-time": None,
    "int-or-string": 0,
    "micro-time": None,
    "quantity": "0",
}


def go_form(value: Struct | None) -> msgspec.Raw:
    """The JSON of the internal type."""
    return msgspec.Raw(msgspec.json.encode(go_values(value)))


def go_values(value: Any) -> Any:
    """The same as dicts and lists."""
    if isinstance(value, list):
        return [go_values(each) for each in value]
    return _struct(value) if isinstance(value, Struct) else value


def go_field(value: Struct, name: str) -> msgspec.Raw:
    """The JSON of one of its fields, which may be absent."""
    info = next(field for field in fields(type(value)) if field.name == name)
    return msgspec.Raw(msgspec.json.encode(_value(getattr(value, name), info)))


def _struct(value: Any) -> dict[str, Any]:
    cls: type[Struct] = type(value)
    if cls.__name__ in _AS_ON_THE_WIRE:
        wire: dict[str, Any] = _without_empty(msgspec.to_builtins(value, order="deterministic"))
        return wire
    names = _NAMES_IN.get(cls.__name__, {})
    form: dict[str, Any] = {}
    for field in fields(cls):
        if field.wire == "metadata":  # embedded in Go
            form |= _struct(value.metadata) if value.metadata is not None else {}
            continue
        name = names.get(field.wire) or _NAMES.get(field.wire) or field.wire[0].upper() + field.wire[1:]
        form[name] = _value(getattr(value, field.name), field)
    for name, before in _BEHIND.get(cls.__name__, {}).items():
        form = _moved(form, name, before)
    return _pod_spec(form) if cls.__name__ == "PodSpec" else form


def _without_empty(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_empty(each) for name, each in value.items() if each not in ({}, [])}
    return [_without_empty(each) for each in value] if isinstance(value, list) else value


def _moved(form: dict[str, Any], name: str, before: str) -> dict[str, Any]:
    value = form.pop(name)
    moved: dict[str, Any] = {}
    for each in form:
        moved[each] = form[each]
        if each == before:
            moved[name] = value
    return moved


def _pod_spec(form: dict[str, Any]) -> dict[str, Any]:
    del form["ServiceAccount"]
    inside = {name: form.pop(name) for name in _OF_SECURITY_CONTEXT}
    if form["SecurityContext"] is not None:
        form["SecurityContext"] = inside | form["SecurityContext"]
    return form


def _value(value: Any, field: FieldInfo) -> Any:
    if value is None:
        if field.pointer or (field.format == "quantity" and field.always is UNSET):
            return None
        if field.kind == STRUCT:
            return _struct(field.struct()) if field.struct and field.always == {} else None
        return _ZEROES_OF_FORMATS[field.format] if field.format in _ZEROES_OF_FORMATS else _ZEROES.get(field.kind)
    if isinstance(value, msgspec.Struct):
        return _struct(value)
    if isinstance(value, list) and field.items:
        return [_value(each, field.items) for each in value]
    if isinstance(value, dict) and field.items:
        return {key: _value(each, field.items) for key, each in sorted(value.items())}
    return value
