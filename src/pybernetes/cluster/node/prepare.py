"""Writes everything a node reads when it starts: who it is, its certificates, the configuration of its programs.

DATA/nodes/NAME/   machine.json, containerd.toml, kubelet.json, kubelet.kubeconfig, kube-proxy.json,
                   node-network.kubeconfig, pki/, and the folders that the node has in place of the host's
                   (machine.FOLDERS): images, containers, volumes, logs
"""

from __future__ import annotations

import datetime
import json
import os
import sys
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from zlib import crc32

import pybernetes
from pybernetes import pki
from pybernetes.cluster import certificates, files
from pybernetes.cluster.addresses import free_port
from pybernetes.cluster.components import CLUSTER_DNS_IP, CLUSTER_DOMAIN
from pybernetes.cluster.forking import PYTHON
from pybernetes.cluster.layout import Layout
from pybernetes.cluster.node import containerd, embedded, mirror
from pybernetes.cluster.node.machine import RUN, Machine, Program
from pybernetes.cluster.node.network import CABLE_MTU, CLUSTER6, Network
from pybernetes.cluster.node.programs import find
from pybernetes.cluster.rootless import wayout
from pybernetes.cluster.rootless.rights import LABEL, Level

KUBELET_PORT = 10250
PIDS = 4096
"""Processes and threads of one pod: upstream's kubelet has no limit, and one pod could take all numbers of the node."""
LONGEST_RUN = 107 - len("/runtime/launcher.sock") - 1
_SOCKETS = "/tmp/pybernetes"  # where paths are short, for clusters in folders where they are not
# Nameservers of the host's own loopback are not those of a node; systemd-resolved keeps the real ones there.
RESOLVED = "/run/systemd/resolve/resolv.conf"
# Where the host has none that a node could ask; the same choice as Docker's.
DEFAULT_NAMESERVERS = "nameserver 1.1.1.1\nnameserver 8.8.8.8\n"


def node_name(number: int) -> str:
    """The name of the N-th node, counted from 1."""
    return f"node-{number}"


def cgroup(layout: Layout, name: str) -> str:
    """Where the node's cgroups are; two clusters may have the same name, but not the same folder."""
    return f"pybernetes/{layout.name}-{crc32(os.fsencode(layout.data)):08x}/{name}"


def prepare(
    layout: Layout,
    network: Network,
    number: int,
    server_port: int,
    runtime: str = "containerd",
    isolation: Level = "root",
    name: str = "",
    kind: str = "vxlan",
    *,
    dual: bool = False,
    verbosity: int = 2,
) -> Machine:
    """Writes the files of a node and answers its description, which is one of them."""
    name, address = name or node_name(number), network.address(number)
    addresses = [address, network.address6(number)] if dual else [address]
    folder = layout.node(name)
    for path in (layout.data / "nodes", folder, folder / "pki"):
        files.make_private_folder(path)
    ensure_certificates(layout, name, *addresses)
    _write_identity(folder, name, addresses)
    root, plain = isolation == "root", isolation == "none"
    run = _short_folder(folder / "run") if plain else RUN
    socket = containerd.SOCKET if runtime == "containerd" else f"{run}/runtime/runtime.sock"
    more: dict[str, object] = {"podPidsLimit": PIDS} if root else _without_root(folder)
    if not plain:
        more |= {"clusterDNS": [CLUSTER_DNS_IP]}
    if plain:
        more |= {"port": free_port(address), "healthzPort": free_port("127.0.0.1"), "address": address}
    _write_kubelet(layout, folder, name, f"https://{network.gateway}:{server_port}", socket, more)
    flags = [] if root else [f"--root-dir={folder / 'lib-kubelet'}", f"--node-labels={LABEL}={isolation}"]
    kubelet = Program(
        "kubelet", _kubelet_command(folder, name, addresses, verbosity) + flags, str(layout.log(f"{name}-kubelet"))
    )
    _write_pod_network(folder / "etc-cni" / "net.d", folder / "cni.template", kind, dual=dual)
    own = address if plain else ""
    program = _write_runtime(
        *(layout, folder, name, runtime, socket), root=root, plain_address=own, verbosity=verbosity
    )
    programs = [program, kubelet]
    if not plain:  # who has no network of its own may set no rules in it
        pods = f"{network.pods},{network.pods6}" if dual else network.pods
        programs.append(
            _write_node_network(layout, folder, name, f"https://{network.gateway}:{server_port}", pods, kind)
        )
    machine = Machine(
        name=name,
        folder=str(folder),
        cgroup=cgroup(layout, name),
        bridge=network.bridge,
        port=network.port(number),
        address=address,
        address6=network.address6(number) if dual else "",
        gateway=network.gateway,
        gateway6=network.gateway6 if dual else "",
        pods=network.pods,
        keep=[str(layout.data), str(Path(pybernetes.__file__).parents[1]), sys.prefix],
        images=str(layout.images),
        programs=programs,
        socket=socket,
        isolation=isolation,
        run=run,
        proxy=f"http://{network.gateway}:{wayout.PORT}" if isolation == "user-namespaces" else "",
    )
    machine.write()
    return machine


