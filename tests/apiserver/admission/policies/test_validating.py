"""ValidatingAdmissionPolicy: what is refused, warned about and noted, by which expressions."""

from __future__ import annotations

from typing import Any

import pytest
from apiserver.admission.policies.conftest import API, DEPLOYMENTS, Policy, deployment
from apiserver.client import Client


def create(api: Client, place: str, name: str, **more: Any) -> Any:
    metadata = {"name": name, **more.pop("metadata", {})}
    return api.post(f"/api/v1/namespaces/{place}/configmaps", {"metadata": metadata, **more})


def test_too_many_replicas_are_refused(api: Client, place: str, policy: Policy) -> None:
    validations = [{"expression": "object.spec.replicas <= 5"}]
    name = policy("validating", {"rules": DEPLOYMENTS, "validations": validations})
    path = f"/apis/apps/v1/namespaces/{place}/deployments"
    assert api.post(path, deployment("few", 3)).status == 201
    refused = api.post(path, deployment("many", 9))
    assert refused.status == 422
    assert refused.json["reason"] == "Invalid"
    said = (
        f"ValidatingAdmissionPolicy '{name}' with binding '{name}' denied request: "
        "failed expression: object.spec.replicas <= 5"
    )
    assert refused.message == f'deployments.apps "many" is forbidden: {said}'
    assert refused.json["details"]["causes"] == [{"message": said}]
    assert api.patch(f"{path}/few", {"spec": {"replicas": 6}}).status == 422


@pytest.mark.parametrize(
    ("validation", "code", "reason", "message"),
    [
        ({"message": "  not like this "}, 422, "Invalid", "not like this"),
        ({"reason": "Forbidden"}, 403, "Forbidden", "failed expression: false"),
        ({"messageExpression": "'it is ' + object.metadata.name", "message": "no"}, 422, "Invalid", "it is x"),
        ({"messageExpression": "object.nope", "message": "fallback"}, 422, "Invalid", "fallback"),
        ({"messageExpression": "'two\\nlines'"}, 422, "Invalid", "failed expression: false"),
    ],
)
def test_the_message_is_the_best_there_is(
    validation: dict[str, Any], code: int, reason: str, message: str, api: Client, place: str, policy: Policy
) -> None:
    validation = {"expression": "false", **validation}
    if validation.get("messageExpression") == "object.nope":
        validation["messageExpression"] = "string(object.nope)"
    policy("validating", {"validations": [validation]})
    answer = create(api, place, "x")
    assert (answer.status, answer.json["reason"]) == (code, reason)
    assert answer.message.endswith(f"denied request: {message}")


def test_everything_about_the_request_can_be_seen(api: Client, place: str, policy: Policy) -> None:
    expressions = [
        "request.operation in ['CREATE', 'UPDATE']",
        "request.userInfo.username == 'kubernetes-admin' && 'system:masters' in request.userInfo.groups",
        "request.resource.resource == 'configmaps' && request.kind.kind == 'ConfigMap'",
        "request.namespace == namespaceObject.metadata.name",
        "namespaceObject.metadata.labels['kubernetes.io/metadata.name'] == request.namespace",
        "namespaceObject.metadata.creationTimestamp > timestamp('2020-01-01T00:00:00Z') || true",
        "namespaceObject.status.phase == 'Active'",
        "request.operation == 'UPDATE' ? oldObject.data.a != object.data.a : oldObject == null",
        "object.kind == 'ConfigMap' && object.apiVersion == 'v1'",
        "!has(request.dryRun) || !request.dryRun",
        "authorizer.group('').resource('configmaps').namespace(request.namespace).check('create').allowed()",
        "authorizer.requestResource.check('get').allowed()",
        "!authorizer.serviceAccount('default', 'nobody').group('').resource('secrets').check('list').allowed()",
        "authorizer.path('/healthz').check('get').allowed()",
        "authorizer.group('').resource('pods').check('get').reason() != 'x'",
    ]
    policy("validating", {"validations": [{"expression": each} for each in expressions]})
    made = create(api, place, "x", data={"a": "1"})
    assert made.status == 201, made.message
    changed = api.patch(f"/api/v1/namespaces/{place}/configmaps/x", {"data": {"a": "2"}})
    assert changed.status == 200, changed.message


def test_variables_build_on_each_other_and_are_lazy(api: Client, place: str, policy: Policy) -> None:
    variables = [
        {"name": "data", "expression": "has(object.data) ? object.data : {}"},
        {"name": "keys", "expression": "variables.data.map(k, k)"},
        {"name": "never", "expression": "object.does.not.exist"},
    ]
    validations = [
        {"expression": "size(variables.keys) <= 2", "messageExpression": "'too many: ' + string(size(variables.keys))"},
        {"expression": "true || variables.never == 1"},
    ]
    policy("validating", {"variables": variables, "validations": validations})
    assert create(api, place, "few", data={"a": "1"}).status == 201
    assert create(api, place, "many", data={"a": "1", "b": "2", "c": "3"}).message.endswith("too many: 3")


