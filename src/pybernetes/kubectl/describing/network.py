"""Descriptions of Services and Ingresses."""

from __future__ import annotations

from pybernetes.kubectl.data import dig
from pybernetes.kubectl.describing.description import Description
from pybernetes.kubectl.describing.text import joined, write_labels

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def service(this: Description) -> None:
    """A Service with its endpoints."""
    spec, status = this.obj["spec"], this.obj.get("status") or {}
    this.head()
    this.write(0, f"Selector:\t{joined(spec.get('selector'))}\n")
    this.write(0, f"Type:\t{spec.get('type', '')}\n")
    if spec.get("ipFamilyPolicy"):
        this.write(0, f"IP Family Policy:\t{spec['ipFamilyPolicy']}\n")
    this.write(0, f"IP Families:\t{','.join(spec.get('ipFamilies') or ()) or '<none>'}\n")
    this.write(0, f"IP:\t{spec.get('clusterIP', '')}\n")
    this.write(0, f"IPs:\t{','.join(spec.get('clusterIPs') or ()) or '<none>'}\n")
    if spec.get("externalIPs"):
        this.write(0, f"External IPs:\t{','.join(spec['externalIPs'])}\n")
    if spec.get("loadBalancerIP"):
        this.write(0, f"Desired LoadBalancer IP:\t{spec['loadBalancerIP']}\n")
    if spec.get("externalName"):
        this.write(0, f"External Name:\t{spec['externalName']}\n")
    ingress = [_load_balancer(each) for each in dig(status, "loadBalancer", "ingress", default=[])]
    if ingress:
        this.write(0, f"LoadBalancer Ingress:\t{', '.join(ingress)}\n")
    slices = this.fetch(
        f"/apis/discovery.k8s.io/v1/namespaces/{this.info.namespace}/endpointslices",
        {"labelSelector": f"kubernetes.io/service-name={this.info.name}"},
    )
    for port in spec.get("ports") or ():
        name, protocol = port.get("name") or "<unset>", port.get("protocol", "TCP")
        this.write(0, f"Port:\t{name}\t{port.get('port', 0)}/{protocol}\n")
        this.write(0, f"TargetPort:\t{port.get('targetPort', 0)}/{protocol}\n")
        if port.get("appProtocol") is not None:
            this.write(0, f"AppProtocol:\t{port['appProtocol']}\n")
        if port.get("nodePort"):
            this.write(0, f"NodePort:\t{name}\t{port['nodePort']}/{protocol}\n")
        this.write(0, f"Endpoints:\t{_endpoints(slices, port.get('name') or '')}\n")
    this.write(0, f"Session Affinity:\t{spec.get('sessionAffinity', '')}\n")
    if spec.get("externalTrafficPolicy"):
        this.write(0, f"External Traffic Policy:\t{spec['externalTrafficPolicy']}\n")
    if spec.get("internalTrafficPolicy"):
        this.write(0, f"Internal Traffic Policy:\t{spec['internalTrafficPolicy']}\n")
    if spec.get("healthCheckNodePort"):
        this.write(0, f"HealthCheck NodePort:\t{spec['healthCheckNodePort']}\n")
    if spec.get("loadBalancerSourceRanges"):
        this.write(0, f"LoadBalancer Source Ranges:\t{','.join(spec['loadBalancerSourceRanges'])}\n")
    if spec.get("trafficDistribution") is not None:
        this.write(0, f"Traffic Distribution:\t{spec['trafficDistribution']}\n")
    this.events()


def _load_balancer(found: dict[str, Any]) -> str:
    """One address of a load balancer."""
    mode = f" ({found['ipMode']})" if found.get("ipMode") is not None else ""
    return f"{found['ip']}{mode}" if found.get("ip") else str(found.get("hostname", ""))


