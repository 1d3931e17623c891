"""How PriorityClasses are created and updated. They have a generation, and it stays 1: nothing in them may change."""

from __future__ import annotations

from typing import Any, Final

from pybernetes.apiserver.registry.strategy import Strategy


class PriorityClassStrategy(Strategy):
    """PriorityClasses."""

    has_generation = True

    def changed(self, new: Any, old: Any) -> bool:
        return False


STRATEGIES: Final[dict[str, type[Strategy]]] = {"priorityclasses": PriorityClassStrategy}
