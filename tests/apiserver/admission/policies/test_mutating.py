"""MutatingAdmissionPolicy: objects that expressions change."""

from __future__ import annotations

from typing import Any

import pytest
from apiserver.admission.policies.conftest import API, DEPLOYMENTS, Policy, deployment
from apiserver.client import Client

import tools

PODS = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}]


def applying(expression: str) -> dict[str, Any]:
    return {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}


def patching(expression: str) -> dict[str, Any]:
    return {"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}


def spec(*mutations: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"mutations": list(mutations), "reinvocationPolicy": "Never", **more}


def config_map(api: Client, place: str, name: str, **more: Any) -> Any:
    metadata = {"name": name, **more.pop("metadata", {})}
    return api.post(f"/api/v1/namespaces/{place}/configmaps", {"metadata": metadata, **more})


def test_a_sidecar_is_laid_over_the_pod(api: Client, place: str, policy: Policy) -> None:
    expression = """
        Object{
          spec: Object.spec{
            initContainers: [
              Object.spec.initContainers{
                name: "mesh-proxy", image: "mesh-proxy:v1.0.0", restartPolicy: "Always"
              }
            ]
          }
        }"""
    conditions = [
        {
            "name": "does-not-already-have-sidecar",
            "expression": "!object.spec.?initContainers.orValue([]).exists(c, c.name == 'mesh-proxy')",
        }
    ]
    made = spec(applying(expression), rules=PODS, matchConditions=conditions, reinvocationPolicy="IfNeeded")
    policy("mutating", made)
    pod = {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "app", "image": "i"}]}}
    answer = api.post(f"/api/v1/namespaces/{place}/pods", pod)
    assert answer.status == 201, answer.body
    [container] = answer.json["spec"]["initContainers"]
    assert (container["name"], container["restartPolicy"]) == ("mesh-proxy", "Always")
    assert container["terminationMessagePath"] == "/dev/termination-log"  # defaults come after
    assert [each["name"] for each in answer.json["spec"]["containers"]] == ["app"]


def test_lists_with_keys_are_merged_by_them(api: Client, place: str, policy: Policy) -> None:
    expression = """
        Object{
          metadata: Object.metadata{labels: Object.metadata.labels{team: "a"}},
          spec: Object.spec{
            template: Object.spec.template{
              spec: Object.spec.template.spec{
                containers: object.spec.template.spec.containers.map(c,
                  Object.spec.template.spec.containers{
                    name: c.name,
                    env: [Object.spec.template.spec.containers.env{name: "FROM", value: request.namespace}]
                  })
              }
            }
          }
        }"""
    policy("mutating", spec(applying(expression), rules=DEPLOYMENTS))
    answer = api.post(f"/apis/apps/v1/namespaces/{place}/deployments", deployment("d", labels={"own": "b"}))
    assert answer.status == 201, answer.body
    assert answer.json["metadata"]["labels"] == {"own": "b", "team": "a"}
    [container] = answer.json["spec"]["template"]["spec"]["containers"]
    assert container["image"] == "example.com/app:1"
    assert container["env"] == [{"name": "FROM", "value": place}]


def test_json_patch(api: Client, place: str, policy: Policy) -> None:
    expression = """
        [
          JSONPatch{op: "add", path: "/data", value: Object.data{first: "1"}},
          JSONPatch{op: "add", path: "/data/" + jsonpatch.escapeKey("a.b"), value: variables.second},
          JSONPatch{op: "test", path: "/data/first", value: "1"},
          JSONPatch{op: "copy", from: "/data/first", path: "/data/third"}
        ]"""
    made = spec(patching(expression), variables=[{"name": "second", "expression": "'two'"}])
    policy("mutating", made)
    answer = config_map(api, place, "x")
    assert answer.status == 201, answer.body
    assert answer.json["data"] == {"first": "1", "a.b": "two", "third": "1"}


def test_a_test_that_fails_leaves_the_object_alone(api: Client, place: str, policy: Policy) -> None:
    expression = """
        [
          JSONPatch{op: "test", path: "/metadata/name", value: "other"},
          JSONPatch{op: "add", path: "/data", value: {"a": "b"}}
        ]
    """
    policy("mutating", spec(patching(expression)))
    answer = config_map(api, place, "x")
    assert answer.status == 201
    assert "data" not in answer.json


def test_mutations_run_in_order(api: Client, place: str, policy: Policy) -> None:
    first = applying("Object{data: Object.data{a: 'x'}}")
    second = applying("Object{data: Object.data{b: object.data.a + 'y'}}")
    policy("mutating", spec(first, second))
    assert config_map(api, place, "x").json["data"] == {"a": "x", "b": "xy"}


@pytest.mark.parametrize(
    ("mutation", "message"),
    [
        (applying("Object{data: Object.wrong{a: 'x'}}"),
         'type mismatch: unexpected type name "Object.wrong", expected "Object.data",'
         " which matches field name path from root Object type"),
        (applying("Object{nope: 'x'}"),
         "error applying patch: failed to convert patch object to typed object: .nope: field not declared in schema"),
        (applying("Object{data: Object.data{a: object.missing}}"), "resulted in error: no such key: missing"),
        (patching("[JSONPatch{op: 'remove', path: '/data/a/b'}]"), "JSON Patch: remove operation does not apply"),
    ],
)  # fmt: skip
def test_what_cannot_be_done_refuses_the_request(
    mutation: dict[str, Any], message: str, api: Client, place: str, policy: Policy
) -> None:
    name = policy("mutating", spec(mutation))
    answer = config_map(api, place, "x")
    assert answer.status == 403
    assert answer.json["reason"] == "Invalid"
    assert answer.message.startswith(f"policy '{name}' with binding '{name}' denied request: ")
    assert message in answer.message


