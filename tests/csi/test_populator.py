"""Claims whose volumes are filled by a populator, with a real API server; the binder's part is played here."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import msgspec
from csi.controllers import PROVISIONER, SELECTED, Cluster, becomes

from pybernetes.api import errors
from pybernetes.api.core.v1 import PersistentVolume, PersistentVolumeClaim, Pod
from pybernetes.csi.controller.loop import Context
from pybernetes.csi.controller.populator import Populator, Sources, pod_spec

GROUP = "backups.example.com"
TEMPLATE = {"containers": [{"name": "fill", "image": "busybox"}]}
SOURCES = Sources(GROUP, "v1", "Backup", "backups", TEMPLATE)
DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": f"backups.{GROUP}"},
    "spec": {
        "group": GROUP,
        "names": {"kind": "Backup", "plural": "backups"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}


def populating(context: Context) -> list[Any]:
    return [Populator(SOURCES, context.client, context.informers, context.events, context.clock)]


async def found(cluster: Cluster, kind: Any, name: str, condition: Any = lambda _: True) -> Any:
    """The object in the populator's namespace, as soon as the condition is true for it."""
    async with asyncio.timeout(30):
        while True:
            try:
                made = await cluster.client.get(kind, name, SOURCES.namespace)
                if condition(made):
                    return made
            except errors.NotFound:
                pass
            await asyncio.sleep(0.02)


async def gone(cluster: Cluster, kind: Any, name: str, namespace: str) -> None:
    async with asyncio.timeout(30):
        while True:
            try:
                made = await cluster.client.get(kind, name, namespace)
            except errors.NotFound:
                return
            if made.metadata.deletion_timestamp:  # its finalizers are others' business
                return
            await asyncio.sleep(0.02)


async def test_a_volume_is_filled_by_a_pod_and_handed_over_to_its_claim(start: Any) -> None:
    async with start(more=populating) as cluster:
        client = cluster.client
        definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        await client.call("POST", definitions, DEFINITION)
        try:
            await cluster.make_class(volumeBindingMode="WaitForFirstConsumer")
            source = {"apiGroup": GROUP, "kind": "Backup", "name": "monday"}
            claim = await cluster.claim("data", dataSourceRef=source)
            assert "Backup" in (await cluster.events("PopulatorFailed"))[0]  # there is no such backup
            path = f"/apis/{GROUP}/v1/namespaces/{cluster.space}/backups"
            backup = {"metadata": {"name": "monday"}, "apiVersion": f"{GROUP}/v1", "kind": "Backup"}
            async with asyncio.timeout(30):
                while True:
                    try:
                        await client.call("POST", path, {**backup, "spec": {"from": "tape"}})
                        break
                    except errors.NotFound:
                        await asyncio.sleep(0.05)
            selected = {"metadata": {"annotations": {SELECTED: "node-1"}}}
            await client.patch(PersistentVolumeClaim, "data", selected, cluster.space)

            uid = claim.metadata.uid
            prime = await found(cluster, PersistentVolumeClaim, f"prime-{uid}")
            assert prime.metadata.annotations[SELECTED] == "node-1"
            assert prime.spec.data_source_ref is None
            assert str(prime.spec.resources.requests["storage"]) == "1Gi"
            pod = await found(cluster, Pod, f"populate-{uid}")
            assert json.loads(pod.spec.containers[0].env[0].value) == {"from": "tape"}

            # A pod that fails is made anew.
            failed = {"status": {"phase": "Failed"}}
            await client.patch(Pod, pod.metadata.name, failed, SOURCES.namespace, subresource="status")
            pod = await found(cluster, Pod, f"populate-{uid}", lambda each: each.metadata.uid != pod.metadata.uid)

            # What provisioner, binder and kubelet do.
            volume = {
                "metadata": {"name": f"pv-{uid}"},
                "spec": {
                    "capacity": {"storage": "1Gi"},
                    "accessModes": ["ReadWriteOnce"],
                    "storageClassName": cluster.cls,
                    "csi": {"driver": "other.example.com", "volumeHandle": "x"},
                    "claimRef": {"namespace": SOURCES.namespace, "name": f"prime-{uid}", "uid": prime.metadata.uid},
                },
            }
            await client.create(msgspec.convert(volume, PersistentVolume))
            bound = {"spec": {"volumeName": f"pv-{uid}"}}
            await client.patch(PersistentVolumeClaim, f"prime-{uid}", bound, SOURCES.namespace)
            done = {"status": {"phase": "Succeeded"}}
            await client.patch(Pod, pod.metadata.name, done, SOURCES.namespace, subresource="status")

            def is_handed_over(each: PersistentVolume | None) -> bool:
                return each is not None and each.spec.claim_ref.uid == uid

            live = await cluster.until(PersistentVolume, f"pv-{uid}", is_handed_over)
            assert live.spec.claim_ref.namespace == cluster.space
            assert live.metadata.annotations[f"{GROUP}/populated-from"] == f"{cluster.space}/monday"
            await client.patch(PersistentVolumeClaim, "data", bound, cluster.space)
            await gone(cluster, Pod, f"populate-{uid}", SOURCES.namespace)
            await gone(cluster, PersistentVolumeClaim, f"prime-{uid}", SOURCES.namespace)
            assert await cluster.events("PopulatorFinished")

            async def is_kept() -> bool:
                live = await client.get(PersistentVolumeClaim, "data", cluster.space)
                return f"{GROUP}/populate-target-protection" in (live.metadata.finalizers or ())

            await becomes(False, is_kept)
            assert PROVISIONER in claim.metadata.annotations
            assert cluster.driver.calls == []  # the provisioner has left it to the populator
        finally:
            await client.call("DELETE", f"{definitions}/backups.{GROUP}")


def test_a_device_is_given_as_one_and_a_mount_of_the_templates_own_stays() -> None:
    made = pod_spec(TEMPLATE, {}, "prime", block=True)
    assert made["containers"][0]["volumeDevices"] == [{"name": "target", "devicePath": "/dev/block"}]
    own = {"containers": [{"name": "fill", "volumeMounts": [{"name": "target", "mountPath": "/here"}]}]}
    assert (
        pod_spec(own, {}, "prime", block=False)["containers"][0]["volumeMounts"] == own["containers"][0]["volumeMounts"]
    )
