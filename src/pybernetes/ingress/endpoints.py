"""The addresses behind a backend, from Services and EndpointSlices.

Ready endpoints by turns; where none is ready, those that still serve while they terminate. An endpoint that begins to
terminate gets no new request from the moment its slice says so, and those under way are finished. Worked out when a
backend is first asked for, and again after its Service or slices have changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from pybernetes.api.core.v1 import Service
from pybernetes.api.discovery.v1 import EndpointPort, EndpointSlice

from .rules import Backend

Host = tuple[str, int]
Slices = Callable[[str, str], Iterable[EndpointSlice]]
Services = Callable[[str, str], "Service | None"]


class Endpoints:
    """The endpoints of all backends that were asked for."""

    def __init__(self, services: Services, slices: Slices) -> None:
        """Both are asked with namespace and name of a Service."""
        self._services, self._slices = services, slices
        self._known: dict[Backend, tuple[Host, ...]] = {}
        self._by_service: dict[tuple[str, str], set[Backend]] = {}
        self._turn: dict[Backend, int] = {}

    def of(self, backend: Backend) -> tuple[Host, ...]:
        """Where to send requests, the one whose turn it is first; none if nothing serves."""
        found = self._known.get(backend)
        if found is None:
            found = self._known[backend] = self._resolve(backend)
            self._by_service.setdefault((backend.namespace, backend.service), set()).add(backend)
        if len(found) < 2:
            return found
        turn = self._turn[backend] = (self._turn.get(backend, -1) + 1) % len(found)
        return found[turn:] + found[:turn]

    def changed(self, namespace: str, service: str) -> bool:
        """A Service or one of its slices has changed, or is gone; whether requests have asked for it."""
        backends = self._by_service.get((namespace, service), set())
        for backend in backends:
            self._known[backend] = self._resolve(backend)
        return bool(backends)

    def forget(self, keep: set[Backend]) -> None:
        """Of backends that no rule names any more nothing is kept."""
        for backend in self._known.keys() - keep:
            del self._known[backend]
            self._by_service.get((backend.namespace, backend.service), set()).discard(backend)
        for backend in self._turn.keys() - keep:
            del self._turn[backend]

    def all(self) -> set[Host]:
        """Every address that requests may be sent to now."""
        return {host for found in self._known.values() for host in found}

    def why_none(self, backend: Backend) -> str:
        """Why a backend has no endpoint."""
        name = f"{backend.namespace}/{backend.service}"
        service = self._services(backend.namespace, backend.service)
        if service is None:
            return f"Service {name} does not exist"
        if _port_name(service, backend.port) is None:
            return f"Service {name} has no port {backend.port}"
        return f"Service {name} has no ready endpoint for port {backend.port}"

    def _resolve(self, backend: Backend) -> tuple[Host, ...]:
        service = self._services(backend.namespace, backend.service)
        if service is None or service.spec is None:
            return ()
        name = _port_name(service, backend.port)
        if name is None:
            return ()
        ready: dict[str, set[Host]] = {"IPv4": set(), "IPv6": set()}
        draining: dict[str, set[Host]] = {"IPv4": set(), "IPv6": set()}
        for each in self._slices(backend.namespace, backend.service):
            numbers = [port.port for port in each.ports or () if (port.name or "") == name and port.port and _tcp(port)]
            if not numbers or each.address_type not in ready:
                continue
            for endpoint in each.endpoints or ():
                conditions = endpoint.conditions
                hosts = {(address, number) for address in (endpoint.addresses or ())[:1] for number in numbers}
                if conditions is None or conditions.ready is not False:
                    ready[each.address_type] |= hosts
                elif conditions.serving and conditions.terminating:
                    draining[each.address_type] |= hosts
        for found in (ready["IPv4"], ready["IPv6"], draining["IPv4"], draining["IPv6"]):
            if found:
                return tuple(sorted(found))
        return ()


def _tcp(port: EndpointPort) -> bool:
    return port.protocol in (None, "", "TCP")


def _port_name(service: Service, wanted: int | str) -> str | None:
    """The name of a Service's port, which may be empty; None if it has no such port."""
    for port in (service.spec.ports if service.spec else None) or ():
        if wanted in (port.port, port.name):
            return port.name or ""
    return None
