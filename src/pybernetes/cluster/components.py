"""Which processes make up a cluster, with which flags, and how each shows that it is ready.

A component is a command with upstream's flag names; this is the only place that composes them. A new one
(controller-manager, scheduler, kubelet) is one more function here and one more line in `control_plane`.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

from pybernetes.cluster.layout import Layout
from pybernetes.cluster.readiness import Probe

# -P: a module in the folder where the user types `up` must not shadow one of ours.
PYTHON = (sys.executable, "-P", "-m", "pybernetes")
BIND_ADDRESS = "127.0.0.1"
SERVICE_RANGE = "10.96.0.0/12"
KUBERNETES_SERVICE_IP = "10.96.0.1"  # The first address of the range: the `kubernetes` Service.
ISSUER = "https://kubernetes.default.svc.cluster.local"


@dataclass(frozen=True, slots=True)
class Component:
    """One process of a cluster."""

    name: str
    title: str
    argv: tuple[str, ...]
    ready: Probe


def control_plane(
    layout: Layout, *, port: int, advertise_address: str, etcd_servers: str, token_file: str | None
) -> list[Component]:
    """The components of a cluster without nodes, in the order in which they are started."""
    return [api_server(layout, port, advertise_address, etcd_servers, token_file)]


def api_server(
    layout: Layout, port: int, advertise_address: str, etcd_servers: str, token_file: str | None
) -> Component:
    """The API server; ready when /readyz says so to the administrator."""
    pki = layout.pki
    flags = [
        f"--secure-port={port}",
        f"--bind-address={BIND_ADDRESS}",
        f"--advertise-address={advertise_address}",
        f"--tls-cert-file={pki / 'apiserver.crt'}",
        f"--tls-private-key-file={pki / 'apiserver.key'}",
        f"--client-ca-file={pki / 'ca.crt'}",
        f"--etcd-servers={etcd_servers}",
        f"--service-account-issuer={ISSUER}",
        f"--service-account-key-file={pki / 'sa.pub'}",
        f"--service-account-signing-key-file={pki / 'sa.key'}",
        f"--service-cluster-ip-range={SERVICE_RANGE}",
    ]
    if token_file is not None:
        flags.append(f"--token-auth-file={token_file}")
    return Component(
        name="apiserver",
        title="API server",
        argv=(*PYTHON, "apiserver", *flags),
        ready=Probe(BIND_ADDRESS, port, pki),
    )