def test_failures_can_be_ignored(api: Client, place: str, policy: Policy) -> None:
    policy("mutating", spec(applying("Object{data: Object.data{a: object.missing}}"), failurePolicy="Ignore"))
    assert config_map(api, place, "x").status == 201


def test_atomic_lists_may_not_be_replaced_by_accident(api: Client, place: str, policy: Policy) -> None:
    expression = """
        Object{spec: Object.spec{containers: [Object.spec.containers{name: "app", args: ["x"]}]}}
    """
    policy("mutating", spec(applying(expression), rules=PODS))
    pod = {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "app", "image": "i"}]}}
    answer = api.post(f"/api/v1/namespaces/{place}/pods", pod)
    assert answer.status == 403
    assert "may not mutate atomic arrays, maps or structs: .spec.containers[0].args" in answer.message


def test_parameters(api: Client, place: str, policy: Policy) -> None:
    made = spec(
        applying("Object{metadata: Object.metadata{annotations: Object.metadata.annotations{tier: params.data.tier}}}"),
        rules=DEPLOYMENTS,
        paramKind={"apiVersion": "v1", "kind": "ConfigMap"},
    )
    assert config_map(api, place, "params", data={"tier": "gold"}).status == 201
    policy("mutating", made, {"paramRef": {"name": "params", "parameterNotFoundAction": "Deny"}})
    answer = api.post(f"/apis/apps/v1/namespaces/{place}/deployments", deployment("d"))
    assert answer.json["metadata"]["annotations"]["tier"] == "gold"


def test_a_second_round_for_those_who_want_it(api: Client, place: str, policy: Policy) -> None:
    count = "string(size(object.?data.orValue({})))"
    seen = f"Object{{metadata: Object.metadata{{annotations: Object.metadata.annotations{{seen: {count}}}}}}}"
    first = spec(applying(seen), reinvocationPolicy="IfNeeded")
    second = spec(applying("Object{data: Object.data{added: 'x'}}"))
    names = sorted([policy("mutating", first), policy("mutating", second)])
    answer = config_map(api, place, "x")
    assert answer.status == 201, answer.body
    assert names
    assert answer.json["metadata"]["annotations"] == {"seen": "1"}


@pytest.mark.parametrize(
    ("mutation", "field", "message"),
    [
        (applying("'x'"), "spec.mutations[0].applyConfiguration.expression", "must evaluate to Object but got string"),
        (applying("Object.spec{}"), "spec.mutations[0].applyConfiguration.expression",
         "must evaluate to Object but got Object.spec"),
        (patching("[1]"), "spec.mutations[0].jsonPatch.expression",
         "must evaluate to list(JSONPatch) but got list(int)"),
        (patching("[JSONPatch{op: 1}]"), "spec.mutations[0].jsonPatch.expression",
         "expected type of field 'op' is 'string' but provided type is 'int'"),
    ],
)  # fmt: skip
def test_mutations_are_checked_when_they_are_written(
    mutation: dict[str, Any], field: str, message: str, api: Client
) -> None:
    rules = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}]
    made = {"matchConstraints": {"resourceRules": rules}, "mutations": [mutation], "reinvocationPolicy": "Never"}
    answer = api.post(f"{API}/mutatingadmissionpolicies", {"metadata": {"name": "wrong"}, "spec": made})
    assert answer.status == 422
    assert field in answer.message
    assert message in answer.message


def test_custom_resources_have_policies_too(api: Client, place: str, policy: Policy) -> None:
    """The object, and the parameters."""
    properties = {"size": {"type": "integer"}, "tags": {"type": "array", "items": {"type": "string"}}}
    properties["tags"]["x-kubernetes-list-type"] = "set"
    spec_schema = {"type": "object", "properties": properties}
    schema = {"type": "object", "properties": {"spec": spec_schema}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": "crates", "singular": "crate", "kind": "Crate", "listKind": "CrateList"}
    crd = {
        "metadata": {"name": "crates.policies.example.com"},
        "spec": {"group": "policies.example.com", "scope": "Namespaced", "names": names, "versions": [version]},
    }
    assert api.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd).status == 201
    path = f"/apis/policies.example.com/v1/namespaces/{place}/crates"
    kind = {"apiVersion": "policies.example.com/v1", "kind": "Crate"}
    body = {**kind, "metadata": {"name": "limits"}, "spec": {"size": 5}}
    tools.wait_until(lambda: api.post(path, body).status == 201 or None, "crates are served")
    rules = [
        {
            "apiGroups": ["policies.example.com"],
            "apiVersions": ["v1"],
            "operations": ["CREATE"],
            "resources": ["crates"],
        }
    ]
    reference = {"paramRef": {"name": "limits", "parameterNotFoundAction": "Deny"}}
    parameters = {"rules": rules, "paramKind": kind}
    validations = [{"expression": "object.spec.size <= params.spec.size"}]
    policy("validating", {**parameters, "validations": validations}, reference)
    tags = "Object{spec: Object.spec{tags: ['from-' + params.metadata.name]}}"
    policy("mutating", spec(applying(tags), **parameters), reference)
    made = api.post(path, {**kind, "metadata": {"name": "a"}, "spec": {"size": 3, "tags": ["own"]}})
    assert made.status == 201, made.body
    assert made.json["spec"]["tags"] == ["own", "from-limits"]
    assert api.post(path, {**kind, "metadata": {"name": "b"}, "spec": {"size": 9}}).status == 422
