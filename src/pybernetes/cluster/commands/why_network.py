"""`pyb why service/NAME` and `pyb why connection POD TARGET`: the missing endpoint, or the policy that denies it.

TARGET is service/NAME, pod/NAME or an address, with :PORT where it is not the Service's only one. The answer comes from
the cluster's objects, read with the credentials of the kubeconfig.
"""

from __future__ import annotations

import argparse
import asyncio
import ipaddress
import json
from typing import TYPE_CHECKING

from pybernetes.cluster.commands import flags
from pybernetes.cluster.commands.cluster_of import cluster_of
from pybernetes.cluster.errors import ClusterError
from pybernetes.terminal import escaped

if TYPE_CHECKING:
    from pybernetes.api.core.v1 import Pod, Service
    from pybernetes.client.client import Client
    from pybernetes.network.explain import Facts, Report

SERVICE = ("service", "services", "svc")
CONNECTION = "connection"
SERVICE_NAME_LABEL = "kubernetes.io/service-name"


def concerns(argv: list[str]) -> bool:
    """Whether the words of `pyb why` are about a Service or a connection. A word behind a flag may be its value."""
    behind = [before[:1] == "-" and "=" not in before for before in ["", *argv]]
    words = [word for value, word in zip(behind, argv, strict=False) if not value and word[:1] != "-"]
    return bool(words) and words[0].partition("/")[0].lower() in (*SERVICE, CONNECTION)


def main(argv: list[str]) -> int:
    """Reads the objects, and prints the answer."""
    parser = flags.parser("why", "Explains why a Service is not reached, or whether policies allow a connection.")
    parser.set_defaults(name=None)
    parser.add_argument("subject", nargs="+", metavar="service/NAME | connection POD TARGET[:PORT]")
    parser.add_argument("--namespace", "-n", help="its namespace (default: the kubeconfig's)")
    parser.add_argument("--protocol", choices=["TCP", "UDP", "SCTP"], default="TCP", help="default: %(default)s")
    parser.add_argument("--output", "-o", choices=["text", "json"], default="text", help="default: %(default)s")
    parser.add_argument("--kubeconfig", help="credentials (default: the cluster's own, else $KUBECONFIG)")
    arguments = parser.parse_args(argv)
    kind, words = arguments.subject[0], arguments.subject[1:]
    if "/" in kind:
        kind, _, name = kind.partition("/")
        words = [name, *words]
    if len(words) != (2 if kind.lower() == CONNECTION else 1) or not all(words):
        parser.error("say service/NAME, or connection POD TARGET[:PORT]")
    reports = asyncio.run(_ask(arguments, kind.lower(), words))
    if arguments.output == "json":
        shown = [{"good": each.good, "summary": each.summary, "findings": each.findings} for each in reports]
        print(json.dumps(shown, indent=2))
    else:
        print(escaped("\n".join(each.text() for each in reports)))
    return 0


async def _ask(arguments: argparse.Namespace, kind: str, words: list[str]) -> list[Report]:
    from pybernetes.api import errors
    from pybernetes.client.client import Client

    _, settings = cluster_of(arguments)
    try:
        async with Client(settings, program="why") as client:
            namespace = arguments.namespace or settings.namespace or "default"
            if kind == CONNECTION:
                return await _connection(client, namespace, words[0], words[1], arguments.protocol)
            return [await _service(client, namespace, words[0])]
    except errors.APIError as error:
        raise ClusterError(str(error)) from error
    except (OSError, TimeoutError) as error:
        raise ClusterError(f"the API server cannot be asked: {error}") from error


async def _service(client: Client, namespace: str, name: str) -> Report:
    from pybernetes.api.core.v1 import Pod, Service
    from pybernetes.api.discovery.v1 import EndpointSlice
    from pybernetes.network.explain import explain_service

    service = await client.get(Service, name, namespace)
    slices = await client.list(EndpointSlice, namespace, label_selector=f"{SERVICE_NAME_LABEL}={name}")
    pods = await client.list(Pod, namespace)
    return explain_service(service, slices.items or [], pods.items or [])


