"""Volumes, claims and ranges of addresses stay while they are used; roles are put together."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from controllers.conftest import Harness, MakeHarness

from pybernetes.api import errors
from pybernetes.api.base import Kind
from pybernetes.api.core.v1 import PersistentVolume, PersistentVolumeClaim, Pod
from pybernetes.api.networking.v1 import IPAddress, ServiceCIDR
from pybernetes.api.rbac.v1 import ClusterRole
from pybernetes.api.storage.v1 import VolumeAttributesClass
from pybernetes.controllers.servicecidr import can_delete

CLAIM = "persistentvolumeclaim-protection-controller"
VOLUME = "persistentvolume-protection-controller"
CIDR = "service-cidr-controller"
ROLES = "clusterrole-aggregation-controller"


async def gone(h: Harness, kind: type[Kind], name: str, namespace: str = "") -> bool:
    try:
        await h.client.get(kind, name, namespace)
    except errors.NotFound:
        return True
    return False


async def claim(h: Harness, name: str = "data", **spec: Any) -> None:
    body = {
        "metadata": {"name": name},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, **spec},
    }
    await h.client.call("POST", f"/api/v1/namespaces/{h.namespace}/persistentvolumeclaims", body)


def protected(h: Harness, kind: type[Kind], name: str, finalizer: str, namespace: str = "") -> Any:
    async def check() -> bool:
        found = await h.client.get(kind, name, namespace)
        return finalizer in ((found.metadata and found.metadata.finalizers) or ())

    return h.until(check, f"{name} is protected")


async def test_a_claim_that_a_pod_uses_is_deleted_when_the_pod_is_gone(harness: MakeHarness) -> None:
    async with harness(CLAIM) as h:
        await claim(h)
        await protected(h, PersistentVolumeClaim, "data", "kubernetes.io/pvc-protection", h.namespace)
        body = {
            "metadata": {"name": "p"},
            "spec": {
                "nodeName": "n",
                "containers": [{"name": "c", "image": "i"}],
                "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}],
            },
        }
        await h.client.call("POST", f"/api/v1/namespaces/{h.namespace}/pods", body)
        await h.client.delete(PersistentVolumeClaim, "data", h.namespace)
        await h.settled()
        assert not await gone(h, PersistentVolumeClaim, "data", h.namespace)
        await h.client.delete(Pod, "p", h.namespace, grace_period_seconds=0)
        await h.until(lambda: gone(h, PersistentVolumeClaim, "data", h.namespace))


async def test_an_unused_claim_goes_at_once(harness: MakeHarness) -> None:
    async with harness(CLAIM) as h:
        await claim(h)
        await protected(h, PersistentVolumeClaim, "data", "kubernetes.io/pvc-protection", h.namespace)
        await h.client.delete(PersistentVolumeClaim, "data", h.namespace)
        await h.until(lambda: gone(h, PersistentVolumeClaim, "data", h.namespace))


async def test_a_bound_volume_is_deleted_when_it_is_released(harness: MakeHarness) -> None:
    async with harness(VOLUME) as h:
        name = f"pv-{h.namespace}"
        body = {
            "metadata": {"name": name},
            "spec": {
                "capacity": {"storage": "1Gi"},
                "accessModes": ["ReadWriteOnce"],
                "hostPath": {"path": "/tmp/x"},
            },
        }
        await h.client.call("POST", "/api/v1/persistentvolumes", body)
        await protected(h, PersistentVolume, name, "kubernetes.io/pv-protection")
        await h.client.patch(PersistentVolume, name, {"status": {"phase": "Bound"}}, subresource="status")
        await h.client.delete(PersistentVolume, name)
        await h.settled()
        assert not await gone(h, PersistentVolume, name)
        await h.client.patch(PersistentVolume, name, {"status": {"phase": "Released"}}, subresource="status")
        await h.until(lambda: gone(h, PersistentVolume, name))


async def test_a_class_of_attributes_is_deleted_when_no_claim_refers_to_it(harness: MakeHarness) -> None:
    async with harness("volumeattributesclass-protection-controller") as h:
        body: dict[str, Any] = {"metadata": {"name": "gold"}, "driverName": "d.example.com", "parameters": {"a": "b"}}
        await h.client.call("POST", "/apis/storage.k8s.io/v1/volumeattributesclasses", body)
        await protected(h, VolumeAttributesClass, "gold", "kubernetes.io/vac-protection")
        await claim(h, volumeAttributesClassName="gold")
        await h.until(lambda: h.cached(PersistentVolumeClaim), "the claim is seen")
        await h.client.delete(VolumeAttributesClass, "gold")
        await h.settled()
        assert not await gone(h, VolumeAttributesClass, "gold")
        await h.client.patch(PersistentVolumeClaim, "data", {"metadata": {"finalizers": None}}, h.namespace)
        await h.client.delete(PersistentVolumeClaim, "data", h.namespace)
        await h.until(lambda: gone(h, VolumeAttributesClass, "gold"))


async def test_a_range_is_ready_and_goes_ten_seconds_after_its_deletion(harness: MakeHarness) -> None:
    async with harness(CIDR) as h:
        body = {"metadata": {"name": "extra"}, "spec": {"cidrs": ["10.200.0.0/24"]}}
        await h.client.call("POST", "/apis/networking.k8s.io/v1/servicecidrs", body)
        await protected(h, ServiceCIDR, "extra", "networking.k8s.io/service-cidr-finalizer")

        async def ready() -> bool:
            found = await h.client.get(ServiceCIDR, "extra")
            conditions = (found.status.conditions if found.status else None) or ()
            return [(each.type, each.status) for each in conditions] == [("Ready", "True")]

        await h.until(ready)
        await h.client.delete(ServiceCIDR, "extra")
        await h.settled()
        assert not await gone(h, ServiceCIDR, "extra")
        h.clock.advance(11)
        await h.until(lambda: gone(h, ServiceCIDR, "extra"))


async def test_a_range_with_an_address_waits_and_says_why(harness: MakeHarness) -> None:
    async with harness(CIDR) as h:
        body: dict[str, Any] = {"metadata": {"name": "used"}, "spec": {"cidrs": ["10.201.0.0/24"]}}
        await h.client.call("POST", "/apis/networking.k8s.io/v1/servicecidrs", body)
        await protected(h, ServiceCIDR, "used", "networking.k8s.io/service-cidr-finalizer")
        body = {
            "metadata": {
                "name": "10.201.0.7",
                "labels": {
                    "ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io",
                    "ipaddress.kubernetes.io/ip-family": "IPv4",
                },
            },
            "spec": {"parentRef": {"resource": "services", "namespace": "x", "name": "y"}},
        }
        await h.client.call("POST", "/apis/networking.k8s.io/v1/ipaddresses", body)
        await h.until(lambda: len(h.cached(IPAddress, namespace="")) > 0)
        await h.client.delete(ServiceCIDR, "used")

        async def waits() -> bool:
            found = await h.client.get(ServiceCIDR, "used")
            conditions = (found.status.conditions if found.status else None) or ()
            return [(each.status, each.reason) for each in conditions] == [("False", "Terminating")]

        await h.until(waits)
        await h.client.delete(IPAddress, "10.201.0.7")
        h.clock.advance(11)
        await h.until(lambda: gone(h, ServiceCIDR, "used"))


def cidr(name: str, *cidrs: str) -> ServiceCIDR:
    return msgspec.convert({"metadata": {"name": name}, "spec": {"cidrs": list(cidrs)}}, ServiceCIDR)


def address(name: str, by: str = "ipallocator.k8s.io") -> IPAddress:
    labels = {"ipaddress.kubernetes.io/managed-by": by}
    return msgspec.convert({"metadata": {"name": name, "labels": labels}, "spec": {}}, IPAddress)


@pytest.mark.parametrize(
    ("others", "addresses", "expected"),
    [
        ([], [], True),
        ([], ["10.0.0.5"], False),
        ([], ["10.1.0.5"], True),
        ([], ["10.0.0.0"], True),
        ([], ["10.0.0.255"], True),
        ([("b", "10.0.0.0/16")], ["10.0.0.5"], True),
        ([("b", "10.0.0.0/28")], ["10.0.0.5"], True),
        ([("b", "10.0.0.0/28")], ["10.0.0.5", "10.0.0.99"], False),
    ],
)
def test_a_range_may_go_if_no_address_is_left_without_one(
    others: list[tuple[str, str]], addresses: list[str], expected: bool
) -> None:
    mine = cidr("a", "10.0.0.0/24")
    ranges = [mine, *(cidr(name, network) for name, network in others)]
    assert can_delete(mine, ranges, [address(each) for each in addresses]) is expected


def test_addresses_of_others_do_not_hold_a_range() -> None:
    mine = cidr("a", "10.0.0.0/24", "fd00::/64")
    assert can_delete(mine, [mine], [address("10.0.0.5", by="me")])
    assert not can_delete(mine, [mine], [address("fd00::5")])


async def test_roles_get_the_rules_of_the_roles_they_select(harness: MakeHarness) -> None:
    async with harness(ROLES) as h:

        async def role(name: str, label: str, *verbs: str, **more: Any) -> None:
            rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": [verb]} for verb in verbs]
            body = {"metadata": {"name": f"{h.namespace}-{name}", "labels": {label: h.namespace}}, "rules": rules}
            await h.client.call("POST", "/apis/rbac.authorization.k8s.io/v1/clusterroles", {**body, **more})

        selector = {"matchLabels": {"part": h.namespace}}
        await role("sum", "x", aggregationRule={"clusterRoleSelectors": [selector]})
        await role("b", "part", "list")
        await role("a", "part", "get", "list")
        await role("c", "other", "delete")

        def verbs(*expected: str) -> Any:
            async def check() -> bool:
                found = await h.client.get(ClusterRole, f"{h.namespace}-sum")
                return [verb for rule in found.rules or () for verb in rule.verbs or ()] == list(expected)

            return h.until(check, f"the verbs are {expected}")

        await verbs("get", "list")
        await h.client.patch(ClusterRole, f"{h.namespace}-sum", {"rules": []})
        await verbs("get", "list")
        await h.client.delete(ClusterRole, f"{h.namespace}-a")
        await verbs("list")
