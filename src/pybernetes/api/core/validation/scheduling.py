"""Where a pod may run: node selectors, affinities, tolerations, spreading, gates."""

from __future__ import annotations

from typing import Final

from ...field import FieldError, Path, duplicate, forbidden, invalid, not_supported, required
from ...gocompat.quote import quote
from ...meta.v1.labelselector import LabelSelector
from ...meta.validation import validate_label_name, validate_label_selector
from ...names import is_decimal_integer, is_label_value
from ..v1.affinity import (
    Affinity,
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PodAffinity,
    PodAffinityTerm,
    PodAntiAffinity,
    Toleration,
    TopologySpreadConstraint,
)
from ..v1.pod import PodReadinessGate, PodSchedulingGate
from .common import dns1123_label, dns1123_subdomain, validate_positive, validate_qualified_name

TAINT_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_INCLUSION_POLICIES: Final = ("Honor", "Ignore")
_UNSATISFIABLE: Final = ("DoNotSchedule", "ScheduleAnyway")
_NOT_AN_OPERATOR: Final = "not a valid selector operator"


def validate_affinity(
    affinity: Affinity, path: Path, *, invalid_selector_values: bool, invalid_node_values: bool
) -> list[FieldError]:
    """Validate required and preferred affinity to nodes and pods."""
    errors: list[FieldError] = []
    if affinity.node_affinity is not None:
        at = path.child("nodeAffinity")
        errors += validate_node_affinity(affinity.node_affinity, at, invalid_values=invalid_node_values)
    for wire, each in (("podAffinity", affinity.pod_affinity), ("podAntiAffinity", affinity.pod_anti_affinity)):
        if each is not None:
            errors += _validate_pod_affinity(each, path.child(wire), invalid_selector_values)
    return errors


def validate_node_affinity(affinity: NodeAffinity, path: Path, *, invalid_values: bool = False) -> list[FieldError]:
    """Validate required terms (one selector) and preferred ones (with weights)."""
    errors: list[FieldError] = []
    demands = affinity.required_during_scheduling_ignored_during_execution
    if demands is not None:
        at = path.child("requiredDuringSchedulingIgnoredDuringExecution")
        errors += validate_node_selector(demands, at, invalid_values=invalid_values)
    for index, term in enumerate(affinity.preferred_during_scheduling_ignored_during_execution or ()):
        at = path.child("preferredDuringSchedulingIgnoredDuringExecution").index(index)
        _validate_weight(term.weight, at, errors)
        if term.preference is not None:
            errors += validate_node_selector_term(term.preference, at.child("preference"), invalid_values=True)
    return errors


def _validate_weight(weight: int | None, path: Path, errors: list[FieldError]) -> None:
    if not 0 < (weight or 0) <= 100:
        errors.append(invalid(path.child("weight"), weight or 0, "must be in the range 1-100"))


def validate_node_selector(selector: NodeSelector, path: Path, *, invalid_values: bool = False) -> list[FieldError]:
    """At least one term; a node must fulfil any of them."""
    at = path.child("nodeSelectorTerms")
    if not selector.node_selector_terms:
        return [required(at, "must have at least one node selector term")]
    errors: list[FieldError] = []
    for index, term in enumerate(selector.node_selector_terms):
        errors += validate_node_selector_term(term, at.index(index), invalid_values=invalid_values)
    return errors


def validate_node_selector_term(
    term: NodeSelectorTerm, path: Path, *, invalid_values: bool = False
) -> list[FieldError]:
    """Conditions on labels and on the name of a node, all of which must hold."""
    errors: list[FieldError] = []
    for index, each in enumerate(term.match_expressions or ()):
        errors += _validate_expression(each, path.child("matchExpressions").index(index), invalid_values)
    for index, each in enumerate(term.match_fields or ()):
        errors += _validate_field(each, path.child("matchFields").index(index))
    return errors


def _validate_expression(each: NodeSelectorRequirement, path: Path, invalid_values: bool) -> list[FieldError]:
    errors: list[FieldError] = []
    values = each.values or ()
    if each.operator in ("In", "NotIn"):
        if not values:
            errors.append(required(path.child("values"), "must be specified when `operator` is 'In' or 'NotIn'"))
    elif each.operator in ("Exists", "DoesNotExist"):
        if values:
            detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            errors.append(forbidden(path.child("values"), detail))
    elif each.operator in ("Gt", "Lt"):
        if len(values) != 1:
            detail = "must be specified single value when `operator` is 'Lt' or 'Gt'"
            errors.append(required(path.child("values"), detail))
    else:
        errors.append(invalid(path.child("operator"), each.operator or "", _NOT_AN_OPERATOR))
    errors += validate_label_name(each.key, path.child("key"))
    if not invalid_values:
        for index, value in enumerate(values):
            errors += [invalid(path.child("values").index(index), value, problem) for problem in is_label_value(value)]
    return errors


