"""How roles and bindings are created and updated: a PUT may create them. Who may grant what is for authorization."""

from __future__ import annotations

from typing import Final

from pybernetes.apiserver.registry.strategy import Strategy


class RBACStrategy(Strategy):
    """Roles and bindings, of a namespace or of the cluster."""

    allow_create_on_update = True


STRATEGIES: Final[dict[str, type[Strategy]]] = {
    "clusterrolebindings": RBACStrategy,
    "clusterroles": RBACStrategy,
    "rolebindings": RBACStrategy,
    "roles": RBACStrategy,
}
