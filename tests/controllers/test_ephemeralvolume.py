"""Pods get claims for their generic ephemeral volumes."""

from __future__ import annotations

from typing import Any

from controllers.conftest import Harness, MakeHarness

from pybernetes.api.core.v1 import PersistentVolumeClaim, ResourceQuota
from pybernetes.api.core.v1.pod import Pod

EPHEMERAL = "ephemeral-volume-controller"


async def pod(h: Harness, name: str = "web") -> Pod:
    template = {
        "metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "",
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    body = {
        "metadata": {"name": name},
        "spec": {
            "containers": [{"name": "c", "image": "i"}],
            "volumes": [
                {"name": "none", "emptyDir": {}},
                {"name": "scratch", "ephemeral": {"volumeClaimTemplate": template}},
            ],
        },
    }
    await h.client.call("POST", f"/api/v1/namespaces/{h.namespace}/pods", body)
    return await h.client.get(Pod, name, h.namespace)


def has_claim(h: Harness, name: str = "web-scratch", other_than: Any = None) -> Any:
    async def check() -> PersistentVolumeClaim | None:
        found = await h.get(PersistentVolumeClaim, name)
        return found if found is not None and found.metadata.uid != other_than else None

    return h.until(check, f"{name} is there")


async def test_a_pod_gets_its_claim_and_gets_it_again(harness: MakeHarness) -> None:
    async with harness(EPHEMERAL, kubelet=False) as h:
        owner = await pod(h)
        made = await has_claim(h)
        assert (made.metadata.labels, made.metadata.annotations) == ({"a": "b"}, {"c": "d"})
        assert made.spec.resources.requests == {"storage": "1Gi"}
        (reference,) = made.metadata.owner_references
        assert (reference.api_version, reference.kind, reference.name) == ("v1", "Pod", "web")
        assert (reference.uid, reference.controller, reference.block_owner_deletion) == (owner.metadata.uid, True, True)
        assert len(await h.list(PersistentVolumeClaim)) == 1

        await h.client.delete(PersistentVolumeClaim, "web-scratch", h.namespace)
        await h.client.patch(PersistentVolumeClaim, "web-scratch", {"metadata": {"finalizers": None}}, h.namespace)
        await has_claim(h, other_than=made.metadata.uid)
        assert "ephemeral_volume_controller_create_total 2" in h.manager.context.metrics.render().decode()


async def test_a_claim_of_another_owner_is_not_taken(harness: MakeHarness) -> None:
    async with harness(EPHEMERAL, kubelet=False) as h:
        spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        body = {"metadata": {"name": "web-scratch", "finalizers": []}, "spec": spec}
        await h.client.call("POST", f"/api/v1/namespaces/{h.namespace}/persistentvolumeclaims", body)
        theirs = await has_claim(h)
        await h.until(lambda: h.live(PersistentVolumeClaim), "the claim is seen")
        await pod(h)
        where = h.namespace
        said = (
            f"ephemeral volume scratch: PVC {where}/web-scratch was not created for pod {where}/web (pod is not owner)"
        )

        async def told() -> bool:
            return any(event.message == said.format(h.namespace) for event in await h.events("FailedBinding"))

        await h.until(told, "the pod's event is there")
        await h.client.patch(PersistentVolumeClaim, "web-scratch", {"metadata": {"finalizers": None}}, h.namespace)
        await h.client.delete(PersistentVolumeClaim, "web-scratch", h.namespace)
        await has_claim(h, other_than=theirs.metadata.uid)


async def test_a_refused_claim_is_said_and_tried_again(harness: MakeHarness) -> None:
    async with harness(EPHEMERAL, kubelet=False) as h:
        quota = {"metadata": {"name": "q"}, "spec": {"hard": {"persistentvolumeclaims": "0"}}}
        await h.client.call("POST", f"/api/v1/namespaces/{h.namespace}/resourcequotas", quota)
        status = {"status": {"hard": {"persistentvolumeclaims": "0"}, "used": {"persistentvolumeclaims": "0"}}}
        await h.client.patch(ResourceQuota, "q", status, h.namespace, subresource="status")
        await pod(h)

        async def told() -> bool:
            return any("create PVC web-scratch: " in (event.message or "") for event in await h.events("FailedBinding"))

        await h.until(told, "the refusal is said")
        await h.client.call("DELETE", f"/api/v1/namespaces/{h.namespace}/resourcequotas/q")
        await has_claim(h)
