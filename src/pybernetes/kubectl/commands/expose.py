"""`kubectl expose`: a Service for a pod, a service or a workload."""

from __future__ import annotations

from pybernetes.kubectl import mutating
from pybernetes.kubectl.builder import Builder
from pybernetes.kubectl.command import Command
from pybernetes.kubectl.commands.create_generators import int_or_string
from pybernetes.kubectl.data import dig
from pybernetes.kubectl.errors import CLIError, raise_all
from pybernetes.kubectl.flags import Flag
from pybernetes.kubectl.generating import finish
from pybernetes.kubectl.setting import pod_spec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pybernetes.kubectl.builder import Info
    from pybernetes.kubectl.context import Context

_KINDS = ("Service", "ReplicationController", "Deployment", "Pod", "ReplicaSet", "StatefulSet")


def run(context: Context, arguments: list[str]) -> int | None:
    """`expose`."""
    flags = context.flags
    builder = Builder(context).files(flags.words("filename"), flags.on("recursive"), flags.text("kustomize"))
    builder.arguments(arguments, allow_empty=False)
    if not builder.given():
        raise CLIError(
            "You must provide one or more resources by argument or filename.\nExample resource specifications"
            " include:\n   '-f rsrc.yaml'\n   '--filename=rsrc.json'\n   '<resource> <name>'\n   '<resource>'"
        )
    builder.latest = False
    infos = builder.infos()
    if not infos:
        raise_all(builder.errors)
    for info in infos:
        if info.mapping.kind not in ("Service", "ReplicationController", "Deployment", "Pod", "ReplicaSet"):
            label = f"{info.mapping.kind}.{info.mapping.group}" if info.mapping.group else info.mapping.kind
            raise CLIError(f"cannot expose a {label}")
        obj = _service(context, info)
        if flags.text("overrides"):
            from pybernetes.kubectl.commands.run import _override

            obj = _override(context, obj)
        finish(context, obj, "exposed")
    raise_all(builder.errors)
    return None


def _expression(found: dict[str, Any]) -> str:
    """A requirement of a selector as Go prints the struct."""
    values = " ".join(found.get("values") or ())
    return f"{{Key:{found.get('key', '')} Operator:{found.get('operator', '')} Values:[{values}]}}"


def _selector(context: Context, info: Info) -> dict[str, str]:
    given = context.flags.text("selector")
    if given:
        return dict(pair.split("=", 1) for pair in given.replace("==", "=").split(",") if "=" in pair)
    obj = info.object
    if info.mapping.kind == "Pod":
        labels: dict[str, str] = dig(obj, "metadata", "labels", default={})
        if not labels:
            raise CLIError(
                "couldn't retrieve selectors via --selector flag or introspection: the pod has no labels and cannot be"
                " exposed"
            )
        return labels
    selector: dict[str, Any] = dig(obj, "spec", "selector", default={})
    if selector.get("matchExpressions"):
        shown = " ".join(map(_expression, selector["matchExpressions"]))
        raise CLIError(
            "couldn't retrieve selectors via --selector flag or introspection: couldn't convert expressions -"
            f' "[{shown}]" to map-based selector format'
        )
    found = selector.get("matchLabels", selector)
    if not found and info.mapping.group:
        kind = info.mapping.kind.lower()
        raise CLIError(
            "couldn't retrieve selectors via --selector flag or introspection:"
            f" invalid {kind}: no selectors, therefore cannot be exposed"
        )
    if not found:
        raise CLIError(
            "couldn't retrieve selectors via --selector flag or introspection: the service has no pod selector set"
        )
    return dict(found)


