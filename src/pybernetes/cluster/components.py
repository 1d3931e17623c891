"""Which processes make up a cluster, with which flags, and how each shows that it is ready.

A component is a command with upstream's flag names; this is the only place that composes them, but for those that run
inside a node (`node.prepare`). A new one is one more function here and one more line in `control_plane`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from pybernetes.cluster import certificates, files
from pybernetes.cluster.forking import PYTHON
from pybernetes.cluster.layout import Layout
from pybernetes.cluster.readiness import Probe
from pybernetes.trace import VARIABLE

BIND_ADDRESS = "127.0.0.1"
SERVICE_RANGE = "10.96.0.0/12"
POD_RANGE = "10.244.0.0/16"
MANY_PODS_RANGE = "100.64.0.0/10"
FEW_NODES = 250
"""As many nodes get a range of pods' addresses (a /24) out of a /16, with some to spare."""
KUBERNETES_SERVICE_IP = "10.96.0.1"  # The first address of the range: the `kubernetes` Service.
CLUSTER_DNS_IP = "10.96.0.10"  # The tenth, as kubeadm has it: the `kube-dns` Service.
CLUSTER_DOMAIN = "cluster.local"
# Served by asking the kubelets: `kubectl top` and autoscaling. Without nodes there is nothing to ask.
METRICS = "--runtime-config=metrics.k8s.io/v1beta1=true"
KUBELET_PORTS = 20250
"""The first port of kubelets of simulated nodes, skipping ports in use: below the ports that the kernel gives to
clients."""
# Simulated nodes are reached at another address than they have among themselves; real ones have no such address.
REACHED_FROM_OUTSIDE = "--kubelet-preferred-address-types=ExternalIP,InternalIP,Hostname"
NO_POLICY = "--enforces-network-policy=false"
ISSUER = f"https://kubernetes.default.svc.{CLUSTER_DOMAIN}"


class Ready(Protocol):
    """Answers whether a component is ready; `trouble` says why not."""

    trouble: str

    def __call__(self) -> bool: ...


class Unasked:
    """For a component that nothing waits for."""

    trouble = ""

    def __call__(self) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class Component:
    """One process of a cluster."""

    name: str
    title: str
    argv: tuple[str, ...]
    ready: Ready
    listen: tuple[str, int] | None = None
    """Where it is asked from outside of the network it is in (`rootless`): opened for it and handed over."""
    offers: tuple[tuple[str, int], ...] = ()
    """Likewise, but only where the port is free."""
    later: bool = False
    """Whether it is started when all others are ready and the cluster has its objects."""


@dataclass(frozen=True, slots=True)
class Chore:
    """A command that runs periodically; the components it refreshes are restarted when it has changed something."""

    name: str
    argv: tuple[str, ...]
    every: float
    refreshes: tuple[str, ...]


RENEW_EVERY = 12 * 60 * 60.0  # seconds; certificates are renewed a month before they end

VERBOSITY = "--v=2"
"""The verbosity of upstream's own deployments: operators find the log lines they look for."""


def renewal(layout: Layout, addresses: Sequence[str]) -> Chore:
    """Renews certificates. API server and kubelets read theirs again by themselves; the others have to start again."""
    flags = [f"--name={layout.name}", f"--data-dir={layout.data}", f"--address={','.join(addresses)}"]
    others = ("controller-manager", "scheduler", "ingress")
    return Chore("renewal", (*PYTHON, "renew", *flags), RENEW_EVERY, others)


def control_plane(
    layout: Layout,
    *,
    address: str = BIND_ADDRESS,
    node_address: str = "",
    port: int,
    controller_manager_port: int,
    scheduler_port: int,
    advertise_address: str,
    pod_range: str = POD_RANGE,
    etcd_servers: str,
    token_file: str | None,
    load_balancer_pool: str = "",
    service_range: str = SERVICE_RANGE,
    more_flags: Sequence[str] = (),
) -> list[Component]:
    """The components of a cluster without nodes, in the order in which they are started.

    The API server listens at `address`, and for nodes at `node_address` too.
    """
    server = f"https://{address}:{port}"
    if node_address:
        more_flags = [f"--additional-bind-address={node_address}", *more_flags]
    health = [
        f"--component-health=controller-manager={controller_manager_port}",
        f"--component-health=scheduler={scheduler_port}",
    ]
    return [
        api_server(
            layout, address, port, advertise_address, etcd_servers, token_file, [*health, *more_flags], service_range
        ),
        controller_manager(layout, server, controller_manager_port, pod_range, load_balancer_pool, service_range),
        scheduler(layout, server, scheduler_port),
    ]


def with_verbosity(part: Component, verbosity: int) -> Component:
    """The component with another value of its flag `-v`, if it has one."""
    return replace(part, argv=tuple(f"--v={verbosity}" if word == VERBOSITY else word for word in part.argv))


