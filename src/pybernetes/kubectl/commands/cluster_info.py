"""`kubectl cluster-info`, and its `dump` of the state of a cluster for debugging."""

from __future__ import annotations

import os

from pybernetes.kubectl.command import Command
from pybernetes.kubectl.data import in_order, pretty
from pybernetes.kubectl.errors import CLIError, StatusError
from pybernetes.kubectl.flags import Flag
from pybernetes.kubectl.printing import PRINT_FLAGS, generic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pybernetes.kubectl.context import Context

_NAMESPACED = ("events", "replicationcontrollers", "services", "daemonsets", "deployments", "replicasets", "pods")


def run(context: Context, arguments: list[str]) -> int | None:
    """`cluster-info`."""
    color = context.terminal()
    _line(context, "Kubernetes control plane", context.client.config.server, color)
    selector = {"labelSelector": "kubernetes.io/cluster-service=true"}
    for service in context.client.get("/api/v1/namespaces/kube-system/services", selector).get("items") or ():
        _line(context, _name(service), _link(context, service), color)
    context.out("\nTo further debug and diagnose cluster problems, use 'kubectl cluster-info dump'.\n")
    return None


def _name(service: dict[str, dict[str, dict[str, str]]]) -> str:
    metadata = service["metadata"]
    return str(metadata.get("labels", {}).get("kubernetes.io/name") or metadata["name"])


def _link(context: Context, service: dict[str, dict[str, object]]) -> str:
    from pybernetes.kubectl.data import dig

    ingress = dig(service, "status", "loadBalancer", "ingress", default=[])
    ports = dig(service, "spec", "ports", default=[])
    if ingress:
        address = ingress[0].get("ip") or ingress[0].get("hostname")
        return "".join(f"http://{address}:{port['port']} " for port in ports)
    name = str(service["metadata"]["name"])
    if len(ports) == 1:
        port = ports[0]
        secure = port["port"] == 443 or port.get("name") == "https"
        name = f"{'https:' if secure else ''}{name}:{port.get('name', '')}" if port.get("name") or secure else name
    path = f"/api/v1/namespaces/{service['metadata']['namespace']}/services/{name}/proxy"
    return context.client.config.server + path


def _line(context: Context, name: str, link: str, color: bool) -> None:
    if color:
        context.out(f"\033[0;32m{name}\033[0m is running at \033[0;33m{link}\033[0m\n")
    else:
        context.out(f"{name} is running at {link}\n")


def dump(context: Context, arguments: list[str]) -> int | None:
    """`cluster-info dump`: nodes, and of each namespace its workloads, events and logs."""
    flags = context.flags
    folder = flags.text("output-directory")
    output = flags.text("output") or "json"
    render = _json if output == "json" else generic(flags, output)
    extension = ".yaml" if flags.text("output") == "yaml" else ".json"

    def write(name: str, text: str) -> None:
        if not folder or folder == "-":
            context.out(text)
            return
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    write(f"nodes{extension}", render(_typed(context.client.get("/api/v1/nodes"))))
    if flags.on("all-namespaces"):
        listed = context.client.get("/api/v1/namespaces")
        namespaces = [item["metadata"]["name"] for item in listed["items"]]
    else:
        namespaces = flags.words("namespaces") or ["kube-system", context.namespace()]
    for namespace in dict.fromkeys(namespaces):
        pods = []
        for plural in _NAMESPACED:
            found = context.client.get(context.mapper.resource(plural).path(namespace))
            if plural == "pods":
                pods = found["items"]
            name = {"replicationcontrollers": "replication-controllers"}.get(plural, plural)
            write(f"{namespace}/{name}{extension}", render(_typed(found)))
        for pod in pods:
            _logs(context, namespace, pod, write)
    if folder and folder != "-":
        context.out(f"Cluster info dumped to {folder}\n")
    return None


def _json(found: dict[str, object]) -> str:
    return pretty(found, sort=False) + "\n"


def _typed(found: dict[str, object]) -> dict[str, object]:
    """A list with its fields in the order of Go's types, in which the server sends the objects."""
    return in_order(found, ("kind", "apiVersion", "metadata", "items"))


def _logs(context: Context, namespace: str, pod: dict[str, object], write: object) -> None:
    from pybernetes.kubectl.data import dig

    assert callable(write)
    name = dig(pod, "metadata", "name")
    text = ""
    for container in [*dig(pod, "spec", "initContainers", default=[]), *dig(pod, "spec", "containers", default=[])]:
        text += f"==== START logs for container {container['name']} of pod {namespace}/{name} ====\n"
        try:
            response = context.client.open(
                "GET", f"/api/v1/namespaces/{namespace}/pods/{name}/log", {"container": container["name"]}
            )
            text += context.client.content(response).decode("utf-8", "replace")
        except StatusError as error:
            text += f"Request log error: {error.message}\n"
        except CLIError as error:
            text += f"Request log error: {error.message}\n"
        text += f"==== END logs for container {container['name']} of pod {namespace}/{name} ====\n"
    write(f"{namespace}/{name}/logs.txt", text)


COMMAND = Command(
    "cluster-info",
    "Display cluster information",
    run,
    children={
        "dump": Command(
            "dump",
            "Dump relevant information for debugging and diagnosis",
            dump,
            flags=(
                Flag("output", default="json", short="o", help="json or yaml."),
                *PRINT_FLAGS[1:],
                Flag("all-namespaces", "bool", short="A", help="All namespaces."),
                Flag("namespaces", "list", help="These namespaces."),
                Flag("output-directory", help="Folder to write files to; - is stdout."),
                Flag("pod-running-timeout", "duration", 20.0, "How long to wait for a pod."),
            ),
        )
    },
)
