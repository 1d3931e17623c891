"""Whether expressions compile. They are compiled only where one has changed: compiling costs half a millisecond."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...field import FieldError, Path, internal, invalid
from ..v1 import MutatingAdmissionPolicySpec, ValidatingAdmissionPolicySpec


def validate_expression(source: str, path: Path, *, params: bool = False) -> list[FieldError]:
    """A match condition: something about the request that is true or false."""
    from ..expressions import Expression, environment

    made = Expression(source, environment(params))
    return _told(made, path, source)


def _told(made: Any, path: Path, shown: str | None) -> list[FieldError]:
    if not made.error:
        return []
    return [internal(path, made.error) if made.internal else invalid(path, shown, made.error)]


def validate_policy_expressions(
    spec: ValidatingAdmissionPolicySpec | MutatingAdmissionPolicySpec, path: Path
) -> list[FieldError]:
    """Everything that a policy says in CEL but its match conditions."""
    from ..expressions import Composition

    variables = [each for each in spec.variables or () if each.name and (each.expression or "").strip()]
    composition = Composition(
        ((each.name or "", each.expression or "") for each in variables), spec.param_kind is not None
    )
    errors: list[FieldError] = []
    for index, variable in enumerate(spec.variables or ()):
        made = composition.variables.get(variable.name or "")
        if made is not None:
            at = path.child("variables").index(index).child("expression")
            errors += _told(made, at, variable.expression)
    if isinstance(spec, ValidatingAdmissionPolicySpec):
        return errors + _validating(spec, composition, path)
    return errors + _mutating(spec, composition, path)


def _check(
    composition: Any, source: str | None, returns: Sequence[Any], path: Path, shown: str | None = None, **options: bool
) -> list[FieldError]:
    if not (source or "").strip():
        return []
    made = composition.compile(source, returns, **options)
    return _told(made, path, shown or source)


def _validating(spec: ValidatingAdmissionPolicySpec, composition: Any, path: Path) -> list[FieldError]:
    from ...cel.types import BOOL, NULL, STRING

    errors: list[FieldError] = []
    for index, validation in enumerate(spec.validations or ()):
        at = path.child("validations").index(index)
        errors += _check(composition, validation.expression, (BOOL,), at.child("expression"))
        errors += _check(
            composition, validation.message_expression, (STRING,), at.child("messageExpression"), authorizer=False
        )
    for index, annotation in enumerate(spec.audit_annotations or ()):
        at = path.child("auditAnnotations").index(index).child("valueExpression")
        source = (annotation.value_expression or "").strip()
        errors += _check(composition, source, (STRING, NULL), at, annotation.value_expression)
    return errors


def _mutating(spec: MutatingAdmissionPolicySpec, composition: Any, path: Path) -> list[FieldError]:
    from ...cel.types import list_of
    from ..expressions import JSON_PATCH, object_type

    errors: list[FieldError] = []
    for index, mutation in enumerate(spec.mutations or ()):
        at = path.child("mutations").index(index)
        if mutation.patch_type == "ApplyConfiguration" and mutation.apply_configuration is not None:
            source = (mutation.apply_configuration.expression or "").strip()
            place = at.child("applyConfiguration", "expression")
            errors += _check(composition, source, (object_type("Object"),), place, patch=True)
        elif mutation.patch_type == "JSONPatch" and mutation.json_patch is not None:
            source = (mutation.json_patch.expression or "").strip()
            place = at.child("jsonPatch", "expression")
            errors += _check(composition, source, (list_of(JSON_PATCH),), place, patch=True)
    return errors
