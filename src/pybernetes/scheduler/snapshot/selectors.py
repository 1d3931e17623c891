"""Node selectors and affinity terms, answered for many rows at once.

The rules are those of `api/core/nodeaffinity.py`, one node at a time there and by columns here: terms are alternatives,
a term without requirements or with a malformed one matches nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from pybernetes.api import labels
from pybernetes.api.core.v1 import PodSpec
from pybernetes.api.core.v1.affinity import (
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PreferredSchedulingTerm,
)

from ..framework.plugin import Mask, Rows, Scores
from .snapshot import ABSENT, Int32, Snapshot

_OPERATORS = {
    "In": labels.IN,
    "NotIn": labels.NOT_IN,
    "Exists": labels.EXISTS,
    "DoesNotExist": labels.DOES_NOT_EXIST,
    "Gt": labels.GREATER_THAN,
    "Lt": labels.LESS_THAN,
}


def match_required_affinity(snapshot: Snapshot, spec: PodSpec, rows: Rows) -> Mask:
    """Where `nodeSelector` and the node affinity that a pod requires let it go."""
    mask = match_labels(snapshot, spec.node_selector, rows)
    affinity = spec.affinity.node_affinity if spec.affinity else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity else None
    return mask if required is None else mask & match_node_selector(snapshot, required, rows)


def match_labels(snapshot: Snapshot, wanted: Mapping[str, str] | None, rows: Rows) -> Mask:
    """Which nodes have all of these labels."""
    mask = np.ones(snapshot.count(rows), dtype=np.bool_)
    for key, value in (wanted or {}).items():
        column = snapshot.label(key)[rows]  # first: the value gets its id when the column is made
        mask &= column == snapshot.value_id(value)
    return mask


def match_node_selector(snapshot: Snapshot, selector: NodeSelector, rows: Rows) -> Mask:
    """Where one of the terms holds."""
    mask = np.zeros(snapshot.count(rows), dtype=np.bool_)
    for term in selector.node_selector_terms or ():
        mask |= match_term(snapshot, term, rows)
    return mask


def match_term(snapshot: Snapshot, term: NodeSelectorTerm, rows: Rows) -> Mask:
    """Where all requirements of the term hold."""
    nothing = np.zeros(snapshot.count(rows), dtype=np.bool_)
    if not term.match_expressions and not term.match_fields:
        return nothing
    try:
        requirements = [
            labels.checked(each.key or "", _OPERATORS[each.operator or ""], each.values or ())
            for each in term.match_expressions or ()
        ]
    except (KeyError, labels.SelectorError):
        return nothing
    mask = _match_fields(snapshot, term.match_fields or (), rows)
    for each in requirements:
        mask &= _match(snapshot, each, rows)
    return mask


def score_preferred(snapshot: Snapshot, terms: Sequence[PreferredSchedulingTerm], rows: Rows) -> Scores:
    """The sum of the weights of the terms that hold."""
    scores = np.zeros(snapshot.count(rows), dtype=np.int64)
    for each in terms:
        if each.weight and each.preference is not None:
            scores += each.weight * match_term(snapshot, each.preference, rows)
    return scores


def _match(snapshot: Snapshot, requirement: labels.Requirement, rows: Rows) -> Mask:
    column = snapshot.label(requirement.key)[rows]
    operator = requirement.operator
    result: Mask
    if operator == labels.EXISTS:
        result = column != ABSENT
    elif operator == labels.DOES_NOT_EXIST:
        result = column == ABSENT
    elif operator in (labels.IN, labels.NOT_IN):
        result = _one_of(column, [snapshot.value_id(value) for value in requirement.values])
        if operator == labels.NOT_IN:
            result = ~result
    else:  # numbers: asked once for each distinct value
        distinct, where = np.unique(column, return_inverse=True)
        answers = [
            identity != ABSENT and requirement.matches({requirement.key: snapshot.label_values[identity] or ""})
            for identity in distinct.tolist()
        ]
        result = np.array(answers, dtype=np.bool_)[where]
    return result


def _one_of(column: Int32, ids: list[int]) -> Mask:
    if len(ids) == 1:
        same: Mask = column == ids[0]
        return same
    return np.isin(column, np.array(ids, dtype=np.int32))


def _match_fields(snapshot: Snapshot, requirements: Sequence[NodeSelectorRequirement], rows: Rows) -> Mask:
    mask = np.ones(snapshot.count(rows), dtype=np.bool_)
    for each in requirements:
        values = each.values or ()
        if each.operator not in ("In", "NotIn") or len(values) != 1:
            return np.zeros(snapshot.count(rows), dtype=np.bool_)
        if each.key == "metadata.name":
            row = snapshot.row_of.get(values[0], -1)
            found = snapshot.row_numbers(rows) == row
        else:
            found = np.full(snapshot.count(rows), values[0] == "")
        mask &= found if each.operator == "In" else ~found
    return mask
