"""How PriorityClasses are created and updated. They have a generation, and it stays 1: nothing in them may change."""

from __future__ import annotations

from typing import Any, Final

from pybernetes.api.errors import Forbidden
from pybernetes.api.scheduling.v1 import PriorityClass
from pybernetes.apiserver.registry.strategy import Strategy


class PriorityClassStrategy(Strategy):
    """PriorityClasses."""

    has_generation = True

    def check_delete(self, obj: PriorityClass) -> None:
        name = (obj.metadata.name if obj.metadata else None) or ""
        if name in ("system-node-critical", "system-cluster-critical"):
            why = "this is a system priority class and cannot be deleted"
            raise Forbidden("scheduling.k8s.io", "priorityclasses", name, why)

    def changed(self, new: Any, old: Any) -> bool:
        return False


STRATEGIES: Final[dict[str, type[Strategy]]] = {"priorityclasses": PriorityClassStrategy}
