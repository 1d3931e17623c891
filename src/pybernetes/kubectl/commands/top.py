"""`kubectl top`: the CPU and memory that nodes and pods use, from the metrics API."""

from __future__ import annotations

import time

from pybernetes.kubectl.ages import timestamp
from pybernetes.kubectl.command import Command
from pybernetes.kubectl.data import dig
from pybernetes.kubectl.errors import CLIError, usage_error
from pybernetes.kubectl.flags import Flag
from pybernetes.kubectl.printers.table import Columns
from pybernetes.kubectl.sorting import quantity

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pybernetes.kubectl.context import Context

_GROUP = "/apis/metrics.k8s.io/v1beta1"


def _available(context: Context) -> None:
    if not any(group.get("name") == "metrics.k8s.io" for group in context.mapper.discovery.groups):
        raise CLIError("Metrics API not available")


class _Usage:
    """The usage of each measured resource."""

    def __init__(self, measured: list[str], *sources: dict[str, Any]) -> None:
        self.amounts = {
            name: sum(quantity(str(dig(each, "usage", name, default="0"))) or 0.0 for each in sources)
            for name in measured
        }

    def cells(self) -> list[str]:
        """The amounts as the columns show them."""
        import math

        return [
            f"{math.ceil(amount * 1000 - 1e-9)}m" if name == "cpu" else f"{int(amount) // (1024 * 1024)}Mi"
            for name, amount in self.amounts.items()
        ]


def _measured(context: Context) -> list[str]:
    """The resources that have columns. Raises CLIError for a bad `--sort-by`."""
    if context.flags.text("sort-by") not in ("", "cpu", "memory"):
        raise CLIError("--sort-by accepts only cpu or memory")
    return ["cpu", "memory", *(["swap"] if context.flags.on("show-swap") else [])]


_COLUMNS = {"cpu": "CPU(cores)", "memory": "MEMORY(bytes)", "swap": "SWAP(bytes)"}


def nodes(context: Context, arguments: list[str]) -> int | None:
    """`top node`."""
    flags = context.flags
    measured = _measured(context)
    by = flags.text("sort-by")
    if len(arguments) > 1:
        raise usage_error(context.path, "node [NAME | -l label]")
    if arguments and flags.text("selector"):
        raise CLIError("only one of NAME or --selector can be provided")
    _available(context)
    selector = {"labelSelector": flags.text("selector")}
    if arguments:
        items = [context.client.get(f"{_GROUP}/nodes/{arguments[0]}")]
    else:
        items = context.client.get(f"{_GROUP}/nodes", selector).get("items") or []
    if not items:
        raise CLIError("metrics not available yet")
    if arguments:
        known = [context.client.get(f"/api/v1/nodes/{arguments[0]}")]
    else:
        known = context.client.get("/api/v1/nodes", selector).get("items") or []
    available = {node["metadata"]["name"]: _node_resources(node, flags.on("show-capacity")) for node in known}
    rows = [(item["metadata"]["name"], _Usage(measured, item)) for item in items]
    rows.sort(key=lambda row: row[0])
    if by:
        rows.sort(key=lambda row: -row[1].amounts[by])
    columns = Columns()
    if not flags.on("no-headers"):
        heads = [part for name in measured for part in (_COLUMNS[name], f"{name.upper()}(%)")]
        columns.row(["NAME", *heads, ""])
    for name, usage in rows:
        columns.row([name, *_with_shares(usage, available.pop(name, {})), ""])
    for name in sorted(available):
        columns.row([name, *["<unknown>"] * (2 * len(measured)), ""])
    context.out(columns.flush())
    return None


def _node_resources(node: dict[str, Any], capacity: bool) -> dict[str, float | None]:
    """A node's amount of each resource; None for swap that it does not report."""
    found: dict[str, float | None] = {
        name: quantity(str(amount))
        for name, amount in dig(node, "status", "capacity" if capacity else "allocatable", default={}).items()
    }
    found["swap"] = dig(node, "status", "nodeInfo", "swap", "capacity")
    return found


def _with_shares(usage: _Usage, available: dict[str, float | None]) -> list[str]:
    """Each amount and its percentage of what the node has."""
    cells: list[str] = []
    for (name, amount), shown in zip(usage.amounts.items(), usage.cells(), strict=True):
        if name in available and available[name] is None:
            cells += ["<unknown>", "<unknown>"]
            continue
        cells.append(shown)
        if name in available:
            whole = available[name]
            cells.append(f"{int(amount / whole * 100) if whole else 0}%")
    return cells


