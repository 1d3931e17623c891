"""`./pyb bench network`: how fast the proxy sets rules, and what connections and requests through it cost.

Without a cluster: objects in memory, real rules in a network namespace of this process, which a client and a server in
it connect through. Needs root.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import ipaddress
import os
import resource
import socket
import threading
import time
from collections.abc import Callable

import msgspec
from _dns import measure_dns
from _ingress import measure_ingress
from _load import Report

from pybernetes.api.core.v1 import Service
from pybernetes.api.discovery.v1 import EndpointSlice
from pybernetes.api.networking.v1 import NetworkPolicy
from pybernetes.client.keys import Key
from pybernetes.cni.netlink.rtnl import Netlink
from pybernetes.net.netlink.conntrack import Conntrack
from pybernetes.network.nftables.client import Nftables
from pybernetes.network.policy.facts import PodFacts, Policy, policy_facts
from pybernetes.network.policy.kernel import Kernel as PolicyKernel
from pybernetes.network.policy.state import PolicyState
from pybernetes.proxy.chains import TableFacts
from pybernetes.proxy.endpoints import NodeFacts
from pybernetes.proxy.frontends import FAMILIES, compile_service
from pybernetes.proxy.kernel import Kernel
from pybernetes.proxy.ruleset import Ruleset

NODE = NodeFacts("node")
FACTS = TableFacts()
CHANGES = 500
CONNECTIONS = 2000
REQUESTS, TURNS = 2000, 5
PODS, POLICIES, NAMESPACES = 10_000, 1_000, 100
_CLONE_NEWNET = 0x40000000


def main(argv: list[str]) -> int:
    """Measure with so many Services of two endpoints each."""
    parser = argparse.ArgumentParser(prog="bench network", description=__doc__)
    parser.add_argument("services", nargs="*", type=int, default=[10_000, 50_000], help="numbers of Services")
    parser.add_argument("--ingress-only", action="store_true", help="only requests through an Ingress")
    parser.add_argument("--dns-only", action="store_true", help="only queries of cluster DNS")
    options = parser.parse_args(argv)
    if os.geteuid() != 0:
        print("bench network: needs root")
        return 1
    report = Report("network")
    if not options.ingress_only:
        measure_dns(report)
    for count in [] if options.ingress_only or options.dns_only else options.services:
        if ctypes.CDLL(None, use_errno=True).unshare(_CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), "unshare")
        with Netlink() as links:
            links.set_link(links.link("lo").index, up=True)
        with Nftables() as nftables, Conntrack() as tracked:
            measure(count, Kernel(nftables, tracked, FAMILIES), report)
        with Nftables() as nftables:
            measure_policies(PolicyKernel(nftables), report)
    if not options.dns_only:
        measure_ingress(report)
    report.save()
    return 0


def measure_policies(kernel: PolicyKernel, report: Report) -> None:
    """Changes of one pod and of one policy among 10,000 pods (all on this node) and 1,000 policies."""
    state = PolicyState()
    for number in range(NAMESPACES):
        state.put_namespace(f"ns{number}", {"team": str(number % 10)})
    for number in range(PODS):
        state.put_pod(Key(f"ns{number % NAMESPACES}", f"pod{number}"), policy_pod(number))
    before = time.process_time()
    for number in range(POLICIES):
        state.put_policy(policy_key(number), policy_of(number, "0"))
    kernel.replace(state)
    title = f"{POLICIES:,} policies, {PODS:,} pods"
    report.row(f"{title}: from nothing, CPU", (time.process_time() - before) * 1000, "ms")

    def change_policy(number: int) -> None:
        state.put_policy(policy_key(number), policy_of(number, "1"))
        kernel.update(state)

    def change_pod(number: int) -> None:
        state.put_pod(Key(f"ns{number % NAMESPACES}", f"pod{number}"), policy_pod(number, "moved"))
        kernel.update(state)

    for what, call in (("policy", change_policy), ("pod", change_pod)):
        times = sorted(took(lambda n=n, c=call: c(n)) for n in range(100))  # type: ignore[misc]
        report.row(f"{title}: one {what} changed p50", times[50] * 1000, "ms")
        report.row(f"{title}: one {what} changed p99", times[98] * 1000, "ms")


def policy_pod(number: int, app: str = "") -> PodFacts:
    labels = {"app": app or f"app{number // NAMESPACES % 10}"}
    return PodFacts(f"ns{number % NAMESPACES}", labels, ((0x0A000000 + number).to_bytes(4, "big"),), (), True)


def policy_key(number: int) -> Key:
    return Key(f"ns{number % NAMESPACES}", f"policy{number}")


def policy_of(number: int, team: str) -> Policy:
    """Pods of an app accept those of an app in their namespace and of the namespaces of a team."""
    app, other = f"app{number // NAMESPACES % 10}", f"app{(number + 1) % 10}"
    peers = [
        {"podSelector": {"matchLabels": {"app": other}}},
        {"namespaceSelector": {"matchLabels": {"team": team}}, "podSelector": {"matchLabels": {"app": other}}},
    ]
    key = policy_key(number)
    spec = {"podSelector": {"matchLabels": {"app": app}}, "ingress": [{"from": peers, "ports": [{"port": 80}]}]}
    content = {"metadata": {"name": key.name, "namespace": key.namespace}, "spec": spec}
    return policy_facts(msgspec.convert(content, NetworkPolicy))


def measure(count: int, kernel: Kernel, report: Report) -> None:
    """All figures with so many Services."""
    pairs = [made(number) for number in range(count)]
    gc.collect()
    gc.freeze()
    rulesets = {family.name: Ruleset() for family in FAMILIES}
    before = time.process_time()
    report.row(f"{count:,} Services: from nothing", took(lambda: fill(pairs, rulesets, kernel)) * 1000, "ms")
    report.row(f"{count:,} Services: from nothing, CPU", (time.process_time() - before) * 1000, "ms")
    report.row(f"{count:,} Services: tables anew", took(lambda: kernel.replace(rulesets, FACTS)) * 1000, "ms")
    times = sorted(took(lambda n=n: change(n, rulesets, kernel)) for n in range(CHANGES))  # type: ignore[misc]
    report.row(f"{count:,} Services: one change p50", times[CHANGES // 2] * 1000, "ms")
    report.row(f"{count:,} Services: one change p99", times[CHANGES * 99 // 100] * 1000, "ms")
    put(service("target", "10.111.0.1", 80), endpoints("target", ["127.0.0.1"], 8080), rulesets)
    kernel.update(rulesets, FACTS)
    with socket.create_server(("127.0.0.1", 8080), backlog=1000) as server:
        threading.Thread(target=accept, args=(server,), daemon=True).start()
        # The route of the Service's address must be there before its translation.
        with Netlink() as links:
            links.add_address(links.link("lo").index, ipaddress.ip_interface("10.111.0.1/32"))
        direct, through = (connect(target) for target in (("127.0.0.1", 8080), ("10.111.0.1", 80)))
    report.row(f"{count:,} Services: connect direct p50", direct * 1e6, "us")
    report.row(f"{count:,} Services: connect through a Service p50", through * 1e6, "us")
    direct, through = requests(8081, ("10.111.0.2", 80), rulesets, kernel)
    report.row(f"{count:,} Services: requests direct", direct, "/s")
    report.row(f"{count:,} Services: requests through a Service", through, "/s")
    report.row(
        f"{count:,} Services: peak memory with the objects",
        resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "MiB",
    )


def requests(port: int, target: tuple[str, int], rulesets: dict[str, Ruleset], kernel: Kernel) -> tuple[float, float]:
    """Requests per second over one connection, direct and through a Service: the best of several turns."""
    put(service("echo", *target), endpoints("echo", ["127.0.0.1"], port), rulesets)
    kernel.update(rulesets, FACTS)
    with Netlink() as links:
        links.add_address(links.link("lo").index, ipaddress.ip_interface(f"{target[0]}/32"))
    with socket.create_server(("127.0.0.1", port)) as server:
        threading.Thread(target=echo, args=(server,), daemon=True).start()
        best = [0.0, 0.0]
        for _ in range(TURNS):
            for index, where in enumerate((("127.0.0.1", port), target)):
                with socket.create_connection(where) as client:
                    best[index] = max(best[index], REQUESTS / took(lambda c=client: ask(c)))  # type: ignore[misc]
    return best[0], best[1]


def ask(client: socket.socket) -> None:
    for _ in range(REQUESTS):
        client.send(b"GET / HTTP/1.1\r\n\r\n")
        client.recv(1024)


def echo(server: socket.socket) -> None:
    while True:
        try:
            connection, _ = server.accept()
        except OSError:
            return
        with connection:
            while data := connection.recv(1024):
                connection.send(data)


def took(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def fill(pairs: list[tuple[Service, EndpointSlice]], rulesets: dict[str, Ruleset], kernel: Kernel) -> None:
    for one, slices in pairs:
        put(one, slices, rulesets)
    kernel.replace(rulesets, FACTS)


def change(number: int, rulesets: dict[str, Ruleset], kernel: Kernel) -> None:
    """Another endpoint of one Service."""
    put(service("moving", "10.110.0.1", 80), endpoints("moving", [f"10.1.0.{number % 250 + 1}"], 8080), rulesets)
    kernel.update(rulesets, FACTS)


def put(one: Service, slices: EndpointSlice, rulesets: dict[str, Ruleset]) -> None:
    assert one.metadata is not None
    for family in FAMILIES:
        entries = compile_service(one, [slices], NODE, family).entries
        rulesets[family.name].replace(one.metadata.name or "", entries)


def made(number: int) -> tuple[Service, EndpointSlice]:
    name, low = f"service-{number}", f"{number >> 8 & 255}.{number & 255}"
    return service(name, f"10.{96 + (number >> 16)}.{low}", 80), endpoints(name, [f"10.1.{low}", f"10.2.{low}"], 8080)


def service(name: str, ip: str, port: int) -> Service:
    spec = {"clusterIP": ip, "clusterIPs": [ip], "type": "ClusterIP", "ports": [{"port": port, "protocol": "TCP"}]}
    return msgspec.convert({"metadata": {"namespace": "default", "name": name}, "spec": spec}, Service)


def endpoints(of: str, addresses: list[str], port: int) -> EndpointSlice:
    body = {
        "metadata": {"namespace": "default", "name": of, "labels": {"kubernetes.io/service-name": of}},
        "addressType": "IPv4",
        "endpoints": [{"addresses": [each]} for each in addresses],
        "ports": [{"name": "", "port": port, "protocol": "TCP"}],
    }
    return msgspec.convert(body, EndpointSlice)


def accept(server: socket.socket) -> None:
    while True:
        try:
            server.accept()[0].close()
        except OSError:
            return


def connect(target: tuple[str, int]) -> float:
    """The median time of a connect."""
    times = []
    for _ in range(CONNECTIONS):
        with socket.socket() as client:
            times.append(took(lambda: client.connect(target)))
    return sorted(times)[CONNECTIONS // 2]
