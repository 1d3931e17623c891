"""The keys and certificates of a cluster, made at the first start and kept good at each later one.

A file that is missing, unreadable, near its end or no longer fitting (another authority, another address) is made
again; the rest stays. File names are kubeadm's.
"""

from __future__ import annotations

import datetime
import socket
from collections.abc import Callable, Iterable
from pathlib import Path

from pybernetes import pki
from pybernetes.cluster import files

AUTHORITY = "ca"
SERVER = "apiserver"
ADMIN = "admin"
CONTROLLER_MANAGER = "controller-manager"
CONTROLLER_MANAGER_SERVING = "controller-manager-serving"
SCHEDULER = "scheduler"
SCHEDULER_SERVING = "scheduler-serving"
PROXY = "kube-proxy"
"""For the network process of nodes, and for a service proxy that the user runs."""
INGRESS = "ingress"
"""The Ingress controller."""
INGRESS_USER = "pybernetes:ingress"
LOCAL_VOLUMES = "local-volumes"
"""For the driver of local volumes on nodes."""
KUBELET_CLIENT = "apiserver-kubelet-client"
"""As whom the API server comes to kubelets: logs, exec, port-forward."""
SIMULATED_NODES = "simulated-nodes"
"""The serving certificate of all simulated nodes' kubelets."""
SERVICE_ACCOUNT = "sa"
FRONT_PROXY_AUTHORITY = "front-proxy-ca"
FRONT_PROXY_CLIENT = "front-proxy-client"
"""The client certificate of the API server at servers that extend it. An authority of its own: its certificates may
name a user in headers, which no certificate of the cluster may do."""

LOCAL_VOLUMES_USER = "pybernetes:local-volumes"
KUBELET_CLIENT_USER = "kube-apiserver-kubelet-client"

GROUPS = {ADMIN: {"system:masters"}}
"""Members of groups by certificate; older clusters had more of them there."""

LOCAL_NAMES = ("localhost", "127.0.0.1", "::1")

# A cluster that is started today should not fail next week.
RENEW_BEFORE = datetime.timedelta(days=30)
# An authority must outlive what it signs.
RENEW_AUTHORITY_BEFORE = pki.CERTIFICATE_LIFETIME + RENEW_BEFORE


def server_names(addresses: Iterable[str]) -> list[str]:
    """Every name the API server is called by: inside the cluster, on this machine, and by its addresses."""
    names = ["kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"]
    names.append("localhost")
    host = socket.gethostname().lower()
    if host and host.isascii() and len(host) <= 253:
        names.append(host)
    return list(dict.fromkeys([*names, "127.0.0.1", "::1", *addresses]))


def ensure(
    folder: Path, addresses: Iterable[str], now: datetime.datetime | None = None, *, running: bool = False
) -> list[str]:
    """Makes what is missing or due, and answers which files were made.

    While the cluster is `running` its authority stays: its clients would have to get the new one first.
    """
    now = now or datetime.datetime.now(datetime.UTC)
    names = server_names(addresses)
    made: list[str] = []

    authority = read(folder, AUTHORITY)
    if authority is None and running:
        return []
    if authority is None or (not running and pki.expires_within(authority, RENEW_AUTHORITY_BEFORE, now)):
        authority = write(folder, AUTHORITY, pki.create_authority("kubernetes"))
        made.append(AUTHORITY)

    issuer = authority
    wanted: dict[str, tuple[Callable[[], pki.Identity], set[str]]] = {
        SERVER: (lambda: pki.issue_server(issuer, "kube-apiserver", names), set(names)),
        ADMIN: (lambda: pki.issue_client(issuer, "kubernetes-admin", ["system:masters"]), set()),
        CONTROLLER_MANAGER: (lambda: pki.issue_client(issuer, "system:kube-controller-manager", []), set()),
        CONTROLLER_MANAGER_SERVING: (
            lambda: pki.issue_server(issuer, "kube-controller-manager", LOCAL_NAMES),
            set(LOCAL_NAMES),
        ),
        SCHEDULER: (lambda: pki.issue_client(issuer, "system:kube-scheduler", []), set()),
        SCHEDULER_SERVING: (lambda: pki.issue_server(issuer, "kube-scheduler", LOCAL_NAMES), set(LOCAL_NAMES)),
        PROXY: (lambda: pki.issue_client(issuer, "system:kube-proxy", []), set()),
        INGRESS: (lambda: pki.issue_client(issuer, INGRESS_USER, []), set()),
        LOCAL_VOLUMES: (lambda: pki.issue_client(issuer, LOCAL_VOLUMES_USER, []), set()),
        KUBELET_CLIENT: (lambda: pki.issue_client(issuer, KUBELET_CLIENT_USER, []), set()),
    }
    for name, (issue, needed) in wanted.items():
        present = read(folder, name)
        if due(present, authority, needed, now) or (present and pki.organizations(present) - GROUPS.get(name, set())):
            write(folder, name, issue())
            made.append(name)

    made += _ensure_front_proxy(folder, now, running=running)
    if _ensure_service_account_key(folder):
        made.append(SERVICE_ACCOUNT)
    return made