def test_an_error_counts_as_the_failure_policy_says(api: Client, place: str, policy: Policy) -> None:
    policy("validating", {"validations": [{"expression": "object.data.missing == 'x'"}]})
    answer = create(api, place, "x")
    assert answer.status == 422
    assert answer.message.endswith("expression 'object.data.missing == 'x'' resulted in error: no such key: data")


def test_errors_can_be_ignored(api: Client, place: str, policy: Policy) -> None:
    policy("validating", {"failurePolicy": "Ignore", "validations": [{"expression": "object.data.missing == 'x'"}]})
    assert create(api, place, "x").status == 201


def test_what_is_too_expensive_is_an_error(api: Client, place: str, policy: Policy) -> None:
    keys = ", ".join(f"'k{index}'" for index in range(100))
    expression = f"[{keys}].all(a, [{keys}].all(b, [{keys}].all(c, a + b + c != '')))"
    policy("validating", {"validations": [{"expression": expression}]})
    answer = create(api, place, "x")
    assert answer.status == 422
    assert "operation cancelled: actual cost limit exceeded" in answer.message


def test_all_expressions_share_a_budget(api: Client, place: str, policy: Policy) -> None:
    expression = "lists.range(900).all(a, lists.range(100).all(b, a + b >= 0))"
    policy("validating", {"validations": [{"expression": expression}] * 20})
    answer = create(api, place, "x")
    assert answer.message.endswith(
        "validation failed due to running out of cost budget, no further validation rules will be run"
    )


def test_match_conditions_decide_first(api: Client, place: str, policy: Policy) -> None:
    conditions = [{"name": "only-bad", "expression": "object.metadata.name.startsWith('bad')"}]
    policy("validating", {"matchConditions": conditions, "validations": [{"expression": "false"}]})
    assert create(api, place, "good").status == 201
    assert create(api, place, "bad").status == 422


@pytest.mark.parametrize(
    ("constraints", "hit"),
    [
        ({"objectSelector": {"matchLabels": {"a": "b"}}}, "labelled"),
        ({"excludeResourceRules": [{
            "apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"],
            "resourceNames": ["plain"]}]}, "labelled"),
        ({"resourceRules": [{
            "apiGroups": ["*"], "apiVersions": ["*"], "operations": ["CREATE"], "resources": ["*"],
            "resourceNames": ["labelled"]}]}, "labelled"),
    ],
)  # fmt: skip
def test_constraints_narrow_a_policy(
    constraints: dict[str, Any], hit: str, api: Client, place: str, policy: Policy
) -> None:
    rules = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}]
    match = {"resourceRules": rules, **constraints}
    policy("validating", {"matchConstraints": match, "validations": [{"expression": "false"}]})
    found = {
        "plain": create(api, place, "plain").status,
        "labelled": create(api, place, "labelled", metadata={"labels": {"a": "b"}}).status,
    }
    assert found == {name: 422 if name == hit else 201 for name in found}


def test_warnings_instead_of_refusals(api: Client, place: str, policy: Policy) -> None:
    validations = [{"expression": "false", "message": "better not"}]
    name = policy("validating", {"validations": validations}, {"validationActions": ["Warn", "Audit"]})
    answer = create(api, place, "x")
    assert answer.status == 201
    said = f"Validation failed for ValidatingAdmissionPolicy '{name}' with binding '{name}': better not"
    assert any(said in each for each in answer.warnings)


