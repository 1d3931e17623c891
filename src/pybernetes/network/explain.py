"""Why a Service is not reached, and whether a connection is allowed: findings in words (pure).

Everything is decided from objects of the cluster. Whether the rules of a node are in step with them is not known here.
"""

from __future__ import annotations

import contextlib
import ipaddress
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pybernetes.api.core.v1 import Pod, Service, ServicePort
from pybernetes.api.discovery.v1 import EndpointSlice
from pybernetes.proxy.endpoints import Chosen, NodeFacts, choose, of_port

from .policy.cluster_facts import ClusterPolicy
from .policy.facts import EGRESS, PROTOCOLS, Policy, pod_facts
from .policy.judge import End, Verdict, judge

PROXY_NAME_LABEL = "service.kubernetes.io/service-proxy-name"
FEW = 5
"""So many pods are named one by one."""


@dataclass(frozen=True, slots=True)
class Report:
    """The answer, whether it is a good one, and the findings behind it."""

    good: bool
    summary: str
    findings: tuple[str, ...] = ()

    def text(self) -> str:
        return "\n".join([self.summary, *(f"  - {each}" for each in self.findings)])


# Services


def explain_service(service: Service, slices: Sequence[EndpointSlice], pods: Iterable[Pod]) -> Report:
    """Why a Service has no endpoints; `slices` are its own, `pods` those of its namespace."""
    spec, name = service.spec, _name(service)
    if spec is None:
        return Report(False, f"service {name} has no spec")
    if spec.type == "ExternalName":
        return Report(True, f"service {name} is only a name: DNS answers with {spec.external_name}")
    findings = []
    label = ((service.metadata.labels if service.metadata else None) or {}).get(PROXY_NAME_LABEL)
    if label:
        findings.append(f"label {PROXY_NAME_LABEL}={label}: the proxy of nodes leaves it to that one")
    if spec.type == "LoadBalancer" and not _balancer(service):
        findings.append("no load balancer has given it an address yet (status.loadBalancer is empty)")
    findings += _limits(service, slices)
    lacking = []
    found: set[str] = set()
    for port in spec.ports or ():
        ready = endpoints(slices, port)
        where = f"port {port.name or port.port} ({port.protocol or 'TCP'} {port.port})"
        if ready:
            found.update(ready)
            findings.append(f"{where}: {_listed(ready)}")
        elif draining := endpoints(slices, port, draining=True):
            found.update(draining)
            findings.append(f"{where}: {_listed(draining)}; they terminate, and serve until they have ended")
        else:
            lacking.append(f"{where}: no ready endpoint, connections are refused")
    if label and lacking:
        # Whose it is need not use EndpointSlices: the cluster's own DNS answers on each node.
        where = ", ".join(each.partition(":")[0] for each in lacking)
        findings.append(f"{where}: in no EndpointSlice; {label} may serve it without")
        return Report(False, f"service {name} is served by {label}, not by the proxy of nodes", tuple(findings))
    if not lacking:
        total = len({each.rpartition(":")[0] for each in found})
        return Report(not label, f"service {name} has {total} ready endpoint{'s' * (total != 1)}", tuple(findings))
    reasons = _no_endpoints(service, slices, list(pods))
    return Report(False, f"service {name} has ports without endpoints", (*findings, *lacking, *reasons))


def endpoints(slices: Iterable[EndpointSlice], port: ServicePort, *, draining: bool = False) -> list[str]:
    """The ready endpoints of a port, as address:port; or those that still serve while they terminate."""
    found = []
    for each in slices:
        for target in each.ports or ():
            if (target.name or "") != (port.name or "") or (target.protocol or "TCP") != (port.protocol or "TCP"):
                continue
            for endpoint in each.endpoints or ():
                conditions = endpoint.conditions
                if draining:
                    usable = conditions is not None and conditions.serving is True and conditions.terminating is True
                else:
                    usable = conditions is None or conditions.ready is not False
                if usable:
                    found += [_joined(address, target.port or 0) for address in endpoint.addresses or ()]
    return sorted(set(found))


def _limits(service: Service, slices: Iterable[EndpointSlice]) -> list[str]:
    """The fields of the Service that exclude some clients."""
    spec = service.spec
    assert spec is not None
    nodes = sorted({each.node_name for one in slices for each in one.endpoints or () if each.node_name})
    there = f"clients of {_listed(nodes)} alone" if nodes else "no node has an endpoint"
    found = []
    if spec.internal_traffic_policy == "Local":
        found.append(f"internalTrafficPolicy Local: {there}; packets of pods elsewhere are dropped")
    if spec.external_traffic_policy == "Local":
        where = f"on {_listed(nodes)} alone" if nodes else there
        found.append(f"externalTrafficPolicy Local: from outside it is reached {where}; other nodes drop packets")
    if spec.load_balancer_source_ranges:
        ranges = ", ".join(spec.load_balancer_source_ranges)
        found.append(f"loadBalancerSourceRanges: only {ranges} may use its load balancer")
    return found