def ensure_simulated_nodes(
    folder: Path, addresses: Iterable[str] = (), now: datetime.datetime | None = None
) -> list[str]:
    """Makes what simulated nodes serve with, if it is missing or due; without addresses for those that it has."""
    present, authority = read(folder, SIMULATED_NODES), read(folder, AUTHORITY)
    names = set(addresses) or (pki.subject_names(present) if present else set())
    if authority is None or not names or not due(present, authority, names, now or datetime.datetime.now(datetime.UTC)):
        return []
    write(folder, SIMULATED_NODES, pki.issue_server(authority, SIMULATED_NODES, sorted(names)))
    return [SIMULATED_NODES]


def due(identity: pki.Identity | None, authority: pki.Identity, names: set[str], now: datetime.datetime) -> bool:
    """Whether a certificate is to be made anew: none, of another authority, near its end, or without a name."""
    return (
        identity is None
        or not pki.signed_by(identity, authority)
        or pki.expires_within(identity, RENEW_BEFORE, now)
        or not names <= pki.subject_names(identity)
    )


def _ensure_front_proxy(folder: Path, now: datetime.datetime, *, running: bool) -> list[str]:
    made = []
    authority = read(folder, FRONT_PROXY_AUTHORITY)
    if authority is None and running:
        return []
    if authority is None or (not running and pki.expires_within(authority, RENEW_AUTHORITY_BEFORE, now)):
        authority = write(folder, FRONT_PROXY_AUTHORITY, pki.create_authority(FRONT_PROXY_AUTHORITY))
        made.append(FRONT_PROXY_AUTHORITY)
    if due(read(folder, FRONT_PROXY_CLIENT), authority, set(), now):
        write(folder, FRONT_PROXY_CLIENT, pki.issue_client(authority, FRONT_PROXY_CLIENT))
        made.append(FRONT_PROXY_CLIENT)
    return made


def _ensure_service_account_key(folder: Path) -> bool:
    private, public = folder / f"{SERVICE_ACCOUNT}.key", folder / f"{SERVICE_ACCOUNT}.pub"
    try:
        key = pki.load_key(private.read_bytes())
    except (FileNotFoundError, ValueError):
        key = pki.new_key()
        files.write_private(private, pki.private_pem(key))
        files.write_private(public, pki.public_pem(key))
        return True
    if not public.exists() or public.read_bytes() != pki.public_pem(key):
        files.write_private(public, pki.public_pem(key))
        return True
    return False


def read(folder: Path, name: str) -> pki.Identity | None:
    """A pair of files; None if they are missing, unreadable or do not belong together."""
    try:
        return pki.load((folder / f"{name}.key").read_bytes(), (folder / f"{name}.crt").read_bytes())
    except (FileNotFoundError, ValueError):
        return None


def write(folder: Path, name: str, identity: pki.Identity) -> pki.Identity:
    """Writes a pair of files."""
    files.write_private(folder / f"{name}.key", identity.key_pem)
    files.write_private(folder / f"{name}.crt", identity.certificate_pem)
    return identity
