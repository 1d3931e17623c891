"""Where the kubelet of a node is, and as whom we come to it; and servers that are reached without knowing them."""

from __future__ import annotations

import ssl
from argparse import Namespace
from pathlib import Path
from typing import Any

import msgspec

from pybernetes.api.errors import APIError, NotFound
from pybernetes.client.http import CONNECT_TIMEOUT
from pybernetes.net.watched_files import Watched

from ..aggregation.transport import Transport
from ..registry.registry import Registry

WEBSOCKETS = "ExtendWebSocketsToKubelet"
"""The declared feature of a node whose kubelet speaks WebSocket itself."""


class Kubelet(msgspec.Struct, frozen=True):
    """One kubelet."""

    host: str
    port: int
    features: frozenset[str]


class Secured(msgspec.Struct):
    """A way to connect: TLS, and connections that are kept."""

    tls: ssl.SSLContext | None
    transport: Transport
    within: float
    """Seconds for a connection to come about."""


class Kubelets:
    """All kubelets. The certificate is read again when it changes."""

    def __init__(self, registry: Registry, options: Namespace) -> None:
        self._registry = registry
        self._types: list[str] = options.kubelet_preferred_address_types
        self._port: int = options.kubelet_port
        self._timeout: float = options.kubelet_timeout
        self._authority: Path | None = options.kubelet_certificate_authority
        certificate, key = options.kubelet_client_certificate, options.kubelet_client_key
        self._identity = (certificate, key) if certificate and key else None
        files = [each for each in (self._authority, certificate, key) if each]
        self._watched = Watched(files)
        self._ways: dict[str, Secured] = {}

    @property
    def verifies(self) -> bool:
        """Whether a kubelet must show who it is."""
        return self._authority is not None

    async def find(self, name: str, asked: str = "nodes") -> Kubelet:
        """The kubelet of a node. Raises NotFound, or APIError if the node tells no address.

        `asked` is the resource that was asked for: it is what upstream says is not found.
        """
        nodes = self._registry.store("", "v1", "nodes")
        item = await nodes.find("", name)
        if item is None:
            raise NotFound("", asked, name)
        node = nodes.decode(item)
        status = node.status
        addresses = (status and status.addresses) or []
        host = next(
            (each.address for wanted in self._types for each in addresses if each.type == wanted and each.address), None
        )
        if host is None:
            known = " ".join(f"{{{each.type} {each.address}}}" for each in addresses)
            raise APIError(f"no preferred addresses found; known addresses: [{known}]")
        endpoints = status and status.daemon_endpoints
        endpoint = endpoints and endpoints.kubelet_endpoint
        port = (endpoint and endpoint.port) or self._port
        return Kubelet(host, port, frozenset((status and status.declared_features) or ()))

    def way(self, *, insecure: bool = False) -> Secured:
        """How to connect to kubelets; `insecure`: without verification. Raises APIError if our certificate cannot be
        used."""
        if self._watched.changed():
            for each in ("kubelet", "insecure"):
                gone = self._ways.pop(each, None)
                if gone is not None:
                    gone.transport.close()
        return self._way("insecure" if insecure else "kubelet")

    def proxy_way(self, scheme: str) -> Secured:
        """How to connect to the target of a proxy request: in the clear, or by TLS without verification."""
        return self._way(scheme or "http")

    def _way(self, name: str) -> Secured:
        found = self._ways.get(name)
        if found is None:
            tls = None if name == "http" else self._context(name)
            within = self._timeout if name in ("kubelet", "insecure") else CONNECT_TIMEOUT
            found = self._ways[name] = Secured(tls, Transport(tls, "", within), within)
        return found

    def _context(self, name: str) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_alpn_protocols(["http/1.1"])
        try:
            if name == "kubelet" and self._authority is not None:
                context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # as Go: intermediate CAs in the file are trusted
                context.load_verify_locations(self._authority)
            else:
                context.check_hostname = False
                context.verify_mode = ssl.CERT_NONE
            if name in ("kubelet", "insecure") and self._identity is not None:
                context.load_cert_chain(*self._identity)
        except (OSError, ssl.SSLError) as error:
            raise APIError(f"unable to load the certificate for kubelets: {error}") from None
        return context


def kubelets(registry: Registry) -> Any:
    """Those of a server; made when first asked for."""
    if registry.kubelets is None:
        registry.kubelets = Kubelets(registry, registry.kubelet_options)
    return registry.kubelets
