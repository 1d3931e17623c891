"""The cluster's names on a node: follows Services, EndpointSlices, pods and the configuration, and serves them.

Woken by: Services and EndpointSlices (one zone entry each), the pods of this node (autopath), the ConfigMap `coredns`
in kube-system. Writes nothing. A configuration that is wrong is logged, and the one before stays in use.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from pybernetes.api.core.v1 import ConfigMap, Pod, Service
from pybernetes.api.discovery.v1 import EndpointSlice
from pybernetes.client.event_handlers import Handler
from pybernetes.client.informers import InformerFactory
from pybernetes.component.tasks import Tasks

from . import corefile
from .corefile import Block, CorefileError
from .forward import Forwarder
from .message import Record, address_record
from .pods import PodNames
from .records import service_records
from .resolver import Chain, Resolver
from .server import DNSServer
from .zone import Zone

NAMESPACE, CONFIG_MAP, KEY = "kube-system", "coredns", "Corefile"
SERVICE_LABEL = "kubernetes.io/service-name"
log = logging.getLogger(__name__)


class ClusterDNS:
    """One node's resolver. `start(addresses)` after the informers have synced, `stop()` at the end."""

    def __init__(
        self,
        informers: InformerFactory,
        *,
        zone: str,
        node_name: str = "",
        resolv_conf: Path = Path("/etc/resolv.conf"),
        pod_informers: InformerFactory | None = None,
    ) -> None:
        """`pod_informers`: where pods come from, if who follows the rest may not read them."""
        self._resolv_conf = resolv_conf
        self._tasks = Tasks("dns")
        self.pod_names = PodNames()
        self._zone_name = zone
        self._zones: dict[tuple[str, int], Zone] = {}
        self._own_addresses: set[str] = set()
        self._services = informers.informer(Service)
        self._slices = informers.informer(EndpointSlice)
        self._slices.add_index("service", _service_of)
        self._text = self._default = corefile.DEFAULT.replace("cluster.local", zone)
        self.server = DNSServer(self._resolver(self._parse(self._text)))
        selector = f"spec.nodeName={node_name}" if node_name else ""
        pods = (pod_informers or informers).informer(Pod, field_selector=selector)
        configuration = informers.informer(ConfigMap, namespace=NAMESPACE, field_selector=f"metadata.name={CONFIG_MAP}")
        self._handlers: list[Handler[Any]] = [
            self._services.add_handler(self._refresh, lambda _, new: self._refresh(new), self._refresh),
            self._slices.add_handler(self._slice_changed, self._slice_updated, self._slice_changed),
            pods.add_handler(self._pod_changed, lambda _, new: self._pod_changed(new), self._pod_gone),
            configuration.add_handler(
                self._configure, lambda _, new: self._configure(new), lambda _: self._configure(None)
            ),
        ]

    async def start(self, addresses: list[str], port: int = 53) -> int:
        """Serve on these addresses; the port of the first. OSError if one is taken."""
        self._own_addresses = set(addresses)
        self._reload(self._text)
        bound = [await self.server.start(address, port) for address in addresses]
        return bound[0]

    async def stop(self) -> None:
        """Close the sockets, and follow the informers no longer."""
        for handler in self._handlers:
            handler.remove()
        await self._tasks.stop()
        await self.server.stop()

    # -- records

    def _refresh(self, service: Service) -> None:
        meta = service.metadata
        if meta and meta.name and meta.namespace:
            self._refresh_named(meta.namespace, meta.name)

    def _refresh_named(self, namespace: str, name: str) -> None:
        for (zone_name, ttl), zone in self._zones.items():
            zone.replace(f"{namespace}/{name}", self._records(namespace, name, zone_name, ttl))

    def _records(self, namespace: str, name: str, zone: str, ttl: int) -> list[Record]:
        service = self._services.named(name, namespace)
        if service is None:
            return []
        records = service_records(service, self._slices.by_index("service", f"{namespace}/{name}"), zone, ttl)
        if (namespace, name) == (NAMESPACE, "kube-dns") and service.spec:
            addresses = [each for each in service.spec.cluster_ips or () if each != "None"]
            records += [address_record(f"ns.dns.{zone}", ttl, each) for each in addresses]
        return records

    def _slice_updated(self, old: EndpointSlice, new: EndpointSlice) -> None:
        if _service_of(old) != _service_of(new):
            self._slice_changed(old)
        self._slice_changed(new)

    def _slice_changed(self, changed: EndpointSlice) -> None:
        for key in _service_of(changed):
            namespace, _, name = key.partition("/")
            self._refresh_named(namespace, name)

    def _pod_changed(self, pod: Pod) -> None:
        meta, spec, status = pod.metadata, pod.spec, pod.status
        if meta is None or spec is None or not meta.namespace:
            return
        over = status is not None and status.phase in ("Succeeded", "Failed")
        if spec.host_network or status is None or over:
            self._pod_gone(pod)
            return
        addresses = tuple(each.ip for each in status.pod_ips or () if each.ip)
        self.pod_names.set(f"{meta.namespace}/{meta.name}", meta.namespace, addresses)

    def _pod_gone(self, pod: Pod) -> None:
        if pod.metadata:
            self.pod_names.remove(f"{pod.metadata.namespace}/{pod.metadata.name}")

    # -- configuration

    def _configure(self, config_map: ConfigMap | None) -> None:
        """Use what the ConfigMap says; without it, or its key, the default."""
        text = ((config_map.data if config_map else None) or {}).get(KEY, self._default)
        if text != self._text:
            self._reload(text)

    def _reload(self, text: str) -> None:
        try:
            blocks = self._parse(text)
        except (CorefileError, OSError) as error:
            log.error("ConfigMap %s/%s: %s; the configuration before stays in use", NAMESPACE, CONFIG_MAP, error)
            return
        self._text = text
        self.server.resolver = self._resolver(blocks)
        for service in self._services.items():
            self._refresh(service)
        for chain in self.server.resolver.chains.values():
            if chain.forwarder:
                self._tasks.start("loop detection", chain.forwarder.detect_loop)
        log.info("configuration loaded, %d server blocks", len(blocks))

    def _parse(self, text: str) -> list[Block]:
        return corefile.parse(text, self._read)

    def _read(self, path: str) -> str:
        """A file that the configuration names; /etc/resolv.conf is the node's."""
        return (self._resolv_conf if path == "/etc/resolv.conf" else Path(path)).read_text(errors="replace")

    def _resolver(self, blocks: list[Block]) -> Resolver:
        self._zones = {}
        chains = {}
        for block in blocks:
            zone = None
            if block.cluster_zone:
                key = (block.cluster_zone, block.ttl)
                zone = self._zones.setdefault(key, Zone(*key))
            servers = [each for each in block.forward if each[0] not in self._own_addresses]
            forwarder = Forwarder(servers, max_concurrent=block.max_concurrent) if servers else None
            caps = block.longest_ttl, block.denial_ttl
            chain = Chain(zone, block.pods, block.hosts, forwarder, block.autopath, self._search(), *caps)
            chains.update(dict.fromkeys(block.zones, chain))
        return Resolver(chains, self.pod_names)

    def _search(self) -> list[str]:
        try:
            return corefile.search_domains(self._read("/etc/resolv.conf"))
        except OSError:
            return []


def _service_of(one: EndpointSlice) -> list[str]:
    meta = one.metadata
    name = (meta.labels or {}).get(SERVICE_LABEL) if meta else None
    return [f"{meta.namespace}/{name}"] if meta and name else []
