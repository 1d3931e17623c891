"""Shared by the workload kinds: numbers or percentages, counters of a status, the pod template."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import msgspec

from .. import labels as selectors
from .. import names
from ..equality import semantically_equal
from ..field import FieldError, Path, forbidden, invalid, not_supported, required
from ..intstr import IntOrString, int_value
from ..meta.v1.labelselector import LabelSelector
from ..meta.validation import IMMUTABLE, NOT_NEGATIVE, validate_label_selector, validate_not_negative
from ..quantity import MAX_INT64

if TYPE_CHECKING:  # roles and budgets use this module too, and need no pods
    from ..core.v1.pod import PodTemplateSpec

SPEC = Path("spec")
STATUS = Path("status")
MISMATCH = "`selector` does not match template `labels`"


def in_order(**values: object) -> msgspec.Raw:
    """A value for a message in which upstream prints a type of its own: Go's names, in the type's order."""
    return msgspec.Raw(msgspec.json.encode(values))


def validate_immutable(new: Any, old: Any, path: Path) -> list[FieldError]:
    """A field that keeps its first value."""
    return [] if semantically_equal(new, old) else [invalid(path, new, IMMUTABLE)]


def validate_int_or_percent(value: IntOrString, path: Path) -> list[FieldError]:
    """A number from 0 on, or a percentage."""
    if isinstance(value, str):
        return [invalid(path, value, problem) for problem in names.is_percent(value)]
    return validate_not_negative(value, path)


def validate_at_most_100_percent(value: IntOrString, path: Path) -> list[FieldError]:
    """A percentage is at most 100; a number may be anything."""
    if isinstance(value, str) and not names.is_percent(value) and amount(value) > 100:
        return [invalid(path, value, "must not be greater than 100%")]
    return []


def amount(value: IntOrString | None) -> int:
    """The number, or the number before the percent sign, at most the greatest of int64; 0 for anything else."""
    if value is None:
        return 0
    if isinstance(value, str) and not names.is_percent(value):
        digits = value[:-1].lstrip("0")
        return int(digits or "0") if len(digits) < 19 else MAX_INT64
    return int_value(value)


def validate_counters(status: Any, counters: Iterable[tuple[str, str]], path: Path) -> list[FieldError]:
    """Counters of a status (attribute, name on the wire): none is negative."""
    errors: list[FieldError] = []
    for attribute, name in counters:
        value = getattr(status, attribute)
        if value is not None and value < 0:
            errors.append(invalid(path.child(name), value, NOT_NEGATIVE))
    return errors


def validate_not_more(
    status: Any, counters: Iterable[tuple[str, str]], limit: int | None, detail: str, path: Path
) -> list[FieldError]:
    """Counters of a status that stay below another one."""
    errors: list[FieldError] = []
    for attribute, name in counters:
        value = getattr(status, attribute) or 0
        if value > (limit or 0):
            errors.append(invalid(path.child(name), value, detail))
    return errors


def validate_collision_count(new: int | None, old: int | None, path: Path) -> list[FieldError]:
    """Names made from the counter of hash collisions must not come again."""
    if old is not None and (new is None or new < old):
        return [invalid(path.child("collisionCount"), new or 0, "cannot be decremented")]
    return []


def validate_required_selector(selector: LabelSelector | None, path: Path, kind: str) -> list[FieldError]:
    """A selector that is there, is well-formed and does not select everything."""
    if selector is None:
        return [required(path)]
    errors = validate_label_selector(selector, path)
    if not selector.match_labels and not selector.match_expressions:
        errors.append(invalid(path, selector, f"empty selector is invalid for {kind}"))
    return errors


def compiled(selector: LabelSelector | None) -> selectors.Selector | None:
    """The selector ready for use; None if it is malformed."""
    try:
        return selectors.from_label_selector(selector)
    except selectors.SelectorError:
        return None


def validate_restarts(template: PodTemplateSpec, kind: str, path: Path) -> list[FieldError]:
    """Pods that a controller keeps running restart for ever: no other policy, no deadline."""
    spec = template.spec
    policy = spec.restart_policy if spec else None
    errors: list[FieldError] = []
    if policy != "Always":
        errors.append(not_supported(path.child("spec", "restartPolicy"), policy or "", ("Always",)))
    if spec is not None and spec.active_deadline_seconds is not None:
        detail = f"activeDeadlineSeconds in {kind} is not Supported"
        errors.append(forbidden(path.child("spec", "activeDeadlineSeconds"), detail))
    return errors


def template_labels(template: PodTemplateSpec) -> dict[str, str] | None:
    """The labels of the pods to be."""
    return template.metadata.labels if template.metadata else None
