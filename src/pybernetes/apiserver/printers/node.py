"""RuntimeClasses."""

from __future__ import annotations

from typing import Final

from pybernetes.api.node.v1 import RuntimeClass

from .printer import AGE, NAME, Cells, Printer, age, name, text


def _runtime_class(runtime_class: RuntimeClass, now: float) -> Cells:
    return [name(runtime_class), runtime_class.handler or "", age(runtime_class, now)]


PRINTERS: Final[dict[str, Printer]] = {
    "RuntimeClass": Printer((NAME, text("Handler", "What the runtime calls it"), AGE), _runtime_class),
}
