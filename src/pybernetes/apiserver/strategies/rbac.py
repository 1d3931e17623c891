"""Strategies of roles and bindings: a PUT may create them, and users grant only permissions that they have."""

from __future__ import annotations

from typing import Any, Final

from pybernetes.apiserver.authz.escalation import check_binding, check_role
from pybernetes.apiserver.registry.strategy import Context, Strategy


class RoleStrategy(Strategy):
    """Roles, of a namespace or of the cluster."""

    allow_create_on_update = True
    guards = True

    async def guard(self, new: Any, old: Any | None, context: Context) -> None:
        """Refuse rules that the user does not have."""
        await check_role(new, old, context, self.resource.plural)


class BindingStrategy(Strategy):
    """Bindings, in a namespace or for the cluster."""

    allow_create_on_update = True
    guards = True

    async def guard(self, new: Any, old: Any | None, context: Context) -> None:
        """Refuse a role whose rules the user does not have."""
        await check_binding(new, old, context, self.resource.plural)


STRATEGIES: Final[dict[str, type[Strategy]]] = {
    "clusterrolebindings": BindingStrategy,
    "clusterroles": RoleStrategy,
    "rolebindings": BindingStrategy,
    "roles": RoleStrategy,
}