def pods(context: Context, arguments: list[str]) -> int | None:
    """`top pod`."""
    flags = context.flags
    measured = _measured(context)
    if len(arguments) > 1:
        raise usage_error(context.path, "pod [NAME | -l label]")
    if arguments and (flags.text("selector") or flags.text("field-selector")):
        raise CLIError("only one of NAME or selector can be provided")
    _available(context)
    everywhere = flags.on("all-namespaces")
    namespace = context.namespace()
    if arguments:
        items = [context.client.get(f"{_GROUP}/namespaces/{namespace}/pods/{arguments[0]}")]
    else:
        path = f"{_GROUP}/pods" if everywhere else f"{_GROUP}/namespaces/{namespace}/pods"
        items = context.client.get(path, _selectors(context)).get("items") or []
    if not items:
        _explain_nothing(context, namespace, everywhere)
        return None
    context.out(_pod_table(context, items, measured))
    return None


def _pod_table(context: Context, items: list[dict[str, Any]], measured: list[str]) -> str:
    flags = context.flags
    by, everywhere, each_container = flags.text("sort-by"), flags.on("all-namespaces"), flags.on("containers")
    rows = [(item["metadata"], item.get("containers") or []) for item in items]
    rows.sort(key=lambda row: (row[0].get("namespace", "") if everywhere else "", row[0]["name"]))
    if by:
        rows.sort(key=lambda row: -_Usage(measured, *row[1]).amounts[by])
    columns = Columns()
    names = ["NAME", *(_COLUMNS[name] for name in measured)]
    width = len(names)
    if not flags.on("no-headers"):
        head = [*(["NAMESPACE"] if everywhere else []), *(["POD"] if each_container else [])]
        width += len(head)
        columns.row([*head, *names, ""])
    for metadata, containers in rows:
        first = [*([metadata.get("namespace", "")] if everywhere else []), metadata["name"]]
        if each_container:
            usages = sorted(((each["name"], _Usage(measured, each)) for each in containers), key=lambda pair: pair[0])
            if by:
                usages.sort(key=lambda pair: -pair[1].amounts[by])
            for name, usage in usages:
                columns.row([*first, name, *usage.cells(), ""])
        else:
            columns.row([*first, *_Usage(measured, *containers).cells(), ""])
    if flags.on("sum"):
        columns.row([*[""] * (width - 2), "________", "________", ""])
        total = _Usage(measured, *(each for _, containers in rows for each in containers))
        columns.row([*[""] * (width - 3), "", *total.cells(), ""])
    return columns.flush()


def _selectors(context: Context) -> dict[str, Any]:
    flags = context.flags
    return {"labelSelector": flags.text("selector"), "fieldSelector": flags.text("field-selector")}


_PATIENCE = 120
"""Seconds in which a new pod may have no metrics yet."""


def _explain_nothing(context: Context, namespace: str, everywhere: bool) -> None:
    """Says why there are no metrics. Raises CLIError where there are pods that should have some."""
    path = "/api/v1/pods" if everywhere else f"/api/v1/namespaces/{namespace}/pods"
    found = context.client.get(path, _selectors(context)).get("items") or []
    for pod in found:
        metadata = pod["metadata"]
        age = time.time() - (timestamp(metadata["creationTimestamp"]) or 0.0)
        if age > _PATIENCE:
            where = f"{metadata['namespace']}/{metadata['name']}"
            raise CLIError(f"Metrics not available for pod {where}, age: {_go_duration(age)}")
    if found:
        raise CLIError("metrics not available yet")
    context.err("No resources found\n" if everywhere else f"No resources found in {namespace} namespace.\n")


def _go_duration(amount: float) -> str:
    """Seconds as Go prints a duration of more than a second: `1h2m3.5s`."""
    minutes, rest = divmod(amount, 60)
    hours, minutes = divmod(int(minutes), 60)
    return f"{f'{hours}h' if hours else ''}{minutes}m{rest:.9f}".rstrip("0").rstrip(".") + "s"


_COMMON = (
    Flag("no-headers", "bool", help="Do not print headers."),
    Flag("selector", short="l", help="Select by label."),
    Flag("sort-by", help="cpu or memory."),
    Flag("use-protocol-buffers", "bool", True, "Kept for compatibility."),
    Flag("show-swap", "bool", help="Add columns for swap."),
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
