"""How Leases are created and updated.

A PUT may create one, and must say which version it replaces. Who holds it next is not yet for the server to choose:
the fields for coordinated leader election are behind a feature gate that is off, and dropped.
"""

from __future__ import annotations

from typing import Final

from pybernetes.api.coordination.v1 import Lease
from pybernetes.apiserver.registry.strategy import Context, Strategy


class LeaseStrategy(Strategy):
    """Leases."""

    allow_create_on_update = True
    allow_unconditional_update = False

    def prepare_for_create(self, obj: Lease, context: Context) -> None:
        super().prepare_for_create(obj, context)
        if obj.spec is not None:
            obj.spec.strategy = obj.spec.preferred_holder = None

    def prepare_for_update(self, new: Lease, old: Lease, context: Context) -> None:
        super().prepare_for_update(new, old, context)
        if new.spec is not None:
            if old.spec is None or old.spec.strategy is None:
                new.spec.strategy = None
            if old.spec is None or old.spec.preferred_holder is None:
                new.spec.preferred_holder = None


STRATEGIES: Final[dict[str, type[Strategy]]] = {"leases": LeaseStrategy}