class TestParameters:
    SPEC = {
        "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
        "rules": DEPLOYMENTS,
        "validations": [
            {
                "expression": "params == null || object.spec.replicas <= int(params.data.most)",
                "messageExpression": "'at most ' + params.data.most",
            }
        ],
    }

    def post(self, api: Client, place: str, replicas: int) -> Any:
        path = f"/apis/apps/v1/namespaces/{place}/deployments"
        return api.post(path, deployment(f"d{replicas}", replicas))

    def test_by_name(self, api: Client, place: str, policy: Policy) -> None:
        reference = {"name": "limits", "parameterNotFoundAction": "Deny"}
        policy("validating", dict(self.SPEC), {"paramRef": reference})
        answer = self.post(api, place, 1)
        words = "failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction"
        assert answer.message.endswith(words)
        assert create(api, place, "limits", data={"most": "3"}).status == 201
        assert self.post(api, place, 2).status == 201
        assert self.post(api, place, 4).message.endswith("at most 3")
        api.patch(f"/api/v1/namespaces/{place}/configmaps/limits", {"data": {"most": "5"}})
        assert self.post(api, place, 4).status == 201

    def test_by_selector_each_counts(self, api: Client, place: str, policy: Policy) -> None:
        reference = {"selector": {"matchLabels": {"kind": "limit"}}, "parameterNotFoundAction": "Allow"}
        policy("validating", dict(self.SPEC), {"paramRef": reference})
        assert self.post(api, place, 9).status == 201
        for most in (3, 7):
            create(api, place, f"limit-{most}", metadata={"labels": {"kind": "limit"}}, data={"most": str(most)})
        assert self.post(api, place, 5).message.endswith("at most 3")
        assert self.post(api, place, 2).status == 201

    def test_of_a_kind_that_is_not_there(self, api: Client, place: str, policy: Policy) -> None:
        spec = {**self.SPEC, "paramKind": {"apiVersion": "example.com/v1", "kind": "Nope"}}
        reference = {"name": "x", "parameterNotFoundAction": "Deny"}
        policy("validating", spec, {"paramRef": reference})
        assert (
            "failed to find resource referenced by paramKind: 'example.com/v1, Kind=Nope'"
            in self.post(api, place, 1).message
        )


def test_a_change_holds_at_once(api: Client, place: str, policy: Policy) -> None:
    name = policy("validating", {"validations": [{"expression": "true"}]})
    for round in range(3):
        assert create(api, place, f"a{round}").status == 201
        change = [{"op": "replace", "path": "/spec/validations/0/expression", "value": "false"}]
        assert api.patch(f"{API}/validatingadmissionpolicies/{name}", change, "json").status == 200
        assert create(api, place, f"b{round}").status == 422
        change[0]["value"] = "true"
        assert api.patch(f"{API}/validatingadmissionpolicies/{name}", change, "json").status == 200


def test_without_a_binding_nothing_happens(api: Client, place: str, policy: Policy) -> None:
    policy("validating", {"validations": [{"expression": "false"}]}, bind=False)
    assert create(api, place, "x").status == 201


@pytest.mark.parametrize(
    ("spec", "field", "message"),
    [
        ({"validations": [{"expression": "object.x +"}]}, "spec.validations[0].expression", "Syntax error"),
        ({"validations": [{"expression": "object.x"}]}, "spec.validations[0].expression",
         "must evaluate to bool but got dyn"),
        ({"validations": [{"expression": "true", "messageExpression": "1"}]}, "spec.validations[0].messageExpression",
         "must evaluate to string but got int"),
        ({"validations": [{"expression": "true", "messageExpression": "authorizer.path('/').check('get').reason()"}]},
         "spec.validations[0].messageExpression", "undeclared reference to 'authorizer'"),
        ({"validations": [{"expression": "params.x == 1"}]}, "spec.validations[0].expression",
         "undeclared reference to 'params'"),
        ({"variables": [{"name": "a", "expression": "variables.b"}, {"name": "b", "expression": "1"}],
          "validations": [{"expression": "true"}]}, "spec.variables[0].expression", "undefined field 'b'"),
        ({"variables": [{"name": "a", "expression": "'x'"}], "validations": [{"expression": "variables.a == 1"}]},
         "spec.validations[0].expression", "found no matching overload for '_==_' applied to '(string, int)'"),
        ({"auditAnnotations": [{"key": "k", "valueExpression": "1"}]}, "spec.auditAnnotations[0].valueExpression",
         "must evaluate to one of [string null_type] but got int"),
        ({"validations": [{"expression": "true"}], "matchConditions": [{"name": "a", "expression": "foo"}]},
         "spec.matchConditions[0].expression", "undeclared reference to 'foo'"),
    ],
)  # fmt: skip
def test_expressions_are_checked_when_they_are_written(
    spec: dict[str, Any], field: str, message: str, api: Client
) -> None:
    rules = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}]
    body = {"metadata": {"name": "wrong"}, "spec": {"matchConstraints": {"resourceRules": rules}, **spec}}
    answer = api.post(f"{API}/validatingadmissionpolicies", body)
    assert answer.status == 422
    assert field in answer.message
    assert message in answer.message


def test_checks_are_counted(api: Client, place: str, policy: Policy) -> None:
    name = policy("validating", {"validations": [{"expression": "false"}]})
    create(api, place, "x")
    text = api.get("/metrics").body.decode()
    assert (
        f'apiserver_validating_admission_policy_check_total{{enforcement_action="deny",error_type="invalid_error",policy="{name}"'
        in text
    )
