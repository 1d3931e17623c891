"""The CustomResourceDefinitions of snapshots, v1, with the rules that upstream's have."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from pybernetes.api import errors
from pybernetes.client.client import Client

from .snapshot_objects import GROUP, ROOT

SERVED_WITHIN: Final = 30.0
"""Seconds from a definition to the resource that it defines."""

Json = dict[str, Any]
CRDS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
APPROVED: Final = "https://github.com/kubernetes-csi/external-snapshotter/pull/814"
"""The annotation's value that the API server requires of definitions in a group of k8s.io."""
_TEXT: Final[Json] = {"type": "string"}
_TIME: Final[Json] = {"type": "string", "format": "date-time"}
_POLICY: Final[Json] = {"type": "string", "enum": ["Delete", "Retain"]}
_NUMBER: Final[Json] = {"type": "integer", "format": "int64"}
_DIGITS: Final = r"(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))"
_SIZE: Final[Json] = {
    "anyOf": [{"type": "integer"}, {"type": "string"}],
    "x-kubernetes-int-or-string": True,
    "pattern": rf"^(\+|-)?{_DIGITS}(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?{_DIGITS}))?$",
}
_ERROR: Final[Json] = {"type": "object", "properties": {"message": _TEXT, "time": _TIME}}


def definitions() -> list[Json]:
    """All three."""
    return [_snapshots(), _contents(), _classes()]


async def install(client: Client) -> None:
    """Make those that are not there; raises APIError."""
    for each in definitions():
        try:
            await client.call("POST", CRDS, each)
        except errors.AlreadyExists:
            continue


async def served(client: Client) -> bool:
    """Whether the API server serves them."""
    try:
        found = await client.call("GET", ROOT)
    except errors.NotFound:
        return False
    names = {each["name"] for each in found.get("resources", ())}
    return {"volumesnapshots", "volumesnapshotcontents", "volumesnapshotclasses"} <= names


def _object(properties: Json, *required: str, rules: list[tuple[str, str]] | None = None) -> Json:
    made: Json = {"type": "object", "properties": properties}
    if required:
        made["required"] = list(required)
    if rules:
        made["x-kubernetes-validations"] = [{"rule": rule, "message": message} for rule, message in rules]
    return made


def _one_of(*names: str) -> list[tuple[str, str]]:
    first, second = names
    return [(f"!has(oldSelf.{each}) || has(self.{each})", f"{each} is required once set") for each in names] + [
        (
            f"(has(self.{first}) && !has(self.{second})) || (!has(self.{first}) && has(self.{second}))",
            f"exactly one of {first} and {second} must be set",
        )
    ]


def _fixed(name: str) -> Json:
    return {**_TEXT, "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": f"{name} is immutable"}]}


def _column(name: str, kind: str, path: str) -> Json:
    return {"name": name, "type": kind, "jsonPath": path}


def _definition(
    kind: str, short: list[str], scope: str, properties: Json, required: list[str], columns: list[Json], *, status: bool
) -> Json:
    plural = f"{kind.lower()}s" if not kind.endswith("s") else f"{kind.lower()}es"
    schema = _object({"apiVersion": _TEXT, "kind": _TEXT, "metadata": {"type": "object"}, **properties}, *required)
    version: Json = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "additionalPrinterColumns": [*columns, _column("Age", "date", ".metadata.creationTimestamp")],
    }
    if status:
        version["subresources"] = {"status": {}}
    names = {
        "kind": kind,
        "listKind": f"{kind}List",
        "plural": plural,
        "singular": kind.lower(),
        "shortNames": short,
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}", "annotations": {"api-approved.kubernetes.io": APPROVED}},
        "spec": {"group": GROUP, "names": names, "scope": scope, "versions": [version]},
    }


