"""Resource quotas: what is used of what is allowed; limits have a column of their own."""

from __future__ import annotations

from typing import Final

from pybernetes.api.core.v1 import ResourceQuota, ResourceQuotaStatus

from .. import formats
from ..printer import AGE, NAME, Cells, Printer, age, name, text


def _cells(quota: ResourceQuota, now: float) -> Cells:
    status = quota.status or ResourceQuotaStatus()
    used = status.used or {}
    requests: list[str] = []
    limits: list[str] = []
    for resource, hard in sorted((status.hard or {}).items()):
        column = limits if resource.startswith("limits.") else requests
        column.append(f"{resource}: {formats.amount(used.get(resource))}/{formats.amount(hard)}")
    return [name(quota), ", ".join(requests), ", ".join(limits), age(quota, now)]


RESOURCE_QUOTA: Final = Printer(
    (
        NAME,
        text("Request", "Used and allowed, of everything but limits"),
        text("Limit", "Used and allowed, of limits"),
        AGE,
    ),
    _cells,
)