def _endpoints(slices: list[dict[str, Any]], name: str) -> str:
    if not slices:
        return "<none>"
    found: list[str] = []
    for each in slices:
        if not each.get("ports"):  # a headless Service may have none
            ready = [one for one in each.get("endpoints") or () if dig(one, "conditions", "ready", default=True)]
            found += [one["addresses"][0] for one in ready]
        for port in each.get("ports") or ():
            if (port.get("name") or "") != name:
                continue
            for endpoint in each.get("endpoints") or ():
                if dig(endpoint, "conditions", "ready", default=True):
                    address = endpoint["addresses"][0]
                    found.append(f"[{address}]:{port['port']}" if ":" in address else f"{address}:{port['port']}")
    shown = ",".join(found[:3])
    return f"{shown} + {len(found) - 3} more..." if len(found) > 3 else shown


def ingress(this: Description) -> None:
    """An Ingress with the endpoints behind its paths."""
    spec = this.obj.get("spec") or {}
    this.write(0, f"Name:\t{this.info.name}\n")
    write_labels(this, "Labels", this.get("metadata", "labels"))
    this.write(0, f"Namespace:\t{this.info.namespace}\n")
    addresses = this.get("status", "loadBalancer", "ingress", default=[])
    shown = sorted({each.get("ip") or each.get("hostname") or "" for each in addresses} - {""})
    this.write(0, f"Address:\t{','.join(shown)}\n")
    this.write(0, f"Ingress Class:\t{spec.get('ingressClassName', '<none>')}\n")
    default = spec.get("defaultBackend")
    fallback = _backend(this, default) if default is not None else "<default>"
    this.write(0, f"Default backend:\t{fallback}\n")
    if spec.get("tls"):
        this.write(0, "TLS:\n")
        for each in spec["tls"]:
            hosts = ",".join(each.get("hosts") or ())
            if each.get("secretName"):
                this.write(1, f"{each['secretName']} terminates {hosts}\n")
            else:
                this.write(1, f"SNI routes {hosts}\n")
    this.write(0, "Rules:\n  Host\tPath\tBackends\n")
    this.write(1, "----\t----\t--------\n")
    rules = [rule for rule in spec.get("rules") or () if rule.get("http") is not None]
    for rule in rules:
        this.write(1, f"{rule.get('host') or '*'}\t\n")
        for path in rule["http"].get("paths") or ():
            this.write(2, f"\t{path.get('path', '')} \t{_backend(this, path.get('backend') or {})}\n")
    if not rules:
        this.write(1, f"*\t*\t{fallback}\n")
    annotations = this.get("metadata", "annotations", default={})
    from pybernetes.kubectl.describing.text import write_annotations

    write_annotations(this, "Annotations", annotations)
    this.events()


def _backend(this: Description, backend: dict[str, Any]) -> str:
    target = backend.get("service")
    if target is not None:
        return _service_backend(this, target.get("name", ""), target.get("port") or {})
    resource = backend.get("resource")
    if resource is None:
        return ""
    group, kind = resource.get("apiGroup", "<none>"), resource.get("kind", "")
    return f"APIGroup: {group}, Kind: {kind}, Name: {resource.get('name', '')}"


def _service_backend(this: Description, name: str, port: dict[str, Any]) -> str:
    from pybernetes.kubectl.errors import CLIError

    shown = port.get("number") or port.get("name", "")
    slices = this.fetch(
        f"/apis/discovery.k8s.io/v1/namespaces/{this.info.namespace}/endpointslices",
        {"labelSelector": f"kubernetes.io/service-name={name}"},
    )
    try:
        found = this.context.client.get(f"/api/v1/namespaces/{this.info.namespace}/services/{name}")
    except CLIError as error:
        return f"{name}:{shown} (<error: {error.message}>)"
    names = [
        each.get("name") or ""
        for each in dig(found, "spec", "ports", default=[])
        if shown in (each.get("port"), each.get("name"))
    ]
    return f"{name}:{shown} ({_endpoints(slices, names[-1] if names else '')})"
