"""Endpoints, EndpointSlices and mirrored slices follow Services and pods on a real server."""

from __future__ import annotations

from typing import Any

from controllers.conftest import Harness, MakeHarness

from pybernetes.api.core.v1 import Endpoints, Pod, Service
from pybernetes.api.discovery.v1 import EndpointSlice

SLICES, LEGACY, MIRROR = "endpointslice-controller", "endpoints-controller", "endpointslice-mirroring-controller"


async def service(h: Harness, name: str = "web", **spec: Any) -> None:
    body = {
        "metadata": {"name": name, "labels": {"team": "a"}},
        "spec": {"selector": {"app": name}, "ports": [{"name": "http", "port": 80, "targetPort": "web"}], **spec},
    }
    await h.client.call("POST", f"/api/v1/namespaces/{h.namespace}/services", body)


async def node(h: Harness) -> str:
    name = f"node-{h.namespace}"
    await h.client.call(
        "POST", "/api/v1/nodes", {"metadata": {"name": name, "labels": {"topology.kubernetes.io/zone": "z"}}}
    )
    return name


async def pod(h: Harness, name: str, node_name: str, app: str = "web", **annotations: str) -> None:
    await h.client.call(
        "POST",
        f"/api/v1/namespaces/{h.namespace}/pods",
        {
            "metadata": {
                "name": name,
                "labels": {"app": app},
                "annotations": {f"fake-kubelet/{key}": value for key, value in annotations.items()},
            },
            "spec": {
                "nodeName": node_name,
                "containers": [{"name": "c", "image": "i", "ports": [{"name": "web", "containerPort": 8080}]}],
            },
        },
    )


def endpoints(h: Harness, app: str = "web") -> list[tuple[str, bool]]:
    return sorted(
        (each.target_ref.name or "", bool(each.conditions and each.conditions.ready))
        for found in h.cached(EndpointSlice)
        if ((found.metadata and found.metadata.labels) or {}).get("kubernetes.io/service-name") == app
        for each in found.endpoints or ()
        if each.target_ref
    )


async def test_slices_follow_the_pods_of_a_service(harness: MakeHarness) -> None:
    async with harness(SLICES) as h:
        name = await node(h)
        await service(h)
        await h.until(lambda: len(h.cached(EndpointSlice)) == 1, "an empty slice")
        await pod(h, "a", name)
        await pod(h, "b", name, ready="false")
        await pod(h, "c", name, app="other")
        await h.until(lambda: endpoints(h) == [("a", True), ("b", False)])
        (found,) = h.cached(EndpointSlice)
        assert found.metadata is not None
        assert (found.metadata.generate_name, [each.port for each in found.ports or ()]) == ("web-", [8080])
        assert "endpoints.kubernetes.io/last-change-trigger-time" in (found.metadata.annotations or {})
        assert (found.endpoints or [])[0].zone == "z"
        await h.client.patch(Pod, "c", {"metadata": {"labels": {"app": "web"}}}, h.namespace)
        await h.until(lambda: endpoints(h) == [("a", True), ("b", False), ("c", True)])
        await h.client.delete(Pod, "a", h.namespace, grace_period_seconds=0)
        await h.until(lambda: endpoints(h) == [("b", False), ("c", True)])


async def test_a_terminating_pod_serves_and_is_not_ready(harness: MakeHarness) -> None:
    async with harness(SLICES) as h:
        name = await node(h)
        await service(h)
        await pod(h, "a", name, stuck="true")
        await h.until(lambda: endpoints(h) == [("a", True)])
        await h.client.delete(Pod, "a", h.namespace)
        await h.until(lambda: endpoints(h) == [("a", False)])
        ((endpoint,),) = [each.endpoints or () for each in h.cached(EndpointSlice)]
        assert endpoint.conditions is not None
        assert (endpoint.conditions.serving, endpoint.conditions.terminating) == (True, True)
        await h.client.delete(Pod, "a", h.namespace, grace_period_seconds=0)


async def test_a_deleted_or_changed_slice_is_restored(harness: MakeHarness) -> None:
    async with harness(SLICES) as h:
        name = await node(h)
        await service(h)
        await pod(h, "a", name)
        await h.until(lambda: endpoints(h) == [("a", True)])
        (found,) = h.cached(EndpointSlice)
        assert found.metadata is not None
        await h.client.delete(EndpointSlice, found.metadata.name or "", h.namespace)
        await h.until(lambda: not endpoints(h))
        h.clock.advance(2)
        await h.until(lambda: endpoints(h) == [("a", True)])
        (found,) = h.cached(EndpointSlice)
        assert found.metadata is not None
        await h.client.patch(EndpointSlice, found.metadata.name or "", {"endpoints": []}, h.namespace)
        await h.until(lambda: not endpoints(h))
        h.clock.advance(2)
        await h.until(lambda: endpoints(h) == [("a", True)])