async def _connection(client: Client, namespace: str, pod: str, target: str, protocol: str) -> list[Report]:
    from pybernetes.api.core.v1 import Pod
    from pybernetes.network.explain import explain_connection

    source = await client.get(Pod, pod.removeprefix("pod/"), namespace)
    reports, ends = await _targets(client, namespace, source, target, protocol)
    facts = await _facts(client)
    return [*reports, *(explain_connection(source, *end, protocol, facts) for end in ends)]


async def _targets(
    client: Client, namespace: str, source: Pod, target: str, protocol: str
) -> tuple[list[Report], list[tuple[str, int]]]:
    """Reports on the target, and the addresses and ports behind it."""
    from pybernetes.api.core.v1 import Pod, Service

    name, port = _split(target)
    kind, _, name = name.rpartition("/")
    if not name:
        raise ClusterError(f"not a target: {target!r}; say service/NAME, pod/NAME or an address")
    if kind in SERVICE:
        name, _, elsewhere = name.partition(".")
        namespace = elsewhere or namespace
        service = await client.get(Service, name, namespace)
        reports, found = await _behind(client, service, source, "", port, protocol)
        return [await _service(client, namespace, name), *reports], found
    if not port:
        raise ClusterError(f"say the port: {target}:PORT")
    try:
        typed = str(ipaddress.ip_address(name))
    except ValueError:
        typed = ""
    if typed:
        return await _address(client, source, typed, port, protocol)
    pod = await client.get(Pod, name, namespace)
    address = pod.status.pod_ip if pod.status else None
    if not address:
        raise ClusterError(f"pod {namespace}/{name} has no address")
    return [], [(address, port)]


async def _address(
    client: Client, source: Pod, address: str, port: int, protocol: str
) -> tuple[list[Report], list[tuple[str, int]]]:
    """The same for an address, which a Service may have."""
    from pybernetes.api.core.v1 import Service
    from pybernetes.api.networking.v1 import ServiceCIDR
    from pybernetes.network import explain

    services = (await client.list(Service)).items or []
    listed = (await client.list(ServiceCIDR)).items or []
    ranges = [cidr for each in listed for cidr in (each.spec.cidrs if each.spec else None) or ()]
    owner = explain.service_of(address, services, ranges)
    if owner is None:
        return [], [(address, port)]
    if isinstance(owner, explain.Report):
        return [owner], []
    assert owner.metadata is not None
    reports, found = await _behind(client, owner, source, address, port, protocol)
    shown = await _service(client, owner.metadata.namespace or "", owner.metadata.name or "")
    return [shown, *reports], found


async def _behind(
    client: Client, service: Service, source: Pod, address: str, port: int, protocol: str
) -> tuple[list[Report], list[tuple[str, int]]]:
    """Reports on the pod and the Service, and the endpoints behind it."""
    from pybernetes.api.discovery.v1 import EndpointSlice
    from pybernetes.network import explain

    assert service.metadata is not None
    selector = f"{SERVICE_NAME_LABEL}={service.metadata.name}"
    slices = await client.list(EndpointSlice, service.metadata.namespace or "", label_selector=selector)
    return explain.behind(service, slices.items or [], source, address, port, protocol)


async def _facts(client: Client) -> Facts:
    from pybernetes.api.core.v1 import Namespace, Pod
    from pybernetes.api.networking.v1 import NetworkPolicy
    from pybernetes.network.explain import Facts
    from pybernetes.network.policy.cluster_policies import read
    from pybernetes.network.policy.facts import policy_facts

    policies = await client.list(NetworkPolicy)
    namespaces = await client.list(Namespace)
    pods = await client.list(Pod)
    labels = {each.metadata.name or "": each.metadata.labels or {} for each in namespaces.items or () if each.metadata}
    of_cluster = tuple(await read(client))
    return Facts(tuple(map(policy_facts, policies.items or ())), labels, tuple(pods.items or ()), of_cluster)


def _split(target: str) -> tuple[str, int]:
    """Name or address, and port (0: none); IPv6 addresses with a port are in brackets."""
    if target.startswith("["):
        name, _, port = target[1:].partition("]")
        port = port.removeprefix(":")
    elif target.count(":") == 1:
        name, _, port = target.partition(":")
    else:
        name, port = target, ""
    if port and not (port.isdecimal() and 0 < int(port) < 65536):
        raise ClusterError(f"not a port: {port!r}")
    return name, int(port or 0)
