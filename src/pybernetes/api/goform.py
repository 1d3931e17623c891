"""How upstream shows a whole struct inside a message: its internal type as JSON, with every field, under Go's names.

`spec: Invalid value: {"Attacher":"a",...}: field is immutable` prints the new spec that way. What is absent shows as
zero, or as null where Go has a pointer.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from .base import Struct
from .schema import STRUCT, FieldInfo, fields

_NAMES: Final = {
    "apiGroup": "APIGroup",
    "apiGroups": "APIGroups",
    "apiVersion": "APIVersion",
    "cel": "CEL",
    "cephfs": "CephFS",
    "csi": "CSI",
    "fc": "FC",
    "gmsaCredentialSpec": "GMSACredentialSpec",
    "gmsaCredentialSpecName": "GMSACredentialSpecName",
    "ip": "IP",
    "ips": "IPs",
    "iqn": "IQN",
    "iscsi": "ISCSI",
    "nfs": "NFS",
    "pdID": "PdID",
    "rbd": "RBD",
    "scaleIO": "ScaleIO",
    "seLinuxOptions": "SELinuxOptions",
    "storageos": "StorageOS",
    "targetWWNs": "TargetWWNs",
    "uid": "UID",
    "fsType": "FSType",
    "wwids": "WWIDs",
}
# Fields whose internal name has little to do with the one on the wire.
_NAMES_IN: Final[dict[str, dict[str, str]]] = {
    "AzureDiskVolumeSource": {"diskURI": "DataDiskURI"},
    "GCEPersistentDiskVolumeSource": {"pdName": "PDName"},
    "GlusterfsPersistentVolumeSource": {"endpoints": "EndpointsName"},
    "ISCSIPersistentVolumeSource": {
        "chapAuthDiscovery": "DiscoveryCHAPAuth",
        "chapAuthSession": "SessionCHAPAuth",
        "iscsiInterface": "ISCSIInterface",
    },
    "PersistentVolumeSpec": {
        "awsElasticBlockStore": "AWSElasticBlockStore",
        "gcePersistentDisk": "GCEPersistentDisk",
    },
    "RBDPersistentVolumeSource": {
        "image": "RBDImage",
        "monitors": "CephMonitors",
        "pool": "RBDPool",
        "user": "RadosUser",
    },
    "ScaleIOPersistentVolumeSource": {"sslEnabled": "SSLEnabled"},
}
# Fields that stand behind another one in the internal type.
_BEHIND: Final = {"PersistentVolumeSpec": {"Quobyte": "RBD", "FlexVolume": "ISCSI"}}
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
    names = _NAMES_IN.get(cls.__name__, {})
    form: dict[str, Any] = {}
    for field in fields(cls):
        name = names.get(field.wire) or _NAMES.get(field.wire) or field.wire[0].upper() + field.wire[1:]
        form[name] = _value(getattr(value, field.name), field)
    for name, before in _BEHIND.get(cls.__name__, {}).items():
        form = _moved(form, name, before)
    return form


def _moved(form: dict[str, Any], name: str, before: str) -> dict[str, Any]:
    value = form.pop(name)
    moved: dict[str, Any] = {}
    for each in form:
        moved[each] = form[each]
        if each == before:
            moved[name] = value
    return moved


def _value(value: Any, field: FieldInfo) -> Any:
    if value is None:
        if field.pointer:
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
