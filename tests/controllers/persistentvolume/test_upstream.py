"""Upstream's kube-controller-manager leaves the same volumes, claims, attachments and events behind as ours.

Needs its binary: PYB_TEST_KUBE_CONTROLLER_MANAGER=/path/to/kube-controller-manager ./pyb test --soak. Both work on our
API server, one after the other, on the same objects; what they made of them has to be equal.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import pytest
from controllers.persistentvolume.makers import claim, reference, storage_class, volume

import tools
from pybernetes.api.base import Kind
from pybernetes.api.core.v1 import Event, Node, PersistentVolume, PersistentVolumeClaim, Pod
from pybernetes.api.storage.v1 import StorageClass, VolumeAttachment
from pybernetes.client import config
from pybernetes.client.client import Client
from pybernetes.client.keys import uid_of
from pybernetes.controllers.common.meta import annotations_of, is_deleting, labels_of, meta, name_of

BINARY = os.environ.get("PYB_TEST_KUBE_CONTROLLER_MANAGER", "")
CONTROLLERS = ",".join(
    (
        "persistentvolume-binder-controller",
        "persistentvolume-attach-detach-controller",
        "persistentvolume-expander-controller",
        "ephemeral-volume-controller",
        "persistentvolume-protection-controller",
        "persistentvolumeclaim-protection-controller",
    )
)
T = TypeVar("T")

SETTLED = 20.0
"""Seconds after which upstream has done its work: it looks at everything every 15."""
CSI = {"driver": "d.example.com", "volumeHandle": "h1"}
ISCSI = {"targetPortal": "1.2.3.4:3260", "iqn": "iqn.2026-01.example.com:d", "lun": 0}
PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
RECLAIMED = ("retain", "recycle", "local", "iscsi", "csi", "nfs", "rbd", "gce")


def pair(name: str, *, policy: str = "Retain", wants: Any = None, **has: Any) -> list[Kind]:
    """A volume and a claim of a class of their own."""
    wanted = {"storageClassName": name, **(wants or {})}
    both = volume(name, storageClassName=name, persistentVolumeReclaimPolicy=policy, phase=None, **has)
    if {"iscsi", "gcePersistentDisk"} & has.keys() and both.spec is not None:
        both.spec.nfs = None
    return [both, claim(name, namespace="default", uid=None, **wanted)]


def world() -> list[Kind]:
    """What users have asked for."""

    def ask(name: str, **spec: Any) -> PersistentVolumeClaim:
        return claim(name, namespace="default", uid=None, **spec)

    reserved = {"kind": "PersistentVolumeClaim", "apiVersion": "v1", "namespace": "default"}
    terms = [{"matchExpressions": [{"key": "a", "operator": "Exists"}]}]
    where = {"nodeAffinity": {"required": {"nodeSelectorTerms": terms}}}
    rbd, gce = {PROVISIONED_BY: "kubernetes.io/rbd"}, {PROVISIONED_BY: "kubernetes.io/gce-pd"}
    done = {"pv.kubernetes.io/bind-completed": "yes"}
    managed = {"volumes.kubernetes.io/controller-managed-attach-detach": "true"}
    template = {"spec": {"storageClassName": "ext", **_spec(ask("x"))}, "metadata": {"labels": {"a": "b"}}}
    return [
        storage_class("ext", allowVolumeExpansion=True),
        storage_class("late", volumeBindingMode="WaitForFirstConsumer"),
        storage_class("none", "kubernetes.io/no-provisioner"),
        storage_class("nfs-class", "kubernetes.io/nfs"),
        storage_class("host", "kubernetes.io/host-path"),
        storage_class("gce-class", "kubernetes.io/gce-pd"),
        *(ask(name, storageClassName=name) for name in ("ext", "late", "none", "nfs-class", "host", "gce-class")),
        ask("noclass", storageClassName=""),
        ask("unset"),
        ask("unknown", storageClassName="unknown"),
        ask("selected", storageClassName="late", annotations={"volume.kubernetes.io/selected-node": "n1"}),
        volume("free-3", size="3Gi", storageClassName="m", phase=None),
        volume("free-5", size="5Gi", storageClassName="m", phase=None),
        volume("free-x", storageClassName="m", accessModes=["ReadWriteOnce", "ReadWriteMany"], phase=None),
        ask("huge", storageClassName="m", size="50Gi"),
        ask("large", storageClassName="m", size="4Gi"),
        ask("shared", storageClassName="m", accessModes=["ReadWriteMany"]),
        *pair("reserved", size="9Gi", to={**reserved, "name": "reserved"}),
        ask("not-mine", storageClassName="reserved"),
        *pair("named", wants={"volumeName": "named"}),
        *pair("too-small", wants={"volumeName": "too-small", "size": "3Gi"}),
        ask("missing", storageClassName="m", volumeName="no-such"),
        *pair("block", volumeMode="Block", to={**reserved, "name": "block"}),
        *pair("labelled", labels={"k": "v"}, wants={"selector": {"matchLabels": {"k": "v"}}}),
        *pair("mislabelled", labels={"k": "w"}, wants={"selector": {"matchLabels": {"k": "v"}}}),
        *pair("retain"),
        *pair("recycle", policy="Recycle", iscsi=ISCSI),
        *pair("local", policy="Delete", local={"path": "/x"}, **where),
        *pair("iscsi", policy="Delete", iscsi=ISCSI),
        *pair("csi", policy="Delete", csi={**CSI, "volumeHandle": "h2"}),
        *pair("nfs", policy="Delete"),
        *pair("rbd", policy="Delete", annotations=rbd),
        *pair(
            "gce",
            policy="Delete",
            annotations=gce,
            gcePersistentDisk={"pdName": "d"},
            finalizers=["kubernetes.io/pv-controller"],
        ),
        ask("lost", storageClassName="l", volumeName="gone", annotations=done),
        ask("lost-too", storageClassName="l", annotations=done),
        *pair("disk", csi=CSI),
        _made(Node, {"metadata": {"name": "n1", "annotations": managed}}),
        _made(Node, {"metadata": {"name": "n2", "annotations": managed}}),
        _pod("waits", None, {"persistentVolumeClaim": {"claimName": "late"}}),
        _pod("uses", "n1", {"ephemeral": {"volumeClaimTemplate": template}}),
        _pod("self", "n1", {"iscsi": ISCSI}),
    ]


def _spec(wanted: PersistentVolumeClaim) -> dict[str, Any]:
    assert wanted.spec is not None
    return {"accessModes": wanted.spec.access_modes, "resources": {"requests": {"storage": "1Gi"}}}


def _made(kind: type[Kind], body: dict[str, Any]) -> Any:
    return msgspec.convert(body, kind)


def _pod(name: str, node: str | None, source: dict[str, Any]) -> Pod:
    spec = {
        "nodeName": node,
        "schedulerName": "nobody",
        "tolerations": [{"operator": "Exists"}],
        "containers": [{"name": "c", "image": "i"}],
        "volumes": [{"name": "v", **source}],
    }
    pod: Pod = _made(Pod, {"metadata": {"name": name, "namespace": "default"}, "spec": spec})
    return pod


async def seen(client: Client) -> list[str]:
    """All that the controllers left behind, without what is new each time."""
    lines = []
    for kind in (PersistentVolume, PersistentVolumeClaim, VolumeAttachment, Node):
        for each in (await client.list(kind)).items or ():
            lines.append(f"{kind.__name__}/{name_of(each)} {_facts(each)}")
    events = (await client.list(Event)).items or ()
    for event in events:
        about, source = event.involved_object, event.source
        if about is not None and about.kind in ("PersistentVolume", "PersistentVolumeClaim", "Pod"):
            who = source.component if source else None
            lines.append(f"Event {about.kind}/{about.name} {event.type} {event.reason} {who} {event.message!r}")
    return sorted(set(lines))


def _facts(each: Kind) -> dict[str, Any]:
    owners = [(o.kind, o.name, o.controller, o.block_owner_deletion) for o in meta(each).owner_references or ()]
    facts: dict[str, Any] = {
        "annotations": sorted(annotations_of(each).items()),
        "labels": sorted(labels_of(each).items()),
        "finalizers": meta(each).finalizers,
        "owners": owners,
        "deleted": is_deleting(each),
    }
    if isinstance(each, PersistentVolume):
        to = each.spec.claim_ref if each.spec else None
        status = each.status
        facts["status"] = (status.phase, status.message, status.reason) if status else None
        facts["to"] = (to.kind, to.api_version, to.namespace, to.name, bool(to.uid)) if to else None
    elif isinstance(each, PersistentVolumeClaim):
        facts["status"] = each.status
        facts["spec"] = (each.spec.volume_name, each.spec.storage_class_name) if each.spec else None
    elif isinstance(each, VolumeAttachment):
        facts["spec"], facts["status"] = each.spec, each.status
    elif isinstance(each, Node):
        attached = (each.status.volumes_attached if each.status else None) or ()
        facts["attached"] = sorted((one.name, one.device_path) for one in attached)
    return facts


async def first(client: Client) -> None:
    """Volumes are there and free before they are claimed: what would be said meanwhile depends on who is quicker."""
    everything = world()
    for each in everything:
        if not isinstance(each, (PersistentVolumeClaim, Pod)):
            await client.create(each)

    async def free() -> bool:
        found = (await client.list(PersistentVolume)).items or ()
        return all(each.status is not None and each.status.phase == "Available" for each in found)

    await until(free)
    for each in everything:
        if isinstance(each, (PersistentVolumeClaim, Pod)):
            await client.create(each)


async def attach(client: Client) -> None:
    """The attacher has done its work; another pod wants the volume elsewhere; a claim asks for more."""
    await client.create(_pod("first", "n1", {"persistentVolumeClaim": {"claimName": "disk"}}))

    async def order() -> str | None:
        found = (await client.list(VolumeAttachment)).items
        return name_of(found[0]) if found else None

    async def reported() -> bool:
        status = (await client.get(Node, "n1")).status
        return any("csi" in (one.name or "") for one in (status.volumes_attached if status else None) or ())

    async def bound() -> bool:
        status = (await client.get(PersistentVolumeClaim, "ext", "default")).status
        return status is not None and status.phase == "Bound"

    name = await until(order)
    await client.patch(VolumeAttachment, name or "", {"status": {"attached": True}}, subresource="status")
    await until(reported)
    await client.create(_pod("second", "n2", {"persistentVolumeClaim": {"claimName": "disk"}}))
    made = await client.get(PersistentVolumeClaim, "ext", "default")
    to = reference("ext", uid_of(made), "default")
    provisioned = {PROVISIONED_BY: "d.example.com"}
    await client.create(volume("made", to=to, storageClassName="ext", annotations=provisioned, phase=None))
    await until(bound)
    await client.create(
        claim("late-named", namespace="default", uid=None, storageClassName="named", volumeName="named")
    )
    more = {"spec": {"resources": {"requests": {"storage": "5Gi"}}}}
    await client.patch(PersistentVolumeClaim, "ext", more, "default")


async def until(condition: Callable[[], Awaitable[T]]) -> T:
    for _ in range(600):
        value = await condition()
        if value:
            return value
        await asyncio.sleep(0.1)
    raise AssertionError("not within a minute")


async def release(client: Client) -> None:
    """Claims, a pod and a bound volume go; a default class comes."""
    for name in RECLAIMED:
        await client.delete(PersistentVolumeClaim, name, "default")
    default = {"metadata": {"annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}}
    await client.patch(StorageClass, "ext", default)
    await client.call("DELETE", "/api/v1/namespaces/default/pods/first", {"gracePeriodSeconds": 0})
    await client.delete(PersistentVolume, "free-5")
    await client.patch(PersistentVolume, "free-5", {"metadata": {"finalizers": None}})


async def states(kubeconfig: Path, expected: list[list[str]] | None) -> list[list[str]]:
    """What is there after each step; where it is known, wait for it instead of for some time."""
    found = []
    async with Client(config.load(kubeconfig)) as client:
        for number, step in enumerate((first, attach, release)):
            await step(client)
            for _ in range(int(SETTLED / 0.1)):
                await asyncio.sleep(0.1)
                now = await seen(client)
                if expected is not None and now == expected[number]:
                    break
            found.append(now)
    return found


def run(folder: Path, command: list[str], expected: list[list[str]] | None) -> list[list[str]]:
    folder.mkdir()
    plain = "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition,DefaultTolerationSeconds"
    with tools.api_server(folder, plain, accounts=True) as server:
        flags = ["--leader-elect=false", "--secure-port=0", f"--controllers={CONTROLLERS}"]
        with open(folder / "controller-manager.log", "wb") as log:
            process = subprocess.Popen(
                [*command, f"--kubeconfig={server.kubeconfig}", *flags],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        try:
            return asyncio.run(states(server.kubeconfig, expected))
        finally:
            process.terminate()
            process.wait()


@pytest.mark.soak
@pytest.mark.skipif(not BINARY, reason="PYB_TEST_KUBE_CONTROLLER_MANAGER is not set")
def test_upstream_leaves_the_same_behind(tmp_path: Path) -> None:
    theirs = run(tmp_path / "theirs", [BINARY], None)
    ours = run(tmp_path / "ours", [*tools.PYTHON, "controller-manager"], theirs)
    for number, (mine, other) in enumerate(zip(ours, theirs, strict=True)):
        missing, added = set(other) - set(mine), set(mine) - set(other)
        lines = sorted([*((line, "-") for line in missing), *((line, "+") for line in added)])
        assert not lines, f"after step {number}:\n" + "\n".join(f"{sign} {line}" for line, sign in lines)
