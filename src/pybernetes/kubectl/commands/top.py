"""`kubectl top`: the CPU and memory that nodes and pods use, from the metrics API."""

from __future__ import annotations

from pybernetes.kubectl.command import Command
from pybernetes.kubectl.data import dig
from pybernetes.kubectl.errors import CLIError, StatusError
from pybernetes.kubectl.flags import Flag
from pybernetes.kubectl.printers.table import Columns
from pybernetes.kubectl.sorting import _quantity

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pybernetes.kubectl.context import Context

_GROUP = "/apis/metrics.k8s.io/v1beta1"


def _available(context: Context) -> None:
    if not any(group.get("name") == "metrics.k8s.io" for group in context.mapper.discovery.groups):
        raise CLIError("Metrics API not available")


def _usage(found: dict[str, Any]) -> tuple[float, float]:
    usage = found.get("usage") or {}
    return _quantity(str(usage.get("cpu", "0"))) or 0.0, _quantity(str(usage.get("memory", "0"))) or 0.0


def _shown(cpu: float, memory: float) -> tuple[str, str]:
    import math

    return f"{math.ceil(cpu * 1000 - 1e-9)}m", f"{int(memory) // (1024 * 1024)}Mi"


def _sort(context: Context) -> str:
    by = context.flags.text("sort-by")
    if by not in ("", "cpu", "memory", "swap"):
        raise CLIError("--sort-by accepts only cpu or memory")
    return by


def nodes(context: Context, arguments: list[str]) -> int | None:
    """`top node`."""
    flags = context.flags
    by = _sort(context)
    if len(arguments) > 1:
        raise CLIError(f"[{' '.join(arguments)}]\nSee '{context.path} -h' for help and examples")
    if arguments and flags.text("selector"):
        raise CLIError("only one of NAME or --selector can be provided")
    _available(context)
    selector = {"labelSelector": flags.text("selector")}
    if arguments:
        items = [context.client.get(f"{_GROUP}/nodes/{arguments[0]}")]
        known = [context.client.get(f"/api/v1/nodes/{arguments[0]}")]
    else:
        items = context.client.get(f"{_GROUP}/nodes", selector).get("items") or []
        known = context.client.get("/api/v1/nodes", selector).get("items") or []
    if not items:
        raise CLIError("metrics not available yet")
    field = "capacity" if flags.on("show-capacity") else "allocatable"
    total = {node["metadata"]["name"]: dig(node, "status", field, default={}) for node in known}
    rows = []
    for item in items:
        name = item["metadata"]["name"]
        rows.append((name, *_usage(item), total.pop(name, {})))
    rows.sort(key=lambda row: (-row[1],) if by == "cpu" else (-row[2],) if by == "memory" else (row[0],))
    columns = Columns()
    if not flags.on("no-headers"):
        columns.row(["NAME", "CPU(cores)", "CPU(%)", "MEMORY(bytes)", "MEMORY(%)", ""])
    for name, cpu, memory, capacity in rows:
        shown = _shown(cpu, memory)
        percent = []
        for used, key in ((cpu, "cpu"), (memory, "memory")):
            whole = _quantity(str(capacity.get(key, "0"))) or 0.0
            percent.append(f"{int(used / whole * 100)}%" if whole else "<unknown>")
        columns.row([name, shown[0], percent[0], shown[1], percent[1], ""])
    for name in sorted(total):
        columns.row([name, "<unknown>", "<unknown>", "<unknown>", "<unknown>", ""])
    context.out(columns.flush())
    return None


def pods(context: Context, arguments: list[str]) -> int | None:
    """`top pod`."""
    flags = context.flags
    by = _sort(context)
    if len(arguments) > 1:
        raise CLIError(f"[{' '.join(arguments)}]\nSee '{context.path} -h' for help and examples")
    if arguments and (flags.text("selector") or flags.text("field-selector")):
        raise CLIError("only one of NAME or selector can be provided")
    _available(context)
    everywhere = flags.on("all-namespaces")
    namespace = context.namespace()
    path = f"{_GROUP}/pods" if everywhere else f"{_GROUP}/namespaces/{namespace}/pods"
    if arguments:
        items = [context.client.get(f"{_GROUP}/namespaces/{namespace}/pods/{arguments[0]}")]
    else:
        selectors = {"labelSelector": flags.text("selector"), "fieldSelector": flags.text("field-selector")}
        items = context.client.get(path, selectors).get("items") or []
    if not items:
        _explain_nothing(context, namespace, everywhere)
        return None
    rows = []
    for item in items:
        metadata = item["metadata"]
        usages = [(each["name"], *_usage(each)) for each in item.get("containers") or ()]
        rows.append((metadata.get("namespace", ""), metadata["name"], usages))
    rows.sort(
        key=lambda row: (
            (-sum(each[1] for each in row[2]),)
            if by == "cpu"
            else (-sum(each[2] for each in row[2]),)
            if by == "memory"
            else (row[0], row[1])
        )
    )
    columns = Columns()
    head = [*(["NAMESPACE"] if everywhere else []), *(["POD"] if flags.on("containers") else [])]
    if not flags.on("no-headers"):
        columns.row([*head, "NAME", "CPU(cores)", "MEMORY(bytes)", ""])
    cpu_total = memory_total = 0.0
    for where, name, usages in rows:
        cpu_total += sum(each[1] for each in usages)
        memory_total += sum(each[2] for each in usages)
        first = [where] if everywhere else []
        if flags.on("containers"):
            for container, cpu, memory in usages:
                columns.row([*first, name, container, *_shown(cpu, memory), ""])
        else:
            shown = _shown(sum(each[1] for each in usages), sum(each[2] for each in usages))
            columns.row([*first, name, *shown, ""])
    if flags.on("sum"):
        blanks = [""] * len(head)
        columns.row([*blanks, "", "________", "________", ""])
        columns.row([*blanks, "", *_shown(cpu_total, memory_total), ""])
    context.out(columns.flush())
    return None


def _explain_nothing(context: Context, namespace: str, everywhere: bool) -> None:
    path = "/api/v1/pods" if everywhere else f"/api/v1/namespaces/{namespace}/pods"
    try:
        found = context.client.get(path, {"labelSelector": context.flags.text("selector")}).get("items")
    except StatusError:
        found = None
    if found:
        raise CLIError("metrics not available yet")
    context.err("No resources found\n" if everywhere else f"No resources found in {namespace} namespace.\n")


_COMMON = (
    Flag("no-headers", "bool", help="Do not print headers."),
    Flag("selector", short="l", help="Select by label."),
    Flag("sort-by", help="cpu or memory."),
    Flag("use-protocol-buffers", "bool", True, "Kept for compatibility."),
    Flag("show-swap", "bool", help="Print swap too."),
)
_NODE = Command(
    "node [NAME | -l label]",
    "Display resource (CPU/memory) usage of nodes",
    nodes,
    flags=(*_COMMON, Flag("show-capacity", "bool", help="Percentages of capacity, not of allocatable.")),
    aliases=("nodes", "no"),
)
_POD = Command(
    "pod [NAME | -l label]",
    "Display resource (CPU/memory) usage of pods",
    pods,
    flags=(
        *_COMMON,
        Flag("all-namespaces", "bool", short="A", help="Pods of all namespaces."),
        Flag("containers", "bool", help="A line for each container."),
        Flag("field-selector", help="Select by field."),
        Flag("sum", "bool", help="Print the sums."),
    ),
    aliases=("pods", "po"),
)
COMMAND = Command("top", "Display resource (CPU/memory) usage", children={"node": _NODE, "pod": _POD})
