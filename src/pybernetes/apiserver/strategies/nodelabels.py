"""Labels of nodes that have been replaced by others: selectors that use them are worth a warning."""

from __future__ import annotations

from typing import Final

from pybernetes.api.core.v1.affinity import NodeSelectorTerm
from pybernetes.api.field import Path

DEPRECATED: Final = {
    "beta.kubernetes.io/arch": 'deprecated since v1.14; use "kubernetes.io/arch" instead',
    "beta.kubernetes.io/os": 'deprecated since v1.14; use "kubernetes.io/os" instead',
    "failure-domain.beta.kubernetes.io/region": 'deprecated since v1.17; use "topology.kubernetes.io/region" instead',
    "failure-domain.beta.kubernetes.io/zone": 'deprecated since v1.17; use "topology.kubernetes.io/zone" instead',
    "beta.kubernetes.io/instance-type": 'deprecated since v1.17; use "node.kubernetes.io/instance-type" instead',
    "app.kubernetes.io/created-by": "deprecated since v1.9",
    "scheduler.alpha.kubernetes.io/preferAvoidPods": "deprecated since v1.22; use Taints and Tolerations instead",
    "node-role.kubernetes.io/master": 'use "node-role.kubernetes.io/control-plane" instead',
}


def node_selector_term_warnings(term: NodeSelectorTerm, path: Path) -> list[str]:
    """Deprecated keys in one term of a node selector."""
    return [
        f"{path.child('matchExpressions').index(index).child('key')}: {each.key} is {DEPRECATED[each.key]}"
        for index, each in enumerate(term.match_expressions or ())
        if each.key in DEPRECATED
    ]