def _short_folder(path: Path) -> str:
    """A place for sockets: their paths have 107 bytes. It is private."""
    if len(os.fsencode(path)) > LONGEST_RUN:
        path = Path(f"{_SOCKETS}-{os.getuid()}", f"{crc32(os.fsencode(path)):08x}")
        files.make_private_folder(path.parent)
        files.require_private(path.parent)
    files.make_private_folder(path)
    return str(path)


def ensure_certificates(layout: Layout, name: str, *addresses: str, now: datetime.datetime | None = None) -> bool:
    """Makes the certificates of a node's kubelet that are missing or due, and says whether there were any."""
    now = now or datetime.datetime.now(datetime.UTC)
    folder = layout.node(name) / "pki"
    authority = certificates.read(layout.pki, certificates.AUTHORITY)
    assert authority is not None
    made = False
    if certificates.due(certificates.read(folder, "client"), authority, set(), now):
        certificates.write(folder, "client", pki.issue_client(authority, f"system:node:{name}", ["system:nodes"]))
        made = True
    names = {name, *addresses}
    if certificates.due(certificates.read(folder, "serving"), authority, names, now):
        certificates.write(folder, "serving", pki.issue_server(authority, f"system:node:{name}", sorted(names)))
        made = True
    return made


def _kubelet_command(folder: Path, name: str, addresses: Sequence[str], verbosity: int) -> list[str]:
    return [
        *PYTHON,
        "kubelet",
        f"--config={folder / 'kubelet.json'}",
        f"--kubeconfig={folder / 'kubelet.kubeconfig'}",
        f"--hostname-override={name}",
        f"--node-ip={','.join(addresses)}",
        f"--local-volumes-kubeconfig={folder / 'local-volumes.kubeconfig'}",
        f"--v={verbosity}",
    ]


def _without_root(folder: Path) -> dict[str, object]:
    """The settings of a kubelet that has neither cgroups nor folders at the usual places."""
    return {
        "cgroupsPerQOS": False,
        "enforceNodeAllocatable": [],
        "podLogsDir": str(folder / "log-pods"),
        "staticPodPath": str(folder / "etc-kubernetes" / "manifests"),
    }


def _write_kubelet(
    layout: Layout, folder: Path, name: str, server: str, socket: str, more: Mapping[str, object]
) -> None:
    own = folder / "pki"
    config: dict[str, object] = {
        "kind": "KubeletConfiguration",
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": str(layout.pki / "ca.crt")},
        },
        "authorization": {"mode": "Webhook"},
        "cgroupDriver": "cgroupfs",
        "clusterDomain": CLUSTER_DOMAIN,
        "enableSystemLogQuery": True,
        "containerRuntimeEndpoint": f"unix://{socket}",
        "failSwapOn": False,
        "port": KUBELET_PORT,
        "resolvConf": "/etc/resolv.conf",
        "rotateCertificates": True,
        "staticPodPath": "/etc/kubernetes/manifests",
        "tlsCertFile": str(own / "serving.crt"),
        "tlsPrivateKeyFile": str(own / "serving.key"),
        **more,
    }
    (folder / "etc-kubernetes" / "manifests").mkdir(parents=True, exist_ok=True)
    files.write_private(folder / "kubelet.json", json.dumps(config, indent=2).encode() + b"\n")
    _write_kubeconfig(layout, folder / "kubelet.kubeconfig", server, f"system:node:{name}", own / "client")
    certificate = layout.pki / certificates.LOCAL_VOLUMES
    _write_kubeconfig(layout, folder / "local-volumes.kubeconfig", server, certificates.LOCAL_VOLUMES_USER, certificate)


def _write_kubeconfig(layout: Layout, path: Path, server: str, name: str, certificate: Path) -> None:
    """A kubeconfig for a program of the node; JSON, which is YAML and quicker to read."""
    cluster = {"certificate-authority": str(layout.pki / "ca.crt"), "server": server}
    user = {"client-certificate": f"{certificate}.crt", "client-key": f"{certificate}.key"}
    kubeconfig = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "cluster", "cluster": cluster}],
        "contexts": [{"name": "context", "context": {"cluster": "cluster", "user": name}}],
        "users": [{"name": name, "user": user}],
        "current-context": "context",
    }
    files.write_private(path, json.dumps(kubeconfig, indent=2).encode() + b"\n")


