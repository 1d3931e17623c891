"""`pyb dns` beside a real API server: Services and their changes become names."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dns.exception
import dns.message
import dns.query
import dns.rcode
import pytest
from apiserver.client import Client

import tools

HOST = "127.0.0.1"
SERVICES = "/api/v1/namespaces/default/services"
SLICES = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"


class Resolver:
    """A running `pyb dns`."""

    def __init__(self, port: int) -> None:
        self.port = port

    def ask(self, name: str, kind: str = "A") -> list[str]:
        """The answer's records as text, or the response code if there are none."""
        try:
            reply = dns.query.udp(dns.message.make_query(name, kind), HOST, 5, self.port)
        except (dns.exception.Timeout, OSError):
            return ["no answer"]
        return sorted(each.to_text() for rrset in reply.answer for each in rrset) or [dns.rcode.to_text(reply.rcode())]

    def wait(self, name: str, *expected: str, kind: str = "A") -> None:
        """Wait until the answer is this."""
        tools.wait_until(lambda: self.ask(name, kind) == list(expected), f"{name} is {expected}")


@pytest.fixture
def resolver(cluster: tools.ApiServer, tmp_path: Path) -> Iterator[Resolver]:
    port = tools.free_port()
    resolv = tmp_path / "resolv.conf"
    resolv.write_text("search corp.example\n")
    command = [*tools.PYTHON, "dns", f"--kubeconfig={cluster.kubeconfig}", f"--port={port}", f"--resolv-conf={resolv}"]
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen(command, stderr=log)
    try:
        found = Resolver(port)
        found.wait("dns-version.cluster.local", '"1.1.0"', kind="TXT")
        yield found
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0, (tmp_path / "log").read_text()
    assert "Traceback" not in (tmp_path / "log").read_text()


def service(name: str, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"ports": [{"name": "http", "port": 80}], **spec}}


def test_services_become_names_and_follow_their_changes(resolver: Resolver, cluster: tools.ApiServer) -> None:
    client = Client(cluster)
    made = client.post(SERVICES, service("web")).json
    address = made["spec"]["clusterIP"]
    try:
        resolver.wait("web.default.svc.cluster.local", address)
        resolver.wait("_http._tcp.web.default.svc.cluster.local", "0 100 80 web.default.svc.cluster.local.", kind="SRV")
        client.post(SERVICES, service("none", clusterIP="None"))
        resolver.wait("none.default.svc.cluster.local", "NXDOMAIN")
        found = {
            "metadata": {"name": "none-1", "labels": {"kubernetes.io/service-name": "none"}},
            "addressType": "IPv4",
            "endpoints": [{"addresses": ["10.1.2.3"], "hostname": "zero"}, {"addresses": ["10.1.2.4"]}],
            "ports": [{"name": "http", "port": 8080}],
        }
        assert client.post(SLICES, found).status == 201
        resolver.wait("none.default.svc.cluster.local", "10.1.2.3", "10.1.2.4")
        resolver.wait("zero.none.default.svc.cluster.local", "10.1.2.3")
        assert client("DELETE", f"{SLICES}/none-1").status == 200
        resolver.wait("zero.none.default.svc.cluster.local", "NXDOMAIN")
    finally:
        client("DELETE", f"{SERVICES}/web")
        client("DELETE", f"{SERVICES}/none")
    resolver.wait("web.default.svc.cluster.local", "NXDOMAIN")


def test_the_configuration_is_reloaded_and_a_wrong_one_leaves_the_old(
    resolver: Resolver, cluster: tools.ApiServer
) -> None:
    client = Client(cluster)
    text = ". {\n kubernetes cluster.local\n hosts {\n 192.0.2.9 printer.example\n }\n}"
    path = "/api/v1/namespaces/kube-system/configmaps"
    assert client.post(path, {"metadata": {"name": "coredns"}, "data": {"Corefile": text}}).status == 201
    try:
        resolver.wait("printer.example", "192.0.2.9")
        patch = {"data": {"Corefile": ". {\n nonsense\n}"}}
        headers = {"Content-Type": "application/merge-patch+json"}
        assert client("PATCH", f"{path}/coredns", patch, **headers).status == 200
        made = client.post(SERVICES, service("after"))
        resolver.wait("after.default.svc.cluster.local", made.json["spec"]["clusterIP"])
        assert resolver.ask("printer.example") == ["192.0.2.9"]
        assert client("DELETE", f"{path}/coredns").status == 200
        resolver.wait("printer.example", "REFUSED")  # the default has no hosts, and resolv.conf no server
    finally:
        client("DELETE", f"{path}/coredns")
        for name in ("after",):
            client("DELETE", f"{SERVICES}/{name}")