def reached_from_outside(part: Component) -> Component:
    """A component in a network of its own, asked at the loopback device of this machine, by the same port."""
    if not isinstance(part.ready, Probe):
        return part
    port, pki = part.ready.port, part.ready.pki
    return replace(part, ready=Probe(BIND_ADDRESS, port, pki), listen=(BIND_ADDRESS, port))


def node(name: str, machine_file: Path, ready: Ready) -> Component:
    """A node, with all that runs in it."""
    return Component(name=name, title=f"node {name}", argv=(*PYTHON, "run-node", str(machine_file)), ready=ready)


def api_server(
    layout: Layout,
    address: str,
    port: int,
    advertise_address: str,
    etcd_servers: str,
    token_file: str | None,
    more_flags: Sequence[str] = (),
    service_range: str = SERVICE_RANGE,
) -> Component:
    """The API server; ready when /readyz says so to the administrator."""
    pki = layout.pki
    flags = [
        f"--secure-port={port}",
        f"--bind-address={address}",
        f"--advertise-address={advertise_address}",
        f"--tls-cert-file={pki / 'apiserver.crt'}",
        f"--tls-private-key-file={pki / 'apiserver.key'}",
        f"--client-ca-file={pki / 'ca.crt'}",
        *front_proxy(pki),
        *kubelet_client(pki),
        f"--etcd-servers={etcd_servers}",
        f"--service-account-issuer={ISSUER}",
        f"--service-account-key-file={pki / 'sa.pub'}",
        f"--service-account-signing-key-file={pki / 'sa.key'}",
        f"--service-cluster-ip-range={service_range}",
        "--allow-privileged=true",
        "--authorization-mode=Node,RBAC",
        "--enable-bootstrap-token-auth=true",
        "--enable-admission-plugins=NodeRestriction",
        "--enable-test-endpoints",
        *more_flags,
    ]
    if os.environ.get(VARIABLE) != "0":
        flags.append(f"--trace-dir={layout.data / 'trace'}")
    if token_file is not None:
        flags.append(f"--token-auth-file={token_file}")
    return Component(
        name="apiserver",
        title="API server",
        argv=(*PYTHON, "apiserver", VERBOSITY, *flags),
        ready=Probe(address, port, pki),
    )


def front_proxy(pki: Path) -> list[str]:
    """As whom the API server comes to servers that extend it, and what it believes of others who come so."""
    return [
        f"--proxy-client-cert-file={pki / 'front-proxy-client.crt'}",
        f"--proxy-client-key-file={pki / 'front-proxy-client.key'}",
        f"--requestheader-client-ca-file={pki / 'front-proxy-ca.crt'}",
        "--requestheader-allowed-names=front-proxy-client",
        "--requestheader-username-headers=X-Remote-User",
        "--requestheader-uid-headers=X-Remote-Uid",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
    ]


def kubelet_client(pki: Path) -> list[str]:
    """As whom the API server comes to kubelets, and whom it believes to be one. Names of nodes are known to no DNS."""
    return [
        f"--kubelet-client-certificate={pki / 'apiserver-kubelet-client.crt'}",
        f"--kubelet-client-key={pki / 'apiserver-kubelet-client.key'}",
        f"--kubelet-certificate-authority={pki / 'ca.crt'}",
        "--kubelet-preferred-address-types=InternalIP,ExternalIP,Hostname",
    ]


def controller_manager(
    layout: Layout,
    server: str,
    port: int,
    pod_range: str,
    load_balancer_pool: str = "",
    service_range: str = SERVICE_RANGE,
) -> Component:
    """The controllers; ready when all of them work. Only one is started, so there is no leader to elect."""
    pki = layout.pki
    kubeconfig = write_kubeconfig(layout, "controller-manager", server)
    flags = [
        f"--kubeconfig={kubeconfig}",
        "--leader-elect=false",
        "--use-service-account-credentials=true",
        f"--bind-address={BIND_ADDRESS}",
        f"--secure-port={port}",
        f"--tls-cert-file={pki / 'controller-manager-serving.crt'}",
        f"--tls-private-key-file={pki / 'controller-manager-serving.key'}",
        f"--client-ca-file={pki / 'ca.crt'}",
        f"--root-ca-file={pki / 'ca.crt'}",
        f"--service-account-private-key-file={pki / 'sa.key'}",
        f"--cluster-signing-cert-file={pki / 'ca.crt'}",
        f"--cluster-signing-key-file={pki / 'ca.key'}",
        *(["--allocate-node-cidrs=true", f"--cluster-cidr={pod_range}"] if pod_range else []),
        f"--service-cluster-ip-range={service_range}",
        *([f"--load-balancer-pool={load_balancer_pool}"] if load_balancer_pool else []),
    ]
    return Component(
        name="controller-manager",
        title="controller manager",
        argv=(*PYTHON, "controller-manager", VERBOSITY, *flags),
        ready=Probe(BIND_ADDRESS, port, pki),
    )


