"""`matchLabelKeys`: selectors that ask for other pods with the same value of a label as the pod itself has.

When a pod is created the value is known, and the key becomes a plain condition of the selector.
"""

from __future__ import annotations

from ..meta.v1.labelselector import LabelSelector, LabelSelectorRequirement
from .v1.affinity import PodAffinityTerm
from .v1.pod import Pod


def merge_match_label_keys(pod: Pod) -> None:
    """Add the conditions to the selectors of affinities and spread constraints."""
    spec = pod.spec
    labels = (pod.metadata.labels if pod.metadata is not None else None) or {}
    if spec is None:
        return
    if spec.affinity is not None:
        for affinity in (spec.affinity.pod_affinity, spec.affinity.pod_anti_affinity):
            if affinity is None:
                continue
            for weighted in affinity.preferred_during_scheduling_ignored_during_execution or ():
                if weighted.pod_affinity_term is not None:
                    _merge_term(weighted.pod_affinity_term, labels)
            for term in affinity.required_during_scheduling_ignored_during_execution or ():
                _merge_term(term, labels)
    for constraint in spec.topology_spread_constraints or ():
        if constraint.match_label_keys and constraint.label_selector is not None:
            _merge(constraint.label_selector, constraint.match_label_keys, "In", labels)


def _merge_term(term: PodAffinityTerm, labels: dict[str, str]) -> None:
    if term.label_selector is not None:
        _merge(term.label_selector, term.match_label_keys, "In", labels)
        _merge(term.label_selector, term.mismatch_label_keys, "NotIn", labels)


def _merge(selector: LabelSelector, keys: list[str] | None, operator: str, labels: dict[str, str]) -> None:
    extra = [
        LabelSelectorRequirement(key=key, operator=operator, values=[labels[key]])
        for key in keys or ()
        if key in labels
    ]
    if extra:
        selector.match_expressions = [*(selector.match_expressions or ()), *extra]
