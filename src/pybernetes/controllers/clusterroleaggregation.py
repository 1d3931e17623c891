"""Gives ClusterRoles with an aggregation rule the rules of the ClusterRoles that it selects.

Woken by: any ClusterRole. Writes: `rules`, by server-side apply and by force: edits by hand are overwritten.
"""

from __future__ import annotations

from collections.abc import Iterable

from pybernetes.api import labels
from pybernetes.api.meta.v1 import ObjectMeta
from pybernetes.api.rbac.v1 import ClusterRole, PolicyRule
from pybernetes.client.keys import Key, key_of

from .base import Controller
from .common.meta import labels_of, name_of


class ClusterRoleAggregationController(Controller[ClusterRole]):
    """Aggregates."""

    name = "clusterrole-aggregation-controller"
    kind = ClusterRole
    workers = 5

    def setup(self) -> None:
        """Any role may be part of any other."""
        self.own.add_handler(lambda _: self._wake(), lambda _, __: self._wake(), lambda _: self._wake())

    def queue_name(self) -> str:
        """The name of the queue in metrics, as upstream names it."""
        return "ClusterRoleAggregator"

    def concerns(self, old: ClusterRole | None, new: ClusterRole | None) -> bool:
        """`_wake` does it."""
        return False

    def _wake(self) -> None:
        for role in self.own.items():
            if role.aggregation_rule is not None:
                self.queue.add(key_of(role))

    async def reconcile(self, key: Key) -> float | None:
        """Write the rules if they are not right."""
        role = self.own.get(key)
        if role is None or role.aggregation_rule is None:
            return None
        rules = aggregated(role, self.own.items())
        if rules != (role.rules or []):
            desired = ClusterRole(metadata=ObjectMeta(name=key.name), rules=rules)
            await self.client.apply(desired, field_manager="clusterrole-aggregation-controller", force=True)
        return None


def aggregated(role: ClusterRole, others: Iterable[ClusterRole]) -> list[PolicyRule]:
    """The rules of all selected roles: by selector, then by name, each once."""
    rules: list[PolicyRule] = []
    by_name = sorted(others, key=name_of)
    for selector in (role.aggregation_rule.cluster_role_selectors if role.aggregation_rule else None) or ():
        chosen = labels.from_label_selector(selector)
        for other in by_name:
            if name_of(other) != name_of(role) and chosen.matches(labels_of(other)):
                rules += [each for each in other.rules or () if each not in rules]
    return rules
