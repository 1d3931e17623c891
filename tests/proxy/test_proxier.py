"""The proxy on a real API server: what is written there is what packets meet."""

from __future__ import annotations

import asyncio
import itertools
import json
import socket
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from proxy.lab import Lab, make_lab

import tools
from pybernetes.api.core.v1 import Node
from pybernetes.client import config as clientconfig
from pybernetes.client.client import Client
from pybernetes.client.clock import SystemClock
from pybernetes.client.informers import InformerFactory
from pybernetes.client.keys import Key
from pybernetes.net.netlink.conntrack import Conntrack
from pybernetes.network.nftables.batch import Batch
from pybernetes.network.nftables.client import Nftables
from pybernetes.proxy import health_checks
from pybernetes.proxy import proxier as module
from pybernetes.proxy.command import settings
from pybernetes.proxy.config import KubeProxyConfiguration, set_defaults
from pybernetes.proxy.frontends import FAMILIES
from pybernetes.proxy.health_checks import HealthChecks
from pybernetes.proxy.kernel import Kernel
from pybernetes.proxy.metrics import Metrics
from pybernetes.proxy.proxier import Proxier
from pybernetes.proxy.serving import PlainServer, health_pages, metrics_pages

_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tools.ApiServer]:
    with tools.api_server(tmp_path_factory.mktemp("proxy")) as running:
        yield running


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with make_lab() as made:
        for number, pod in enumerate(made.pods):
            made.serve(pod, f"pod{number}")
            made.serve(pod, f"pod{number}", kind="udp")
        yield made


