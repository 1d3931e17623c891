"""What users try first: the examples that Kubernetes documents, with what it says about them."""

from __future__ import annotations

from apiserver.admission.policies.conftest import API, DEPLOYMENTS, Policy, deployment
from apiserver.client import Client

import tools


def post(api: Client, place: str, name: str, replicas: int = 1, image: str = "", **meta: object) -> tuple[int, str]:
    body = deployment(name, replicas, **meta)
    if image:
        body["spec"]["template"]["spec"]["containers"][0]["image"] = image
    answer = api.post(f"/apis/apps/v1/namespaces/{place}/deployments", body)
    return answer.status, "" if answer.status == 201 else answer.message.rpartition("denied request: ")[2]


def test_a_binding_for_namespaces_with_a_label(api: Client, place: str, policy: Policy) -> None:
    where = {"namespaceSelector": {"matchLabels": {"environment": "test", "kubernetes.io/metadata.name": place}}}
    validations = [{"expression": "object.spec.replicas <= 5"}]
    policy("validating", {"rules": DEPLOYMENTS, "validations": validations}, {"matchResources": where})
    assert post(api, place, "before", 100)[0] == 201
    assert api.patch(f"/api/v1/namespaces/{place}", {"metadata": {"labels": {"environment": "test"}}}).status == 200
    assert post(api, place, "after", 100) == (422, "failed expression: object.spec.replicas <= 5")


def test_parameters_of_a_kind_of_ones_own(api: Client, place: str, policy: Policy) -> None:
    schema = {"type": "object", "properties": {"maxReplicas": {"type": "integer"}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {
        "plural": "replicalimits",
        "singular": "replicalimit",
        "kind": "ReplicaLimit",
        "listKind": "ReplicaLimitList",
    }
    crd = {
        "metadata": {"name": "replicalimits.rules.example.com"},
        "spec": {"group": "rules.example.com", "scope": "Namespaced", "names": names, "versions": [version]},
    }
    assert api.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd).status == 201
    kind = {"apiVersion": "rules.example.com/v1", "kind": "ReplicaLimit"}
    limit = {**kind, "metadata": {"name": "replica-limit-test.example.com"}, "maxReplicas": 3}
    path = f"/apis/rules.example.com/v1/namespaces/{place}/replicalimits"
    tools.wait_until(lambda: api.post(path, limit).status == 201 or None, "limits are served")
    spec = {
        "rules": DEPLOYMENTS,
        "paramKind": kind,
        "validations": [
            {
                "expression": "object.spec.replicas <= params.maxReplicas",
                "reason": "Invalid",
                "messageExpression": "'object.spec.replicas must be no greater than ' + string(params.maxReplicas)",
            }
        ],
    }
    reference = {"name": "replica-limit-test.example.com", "namespace": place, "parameterNotFoundAction": "Deny"}
    policy("validating", spec, {"paramRef": reference})
    assert post(api, place, "few", 3)[0] == 201
    assert post(api, place, "many", 4) == (422, "object.spec.replicas must be no greater than 3")


def test_images_match_the_environment_of_the_namespace(api: Client, place: str, policy: Policy) -> None:
    labels = "namespaceObject.metadata.labels"
    variables = [
        {"name": "environment", "expression": f"'environment' in {labels} ? {labels}['environment'] : 'prod'"},
        {
            "name": "exempt",
            "expression": "has(object.metadata.labels) && 'exempt' in object.metadata.labels"
            " && object.metadata.labels['exempt'] == 'true'",
        },
        {"name": "containers", "expression": "object.spec.template.spec.containers"},
        {
            "name": "containersToCheck",
            "expression": "variables.containers.filter(c, c.image.contains('example.com/'))",
        },
    ]
    validation = {
        "expression": "variables.exempt"
        " || variables.containersToCheck.all(c, c.image.startsWith(variables.environment + '.'))",
        "messageExpression": "'only ' + variables.environment + ' images are allowed in namespace '"
        " + namespaceObject.metadata.name",
    }
    policy("validating", {"rules": DEPLOYMENTS, "variables": variables, "validations": [validation]})
    assert post(api, place, "right", image="prod.example.com/nginx")[0] == 201
    refused = f"only prod images are allowed in namespace {place}"
    assert post(api, place, "wrong", image="dev.example.com/nginx") == (422, refused)
    assert post(api, place, "exempt", image="dev.example.com/nginx", labels={"exempt": "true"})[0] == 201


def test_a_conditional_policy_for_some_requests(api: Client, place: str, policy: Policy) -> None:
    conditions = [
        {"name": "exclude-leases", "expression": "!(request.resource.group == 'coordination.k8s.io')"},
        {"name": "exclude-kubelet-requests", "expression": "!('system:nodes' in request.userInfo.groups)"},
        {"name": "rbac", "expression": "request.resource.group != 'rbac.authorization.k8s.io'"},
    ]
    rules = [{"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["CREATE", "UPDATE"], "resources": ["*"]}]
    validations = [{"expression": "!object.metadata.name.contains('demo') || object.metadata.namespace == 'demo'"}]
    policy("validating", {"rules": rules, "matchConditions": conditions, "validations": validations})
    assert post(api, place, "demo-app")[0] == 422
    assert post(api, place, "app")[0] == 201
    lease = {"metadata": {"name": "demo"}, "spec": {}}
    assert api.post(f"/apis/coordination.k8s.io/v1/namespaces/{place}/leases", lease).status == 201


def test_a_label_by_json_patch(api: Client, place: str, policy: Policy) -> None:
    expression = """
        has(object.metadata.labels) ?
        [JSONPatch{op: "add", path: "/metadata/labels/" + jsonpatch.escapeKey("example.com/env"), value: "test"}] :
        [JSONPatch{op: "add", path: "/metadata/labels", value: {"example.com/env": "test"}}]
    """
    mutation = {"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}
    policy("mutating", {"rules": DEPLOYMENTS, "mutations": [mutation], "reinvocationPolicy": "Never"})
    for name, labels in (("plain", None), ("labelled", {"a": "b"})):
        body = deployment(name, **({"labels": labels} if labels else {}))
        made = api.post(f"/apis/apps/v1/namespaces/{place}/deployments", body)
        assert made.status == 201, made.body
        assert made.json["metadata"]["labels"] == {"example.com/env": "test", **(labels or {})}


def test_kubectl_shows_both_kinds(api: Client, policy: Policy) -> None:
    name = policy("validating", {"rules": DEPLOYMENTS, "validations": [{"expression": "true"}]}, bind=False)
    accept = "application/json;as=Table;v=v1;g=meta.k8s.io"
    table = api.get(f"{API}/validatingadmissionpolicies/{name}", Accept=accept).json
    assert [each["name"] for each in table["columnDefinitions"]] == ["Name", "Validations", "ParamKind", "Age"]
    assert table["rows"][0]["cells"][:3] == [name, 1, "<unset>"]
