"""Whether a policy's expressions fit the kinds that it is about: warnings for its status, never a refusal.

Policies are written without types; here `object` and `params` have those of the kinds that the rules name, so that a
misspelt field is found before it lets everything pass or nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..cel import types as t
from ..cel.ast import CompileError
from ..cel.environment import Environment
from ..cel.libraries.authorizer import AUTHORIZER
from ..cel.types import Field, Type
from .expressions import REQUEST, namespace_type
from .v1 import ExpressionWarning, ValidatingAdmissionPolicy, ValidatingAdmissionPolicySpec

MAX_TYPES = 10

GroupVersionResource = tuple[str, str, str]


def resources_named(policy: ValidatingAdmissionPolicy) -> list[GroupVersionResource]:
    """The resources whose names the rules say in full, without wildcards."""
    spec = policy.spec or ValidatingAdmissionPolicySpec()
    found: list[GroupVersionResource] = []
    for rule in (spec.match_constraints and spec.match_constraints.resource_rules) or ():
        groups, versions = rule.api_groups or [], rule.api_versions or []
        if any("*" in each for each in (*groups, *versions)):
            continue
        plurals = [each for each in rule.resources or () if "*" not in each and "/" not in each]
        found += [(g, v, r) for g in sorted(groups) for v in sorted(versions) for r in sorted(plurals)]
    return found


def check_types(
    policy: ValidatingAdmissionPolicy, kinds: Mapping[tuple[str, str, str], Type | None], params: Type | None
) -> list[ExpressionWarning]:
    """Type errors in the expressions of a policy; `kinds` are types by group, version and kind."""
    spec = policy.spec or ValidatingAdmissionPolicySpec()
    environments = [(_shown(*name), _environment(spec, kinds[name], params)) for name in sorted(kinds)]
    warnings: list[ExpressionWarning] = []
    for index, validation in enumerate(spec.validations or ()):
        for field, expression in (
            ("expression", validation.expression),
            ("messageExpression", validation.message_expression),
        ):
            if field == "messageExpression" and not expression:
                continue
            text = _problems(expression or "", environments)
            if text:
                warnings.append(ExpressionWarning(f"spec.validations[{index}].{field}", text))
    return warnings


def _shown(group: str, version: str, kind: str) -> str:
    return f"{group}/{version}, Kind={kind}"


def _problems(expression: str, environments: Iterable[tuple[str, Environment]]) -> str:
    found = []
    for shown, environment in environments:
        try:
            environment.compile(expression)
        except CompileError as error:
            found.append(f"{shown}: {error}\n")
    return "\n".join(found)


def _environment(spec: ValidatingAdmissionPolicySpec, kind: Type | None, params: Type | None) -> Environment:
    fields: dict[str, Field] = {}
    variables = {
        "object": kind or t.DYN,
        "oldObject": kind or t.DYN,
        "namespaceObject": namespace_type(),
        "request": REQUEST,
        "authorizer": AUTHORIZER,
        "variables": Type("object", "kubernetes.variables", fields=fields),
    }
    if spec.param_kind is not None:
        variables["params"] = params or t.DYN
    environment = Environment(variables)
    for variable in spec.variables or ():
        try:
            found = environment.compile(variable.expression or "").result_type
        except CompileError:
            found = t.DYN
        fields[variable.name or ""] = Field(found, variable.name or "")
    return environment
