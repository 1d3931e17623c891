"""The status of a policy has the type errors of its expressions."""

from __future__ import annotations

import secrets
from types import SimpleNamespace
from typing import Any

import msgspec
from controllers.conftest import Harness, MakeHarness

from pybernetes.api.admissionregistration.v1 import (
    MatchResources,
    NamedRuleWithOperations,
    ParamKind,
    ValidatingAdmissionPolicy,
    ValidatingAdmissionPolicySpec,
    Validation,
    Variable,
)
from pybernetes.api.apiextensions.v1 import CustomResourceDefinition
from pybernetes.api.meta.v1 import ObjectMeta
from pybernetes.controllers.validatingadmissionpolicystatus import ValidatingAdmissionPolicyStatusController

CONTROLLER = "validatingadmissionpolicy-status-controller"


def policy(
    *validations: Validation, resources: list[str], groups: list[str], **more: object
) -> ValidatingAdmissionPolicy:
    rule = NamedRuleWithOperations(
        api_groups=groups, api_versions=["v1"], operations=["CREATE"], resources=resources, scope="*"
    )
    spec = ValidatingAdmissionPolicySpec(
        match_constraints=MatchResources(resource_rules=[rule]),
        validations=list(validations),
        **more,  # type: ignore[arg-type]
    )
    name = f"p-{secrets.token_hex(4)}"
    return ValidatingAdmissionPolicy(metadata=ObjectMeta(name=name), spec=spec)


async def checked(h: Harness, made: ValidatingAdmissionPolicy) -> dict[str, str]:
    """The warnings, once the controller has checked."""
    found: list[ValidatingAdmissionPolicy] = []

    async def done() -> bool:
        policy = await h.client.get(ValidatingAdmissionPolicy, made.metadata.name)
        found[:] = [policy]
        return bool(policy.status and policy.status.observed_generation)

    await h.until(done, "the policy is checked")
    warnings = found[0].status.type_checking.expression_warnings or []
    return {each.field_ref: each.warning for each in warnings}


async def test_a_misspelt_field_is_found(harness: MakeHarness) -> None:
    async with harness(CONTROLLER, kubelet=False) as h:
        wrong = Validation(expression="object.spec.replicasss > 1", message_expression="string(object.spec.nope)")
        right = Validation(expression="object.spec.replicas > 1 && has(object.metadata.labels)")
        warnings = await checked(
            h, await h.client.create(policy(wrong, right, resources=["deployments"], groups=["apps"]))
        )
        assert list(warnings) == ["spec.validations[0].expression", "spec.validations[0].messageExpression"]
        assert warnings["spec.validations[0].expression"] == (
            "apps/v1, Kind=Deployment: ERROR: <input>:1:12: undefined field 'replicasss'\n"
            " | object.spec.replicasss > 1\n | ...........^\n"
        )


async def test_variables_and_parameters_have_types_too(harness: MakeHarness) -> None:
    async with harness(CONTROLLER, kubelet=False) as h:
        validations = [
            Validation(expression="variables.name == 1"),
            Validation(expression="params.data.a == 'x' && params.nope"),
            Validation(expression="object.spec.containers.all(c, c.image != '' && c.resources.limits['cpu'] != '1')"),
        ]
        more = {
            "variables": [Variable(name="name", expression="object.metadata.name")],
            "param_kind": ParamKind(api_version="v1", kind="ConfigMap"),
        }
        warnings = await checked(
            h, await h.client.create(policy(*validations, resources=["pods"], groups=[""], **more))
        )
        first, second = "spec.validations[0].expression", "spec.validations[1].expression"
        assert set(warnings) == {first, second}
        assert warnings[first].startswith("/v1, Kind=Pod: ")
        assert "found no matching overload for '_==_' applied to '(string, int)'" in warnings[first]
        assert "undefined field 'nope'" in warnings[second]


async def test_a_policy_without_faults_is_marked_as_checked(harness: MakeHarness) -> None:
    async with harness(CONTROLLER, kubelet=False) as h:
        made = policy(Validation(expression="object.anything == 1"), resources=["*"], groups=["*"])
        assert await checked(h, await h.client.create(made)) == {}


def test_of_the_custom_resources_of_a_group_the_named_one_gives_the_types() -> None:
    def definition(kind: str, group: str = "example.com") -> CustomResourceDefinition:
        versions = [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}]
        names = {"kind": kind, "plural": f"{kind.lower()}s"}
        spec = {"group": group, "scope": "Namespaced", "names": names, "versions": versions}
        return msgspec.convert({"metadata": {"name": kind}, "spec": spec}, CustomResourceDefinition)

    definitions = [definition("Apple"), definition("Pear"), definition("Plum", "other.example.com")]
    controller: Any = SimpleNamespace(definitions=SimpleNamespace(items=lambda: definitions))
    asked = policy(Validation(expression="true"), resources=["pears"], groups=["example.com"])
    found = ValidatingAdmissionPolicyStatusController._kinds(controller, asked)
    assert list(found) == [("example.com", "v1", "Pear")]
