"""How upstream's messages print a selector: as Go prints the struct."""

from __future__ import annotations

from pybernetes.api.meta.v1.labelselector import LabelSelector


def selector_text(selector: LabelSelector | None) -> str:
    """A selector in a message."""
    if selector is None:
        return "nil"
    labels = "".join(f"{key}: {value}," for key, value in sorted((selector.match_labels or {}).items()))
    expressions = "".join(
        f"LabelSelectorRequirement{{Key:{each.key},Operator:{each.operator},Values:[{' '.join(each.values or ())}],}},"
        for each in selector.match_expressions or ()
    )
    wanted = f"MatchLabels:map[string]string{{{labels}}},MatchExpressions:[]LabelSelectorRequirement{{{expressions}}},"
    return f"&LabelSelector{{{wanted}}}"