def scheduler(layout: Layout, server: str, port: int) -> Component:
    """The scheduler; ready when it knows all nodes and pods. Only one is started, so there is no leader to elect."""
    pki = layout.pki
    kubeconfig = write_kubeconfig(layout, "scheduler", server)
    flags = [
        f"--kubeconfig={kubeconfig}",
        "--leader-elect=false",
        f"--bind-address={BIND_ADDRESS}",
        f"--secure-port={port}",
        f"--tls-cert-file={pki / 'scheduler-serving.crt'}",
        f"--tls-private-key-file={pki / 'scheduler-serving.key'}",
        f"--client-ca-file={pki / 'ca.crt'}",
    ]
    return Component(
        name="scheduler",
        title="scheduler",
        argv=(*PYTHON, "scheduler", VERBOSITY, *flags),
        ready=Probe(BIND_ADDRESS, port, pki),
    )


def ingress(
    layout: Layout, server: str, addresses: Sequence[str], ports: tuple[int, int], port: int, *, inside: bool = False
) -> Component:
    """The Ingress controller. The cluster is ready without it: it sleeps until there is an Ingress of its class.

    It serves Ingresses at `ports`, and its health and metrics at `port`.
    """
    pki = layout.pki
    kubeconfig = write_kubeconfig(layout, certificates.INGRESS, server)
    flags = [f"--kubeconfig={kubeconfig}", *(f"--address={each}" for each in addresses)]
    flags += [
        f"--http-port={ports[0]}",
        f"--https-port={ports[1]}",
        f"--secure-port={port}",
        f"--tls-cert-file={pki / 'controller-manager-serving.crt'}",
        f"--tls-private-key-file={pki / 'controller-manager-serving.key'}",
        f"--client-ca-file={pki / 'ca.crt'}",
    ]
    return Component(
        name="ingress",
        title="Ingress controller",
        argv=(*PYTHON, "ingress", VERBOSITY, *flags),
        ready=Unasked(),
        offers=tuple((BIND_ADDRESS, port) for port in ports if port) if inside else (),
        later=True,
    )


def service_range(ip_family: str) -> str:
    """Where Services get their cluster IPs from."""
    if ip_family != "dual":
        return SERVICE_RANGE
    from pybernetes.cluster.node.network import SERVICES6

    return f"{SERVICE_RANGE},{SERVICES6}"


def pod_range(nodes: int) -> str:
    """Where so many nodes get their pods' addresses from."""
    return POD_RANGE if nodes <= FEW_NODES else MANY_PODS_RANGE


def simulated_nodes(layout: Layout, server: str, address: str, port: int, count: int, rules: Path | None) -> Component:
    """Nodes that only pretend; ready when all are registered. As the administrator, who may act as any node.

    `address` is this machine's: API servers do not proxy to its loopback device.
    """
    pki = layout.pki
    certificates.ensure_simulated_nodes(pki, [address])
    flags = [
        f"--kubeconfig={write_kubeconfig(layout, 'admin', server)}",
        f"--nodes={count}",
        f"--bind-address={BIND_ADDRESS}",
        f"--secure-port={port}",
        f"--tls-cert-file={pki / 'scheduler-serving.crt'}",
        f"--tls-private-key-file={pki / 'scheduler-serving.key'}",
        f"--client-ca-file={pki / 'ca.crt'}",
        f"--kubelet-address={address}",
        f"--kubelet-port={KUBELET_PORTS}",
        f"--kubelet-client-user={certificates.KUBELET_CLIENT_USER}",
        f"--kubelet-tls-cert-file={pki / 'simulated-nodes.crt'}",
        f"--kubelet-tls-private-key-file={pki / 'simulated-nodes.key'}",
    ]
    if rules is not None:
        flags.append(f"--rules={rules.resolve()}")
    return Component(
        name="simulated-nodes",
        title=f"{count} simulated node{'s' if count > 1 else ''}",
        argv=(*PYTHON, "simulated-nodes", *flags),
        ready=Probe(BIND_ADDRESS, port, pki),
    )


def write_kubeconfig(layout: Layout, component: str, server: str) -> str:
    """The kubeconfig of a component, naming its certificate; JSON, which is YAML and quicker to read."""
    pki = layout.pki
    user = {
        "client-certificate": str(pki / f"{component}.crt"),
        "client-key": str(pki / f"{component}.key"),
    }
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "cluster", "cluster": {"certificate-authority": str(pki / "ca.crt"), "server": server}}],
        "contexts": [{"name": "context", "context": {"cluster": "cluster", "user": component}}],
        "users": [{"name": component, "user": user}],
        "current-context": "context",
    }
    path = layout.pki / f"{component}.kubeconfig"
    files.write_private(path, json.dumps(content, indent=2).encode() + b"\n")
    return str(path)
