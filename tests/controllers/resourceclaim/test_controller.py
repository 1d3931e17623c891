"""Claims are made for pods, reserved, released and deleted."""

from __future__ import annotations

from typing import Any

from controllers.conftest import Harness, MakeHarness

from pybernetes.api.core.v1 import Pod
from pybernetes.api.resource.v1 import ResourceClaim, ResourceClaimTemplate

NAME = "resourceclaim-controller"
GROUP = "/apis/resource.k8s.io/v1/namespaces"
REQUEST = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu.example.com"}}]}}
ALLOCATION = {"devices": {"results": [{"request": "r", "driver": "d.example.com", "pool": "p", "device": "g0"}]}}


async def template(h: Harness, name: str = "template") -> None:
    body = {"metadata": {"name": name}, "spec": {"metadata": {"labels": {"from": name}}, "spec": REQUEST}}
    await h.client.call("POST", f"{GROUP}/{h.namespace}/resourceclaimtemplates", body)


async def claim(h: Harness, name: str, *, finalizer: bool = True) -> None:
    finalizers = ["resource.kubernetes.io/delete-protection"] if finalizer else None
    body = {"metadata": {"name": name, "finalizers": finalizers}, "spec": REQUEST}
    await h.client.call("POST", f"{GROUP}/{h.namespace}/resourceclaims", body)


async def allocate(h: Harness, name: str, *pods: Pod) -> None:
    users = [{"resource": "pods", "name": pod.metadata.name, "uid": pod.metadata.uid} for pod in pods if pod.metadata]
    status: dict[str, Any] = {"allocation": ALLOCATION, "reservedFor": users or None}
    await h.client.patch(ResourceClaim, name, {"status": status}, h.namespace, subresource="status")


async def pod(h: Harness, name: str = "p", node: str | None = None, annotations: Any = None, **claims: str) -> Pod:
    """A pod with claims by name: `gpu="template:x"` or `gpu="claim:x"`."""
    fields = {"template": "resourceClaimTemplateName", "claim": "resourceClaimName"}
    entries = [{"name": key, fields[value.partition(":")[0]]: value.partition(":")[2]} for key, value in claims.items()]
    container = {"name": "c", "image": "i", "resources": {"claims": [{"name": key} for key in claims]}}
    body = {
        "metadata": {"name": name, "annotations": annotations},
        "spec": {
            "nodeName": node,
            "containers": [container],
            "resourceClaims": entries,
            "terminationGracePeriodSeconds": 0,
        },
    }
    await h.client.call("POST", f"/api/v1/namespaces/{h.namespace}/pods", body)
    return await h.client.get(Pod, name, h.namespace)


async def names(h: Harness, name: str = "p") -> dict[str, str | None]:
    found = await h.client.get(Pod, name, h.namespace)
    told = (found.status.resource_claim_statuses if found.status else None) or ()
    return {each.name or "": each.resource_claim_name for each in told}


async def users(h: Harness, name: str) -> list[str | None]:
    found = await h.client.get(ResourceClaim, name, h.namespace)
    return [each.name for each in (found.status.reserved_for if found.status else None) or ()]


async def test_claims_are_made_from_templates_and_named_in_the_pods_status(harness: MakeHarness) -> None:
    async with harness(NAME, bound_only=True) as h:
        await template(h)
        made = await pod(h, one="template:template", two="template:template", three="claim:shared")
        told = await h.until(lambda: names(h))
        assert set(told) == {"one", "two"}
        claims = await h.list(ResourceClaim)
        assert {each.metadata.name for each in claims if each.metadata} == set(told.values())
        for each in claims:
            assert each.metadata
            assert each.metadata.labels == {"from": "template"}
            assert (each.metadata.name or "").startswith("p-")
            (owner,) = each.metadata.owner_references or ()
            assert made.metadata
            assert (owner.kind, owner.uid, owner.controller) == ("Pod", made.metadata.uid, True)
        await h.settled()
        assert len(await h.list(ResourceClaim)) == 2


async def test_a_claim_that_is_lost_is_made_again_and_the_others_stay(harness: MakeHarness) -> None:
    async with harness(NAME, bound_only=True) as h:
        await template(h)
        await pod(h, one="template:template", two="template:template")
        before = await h.until(lambda: names(h))
        await h.client.delete(ResourceClaim, before["one"] or "", h.namespace)

        async def replaced() -> bool:
            now = await names(h)
            return set(now) == {"one", "two"} and now["one"] != before["one"] and now["two"] == before["two"]

        await h.until(replaced)
        await h.settled()
        assert len(await h.list(ResourceClaim)) == 2