async def test_a_pod_on_an_unknown_node_waits_for_it(harness: MakeHarness) -> None:
    async with harness(SLICES) as h:
        await service(h)
        await pod(h, "a", f"node-{h.namespace}")
        await h.until(lambda: any(each.status and each.status.pod_ip for each in h.cached(Pod)))
        await h.settled()
        assert endpoints(h) == []
        await node(h)
        await h.until(lambda: endpoints(h) == [("a", True)])


async def test_endpoints_hold_ready_and_unready_addresses(harness: MakeHarness) -> None:
    async with harness(LEGACY) as h:
        name = await node(h)
        await service(h)
        await pod(h, "a", name)
        await pod(h, "b", name, ready="false")

        def both() -> bool:
            (found,) = h.cached(Endpoints) or [None]
            if found is None or not found.subsets:
                return False
            (subset,) = found.subsets
            ready = [each.target_ref.name for each in subset.addresses or () if each.target_ref]
            unready = [each.target_ref.name for each in subset.not_ready_addresses or () if each.target_ref]
            return (ready, unready) == (["a"], ["b"])

        await h.until(both)
        found = await h.get(Endpoints, "web")
        assert found is not None
        assert found.metadata is not None
        assert found.metadata.labels == {"team": "a", "endpoints.kubernetes.io/managed-by": "endpoint-controller"}
        await h.client.delete(Service, "web", h.namespace)
        await h.until(lambda: h.cached(Endpoints) == [], "the endpoints are gone")


async def test_a_headless_service_without_ports_has_addresses(harness: MakeHarness) -> None:
    async with harness(LEGACY, SLICES) as h:
        name = await node(h)
        await service(h, clusterIP="None", ports=[])
        await pod(h, "a", name)
        await h.until(lambda: endpoints(h) == [("a", True)])
        await h.until(lambda: any(each.subsets for each in h.cached(Endpoints)))
        (found,) = h.cached(Endpoints)
        assert found.metadata is not None
        assert (found.metadata.labels or {}).get("service.kubernetes.io/headless") == ""


async def test_endpoints_without_a_selector_are_mirrored(harness: MakeHarness) -> None:
    async with harness(MIRROR, LEGACY) as h:
        body = {"metadata": {"name": "ext"}, "spec": {"ports": [{"name": "p", "port": 80}]}}
        await h.client.call("POST", f"/api/v1/namespaces/{h.namespace}/services", body)
        await h.client.call(
            "POST",
            f"/api/v1/namespaces/{h.namespace}/endpoints",
            {
                "metadata": {"name": "ext", "labels": {"x": "y"}},
                "subsets": [
                    {
                        "addresses": [{"ip": "192.0.2.1"}, {"ip": "2001:db8::1"}],
                        "notReadyAddresses": [{"ip": "192.0.2.2", "hostname": "two"}],
                        "ports": [{"name": "p", "port": 8080}],
                    }
                ],
            },
        )
        await h.until(lambda: len(h.cached(EndpointSlice)) == 2)
        four = next(each for each in h.cached(EndpointSlice) if each.address_type == "IPv4")
        assert four.metadata is not None
        assert four.metadata.labels == {
            "x": "y",
            "kubernetes.io/service-name": "ext",
            "endpointslice.kubernetes.io/managed-by": "endpointslicemirroring-controller.k8s.io",
        }
        ready = [(each.addresses, each.conditions and each.conditions.ready) for each in four.endpoints or ()]
        assert ready == [(["192.0.2.1"], True), (["192.0.2.2"], False)]

        patch = {"subsets": [{"addresses": [{"ip": "192.0.2.9"}], "ports": [{"name": "p", "port": 8080}]}]}
        await h.client.patch(Endpoints, "ext", patch, h.namespace)

        def only_nine() -> bool:
            found = h.cached(EndpointSlice)
            return [[each.addresses for each in one.endpoints or ()] for one in found] == [[["192.0.2.9"]]]

        await h.until(only_nine)
        await h.client.patch(
            Endpoints, "ext", {"metadata": {"labels": {"endpointslice.kubernetes.io/skip-mirror": "true"}}}, h.namespace
        )
        await h.until(lambda: h.cached(EndpointSlice) == [])


async def test_mirrored_slices_go_when_the_service_gets_a_selector(harness: MakeHarness) -> None:
    async with harness(MIRROR) as h:
        body: dict[str, Any] = {"metadata": {"name": "ext"}, "spec": {"ports": [{"port": 80}]}}
        await h.client.call("POST", f"/api/v1/namespaces/{h.namespace}/services", body)
        body = {"metadata": {"name": "ext"}, "subsets": [{"addresses": [{"ip": "192.0.2.1"}], "ports": [{"port": 1}]}]}
        await h.client.call("POST", f"/api/v1/namespaces/{h.namespace}/endpoints", body)
        await h.until(lambda: len(h.cached(EndpointSlice)) == 1)
        await h.client.patch(Service, "ext", {"spec": {"selector": {"a": "b"}}}, h.namespace)
        await h.until(lambda: h.cached(EndpointSlice) == [])