def _listed(texts: Sequence[str]) -> str:
    return f"{', '.join(texts[:FEW])}{f' and {len(texts) - FEW} more' * (len(texts) > FEW)}"


def service_of(address: str, services: Iterable[Service], ranges: Iterable[str]) -> Service | Report | None:
    """The Service that has an address, or a report if the address is unused in the Service range."""
    found = ipaddress.ip_address(address)
    for each in services:
        if found in _service_addresses(each):
            return each
    if any(found in ipaddress.ip_network(each, strict=False) for each in ranges):
        return Report(False, f"no Service has the address {address} of the Service range: connections are refused")
    return None


def behind(
    service: Service, slices: Sequence[EndpointSlice], source: Pod, address: str, port: int, protocol: str
) -> tuple[list[Report], list[tuple[str, int]]]:
    """The reasons apart from policies that keep a pod from a Service, and the endpoints that it can reach. Without an
    address its cluster IP is meant; without a port all of its ports."""
    spec, name = service.spec, _name(service)
    if spec is None or spec.type == "ExternalName":
        return [], []
    ports = [each for each in spec.ports or () if (each.protocol or "TCP") == protocol and port in (0, each.port)]
    if not ports:
        what = f"{protocol} port{f' {port}' if port else ''}"
        return [Report(False, f"service {name} has no {what}: connections are refused")], []
    outside = bool(address) and ipaddress.ip_address(address) not in _cluster_ips(service)
    if outside and (report := _outside_ranges(service, source, address)):
        return [report], []
    node = (source.spec.node_name if source.spec else None) or ""
    reports, found = [], []
    for each in ports:
        chosen = _chosen(slices, each, node, {":" in ip for ip in [address] if ip})
        local = spec.internal_traffic_policy == "Local" and not outside
        if local and chosen.any and not chosen.local:
            reports.append(
                Report(
                    False,
                    f"service {name} has internalTrafficPolicy Local, and its port {each.name or each.port} has no "
                    f"endpoint on {node or 'the node of the pod'}: packets of the pod are dropped",
                )
            )
        found += [(end.address, end.port) for end in (chosen.local if local else chosen.cluster)]
    return reports, found


def _chosen(slices: Sequence[EndpointSlice], port: ServicePort, node: str, versions: set[bool]) -> Chosen:
    """The endpoints of the IP versions (whether it is IPv6; none: of both) that the proxy of a node would use."""
    families = [name for name, six in (("IPv4", False), ("IPv6", True)) if not versions or six in versions]
    facts = NodeFacts(node)
    each = [
        choose(of_port(slices, port.name or "", port.protocol or "TCP", family, facts), facts) for family in families
    ]
    return Chosen(
        tuple(end for one in each for end in one.cluster),
        tuple(end for one in each for end in one.local),
        any(one.any for one in each),
    )


def _outside_ranges(service: Service, source: Pod, address: str) -> Report | None:
    """Why a pod may not use the address of a load balancer."""
    spec = service.spec
    ranges = (spec.load_balancer_source_ranges if spec else None) or ()
    own = [each for each in _addresses(source) if (":" in each) == (":" in address)]
    if not ranges or not own or ipaddress.ip_address(address) not in _balancer_ips(service):
        return None
    client = ipaddress.ip_address(own[0])
    if any(client in ipaddress.ip_network(each.strip(), strict=False) for each in ranges):
        return None
    return Report(
        False,
        f"service {_name(service)}: {client} is in none of its loadBalancerSourceRanges ({', '.join(ranges)}): "
        "packets of the pod are dropped",
    )


def _cluster_ips(service: Service) -> set[object]:
    spec = service.spec
    return _ips((spec.cluster_ips or [spec.cluster_ip or ""]) if spec else ())


def _balancer_ips(service: Service) -> set[object]:
    balancer = service.status.load_balancer if service.status else None
    return _ips(each.ip or "" for each in (balancer.ingress if balancer else None) or ())


def _service_addresses(service: Service) -> set[object]:
    external = (service.spec.external_ips if service.spec else None) or ()
    return _cluster_ips(service) | _balancer_ips(service) | _ips(external)


def _ips(texts: Iterable[str]) -> set[object]:
    """The addresses among texts: `None` of headless Services is none."""
    found: set[object] = set()
    for text in texts:
        with contextlib.suppress(ValueError):
            found.add(ipaddress.ip_address(text))
    return found


def _no_endpoints(service: Service, slices: Sequence[EndpointSlice], pods: list[Pod]) -> list[str]:
    spec = service.spec
    assert spec is not None
    selector = spec.selector
    if not selector:
        if any(each.endpoints for each in slices):
            return ["it has no selector, and its EndpointSlices have no ready endpoint for the port"]
        return ["it has no selector, and there is no EndpointSlice with the label kubernetes.io/service-name for it"]
    wanted = ",".join(f"{key}={value}" for key, value in selector.items())
    selected = [pod for pod in pods if selector.items() <= _labels(pod).items()]
    if not selected:
        near = [pod for pod in pods if selector.items() & _labels(pod).items() or selector.keys() & _labels(pod).keys()]
        found = [f"no pod of the namespace has its selector's labels ({wanted})"]
        for pod in near[:FEW]:
            other = [
                f"{key}={_labels(pod).get(key, '(none)')}" for key in selector if _labels(pod).get(key) != selector[key]
            ]
            found.append(f"pod {_name(pod)} has {', '.join(other)}")
        return found
    reasons = []
    for pod in selected[:FEW]:
        why = _unready(pod) or _lacks_port(pod, spec.ports or ()) or "is ready, but in no EndpointSlice yet"
        reasons.append(f"pod {_name(pod)} {why}")
    if len(selected) > FEW:
        reasons.append(f"{len(selected) - FEW} more pods are selected")
    return reasons