class Harness:
    """A running proxy, and an administrator who changes the cluster."""

    def __init__(self, lab: Lab, client: Client) -> None:
        self.lab, self.client = lab, client
        self.namespace = f"proxy-{next(_numbers)}"
        self.metrics = Metrics()
        self.proxier: Proxier
        self.work: asyncio.Task[None]
        self.checks: HealthChecks

    async def create(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        prefix = "/api/v1" if path in ("services", "nodes") else "/apis/discovery.k8s.io/v1"
        where = f"{prefix}/{path}" if path == "nodes" else f"{prefix}/namespaces/{self.namespace}/{path}"
        made = await self.client.call("POST", where, body)
        assert isinstance(made, dict)
        return made

    async def service(self, name: str = "web", port: int = 80, **spec: Any) -> str:
        """Makes a Service; its cluster IP."""
        ports = [{"port": port, "protocol": spec.pop("protocol", "TCP")}]
        made = await self.create("services", {"metadata": {"name": name}, "spec": {"ports": ports, **spec}})
        return str(made["spec"]["clusterIP"])

    async def endpoints(self, *addresses: str, of: str = "web", protocol: str = "TCP", node: str = "") -> None:
        """Makes or replaces the slice of a Service."""
        endpoints = [
            {"addresses": [each], "conditions": {"ready": True}} | ({"nodeName": node} if node else {})
            for each in addresses
        ]
        body = {
            "metadata": {"name": of, "labels": {"kubernetes.io/service-name": of}},
            "addressType": "IPv4",
            "endpoints": endpoints,
            "ports": [{"name": "", "port": 8080, "protocol": protocol}],
        }
        path = f"/apis/discovery.k8s.io/v1/namespaces/{self.namespace}/endpointslices"
        try:
            await self.client.call("PUT", f"{path}/{of}", body)
        except Exception:
            await self.client.call("POST", path, body)

    async def ask(self, address: str, port: int = 80, kind: str = "tcp") -> str:
        return await asyncio.to_thread(self.lab.ask, self.lab.pods[2], address, port, kind)

    async def answers(self, address: str, want: set[str]) -> None:
        """Waits until an address is answered by these, and by no others."""

        async def answered() -> bool:
            return {await self.ask(address) for _ in range(20 if len(want) > 1 else 3)} == want

        await until(answered, f"{address} is answered by {want}")


async def until(condition: Callable[[], Any], what: str) -> None:
    deadline = time.monotonic() + 30
    while True:
        value = condition()
        if asyncio.iscoroutine(value):
            value = await value
        if value:
            return
        assert time.monotonic() < deadline, what
        await asyncio.sleep(0.01)


@asynccontextmanager
async def running(lab: Lab, server: tools.ApiServer, **fields: Any) -> AsyncIterator[Harness]:
    configuration = KubeProxyConfiguration(hostname_override="here", cluster_cidr="10.1.0.0/16", **fields)
    set_defaults(configuration)
    async with Client(clientconfig.load(str(server.kubeconfig)), program="test") as client:
        harness = Harness(lab, client)
        await client.call("POST", "/api/v1/namespaces", {"metadata": {"name": harness.namespace}})
        with lab.node.run(Nftables) as nftables, lab.node.run(Conntrack) as tracked:
            informers = InformerFactory(client)
            harness.checks = HealthChecks(lambda: not harness.proxier.problem(), ("127.0.0.1",))
            kernel = Kernel(nftables, tracked, FAMILIES)
            harness.proxier = Proxier(
                informers, kernel, settings(configuration), SystemClock(), harness.metrics, harness.checks
            )
            work = harness.work = asyncio.create_task(harness.proxier.run())
            try:
                await asyncio.wait_for(harness.proxier.started.wait(), 30)
                yield harness
            finally:
                work.cancel()
                await asyncio.wait([work])
                await informers.stop()
                path = f"/api/v1/namespaces/{harness.namespace}/services"
                await client.call("DELETE", path)


async def test_a_service_is_served_as_soon_as_it_has_endpoints(lab: Lab, server: tools.ApiServer) -> None:
    async with running(lab, server) as h:
        ip = await h.service()
        await h.answers(ip, {"refused"})
        await h.endpoints("10.1.0.2", "10.1.0.3")
        await h.answers(ip, {"pod0", "pod1"})
        await h.endpoints("10.1.0.3")
        await h.answers(ip, {"pod1"})
        await h.client.call("DELETE", f"/api/v1/namespaces/{h.namespace}/services/web")
        await h.answers(ip, {"refused"})


async def test_addresses_of_the_service_range_are_refused_because_servicecidrs_are_followed(
    lab: Lab, server: tools.ApiServer
) -> None:
    async with running(lab, server) as h:
        assert await h.ask("10.96.77.77") == "refused"


async def test_an_address_that_several_services_ask_for_is_the_first_ones_alone(
    lab: Lab, server: tools.ApiServer
) -> None:
    async with running(lab, server) as h:
        await h.service("first", externalIPs=["192.0.2.50"])
        await h.endpoints("10.1.0.2", of="first")
        await h.answers("192.0.2.50", {"pod0"})
        await h.service("second", externalIPs=["192.0.2.50"])
        await h.endpoints("10.1.0.3", "10.1.0.4", of="second")
        own = await h.service("own", externalIPs=["192.0.2.51"])
        await h.endpoints("10.1.0.3", of="own")
        await h.answers("192.0.2.51", {"pod1"})
        await h.endpoints("10.1.0.2", "10.1.0.200", of="first")  # as many as the second has
        await h.endpoints("10.1.0.2", of="first")
        await h.answers("192.0.2.50", {"pod0"})
        path = f"/api/v1/namespaces/{h.namespace}/services"
        await h.client.call("DELETE", f"{path}/first")
        await h.answers("192.0.2.50", {"pod1", "pod2"})
        # No Service takes another one's cluster IP as an external IP.
        await h.client.call("DELETE", f"{path}/own")
        await h.service("thief", externalIPs=[own])
        await h.endpoints("10.1.0.4", of="thief")
        await h.service("barrier", externalIPs=["192.0.2.52"])
        await h.endpoints("10.1.0.2", of="barrier")
        await h.answers("192.0.2.52", {"pod0"})
        assert await h.ask(own) == "refused"


async def test_rules_that_were_removed_by_hand_are_set_again(
    lab: Lab, server: tools.ApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "REPAIR_INTERVAL", 0.0)
    async with running(lab, server) as h:
        ip = await h.service()
        await h.endpoints("10.1.0.2")
        await h.answers(ip, {"pod0"})
        for damage in (["delete", "table", "ip", "kube-proxy"], ["flush", "chain", "ip", "kube-proxy", "services"]):
            lab.node.output("nft", *damage)
            await h.answers(ip, {"pod0"})
        assert h.metrics.repairs.value() == 2


async def test_a_program_that_changes_the_tables_all_the_time_does_not_make_the_proxy_do_the_same(
    lab: Lab, server: tools.ApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "REPAIR_INTERVAL", 600.0)
    async with running(lab, server) as h:
        for repairs in (1, 2):
            lab.node.output("nft", "delete", "table", "ip", "kube-proxy")
            await until(lambda: h.metrics.repairs.value() == repairs, "it is noticed")  # noqa: B023
            if repairs == 1:
                await until(lambda: "kube-proxy" in lab.node.output("nft", "list", "tables", "ip"), "repaired at once")
        assert h.proxier._next - SystemClock().monotonic() > 300
        assert "kube-proxy" not in lab.node.output("nft", "list", "tables", "ip")


async def test_a_new_proxy_takes_over_the_tables_of_the_old_one(lab: Lab, server: tools.ApiServer) -> None:
    async with running(lab, server) as old:
        ip = await old.service()
        await old.endpoints("10.1.0.2")
        await old.answers(ip, {"pod0"})
        async with running(lab, server) as new:
            assert await new.ask(ip) == "pod0"
    assert "kube-proxy" in lab.node.output("nft", "list", "tables"), "the tables stay"


async def test_a_failed_sync_is_tried_again(lab: Lab, server: tools.ApiServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FIRST_RETRY", 0.05)
    async with running(lab, server) as h:
        commit, failing = Nftables.commit, [True]

        def sometimes(self: Nftables, batch: Batch, generation: int | None = None) -> None:
            if failing[0]:
                raise OSError(105, "no room")
            commit(self, batch, generation)

        monkeypatch.setattr(Nftables, "commit", sometimes)
        ip = await h.service()
        await h.endpoints("10.1.0.2")
        await until(lambda: "failed" in h.proxier.problem(), "the failure is reported")
        failing[0] = False
        await h.answers(ip, {"pod0"})
        assert h.proxier.problem() == ""
        assert h.metrics.failures.value("IPv4") >= 1


async def test_a_udp_connection_to_an_endpoint_that_is_gone_is_forgotten(lab: Lab, server: tools.ApiServer) -> None:
    async with running(lab, server) as h:
        ip = await h.service(protocol="UDP")
        await h.endpoints("10.1.0.2", protocol="UDP")
        with lab.pods[2].run(socket.socket, socket.AF_INET, socket.SOCK_DGRAM) as client:
            client.settimeout(1)

            def said() -> str:
                try:
                    client.sendto(b"?", (ip, 80))
                    return client.recv(100).decode()
                except OSError:
                    return ""

            async def says(want: str) -> bool:
                return await asyncio.to_thread(said) == want

            await until(lambda: says("pod0"), "the first endpoint answers")
            await h.endpoints("10.1.0.3", protocol="UDP")
            await until(lambda: says("pod1"), "the second endpoint answers the same socket")
        assert h.metrics.conntrack_deleted.value("IPv4") >= 1


async def test_udp_connections_that_began_before_the_service_or_without_a_proxy_reach_an_endpoint(
    lab: Lab, server: tools.ApiServer
) -> None:
    with lab.world.run(socket.socket, socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.settimeout(0.5)
        client.bind(("192.0.2.2", 40053))

        def said() -> str:
            try:
                client.sendto(b"?", ("192.0.2.1", 30053))
                return client.recv(100).decode()
            except OSError:
                return ""

        async def says(want: str) -> bool:
            return await asyncio.to_thread(said) == want

        async with running(lab, server) as h:
            assert await says(""), "there is no endpoint yet, and the kernel tracks the connection"
            ports = [{"port": 80, "nodePort": 30053, "protocol": "UDP"}]
            spec = {"type": "NodePort", "ports": ports}
            await h.create("services", {"metadata": {"name": "web"}, "spec": spec})
            await h.endpoints("10.1.0.2", protocol="UDP")
            await until(lambda: says("pod0"), "the same socket reaches the new Service")
            namespace = h.namespace
            h.work.cancel()
            await asyncio.wait([h.work])
            await h.endpoints("10.1.0.3", protocol="UDP")
            assert await says("pod0"), "without a proxy all stays as it is"
            async with running(lab, server):
                await until(lambda: says("pod1"), f"a new proxy removes the connections of {namespace} that are stale")


async def get(port: int, path: str = "/") -> tuple[int, bytes]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    answer = await reader.read()
    writer.close()
    head, _, body = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), body


async def test_a_load_balancer_learns_on_the_health_check_node_port_which_nodes_have_endpoints(
    lab: Lab, server: tools.ApiServer
) -> None:
    async with running(lab, server) as h:
        port = tools.free_port()
        body = {
            "metadata": {"name": "web"},
            "spec": {
                "type": "LoadBalancer",
                "externalTrafficPolicy": "Local",
                "healthCheckNodePort": 32000 + port % 700,
                "ports": [{"port": 80}],
            },
        }
        made = await h.create("services", body)
        port = made["spec"]["healthCheckNodePort"]

        async def answer(status: int, count: int) -> bool:
            try:
                got, body = await get(port)
            except OSError:
                return False
            want = {
                "service": {"namespace": h.namespace, "name": "web"},
                "localEndpoints": count,
                "serviceProxyHealthy": True,
            }
            return got == status and json.loads(body) == want

        await until(lambda: answer(503, 0), "no endpoint")
        await h.endpoints("10.1.0.2", "10.1.0.3", node="here")
        await until(lambda: answer(200, 2), "two endpoints here")
        await h.endpoints("10.1.0.2", node="elsewhere")
        await until(lambda: answer(503, 0), "none here")
        assert "external" in h.metrics.registry.render().decode()
        await h.client.call("DELETE", f"/api/v1/namespaces/{h.namespace}/services/web")

        async def closed() -> bool:
            try:
                await get(port)
            except OSError:
                return True
            return False

        await until(closed, "there is no listener")


async def test_a_health_check_node_port_that_is_taken_is_tried_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(health_checks, "RETRY", 0.001)
    checks = HealthChecks(addresses=("127.0.0.1",))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        checks.put(Key("default", "web"), port, 1)
        await until(lambda: "cannot listen on health check node port" in caplog.text, "the port is taken")

    async def answered() -> bool:
        try:
            return (await get(port))[0] == 200
        except OSError:
            return False

    try:
        await until(answered, "it listens when the port is free")
    finally:
        await checks.close()


async def test_the_node_decides_by_its_zone_and_its_end(lab: Lab, server: tools.ApiServer) -> None:
    async with running(lab, server) as h:
        labels = {"topology.kubernetes.io/zone": "a"}
        await h.create("nodes", {"metadata": {"name": "here", "labels": labels}})
        ip = await h.service()
        body = {
            "metadata": {"name": "web", "labels": {"kubernetes.io/service-name": "web"}},
            "addressType": "IPv4",
            "endpoints": [
                {"addresses": [f"10.1.0.{2 + n}"], "hints": {"forZones": [{"name": zone}]}}
                for n, zone in enumerate("ab")
            ],
            "ports": [{"name": "", "port": 8080, "protocol": "TCP"}],
        }
        await h.create("endpointslices", body)
        await h.answers(ip, {"pod0"})
        patch = {"metadata": {"labels": {"topology.kubernetes.io/zone": "b"}}}
        await h.client.patch(Node, "here", patch)
        await h.answers(ip, {"pod1"})
        taints = {"spec": {"taints": [{"key": "ToBeDeletedByClusterAutoscaler", "effect": "NoSchedule"}]}}
        await h.client.patch(Node, "here", taints)
        await until(lambda: not h.proxier.eligible, "load balancers see that the node is not eligible")
        await h.client.call("DELETE", "/api/v1/nodes/here")


async def test_one_service_that_cannot_be_compiled_does_not_stop_the_others(
    lab: Lab, server: tools.ApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = module.compile_service

    def broken(service: Any, *more: Any) -> Any:
        if service.metadata.name == "bad":
            raise OSError("illegal IP address string")
        return real(service, *more)

    monkeypatch.setattr(module, "compile_service", broken)
    async with running(lab, server) as h:
        await h.service("bad")
        ip = await h.service()
        await h.endpoints("10.1.0.2")
        await h.answers(ip, {"pod0"})


async def test_pages_tell_how_the_proxy_is() -> None:
    metrics, problem, eligible = Metrics(), [""], [True]
    health = PlainServer(health_pages(metrics, lambda: problem[0], lambda: eligible[0], lambda: 1e9))
    pages = PlainServer(metrics_pages(metrics, lambda: {"mode": "nftables"}))
    first, second = await health.start(("127.0.0.1",), 0), await pages.start(("127.0.0.1",), 0)
    try:
        assert [(await get(first, path))[0] for path in ("/healthz", "/livez", "/other")] == [200, 200, 404]
        eligible[0] = False
        assert [(await get(first, path))[0] for path in ("/healthz", "/livez")] == [503, 200]
        problem[0] = "the last 3 syncs failed"
        assert [(await get(first, path))[0] for path in ("/healthz", "/livez")] == [503, 503]
        assert await get(second, "/proxyMode") == (200, b"nftables")
        text = (await get(second, "/metrics"))[1].decode()
        assert 'kubeproxy_proxy_healthz_total{code="503"} 2' in text
        assert json.loads((await get(second, "/configz"))[1]) == {"kubeproxy.config.k8s.io": {"mode": "nftables"}}
    finally:
        await health.stop()
        await pages.stop()
