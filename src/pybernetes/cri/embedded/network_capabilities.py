"""Builds CNI's capability arguments from a sandbox's config.

A plugin gets those that its configuration declares (`"capabilities": {"dns": true}`). Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pybernetes.api.quantity import QuantityError, parse
from pybernetes.cri.errors import CRIError

INGRESS, EGRESS = "kubernetes.io/ingress-bandwidth", "kubernetes.io/egress-bandwidth"
_PROTOCOLS = {0: "tcp", 1: "udp", 2: "sctp"}
_LEAST, _MOST = 1000, 10**15
"""Bits a second that make sense: upstream's bounds."""
_BURST_SHARE, _LEAST_BURST = 10, 1 << 20
"""How much may pass at once, which annotations do not say: what takes a tenth of a second, and at least 128 KB, since
the kernel hands over up to 64 KB as one packet."""


def capability_args(config: Any) -> dict[str, Any]:
    """The arguments for a PodSandboxConfig; `InvalidArgument` names the annotation that is wrong."""
    found: dict[str, Any] = {}
    mappings = [
        {
            "hostPort": each.host_port,
            "containerPort": each.container_port,
            "protocol": _PROTOCOLS[each.protocol],
            **({"hostIP": each.host_ip} if each.host_ip else {}),
        }
        for each in config.port_mappings
        if each.host_port
    ]
    if mappings:
        found["portMappings"] = mappings
    dns = config.dns_config
    named = {"servers": list(dns.servers), "searches": list(dns.searches), "options": list(dns.options)}
    if any(named.values()):
        found["dns"] = named
    limits = bandwidth(config.annotations)
    if limits:
        found["bandwidth"] = limits
    return found


def bandwidth(annotations: Mapping[str, str]) -> dict[str, int]:
    """The limits that a pod's annotations name, in bits a second."""
    found: dict[str, int] = {}
    for annotation, way in ((INGRESS, "ingress"), (EGRESS, "egress")):
        text = annotations.get(annotation)
        if text is None:
            continue
        try:
            bits = parse(text).value()
        except QuantityError as error:
            raise CRIError("InvalidArgument", f"annotation {annotation}: {text!r}: {error}") from None
        if not _LEAST <= bits <= _MOST:
            size = "small (< 1kbit)" if bits < _LEAST else "large (> 1Pbit)"
            raise CRIError("InvalidArgument", f"annotation {annotation}: {text!r}: resource is unreasonably {size}")
        found |= {f"{way}Rate": bits, f"{way}Burst": max(bits // _BURST_SHARE, _LEAST_BURST)}
    return found