def _unready(pod: Pod) -> str:
    status = pod.status
    if pod.metadata and pod.metadata.deletion_timestamp:
        return "is being deleted"
    if status is None or not status.pod_ip:
        return f"has no address yet ({(status.phase if status else None) or 'Pending'})"
    if status.phase in ("Succeeded", "Failed"):
        return f"has ended ({status.phase})"
    for each in status.conditions or ():
        if each.type == "Ready" and each.status != "True":
            return f"is not ready: {each.message or each.reason or 'no reason given'}"
    return ""


def _lacks_port(pod: Pod, ports: Iterable[ServicePort]) -> str:
    names = {port.name for each in (pod.spec.containers if pod.spec else None) or () for port in each.ports or ()}
    wanted = [each.target_port for each in ports if isinstance(each.target_port, str)]
    missing = [each for each in wanted if each not in names]
    return f"has no container port named {', '.join(map(repr, missing))}" if missing else ""


def _balancer(service: Service) -> bool:
    status = service.status.load_balancer if service.status else None
    return bool(status and status.ingress)


# Connections


@dataclass(frozen=True, slots=True)
class Facts:
    """The inputs for a verdict on a connection."""

    policies: tuple[Policy, ...]
    namespaces: Mapping[str, Mapping[str, str]]
    pods: tuple[Pod, ...]
    cluster: tuple[ClusterPolicy, ...] = ()

    def end(self, address: str) -> End:
        """An address, with the pod that has it."""
        packed = ipaddress.ip_address(address).packed
        for pod in self.pods:
            facts = pod_facts(pod, "")
            if facts is not None and packed in facts.addresses:
                return End(packed, facts)
        return End(packed)

    def pod_name(self, address: str) -> str:
        for pod in self.pods:
            if address in _addresses(pod) and not (pod.spec and pod.spec.host_network):
                return f"pod {_name(pod)} ({address})"
        return address


def explain_connection(source: Pod, target: str, port: int, protocol: str, facts: Facts) -> Report:
    """Whether policies let a pod connect to an address."""
    name, where = _name(source), f"{facts.pod_name(target)} {protocol} {port}"
    trouble = _unready(source) if not (source.status and source.status.pod_ip) else ""
    if trouble:
        return Report(False, f"pod {name} cannot connect: it {trouble}")
    assert source.status is not None
    if source.spec and source.spec.host_network:
        return Report(True, f"pod {name} is on its node's network: policies do not isolate it as a source")
    same_version = [each for each in _addresses(source) if (":" in each) == (":" in target)]
    if not same_version:
        return Report(False, f"pod {name} cannot connect: it has no address of the IP version of {target}")
    own = facts.end(same_version[0])
    end, number = facts.end(target), PROTOCOLS.get(protocol, 0)
    verdicts = judge(facts.policies, facts.namespaces, own, end, number, port, facts.cluster)
    good = all(each.allowed for each in verdicts)
    summary = f"pod {name} {'may' if good else 'may not'} connect to {where}"
    return Report(good, summary, tuple(_words(each) for each in verdicts if each.direction))


def _words(verdict: Verdict) -> str:
    end = "source" if verdict.direction == EGRESS else "target"
    if verdict.tier:
        what = "accepts" if verdict.allowed else "denies"
        return f"{verdict.direction}: ClusterNetworkPolicy {verdict.by} ({verdict.tier}) {what} it"
    if not verdict.policies:
        return f"{verdict.direction}: no NetworkPolicy isolates the {end}"
    if verdict.allowed:
        return f"{verdict.direction}: NetworkPolicy {verdict.by} allows it"
    names = ", ".join(verdict.policies)
    return f"{verdict.direction}: the {end} is isolated by NetworkPolicy {names}, and no rule of it allows this"


def _addresses(pod: Pod) -> list[str]:
    """The addresses of a pod, the first one first."""
    status = pod.status
    listed = [each.ip or "" for each in (status.pod_ips if status else None) or ()]
    return list(filter(None, listed or [(status.pod_ip if status else None) or ""]))


def _labels(pod: Pod) -> Mapping[str, str]:
    return (pod.metadata.labels if pod.metadata else None) or {}


def _name(obj: Pod | Service) -> str:
    metadata = obj.metadata
    return f"{metadata.namespace}/{metadata.name}" if metadata else "?"


def _joined(address: str, port: int) -> str:
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
