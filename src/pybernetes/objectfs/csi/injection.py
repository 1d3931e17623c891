"""The webhook of sidecar mode: a pod's claims become folders at which a sidecar mounts the volume. Pure.

The sidecar is a restartable init container, the first of all, and its startup probe holds the others back until the
volume is mounted. Its mount reaches the pod's other containers through the node (Bidirectional, HostToContainer).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

from pybernetes.csi.errors import invalid
from pybernetes.objectfs.csi.manifests import HOST, LOCAL, MOUNTS, host_path
from pybernetes.objectfs.csi.request import Volume, safe_name

INJECTED = "objectfs.pybernetes.io/injected"
FOLDER = f"{HOST}/sidecar"
# Seconds that a volume may take to be mounted before the sidecar is started anew.
READY_SECONDS = 120
READY = "import os, sys; sys.exit(not os.path.ismount(sys.argv[1]))"


@dataclass(frozen=True)
class Claimed:
    """A volume of ours that a pod uses through a claim, and the Secret of its namespace with the credentials."""

    volume: Volume
    secret: str
    read_only: bool = False


@dataclass(frozen=True)
class Client:
    """How the client runs: image, Python in it, and the folder of nodes for SQLite and objects in a folder."""

    image: str
    python: str
    local: str = LOCAL


def patch(pod: Mapping[str, Any], claimed: Mapping[str, Claimed], client: Client, unique: str) -> list[dict[str, Any]]:
    """The JSON patch for a pod; `claimed` is by the names of its volumes, `unique` is this pod's alone."""
    spec = pod.get("spec") or {}
    metadata = pod.get("metadata") or {}
    annotations = {**(metadata.get("annotations") or {}), INJECTED: ",".join(sorted(claimed))}
    values = {
        "/spec/volumes": _volumes(spec.get("volumes") or [], claimed, client, unique),
        "/spec/containers": [_container(each, claimed) for each in spec.get("containers") or []],
        "/spec/initContainers": [
            *(_sidecar(each, client, unique) for _, each in sorted(claimed.items())),
            *(_container(each, claimed) for each in spec.get("initContainers") or []),
        ],
        "/metadata/annotations": annotations,
    }
    return [{"op": "add", "path": path, "value": value} for path, value in values.items()]


def place(found: Volume, unique: str) -> str:
    """The folder of one pod's mount below `FOLDER`."""
    return f"{unique}-{safe_name(found.id)}"


def _volumes(
    volumes: list[dict[str, Any]], claimed: Mapping[str, Claimed], client: Client, unique: str
) -> list[dict[str, Any]]:
    made = []
    for each in volumes:
        ours = claimed.get(each["name"])
        made.append(host_path(each["name"], f"{FOLDER}/{place(ours.volume, unique)}") if ours is not None else each)
    return [
        *made,
        host_path("objectfs-sidecar", FOLDER),
        host_path("objectfs-local", client.local),
        {"name": "objectfs-cache", "emptyDir": {}},
    ]


def _container(container: Mapping[str, Any], claimed: Mapping[str, Claimed]) -> dict[str, Any]:
    changed = deepcopy(dict(container))
    for each in changed.get("volumeDevices") or []:
        if each["name"] in claimed:
            raise invalid(f"container {changed['name']}: volumeDevices {each['name']}: a file system is no device")
    for each in changed.get("volumeMounts") or []:
        ours = claimed.get(each["name"])
        if ours is None:
            continue
        if each.get("mountPropagation", "None") == "None":
            each["mountPropagation"] = "HostToContainer"
        if ours.read_only:
            each["readOnly"] = True
    return changed


def _sidecar(ours: Claimed, client: Client, unique: str) -> dict[str, Any]:
    target = f"{MOUNTS}/{place(ours.volume, unique)}"
    found = ours.volume
    if ours.read_only and "ro" not in found.options:
        found = replace(found, options=(*found.options, "ro"))
    return {
        "name": safe_name(f"objectfs-{found.id}"),
        "image": client.image,
        "imagePullPolicy": "IfNotPresent",
        "restartPolicy": "Always",
        "args": ["objectfs", "csi", "sidecar", "--target", target],
        "env": [{"name": "VOLUME", "value": json.dumps(found.to_state(), sort_keys=True)}],
        "envFrom": [{"secretRef": {"name": ours.secret}}],
        "securityContext": {"privileged": True, "runAsUser": 0, "runAsNonRoot": False},
        "resources": dict(found.resources),
        "startupProbe": {
            "exec": {"command": [client.python, "-S", "-c", READY, target]},
            "periodSeconds": 1,
            "timeoutSeconds": 5,
            "failureThreshold": READY_SECONDS,
        },
        "volumeMounts": [
            {"name": "objectfs-sidecar", "mountPath": MOUNTS, "mountPropagation": "Bidirectional"},
            {"name": "objectfs-cache", "mountPath": "/var/objectfsCache"},
            {"name": "objectfs-local", "mountPath": client.local},
        ],
    }