def _validate_field(each: NodeSelectorRequirement, path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    values = each.values or ()
    if each.operator not in ("In", "NotIn"):
        errors.append(invalid(path.child("operator"), each.operator or "", _NOT_AN_OPERATOR))
    elif len(values) != 1:
        detail = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        errors.append(required(path.child("values"), detail))
    if each.key != "metadata.name":
        errors.append(invalid(path.child("key"), each.key or "", "not a valid field selector key"))
    else:
        for index, value in enumerate(values):
            at = path.child("values").index(index)
            errors += [invalid(at, value, problem) for problem in dns1123_subdomain(value)]
    return errors


def _validate_pod_affinity(each: PodAffinity | PodAntiAffinity, path: Path, invalid_values: bool) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, term in enumerate(each.required_during_scheduling_ignored_during_execution or ()):
        at = path.child("requiredDuringSchedulingIgnoredDuringExecution").index(index)
        errors += _validate_pod_affinity_term(term, at, invalid_values)
    for index, weighted in enumerate(each.preferred_during_scheduling_ignored_during_execution or ()):
        at = path.child("preferredDuringSchedulingIgnoredDuringExecution").index(index)
        _validate_weight(weighted.weight, at, errors)
        term = weighted.pod_affinity_term or PodAffinityTerm()
        errors += _validate_pod_affinity_term(term, at.child("podAffinityTerm"), invalid_values)
    return errors


def _validate_pod_affinity_term(term: PodAffinityTerm, path: Path, invalid_values: bool) -> list[FieldError]:
    errors = validate_label_selector(
        term.label_selector, path.child("labelSelector"), allow_invalid_values=invalid_values
    )
    errors += validate_label_selector(
        term.namespace_selector, path.child("namespaceSelector"), allow_invalid_values=invalid_values
    )
    for namespace in term.namespaces or ():
        errors += [invalid(path.child("namespace"), namespace, problem) for problem in dns1123_label(namespace)]
    errors += validate_match_label_keys(term.match_label_keys, term.mismatch_label_keys, term.label_selector, path)
    if not term.topology_key:
        errors.append(required(path.child("topologyKey"), "can not be empty"))
    return errors + validate_label_name(term.topology_key, path.child("topologyKey"))


def validate_match_label_keys(
    match: list[str] | None, mismatch: list[str] | None, selector: LabelSelector | None, path: Path
) -> list[FieldError]:
    """Keys whose values come from the pod itself. They are merged into the selector before this is asked."""
    if not match and not mismatch:
        return []
    errors: list[FieldError] = []
    for wire, keys in (("matchLabelKeys", match), ("mismatchLabelKeys", mismatch)):
        if keys and selector is None:
            errors.append(forbidden(path.child(wire), "must not be specified when labelSelector is not set"))
        elif keys:
            for index, key in enumerate(keys):
                errors += validate_label_name(key, path.child(wire).index(index))
    if selector is not None:
        positions = {key: index for index, key in enumerate(match or ())}
        seen = set(selector.match_labels or ())
        for expression in selector.match_expressions or ():
            key = expression.key or ""
            if key in positions and key in seen:
                detail = "exists in both matchLabelKeys and labelSelector"
                errors.append(invalid(path.index(positions[key]), key, detail))
            seen.add(key)
    mismatched = frozenset(mismatch or ())
    for index, key in enumerate(match or ()):
        if key in mismatched:
            detail = "exists in both matchLabelKeys and mismatchLabelKeys"
            errors.append(invalid(path.child("matchLabelKeys").index(index), key, detail))
    return errors


def _validate_unmerged_match_label_keys(
    keys: list[str] | None, selector: LabelSelector | None, path: Path
) -> list[FieldError]:
    """The rule from before the keys were merged into the selector."""
    if not keys:
        return []
    errors: list[FieldError] = []
    used: set[str] = set()
    if selector is None:
        errors.append(forbidden(path, "must not be specified when labelSelector is not set"))
    else:
        used = {*(selector.match_labels or ()), *(each.key or "" for each in selector.match_expressions or ())}
    for index, key in enumerate(keys):
        errors += validate_label_name(key, path.index(index))
        if key in used:
            errors.append(invalid(path.index(index), key, "exists in both matchLabelKeys and labelSelector"))
    return errors


def validate_topology_spread_constraints(
    constraints: list[TopologySpreadConstraint], path: Path, *, legacy_keys: bool, invalid_selectors: bool
) -> list[FieldError]:
    """How evenly pods are spread over nodes and zones."""
    errors: list[FieldError] = []
    last = {(each.topology_key, each.when_unsatisfiable): index for index, each in enumerate(constraints)}
    for index, each in enumerate(constraints):
        at = path.index(index)
        errors += validate_positive(each.max_skew, at.child("maxSkew"))
        if not each.topology_key:
            errors.append(required(at.child("topologyKey"), "can not be empty"))
        action = each.when_unsatisfiable or ""
        if action not in _UNSATISFIABLE:
            errors.append(not_supported(at.child("whenUnsatisfiable"), action, _UNSATISFIABLE))
        if last[each.topology_key, each.when_unsatisfiable] > index:
            pair = f"{{{each.topology_key or ''}, {action}}}"
            errors.append(duplicate(at.child("{topologyKey, whenUnsatisfiable}"), pair))
        if each.min_domains is not None:
            errors += validate_positive(each.min_domains, at.child("minDomains"))
            if action != "DoNotSchedule":
                detail = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
                errors.append(invalid(at.child("minDomains"), each.min_domains, detail))
        for wire, policy in (
            ("nodeAffinityPolicy", each.node_affinity_policy),
            ("nodeTaintsPolicy", each.node_taints_policy),
        ):
            if policy is not None and policy not in _INCLUSION_POLICIES:
                errors.append(not_supported(at.child(wire), policy, _INCLUSION_POLICIES))
        if legacy_keys:
            where = at.child("matchLabelKeys")
            errors += _validate_unmerged_match_label_keys(each.match_label_keys, each.label_selector, where)
        else:
            errors += validate_match_label_keys(each.match_label_keys, None, each.label_selector, at)
        if not invalid_selectors:
            errors += validate_label_selector(each.label_selector, at.child("labelSelector"))
    return errors


def validate_tolerations(tolerations: list[Toleration], path: Path, *, comparing: bool = False) -> list[FieldError]:
    """Which taints of nodes a pod bears; comparing their values is a feature that is off."""
    errors: list[FieldError] = []
    for index, each in enumerate(tolerations):
        at = path.index(index)
        operator, value, effect = each.operator or "", each.value or "", each.effect or ""
        if each.key:
            errors += validate_label_name(each.key, at.child("key"))
        elif operator != "Exists":
            detail = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
            errors.append(invalid(at.child("operator"), operator, detail))
        if each.toleration_seconds is not None and effect != "NoExecute":
            detail = "effect must be 'NoExecute' when `tolerationSeconds` is set"
            errors.append(invalid(at.child("effect"), effect, detail))
        if operator in ("", "Equal"):
            problems = is_label_value(value) if value else []
            if problems:
                errors.append(invalid(at.child("operator"), value, ";".join(problems)))
        elif operator == "Exists":
            if value:
                detail = "value must be empty when `operator` is 'Exists'"
                errors.append(invalid(at.child("operator"), value, detail))
        elif operator in ("Lt", "Gt"):
            if comparing:
                errors += _validate_number(value, at.child("value"))
            else:
                errors.append(not_supported(at.child("operator"), operator, ("Equal", "Exists", "Lt", "Gt")))
        else:
            errors.append(not_supported(at.child("operator"), operator, ("Equal", "Exists")))
        if effect and effect not in TAINT_EFFECTS:
            errors.append(not_supported(at.child("effect"), effect, TAINT_EFFECTS))
    return errors


def _validate_number(value: str, path: Path) -> list[FieldError]:
    errors = [invalid(path, value, problem) for problem in is_decimal_integer(value)]
    try:
        if not -(1 << 63) <= int(value) < 1 << 63:
            detail = f"strconv.ParseInt: parsing {quote(value)}: value out of range"
            errors.append(invalid(path, value, detail))
    except ValueError:
        errors.append(invalid(path, value, f"strconv.ParseInt: parsing {quote(value)}: invalid syntax"))
    return errors


def validate_only_added_tolerations(
    new: list[Toleration], old: list[Toleration], path: Path, *, comparing: bool = False
) -> list[FieldError]:
    """A pod's tolerations may grow, and the seconds in them may change."""
    kept = {(each.key, each.operator, each.value, each.effect) for each in new}
    if any((each.key, each.operator, each.value, each.effect) not in kept for each in old):
        return [forbidden(path, "existing toleration can not be modified except its tolerationSeconds")]
    return validate_tolerations(new, path, comparing=comparing)


def validate_readiness_gates(gates: list[PodReadinessGate], path: Path) -> list[FieldError]:
    """Conditions that must hold beside those of the containers."""
    errors: list[FieldError] = []
    for index, gate in enumerate(gates):
        errors += validate_qualified_name(gate.condition_type or "", path.index(index).child("conditionType"))
    return errors


def validate_scheduling_gates(gates: list[PodSchedulingGate], path: Path) -> list[FieldError]:
    """Names of those who hold the pod back, each once."""
    errors: list[FieldError] = []
    seen: set[str] = set()
    for index, gate in enumerate(gates):
        name = gate.name or ""
        errors += validate_qualified_name(name, path.index(index))
        if name in seen:
            errors.append(duplicate(path.index(index), name))
        seen.add(name)
    return errors


def validate_only_deleted_scheduling_gates(
    new: list[PodSchedulingGate], old: list[PodSchedulingGate], path: Path
) -> list[FieldError]:
    """Gates open one by one; none is added to an existing pod."""
    before = {gate.name for gate in old}
    return [
        forbidden(
            path.index(index).child("name"),
            f"only deletion is allowed, but found new scheduling gate '{gate.name or ''}'",
        )
        for index, gate in enumerate(new)
        if gate.name not in before
    ]
