"""APIServices: who serves a group and version, and whether it answers."""

from __future__ import annotations

from typing import Final

from pybernetes.api.apiregistration.v1 import APIService

from .printer import AGE, NAME, Cells, Printer, age, name, text


def _api_service(api_service: APIService, now: float) -> Cells:
    service = api_service.spec.service if api_service.spec else None
    return [
        name(api_service),
        "Local" if service is None else f"{service.namespace or ''}/{service.name or ''}",
        _available(api_service),
        age(api_service, now),
    ]


def _available(api_service: APIService) -> str:
    conditions = (api_service.status.conditions if api_service.status else None) or ()
    for condition in conditions:
        if condition.type == "Available":
            status = condition.status or ""
            return f"{status} ({condition.reason})" if condition.reason and status != "True" else status
    return "Unknown"


PRINTERS: Final[dict[str, Printer]] = {
    "APIService": Printer(
        (
            NAME,
            text("Service", "Service that answers, or Local"),
            text("Available", "Whether it answers"),
            AGE,
        ),
        _api_service,
    ),
}
