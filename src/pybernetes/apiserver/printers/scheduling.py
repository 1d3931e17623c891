"""PriorityClasses."""

from __future__ import annotations

from typing import Final

from pybernetes.api.scheduling.v1 import PriorityClass

from .printer import AGE, NAME, Cells, Printer, age, boolean, integer, name, text


def _priority_class(priority_class: PriorityClass, now: float) -> Cells:
    return [
        name(priority_class),
        priority_class.value or 0,
        bool(priority_class.global_default),
        age(priority_class, now),
        priority_class.preemption_policy or "",
    ]


PRINTERS: Final[dict[str, Printer]] = {
    "PriorityClass": Printer(
        (
            NAME,
            integer("Value", "How important the pods are"),
            boolean("Global-Default", "Whether pods without a class get this one"),
            AGE,
            text("PreemptionPolicy", "Whether other pods have to give way"),
        ),
        _priority_class,
    ),
}
