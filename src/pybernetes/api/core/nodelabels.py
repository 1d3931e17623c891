"""Deprecated labels of nodes, and the warnings for their users."""

from __future__ import annotations

from typing import Final

from ..field import Path
from ..meta.v1.labelselector import LabelSelector

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


def selector_warnings(selector: LabelSelector | None, path: Path) -> list[str]:
    """Warnings about a selector of nodes."""
    if selector is None:
        return []
    warnings: list[str] = []
    for index, expression in enumerate(selector.match_expressions or ()):
        if text := DEPRECATED.get(expression.key or ""):
            warnings.append(f"{path.child('matchExpressions').index(index).child('key')}: {expression.key} is {text}")
    for key in selector.match_labels or ():
        if text := DEPRECATED.get(key):
            warnings.append(f"{path.child('matchLabels', key)}: {text}")
    return warnings