def _service(context: Context, info: Info) -> dict[str, Any]:
    flags = context.flags
    selector = _selector(context, info)
    name = flags.text("name") or info.name[:63]  # a name of the user's own is not cut, but refused
    ports = _ports(context, info)
    target = flags.text("target-port") or ""
    for port in ports:
        port["targetPort"] = int_or_string(target) if target else port["port"]
    labels = dig(info.object, "metadata", "labels", default={})
    if flags.text("labels"):
        labels = dict(pair.split("=", 1) for pair in flags.text("labels").split(",") if "=" in pair)
    metadata: dict[str, Any] = {"name": name}
    if labels:
        metadata["labels"] = dict(labels)
    spec: dict[str, Any] = {"ports": ports, "selector": selector}
    if flags.text("type"):
        spec["type"] = flags.text("type")
    if flags.text("cluster-ip"):
        spec["clusterIP"] = flags.text("cluster-ip")
    if flags.text("external-ip"):
        spec["externalIPs"] = [flags.text("external-ip")]
    if flags.text("load-balancer-ip"):
        spec["loadBalancerIP"] = flags.text("load-balancer-ip")
    affinity = flags.text("session-affinity")
    if affinity:
        if affinity not in ("None", "ClientIP"):
            raise CLIError(f"unknown session affinity: {affinity}")
        spec["sessionAffinity"] = affinity
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata,
        "spec": spec,
        "status": {"loadBalancer": {}},
    }


def _ports(context: Context, info: Info) -> list[dict[str, Any]]:
    flags = context.flags
    protocols: dict[int, str] = {}
    if info.mapping.kind == "Service":
        declared = [
            {"containerPort": port["port"], "protocol": port.get("protocol", "TCP")}
            for port in dig(info.object, "spec", "ports", default=[])
        ]
    else:
        spec = pod_spec(info.object) or {}
        declared = [port for container in spec.get("containers", ()) for port in container.get("ports") or ()]
    for port in declared:
        protocols[port["containerPort"]] = port.get("protocol", "TCP")
    text = flags.text("port")
    numbers = [each for each in text.split(",") if each] if text else [str(port["containerPort"]) for port in declared]
    if not numbers:
        raise CLIError("couldn't find port via --port flag or introspection")
    found: list[dict[str, Any]] = []
    for at, word in enumerate(numbers):
        try:
            number = int(word)
        except ValueError:
            raise CLIError(f'strconv.Atoi: parsing "{word}": invalid syntax') from None
        protocol = flags.text("protocol") or protocols.get(number, "TCP")
        entry: dict[str, Any] = {"port": number, "protocol": protocol}
        if len(numbers) > 1:
            entry = {"name": f"port-{at + 1}", **entry}
        found.append(entry)
    return found


COMMAND = Command(
    "expose (-f FILENAME | TYPE NAME) [--port=port] [--protocol=TCP|UDP|SCTP] [--target-port=number-or-name]"
    " [--name=name] [--external-ip=external-ip-of-service] [--type=type]",
    "Take a replication controller, service, deployment or pod and expose it as a new Kubernetes service",
    run,
    flags=(
        *mutating.PRINT_FLAGS,
        *mutating.FILENAME_FLAGS,
        mutating.DRY_RUN,
        mutating.SAVE_CONFIG,
        mutating.RECORD,
        mutating.field_manager("kubectl-expose"),
        Flag("cluster-ip", help="Cluster IP, or None for a headless service."),
        Flag("external-ip", help="External IP."),
        Flag("labels", short="l", help="Labels of the service."),
        Flag("load-balancer-ip", help="IP of the load balancer."),
        Flag("name", help="Name of the service."),
        Flag("override-type", default="merge", help="json, merge or strategic."),
        Flag("overrides", help="Patch of the generated object."),
        Flag("port", help="Port of the service."),
        Flag("protocol", help="TCP, UDP or SCTP."),
        Flag("selector", help="Labels of the pods."),
        Flag("session-affinity", help="None or ClientIP."),
        Flag("target-port", help="Port or port name of the container."),
        Flag("type", help="ClusterIP, NodePort, LoadBalancer or ExternalName."),
    ),
)
