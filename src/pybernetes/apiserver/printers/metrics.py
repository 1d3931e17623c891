"""Metrics of nodes and pods: what they use, and over which time it was measured. Columns are a metrics server's."""

from __future__ import annotations

from typing import Final

from pybernetes.api.metrics.v1beta1 import NodeMetrics, PodMetrics
from pybernetes.api.quantity import Quantity, parse

from .printer import NAME, Cells, Column, Printer, name

_COLUMNS: Final = (NAME, Column("cpu", format="quantity"), Column("memory", format="quantity"), Column("Window"))


def _node(metrics: NodeMetrics, now: float) -> Cells:
    usage = metrics.usage or {}
    return [name(metrics), str(usage.get("cpu", "")), str(usage.get("memory", "")), metrics.window or ""]


def _pod(metrics: PodMetrics, now: float) -> Cells:
    totals: dict[str, Quantity] = {}
    for container in metrics.containers or ():
        for resource, amount in (container.usage or {}).items():
            found = parse(str(amount))
            totals[resource] = totals[resource] + found if resource in totals else found
    return [name(metrics), str(totals.get("cpu", "")), str(totals.get("memory", "")), metrics.window or ""]


PRINTERS: Final = {"NodeMetrics": Printer(_COLUMNS, _node), "PodMetrics": Printer(_COLUMNS, _pod)}
