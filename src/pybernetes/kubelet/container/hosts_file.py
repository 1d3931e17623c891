"""The `/etc/hosts` of containers: local names, the pod's own addresses, and `hostAliases`.

On the host's network it is the node's own file, with the aliases behind it. The first line says who wrote the file;
tests and people look for it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from pybernetes.api.core.v1 import HostAlias, Pod, PodSpec

from .hostname import Hostname

ETC_HOSTS: Final = "/etc/hosts"
HEADER: Final = "# Kubernetes-managed hosts file.\n"
HEADER_HOST_NETWORK: Final = "# Kubernetes-managed hosts file (host network).\n"
_LOCAL: Final = (
    ("127.0.0.1", "localhost"),
    ("::1", "localhost ip6-localhost ip6-loopback"),
    ("fe00::0", "ip6-localnet"),
    ("fe00::0", "ip6-mcastprefix"),
    ("fe00::1", "ip6-allnodes"),
    ("fe00::2", "ip6-allrouters"),
)


def managed_hosts(ips: Sequence[str], hostname: Hostname, aliases: Sequence[HostAlias] = ()) -> str:
    """The file of a pod with a network of its own."""
    own = f"{hostname.fqdn}\t{hostname.name}" if hostname.domain else hostname.name
    lines = [*(f"{ip}\t{names}\n" for ip, names in _LOCAL), *(f"{ip}\t{own}\n" for ip in ips)]
    return HEADER + "".join(lines) + _aliases(aliases)


def host_network_hosts(node_file: str, aliases: Sequence[HostAlias] = ()) -> str:
    """The file of a pod on the host's network."""
    return HEADER_HOST_NETWORK + node_file + _aliases(aliases)


def wants_hosts_file(pod: Pod, ips: Sequence[str]) -> bool:
    """A pod whose address is not known yet gets none."""
    return bool(ips) or bool(pod.spec and pod.spec.host_network)


def write_hosts_file(path: Path, pod: Pod, ips: Sequence[str], hostname: Hostname, node_file: str = ETC_HOSTS) -> None:
    """Write a pod's file in place: containers that run have it mounted, so it must stay the same inode."""
    spec = pod.spec or PodSpec()
    aliases = spec.host_aliases or ()
    if spec.host_network:
        content = host_network_hosts(Path(node_file).read_text(errors="surrogateescape"), aliases)
    else:
        content = managed_hosts(ips, hostname, aliases)
    path.write_text(content, errors="surrogateescape")
    os.chmod(path, 0o644)


def _aliases(aliases: Sequence[HostAlias]) -> str:
    if not aliases:
        return ""
    lines = ["{}\t{}\n".format(each.ip, "\t".join(each.hostnames or ())) for each in aliases]
    return "\n# Entries added by HostAliases.\n" + "".join(lines)
