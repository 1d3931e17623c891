"""Spread constraints, read once for all pods that have the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec

from pybernetes.api import labels
from pybernetes.api.core.v1.affinity import TopologySpreadConstraint

DO_NOT_SCHEDULE = "DoNotSchedule"
SCHEDULE_ANYWAY = "ScheduleAnyway"
HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"

SYSTEM_DEFAULTS = (
    TopologySpreadConstraint(topology_key=HOSTNAME, when_unsatisfiable=SCHEDULE_ANYWAY, max_skew=3),
    TopologySpreadConstraint(topology_key=ZONE, when_unsatisfiable=SCHEDULE_ANYWAY, max_skew=5),
)
"""Upstream's, for pods that say nothing about spreading."""

_MOST = 4096
_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class Constraint:
    """One constraint with its selector read and its defaults filled in."""

    topology_key: str
    max_skew: int
    min_domains: int
    selector: labels.Selector
    selector_key: str
    """Selectors with equal keys select the same."""
    honor_affinity: bool
    """Nodes that the pod's own selector and affinity exclude are no part of their domain."""
    honor_taints: bool
    """Nodes with taints that the pod does not bear are no part of their domain."""

    @property
    def counts(self) -> bool:
        """Whether it counts pods at all: upstream lets an empty selector count none, though it selects everything."""
        return not self.selector.empty() and not self.selector.selects_nothing


Constraints = tuple[Constraint, ...]


class ConstraintReader:
    """Reads constraints; `labels.SelectorError` when a selector is malformed."""

    def __init__(self) -> None:
        self._known: dict[tuple[object, ...], Constraints] = {}

    def read(
        self, constraints: Sequence[TopologySpreadConstraint], action: str, pod_labels: Mapping[str, str]
    ) -> Constraints:
        """Those of the constraints with this action, as they are for a pod with such labels."""
        same = tuple(
            (key, pod_labels[key]) for each in constraints for key in each.match_label_keys or () if key in pod_labels
        )
        known = (_encode(constraints), action, same)
        found = self._known.get(known)
        if found is None:
            if len(self._known) >= _MOST:
                self._known.clear()
            found = self._known[known] = tuple(
                constraint(each, _selector(each, pod_labels))
                for each in constraints
                if each.when_unsatisfiable == action
            )
        return found


def constraint(given: TopologySpreadConstraint, selector: labels.Selector) -> Constraint:
    """A constraint that counts what the selector selects."""
    return Constraint(
        given.topology_key or "",
        given.max_skew or 0,
        given.min_domains or 1,
        selector,
        "nothing" if selector.selects_nothing else f"={selector}",
        given.node_affinity_policy != "Ignore",
        given.node_taints_policy == "Honor",
    )


def _selector(given: TopologySpreadConstraint, pod_labels: Mapping[str, str]) -> labels.Selector:
    selector = labels.from_label_selector(given.label_selector)
    same = {key: pod_labels[key] for key in given.match_label_keys or () if key in pod_labels}
    if not same or selector.selects_nothing:
        return selector
    # The API server has merged them already when the pod was made; merging twice does no harm.
    extra = (labels.Requirement(key, labels.IN, (value,)) for key, value in same.items())
    return labels.Selector((*selector.requirements, *extra))