def _write_node_network(layout: Layout, folder: Path, name: str, server: str, pods: str, kind: str) -> Program:
    """Write the files of the node's network process; returns how it is started."""
    kubeconfig, config = folder / "node-network.kubeconfig", folder / "kube-proxy.json"
    _write_kubeconfig(layout, kubeconfig, server, "system:kube-proxy", layout.pki / certificates.PROXY)
    proxy = {
        "kind": "KubeProxyConfiguration",
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "mode": "nftables",
        "clusterCIDR": pods,
        "hostnameOverride": name,
    }
    files.write_private(config, json.dumps(proxy, indent=2).encode() + b"\n")
    command = [
        *PYTHON,
        "node-network",
        f"--kubeconfig={kubeconfig}",
        f"--proxy-config={config}",
        f"--cluster-dns={CLUSTER_DNS_IP}",
        f"--cluster-domain={CLUSTER_DOMAIN}",
        f"--pod-kubeconfig={folder / 'kubelet.kubeconfig'}",
        "--enforce-network-policy",
        "--announce-load-balancers",
        f"--hostname-override={name}",
        f"--network-backend={'none' if kind == 'cni' else kind}",
    ]
    return Program("node-network", command, str(layout.log(f"{name}-node-network")))


def _write_runtime(
    layout: Layout,
    folder: Path,
    name: str,
    runtime: str,
    socket: str,
    *,
    root: bool,
    plain_address: str,
    verbosity: int,
) -> Program:
    """Write the files of the node's container runtime; returns how it is started."""
    template = folder / "cni.template" if (folder / "cni.template").exists() else None
    own = folder / "certs.d"  # comes last, because `_default` stands for every host that is not there by its name
    files.make_private_folder(own / "_default")
    # Plain processes share the loopback device, so that there is no mirror: the runtime has the archives at hand.
    hosts = "" if plain_address else mirror.hosts(mirror.key_of(folder))
    files.write_private(own / "_default" / "hosts.toml", hosts.encode())
    registries = [layout.registries, Path("/etc/containerd/certs.d"), own]
    containerd.link_plugins(folder / "opt-cni" / "bin")
    if runtime == "embedded":
        command = embedded.command(
            layout,
            folder,
            template,
            registries,
            socket=socket,
            root=root,
            plain_address=plain_address,
            verbosity=verbosity,
        )
        return Program("runtime", command, str(layout.log(f"{name}-runtime")))
    (folder / "containerd.toml").write_text(containerd.config(template, registries))
    command = [find("containerd") or "containerd", "--config", str(folder / "containerd.toml")]
    return Program("containerd", command, str(layout.log(f"{name}-containerd")))


def _write_pod_network(conf_dir: Path, template: Path, kind: str, *, dual: bool) -> None:
    """The pods' network: a template that the runtime fills in, or none at all, or what others will bring."""
    from pybernetes.network.overlay.plan import BACKENDS, pod_mtu

    conf_dir.mkdir(parents=True, exist_ok=True)
    template.unlink(missing_ok=True)
    # An earlier start may have had another network. What runtimes made of the template ends the pods that are left.
    filled_in = () if kind in BACKENDS else ("10-pods.conflist", "10-containerd-net.conflist")
    for name in (containerd.NO_NETWORK_FILE, *filled_in):
        (conf_dir / name).unlink(missing_ok=True)
    if kind in BACKENDS:
        routes = ["0.0.0.0/0", CLUSTER6] if dual else ["0.0.0.0/0"]
        template.write_text(containerd.network_template(pod_mtu(kind, CABLE_MTU), routes))
    elif kind == "none":
        (conf_dir / containerd.NO_NETWORK_FILE).write_text(containerd.NO_NETWORK)


def _write_identity(folder: Path, name: str, addresses: Sequence[str]) -> None:
    machine_id = folder / "machine-id"
    if not machine_id.exists():
        machine_id.write_text(f"{uuid.uuid4().hex}\n")
    (folder / "hostname").write_text(f"{name}\n")
    own = "".join(f"{address}\t{name}\n" for address in addresses)
    (folder / "hosts").write_text(f"127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n{own}")
    (folder / "resolv.conf").write_text(resolver())


def resolver(places: tuple[str, ...] = ("/etc/resolv.conf", RESOLVED)) -> str:
    """The host's resolv.conf as a node can use it: without nameservers of the host's loopback."""
    for place in places:
        try:
            with open(place) as file:
                lines = file.read().splitlines()
        except OSError:
            continue
        good = [line for line in lines if line.split()[:1] != ["nameserver"] or not _loopback(line.split()[1:])]
        if any(line.split()[:1] == ["nameserver"] for line in good):
            return "\n".join(good) + "\n"
    return DEFAULT_NAMESERVERS


def _loopback(words: list[str]) -> bool:
    return not words or words[0].startswith("127.") or words[0] == "::1"
