"""How RuntimeClasses are created and updated. A PUT may create one, and must say which version it replaces."""

from __future__ import annotations

from typing import Final

from pybernetes.api.node.v1 import RuntimeClass
from pybernetes.apiserver.registry.strategy import Context, Strategy

from .nodelabels import DEPRECATED


class RuntimeClassStrategy(Strategy):
    """RuntimeClasses."""

    allow_create_on_update = True
    allow_unconditional_update = False

    def warnings_on_create(self, obj: RuntimeClass, context: Context) -> list[str]:
        selector = obj.scheduling.node_selector if obj.scheduling else None
        return [f"scheduling.nodeSelector: {DEPRECATED[key]}" for key in selector or () if key in DEPRECATED]


STRATEGIES: Final[dict[str, type[Strategy]]] = {"runtimeclasses": RuntimeClassStrategy}
