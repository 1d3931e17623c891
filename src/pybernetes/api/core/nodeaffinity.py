"""Which nodes a pod wants: `nodeSelector`, and the terms that node affinity requires.

Terms are alternatives; the requirements within a term must all hold. A term without any matches nothing, and so does
one that is malformed.
"""

from __future__ import annotations

from collections.abc import Sequence

from .. import labels
from .v1.affinity import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from .v1.node import Node
from .v1.pod import PodSpec

_OPERATORS = {
    "In": labels.IN,
    "NotIn": labels.NOT_IN,
    "Exists": labels.EXISTS,
    "DoesNotExist": labels.DOES_NOT_EXIST,
    "Gt": labels.GREATER_THAN,
    "Lt": labels.LESS_THAN,
}


def required_affinity_matches(spec: PodSpec, node: Node) -> bool:
    """Whether a pod with this spec may run on the node by its node selector and required node affinity."""
    if spec.node_selector and not labels.from_set(spec.node_selector).matches(_labels(node)):
        return False
    affinity = spec.affinity.node_affinity if spec.affinity else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity else None
    return required is None or node_selector_matches(required, node)


def node_selector_matches(selector: NodeSelector, node: Node) -> bool:
    """Whether one of the terms holds for the node."""
    return any(term_matches(term, node) for term in selector.node_selector_terms or ())


def term_matches(term: NodeSelectorTerm, node: Node) -> bool:
    """Whether all requirements of the term hold for the node."""
    if not term.match_expressions and not term.match_fields:
        return False
    return _expressions_match(term.match_expressions or (), _labels(node)) and _fields_match(
        term.match_fields or (), node
    )


def _expressions_match(expressions: Sequence[NodeSelectorRequirement], found: dict[str, str]) -> bool:
    try:
        requirements = [
            labels.checked(each.key or "", _OPERATORS[each.operator or ""], each.values or ()) for each in expressions
        ]
    except (KeyError, labels.SelectorError):
        return False
    return all(each.matches(found) for each in requirements)


def _fields_match(requirements: Sequence[NodeSelectorRequirement], node: Node) -> bool:
    name = (node.metadata.name if node.metadata else None) or ""
    for each in requirements:
        if each.operator not in ("In", "NotIn") or len(each.values or ()) != 1:
            return False
        found = name if each.key == "metadata.name" else ""
        if (found == (each.values or [""])[0]) != (each.operator == "In"):
            return False
    return True


def _labels(node: Node) -> dict[str, str]:
    return (node.metadata.labels if node.metadata else None) or {}
