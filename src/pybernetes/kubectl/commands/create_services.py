"""`kubectl create service` and `kubectl create ingress`."""

from __future__ import annotations

from pybernetes.kubectl.command import Command
from pybernetes.kubectl.commands.create_generators import int_or_string
from pybernetes.kubectl.errors import CLIError
from pybernetes.kubectl.flags import Flag
from pybernetes.kubectl.generating import generator, one_name, require

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pybernetes.kubectl.context import Context


def _ports(flags: Any) -> list[dict[str, Any]]:
    found = []
    for text in flags.words("tcp"):
        first, colon, second = text.partition(":")
        try:
            port = int(first)
        except ValueError:
            raise CLIError(f'strconv.ParseUint: parsing "{first}": invalid syntax') from None
        target = int_or_string(second.partition(":")[0]) if colon else port
        if isinstance(target, int) and not 1 <= target <= 65535 and colon:
            raise CLIError("must be between 1 and 65535, inclusive")
        found.append({"name": text.replace(":", "-"), "port": port, "protocol": "TCP", "targetPort": target})
    return found


def _service(kind: str) -> Any:
    def make(context: Context, arguments: list[str]) -> dict[str, Any]:
        flags = context.flags
        if kind == "ExternalName":
            require(context, "external-name")
        name = one_name(context, arguments)
        ports = _ports(flags)
        cluster_ip = flags.text("clusterip") if "clusterip" in flags else ""
        if not ports and kind != "ExternalName" and cluster_ip != "None":
            raise CLIError("at least one tcp port specifier must be provided")
        labels = {"app": name}
        spec: dict[str, Any] = {"selector": dict(labels), "type": kind}
        if ports:
            spec["ports"] = ports
        if cluster_ip:
            spec["clusterIP"] = cluster_ip
        if kind == "ExternalName":
            spec["externalName"] = flags.text("external-name")
        if kind == "NodePort" and flags.number("node-port"):
            for port in ports:
                port["nodePort"] = flags.number("node-port")
        return {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": name, "labels": labels},
            "spec": spec,
            "status": {"loadBalancer": {}},
        }

    return make


def ingress(context: Context, arguments: list[str]) -> dict[str, Any]:
    """`create ingress`."""
    flags = context.flags
    name = one_name(context, arguments)
    rules, backend = flags.words("rule"), flags.text("default-backend")
    if not rules and not backend:
        raise CLIError(
            "not enough information provided: every ingress has to either specify a default-backend"
            " (which catches all traffic) or a list of rules (which catch specific paths)"
        )
    spec: dict[str, Any] = {}
    if flags.text("class"):
        spec["ingressClassName"] = flags.text("class")
    if backend:
        spec["defaultBackend"] = _backend(backend)
    hosts: dict[str, list[Any]] = {}
    tls: dict[str, list[str]] = {}
    secrets: list[Any] = []
    for rule in rules:
        parts = rule.split(",", 1)
        location, _, target = parts[0].partition("=")
        if not target or "/" not in location:
            raise CLIError(f"rule {rule} is invalid and should be in format host/path=svcname:svcport[,tls[=secret]]")
        host, _, path = location.partition("/")
        path = f"/{path}"
        prefix = path.endswith("*")
        hosts.setdefault(host, []).append(
            {
                "backend": _backend(target),
                "path": path.removesuffix("*"),
                "pathType": "Prefix" if prefix else "Exact",
            }
        )
        if len(parts) > 1:
            secret = parts[1].partition("=")[2]
            if secret not in tls:
                secrets.append(secret)
            if host and host not in tls.setdefault(secret, []):
                tls[secret].append(host)
    if hosts:
        spec["rules"] = [
            {**({"host": host} if host else {}), "http": {"paths": paths}} for host, paths in hosts.items()
        ]
    if tls:
        spec["tls"] = [
            {**({"hosts": tls[each]} if tls[each] else {}), **({"secretName": each} if each else {})}
            for each in secrets
        ]
    metadata: dict[str, Any] = {"name": name}
    annotations = {}
    for pair in flags.words("annotation"):
        key, equals, value = pair.partition("=")
        if not equals:
            raise CLIError(f"annotation {pair} is invalid and should be in format key=[value]")
        annotations[key] = value
    if annotations:
        metadata["annotations"] = annotations
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "Ingress",
        "metadata": metadata,
        "spec": spec,
        "status": {"loadBalancer": {}},
    }


def _backend(text: str) -> dict[str, Any]:
    service, port = [*text.split(":"), ""][:2]
    if not service or not port:
        raise CLIError("default-backend should be in format servicename:serviceport")
    number = int_or_string(port)
    return {"service": {"name": service, "port": {"number" if isinstance(number, int) else "name": number}}}


_TCP = Flag("tcp", "list", help="Ports as port or port:targetPort.")
_SERVICES = (
    generator(
        "clusterip NAME [--tcp=<port>:<targetPort>] [--dry-run=server|client|none]",
        "Create a ClusterIP service",
        _service("ClusterIP"),
        (_TCP, Flag("clusterip", help="Cluster IP, or None for a headless service.")),
    ),
    generator(
        "nodeport NAME [--tcp=port:targetPort] [--dry-run=server|client|none]",
        "Create a NodePort service",
        _service("NodePort"),
        (_TCP, Flag("node-port", "int", help="Port on every node.")),
    ),
    generator(
        "loadbalancer NAME [--tcp=port:targetPort] [--dry-run=server|client|none]",
        "Create a LoadBalancer service",
        _service("LoadBalancer"),
        (_TCP,),
    ),
    generator(
        "externalname NAME --external-name external.name [--dry-run=server|client|none]",
        "Create an ExternalName service",
        _service("ExternalName"),
        (_TCP, Flag("external-name", help="Name that the service is an alias of.")),
    ),
)
COMMANDS = (
    Command(
        "service",
        "Create a service using a specified subcommand",
        aliases=("svc",),
        children={command.name: command for command in _SERVICES},
    ),
    generator(
        "ingress NAME --rule=host/path=service:port[,tls[=secret]] ",
        "Create an ingress with the specified name",
        ingress,
        (
            Flag("class", help="Name of the ingress class."),
            Flag("rule", "array", help="host/path=service:port[,tls=secret]; may be repeated."),
            Flag("default-backend", help="service:port for everything else."),
            Flag("annotation", "array", help="key=value; may be repeated."),
        ),
        aliases=("ing",),
    ),
)