async def test_a_pod_waits_for_its_template_and_says_so(harness: MakeHarness) -> None:
    async with harness(NAME, bound_only=True) as h:
        await pod(h, gpu="template:late")
        event = (await h.until(lambda: h.events("FailedResourceClaimCreation")))[0]
        assert event.message == (
            'PodResourceClaim gpu: resource claim template "late": '
            'resourceclaimtemplate.resource.k8s.io "late" not found'
        )
        await template(h, "late")
        await h.until(lambda: names(h))


async def test_a_pod_that_was_bound_by_hand_gets_its_reservation(harness: MakeHarness) -> None:
    async with harness(NAME) as h:
        await claim(h, "shared")
        await pod(h, node="n", gpu="claim:shared")
        await h.settled()
        assert await users(h, "shared") == []
        await allocate(h, "shared")

        async def reserved() -> bool:
            return await users(h, "shared") == ["p"]

        await h.until(reserved)


async def test_the_devices_are_free_when_the_last_pod_has_ended(harness: MakeHarness) -> None:
    async with harness(NAME) as h:
        await claim(h, "shared")
        first = await pod(h, "first", "n", gpu="claim:shared")
        second = await pod(h, "second", "n", gpu="claim:shared")
        await allocate(h, "shared", first, second)
        await h.client.patch(Pod, "first", {"metadata": {"annotations": {"fake-kubelet/exit-code": "0"}}}, h.namespace)

        async def only_second() -> bool:
            return await users(h, "shared") == ["second"]

        await h.until(only_second)
        await h.client.delete(Pod, "second", h.namespace, grace_period_seconds=0)

        async def free() -> bool:
            found = await h.client.get(ResourceClaim, "shared", h.namespace)
            assert found.metadata
            return not (found.status and found.status.allocation) and not found.metadata.finalizers

        await h.until(free)
        assert await users(h, "shared") == []


async def test_a_claim_of_a_pod_that_has_ended_is_deleted(harness: MakeHarness) -> None:
    async with harness(NAME) as h:
        await template(h)
        await pod(h, node="n", gpu="template:template")
        name = (await h.until(lambda: names(h)))["gpu"] or ""
        await allocate(h, name)

        async def reserved() -> bool:
            return await users(h, name) == ["p"]

        await h.until(reserved)
        await h.client.patch(Pod, "p", {"metadata": {"annotations": {"fake-kubelet/exit-code": "0"}}}, h.namespace)

        async def gone() -> bool:
            return not await h.list(ResourceClaim)

        await h.until(gone)
        await h.settled()
        assert await gone()


async def test_a_deleted_claim_goes_when_no_pod_uses_it(harness: MakeHarness) -> None:
    async with harness(NAME) as h:
        await claim(h, "shared")
        user = await pod(h, node="n", gpu="claim:shared")
        await allocate(h, "shared", user)
        await h.client.delete(ResourceClaim, "shared", h.namespace)
        await h.settled()
        assert await users(h, "shared") == ["p"]
        await h.client.delete(Pod, "p", h.namespace, grace_period_seconds=0)

        async def gone() -> bool:
            return await h.get(ResourceClaim, "shared") is None

        await h.until(gone)


async def test_reservations_of_pods_that_never_were_are_taken_back_and_of_others_kept(harness: MakeHarness) -> None:
    async with harness(NAME) as h:
        await claim(h, "shared")
        other = {"apiGroup": "example.com", "resource": "things", "name": "t", "uid": "7"}
        stale = {"resource": "pods", "name": "ghost", "uid": "8"}
        status = {"allocation": ALLOCATION, "reservedFor": [stale, other]}
        await h.client.patch(ResourceClaim, "shared", {"status": status}, h.namespace, subresource="status")

        async def cleaned() -> bool:
            return await users(h, "shared") == ["t"]

        await h.until(cleaned)
        found = await h.get(ResourceClaim, "shared")
        assert found
        assert found.status
        assert found.status.allocation is not None


async def test_a_restart_makes_nothing_twice(harness: MakeHarness) -> None:
    async with harness(kubelet=False) as h:
        await template(h)
        await pod(h, gpu="template:template")
        async with harness(NAME, kubelet=False):
            told = await h.until(lambda: names(h))
        # As if the controller had ended between making the claim and telling the pod.
        await h.client.patch(Pod, "p", {"status": {"resourceClaimStatuses": None}}, h.namespace, subresource="status")
        assert await names(h) == {}
        async with harness(NAME, kubelet=False):
            assert await h.until(lambda: names(h)) == told
        assert len(await h.list(ResourceClaim)) == 1
        assert await h.client.list(ResourceClaimTemplate, h.namespace)
