"""Computes a pod's host name: `spec.hostname` or its name, with `spec.subdomain` a domain; `hostnameOverride` wins.

A host name has at most 63 characters (the kernel keeps 64 with its end): a longer one is cut. A fully qualified one
(`setHostnameAsFQDN`) is refused instead, because cutting it would make it another host's name.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from pybernetes.api import names
from pybernetes.api.core.v1 import Pod, PodSpec
from pybernetes.api.gocompat.quote import quote
from pybernetes.api.meta.v1 import ObjectMeta

HOSTNAME_MAX: Final = 63
FQDN_MAX: Final = 64


class HostnameError(ValueError):
    """A pod cannot be called so."""


class Hostname(NamedTuple):
    """A name, and a domain or none."""

    name: str
    domain: str = ""

    @property
    def fqdn(self) -> str:
        """Both."""
        return f"{self.name}.{self.domain}" if self.domain else self.name


def pod_hostname(pod: Pod, cluster_domain: str) -> Hostname:
    """Host name and domain of a pod."""
    metadata, spec = pod.metadata or ObjectMeta(), pod.spec or PodSpec()
    name = metadata.name or ""
    if spec.hostname_override is not None:
        _check("pod HostnameOverride", spec.hostname_override, "subdomain")
        return Hostname(_cut(name, spec.hostname_override))
    if spec.hostname:
        _check("pod Hostname", spec.hostname, "label")
    if spec.subdomain:
        _check("pod Subdomain", spec.subdomain, "label")
    domain = f"{spec.subdomain}.{metadata.namespace}.svc.{cluster_domain}" if spec.subdomain else ""
    return Hostname(_cut(name, spec.hostname or name), domain)


def kernel_hostname(pod: Pod, hostname: Hostname) -> str:
    """The host name the kernel reports in the pod: with `setHostnameAsFQDN` the name with its domain."""
    if not (hostname.domain and pod.spec and pod.spec.set_hostname_as_fqdn):
        return hostname.name
    if len(hostname.fqdn) > FQDN_MAX:
        raise HostnameError(
            f"failed to construct FQDN from pod hostname and cluster domain, FQDN {hostname.fqdn} is too long"
            f" ({FQDN_MAX} characters is the max, {len(hostname.fqdn)} characters requested)"
        )
    return hostname.fqdn


def _check(what: str, value: str, kind: str) -> None:
    wrong = names.is_dns1123_label(value) if kind == "label" else names.is_dns1123_subdomain(value)
    if wrong:
        raise HostnameError(f"{what} {quote(value)} is not a valid DNS {kind}: {';'.join(wrong)}")


def _cut(pod_name: str, hostname: str) -> str:
    cut = hostname if len(hostname) <= HOSTNAME_MAX else hostname[:HOSTNAME_MAX].rstrip("-.")
    if not cut:
        raise HostnameError(f"hostname for pod {quote(pod_name)} was invalid: {quote(hostname)}")
    return cut
