"""Parses the name in a connection's path. Pure but for the lookups."""

from __future__ import annotations

import asyncio
import contextlib
import random
import socket
from typing import Any, NamedTuple

from pybernetes.api.addresses import is_other_machine
from pybernetes.api.errors import BadRequest, NotFound, ServiceUnavailable
from pybernetes.api.gocompat.quote import quote

from ..registry.lister import lister
from ..registry.registry import Registry
from ..registry.resource_store import ResourceStore
from .kubelets import kubelets


class Place(NamedTuple):
    """Where a connection goes."""

    scheme: str
    host: str
    port: int
    """0 is the scheme's."""
    address: str
    """The address to connect to, which was checked before. Resolved again, a name may have another
    (CVE-2020-8562)."""
    is_kubelet: bool = False


def split(id: str) -> tuple[str, str, str] | None:
    """Scheme, name and port of `name`, `name:port` or `scheme:name:port`; None if it is none of these."""
    parts = id.split(":")
    if len(parts) == 1:
        scheme, name, port = "", parts[0], ""
    elif len(parts) == 2:
        scheme, (name, port) = "", parts
    elif len(parts) == 3:
        scheme, name, port = parts
    else:
        return None
    return (scheme, name, port) if name and scheme in ("", "http", "https") else None


def container_of(pod: Any, name: str | None) -> str:
    """The container that is meant. Raises BadRequest."""
    spec = pod.spec
    containers = list(spec.containers or ())
    every = [*(spec.init_containers or ()), *containers, *(spec.ephemeral_containers or ())]
    if name:
        if all(each.name != name for each in every):
            raise BadRequest(f"container {name} is not valid for pod {pod.metadata.name}")
        return name
    if len(containers) == 1:
        return str(containers[0].name)
    if not containers:
        raise BadRequest(f"a container name must be specified for pod {pod.metadata.name}")
    names = " ".join(each.name for each in every)
    raise BadRequest(f"a container name must be specified for pod {pod.metadata.name}, choose one of: [{names}]")


async def of_pod(store: ResourceStore, namespace: str, id: str) -> Place:
    """Where a pod listens: at the port given, or the first that its containers declare. Raises APIError."""
    found = split(id)
    if found is None:
        raise BadRequest(f"invalid pod request {quote(id)}")
    scheme, name, port = found
    pod = store.decode(await store.get(namespace, name))
    if not port:
        ports = [each for container in pod.spec.containers or () for each in container.ports or ()]
        port = str(ports[0].container_port) if ports else ""
    status = pod.status
    ips = [each.ip for each in (status and status.pod_ips) or ()]
    address = ips[0] if ips else (status and status.pod_ip) or ""
    if not is_other_machine(address):
        raise BadRequest("address not allowed")
    return Place(scheme, address, _port(port, id), address)


async def of_node(registry: Registry, id: str) -> Place:
    """Where a node's kubelet listens, or whatever listens at the port given. Raises APIError."""
    found = split(id)
    if found is None:
        raise BadRequest(f"invalid node request {quote(id)}")
    scheme, name, port = found
    known = kubelets(registry)
    kubelet = await known.find(name)
    address = await _address_of(kubelet.host)
    if not port or port == str(kubelet.port):
        if known.verifies:  # the target can only be a kubelet: its certificate is verified
            address = kubelet.host
        return Place("https", kubelet.host, kubelet.port, address, is_kubelet=True)
    return Place(scheme, kubelet.host, _port(port, id), address)


async def of_service(registry: Registry, namespace: str, id: str) -> Place:
    """One of the pods behind a Service. Raises APIError."""
    found = split(id)
    if found is None:
        raise BadRequest(f"invalid service request {quote(id)}")
    scheme, name, port = found
    if port.isascii() and port.isdecimal():
        services = registry.store("", "v1", "services")
        service = services.decode(await services.get(namespace, name))
        named = next((each for each in service.spec.ports or () if str(each.port) == port.lstrip("0")), None)
        if named is None:
            raise ServiceUnavailable(f"no service port {port} found for service {quote(name)}")
        port = named.name or ""
    endpoints = await lister(registry, "", "v1", "endpoints").find(namespace, name)
    if endpoints is None:
        raise NotFound("", "services", name)  # in upstream's words
    subsets = list(endpoints.subsets or ())
    if not subsets:
        raise ServiceUnavailable(f"no endpoints available for service {quote(name)}")
    random.shuffle(subsets)
    for subset in subsets:
        number = next((each.port for each in subset.ports or () if (each.name or "") == port), None)
        addresses = list(subset.addresses or ())
        random.shuffle(addresses)
        for address in addresses:
            if number is not None and await _is_pod(registry, namespace, address):
                return Place(scheme, address.ip, number, address.ip)
    raise ServiceUnavailable(f"no endpoints available for service {quote(id)}")


async def _is_pod(registry: Registry, namespace: str, address: Any) -> bool:
    """Whether an address belongs to its pod: a user must not redirect requests by writing an Endpoints."""
    target = address.target_ref
    if target is None or target.namespace != namespace:
        return False
    pods = registry.store("", "v1", "pods")
    item = await pods.find(namespace, target.name or "")
    if item is None:
        return False
    status = pods.decode(item).status
    return any(each.ip == address.ip for each in (status and status.pod_ips) or ())


async def _address_of(host: str) -> str:
    """An address of a host, none of which may be our own. Raises BadRequest."""
    try:
        found = await _look_up(host)
    except OSError:
        raise BadRequest(f"lookup {host}: no such host") from None
    if not found or not all(map(is_other_machine, found)):
        raise BadRequest("address not allowed")
    return found[0]


async def _look_up(host: str) -> list[str]:
    found = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return [str(each[4][0]) for each in found]


def _port(text: str, id: str) -> int:
    if not text:
        return 0
    if not text.isdecimal():
        with contextlib.suppress(OSError, UnicodeError):
            return socket.getservbyname(text, "tcp")
    if not (text.isascii() and text.isdecimal()) or len(text) > 5 or not 0 < int(text) < 65536:
        why = f"dial tcp: lookup tcp/{text}: unknown port"
        raise ServiceUnavailable(f"error trying to reach service: {why}")
    return int(text)
