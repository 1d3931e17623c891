"""Component statuses: healthy or not, and what was answered."""

from __future__ import annotations

from typing import Final

from pybernetes.api.core.v1 import ComponentStatus

from ..printer import NAME, Cells, Printer, name, text


def _cells(component: ComponentStatus, now: float) -> Cells:
    for condition in component.conditions or ():
        if condition.type == "Healthy":
            word = "Healthy" if condition.status == "True" else "Unhealthy"
            return [name(component), word, condition.message or "", condition.error or ""]
    return [name(component), "Unknown", "", ""]


COMPONENT_STATUS: Final = Printer(
    (
        NAME,
        text("Status", "Whether the component is healthy"),
        text("Message", "What it answered"),
        text("Error", "What went wrong"),
    ),
    _cells,
)