def _snapshots() -> Json:
    names = ("persistentVolumeClaimName", "volumeSnapshotContentName")
    source = _object({each: _fixed(each) for each in names}, rules=_one_of(*names))
    class_name = {
        **_TEXT,
        "x-kubernetes-validations": [
            {"rule": "size(self) > 0", "message": "volumeSnapshotClassName must not be the empty string when set"}
        ],
    }
    status = {
        "boundVolumeSnapshotContentName": _TEXT,
        "creationTime": _TIME,
        "error": _ERROR,
        "readyToUse": {"type": "boolean"},
        "restoreSize": _SIZE,
        "volumeGroupSnapshotName": _TEXT,
    }
    columns = [
        _column("ReadyToUse", "boolean", ".status.readyToUse"),
        _column("SourcePVC", "string", ".spec.source.persistentVolumeClaimName"),
        _column("SourceSnapshotContent", "string", ".spec.source.volumeSnapshotContentName"),
        _column("RestoreSize", "string", ".status.restoreSize"),
        _column("SnapshotClass", "string", ".spec.volumeSnapshotClassName"),
        _column("SnapshotContent", "string", ".status.boundVolumeSnapshotContentName"),
        _column("CreationTime", "date", ".status.creationTime"),
    ]
    spec = _object({"source": source, "volumeSnapshotClassName": class_name}, "source")
    properties = {"spec": spec, "status": _object(status)}
    return _definition("VolumeSnapshot", ["vs"], "Namespaced", properties, ["spec"], columns, status=True)


def _contents() -> Json:
    names = ("snapshotHandle", "volumeHandle")
    reference = dict.fromkeys(("apiVersion", "fieldPath", "kind", "name", "namespace", "resourceVersion", "uid"), _TEXT)
    spec = {
        "deletionPolicy": _POLICY,
        "driver": _TEXT,
        "source": _object({each: _fixed(each) for each in names}, rules=_one_of(*names)),
        "sourceVolumeMode": _fixed("sourceVolumeMode"),
        "volumeSnapshotClassName": _TEXT,
        "volumeSnapshotRef": _object(
            reference,
            rules=[
                (
                    "has(self.name) && has(self.__namespace__)",
                    "both spec.volumeSnapshotRef.name and spec.volumeSnapshotRef.namespace must be set",
                )
            ],
        ),
    }
    status = {
        "creationTime": _NUMBER,
        "error": _ERROR,
        "readyToUse": {"type": "boolean"},
        "restoreSize": {**_NUMBER, "minimum": 0},
        "snapshotHandle": _TEXT,
        "volumeGroupSnapshotHandle": _TEXT,
    }
    columns = [
        _column("ReadyToUse", "boolean", ".status.readyToUse"),
        _column("RestoreSize", "integer", ".status.restoreSize"),
        _column("DeletionPolicy", "string", ".spec.deletionPolicy"),
        _column("Driver", "string", ".spec.driver"),
        _column("VolumeSnapshotClass", "string", ".spec.volumeSnapshotClassName"),
        _column("VolumeSnapshot", "string", ".spec.volumeSnapshotRef.name"),
        _column("VolumeSnapshotNamespace", "string", ".spec.volumeSnapshotRef.namespace"),
    ]
    properties = {
        "spec": _object(spec, "deletionPolicy", "driver", "source", "volumeSnapshotRef"),
        "status": _object(status),
    }
    return _definition("VolumeSnapshotContent", ["vsc", "vscs"], "Cluster", properties, ["spec"], columns, status=True)


def _classes() -> Json:
    properties = {
        "deletionPolicy": _POLICY,
        "driver": _TEXT,
        "parameters": {"type": "object", "additionalProperties": _TEXT},
    }
    columns = [_column("Driver", "string", ".driver"), _column("DeletionPolicy", "string", ".deletionPolicy")]
    required = ["deletionPolicy", "driver"]
    kind = "VolumeSnapshotClass"
    return _definition(kind, ["vsclass", "vsclasses"], "Cluster", properties, required, columns, status=False)


async def ensure(client: Client) -> bool:
    """Have the API serve snapshots; whether they have been defined just now. Raises APIError, TimeoutError."""
    if await served(client):
        return False
    await install(client)
    async with asyncio.timeout(SERVED_WITHIN):
        while not await served(client):  # noqa: ASYNC110 - discovery has no event
            await asyncio.sleep(0.1)
    return True
