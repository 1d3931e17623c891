"""What webhooks are asked, what their answers do, and when they are left alone."""

from __future__ import annotations

import base64
import json
import re
from typing import Any

import pytest
from apiserver.admission.webhooks.conftest import API, Register
from apiserver.admission.webhooks.server import WebhookServer, allow, patch
from apiserver.client import Client

import tools
from pybernetes import pki

PODS = [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}]
EVERYTHING = [{"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"]}]


def config_map(api: Client, place: str, name: str, query: str = "", **more: Any) -> Any:
    body = {"metadata": {"name": name, **more.pop("metadata", {})}, **more}
    return api.post(f"/api/v1/namespaces/{place}/configmaps{query}", body)


def test_a_sidecar_is_injected_by_label(api: Client, hooks: WebhookServer, place: str, register: Register) -> None:
    sidecar = {"name": "proxy", "image": "example.com/proxy:1", "ports": [{"containerPort": 15001}]}
    hooks.paths["/sidecar"] = lambda _: patch({"op": "add", "path": "/spec/containers/-", "value": sidecar})
    register("mutating", "/sidecar", PODS, objectSelector={"matchLabels": {"inject": "yes"}})
    spec = {"containers": [{"name": "app", "image": "example.com/app:1"}]}
    injected = api.post(
        f"/api/v1/namespaces/{place}/pods", {"metadata": {"name": "a", "labels": {"inject": "yes"}}, "spec": spec}
    )
    assert injected.status == 201, injected.body
    added = injected.json["spec"]["containers"][1]
    assert added["name"] == "proxy"
    assert added["imagePullPolicy"] == "IfNotPresent"  # defaults are filled in after the patch
    assert added["ports"][0]["protocol"] == "TCP"
    plain = api.post(f"/api/v1/namespaces/{place}/pods", {"metadata": {"name": "b"}, "spec": spec})
    assert len(plain.json["spec"]["containers"]) == 1
    assert len(hooks.asked("/sidecar")) == 1


def test_a_patch_is_validated(api: Client, hooks: WebhookServer, place: str, register: Register) -> None:
    hooks.paths["/breaks"] = lambda _: patch({"op": "replace", "path": "/spec/containers/0/image", "value": ""})
    register("mutating", "/breaks", PODS)
    spec = {"containers": [{"name": "app", "image": "example.com/app:1"}]}
    answer = api.post(f"/api/v1/namespaces/{place}/pods", {"metadata": {"name": "a"}, "spec": spec})
    assert answer.status == 422
    assert "spec.containers[0].image: Required value" in answer.message


def test_the_question_is_whole(api: Client, hooks: WebhookServer, place: str, register: Register) -> None:
    hooks.paths["/whole"] = allow
    rules = [{"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}]
    register("validating", "/whole", rules)
    assert config_map(api, place, "q", "?fieldManager=me", data={"a": "1"}).status == 201
    api.patch(f"/api/v1/namespaces/{place}/configmaps/q", {"data": {"a": "2"}})
    api.delete(f"/api/v1/namespaces/{place}/configmaps/q", {"propagationPolicy": "Background"})
    created, updated, deleted = hooks.asked("/whole")
    assert re.fullmatch("[0-9a-f-]{36}", created["uid"])
    kind = {"group": "", "version": "v1", "kind": "ConfigMap"}
    resource = {"group": "", "version": "v1", "resource": "configmaps"}
    assert created["kind"] == created["requestKind"] == kind
    assert created["resource"] == created["requestResource"] == resource
    assert (created["name"], created["namespace"], created["operation"]) == ("q", place, "CREATE")
    assert created["userInfo"]["username"] == "kubernetes-admin"
    assert "system:masters" in created["userInfo"]["groups"]
    assert created["object"]["data"] == {"a": "1"}
    assert created["object"]["kind"] == "ConfigMap"
    assert created["oldObject"] is None
    assert created["dryRun"] is False
    assert created["options"] == {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1", "fieldManager": "me"}
    assert updated["operation"] == "UPDATE"
    assert (updated["object"]["data"], updated["oldObject"]["data"]) == ({"a": "2"}, {"a": "1"})
    assert updated["options"]["kind"] == "UpdateOptions"
    assert deleted["operation"] == "DELETE"
    assert deleted["object"] is None
    assert deleted["oldObject"]["data"] == {"a": "2"}
    assert deleted["options"]["propagationPolicy"] == "Background"


@pytest.mark.parametrize("kind", ["mutating", "validating"])
@pytest.mark.parametrize(
    ("status", "code", "reason", "message"),
    [
        (None, 400, "", "without explanation"),
        ({"message": "no way"}, 400, "", ": no way"),
        ({"reason": "Forbidden"}, 400, "Forbidden", ": Forbidden"),
        ({"message": "odd", "code": 418, "reason": "Teapot"}, 418, "Teapot", ": odd"),
        ({"message": "fine?", "code": 200, "status": "Success"}, 400, "", ": fine?"),
        ({"message": "nameless", "code": 450}, 450, "", ": nameless"),
        ({"message": "nameless", "code": 599}, 599, "", ": nameless"),
    ],
)
def test_a_refusal_is_passed_on(
    kind: str, status: Any, code: int, reason: str, message: str,
    api: Client, hooks: WebhookServer, place: str, register: Register,
) -> None:  # fmt: skip
    hooks.paths["/deny"] = lambda _: {"allowed": False, **({"status": status} if status else {})}
    register(kind, "/deny")
    answer = config_map(api, place, "denied")
    assert answer.status == code
    separator = "" if message.startswith(":") else " "
    assert answer.message == f'admission webhook "deny.example.com" denied the request{separator}{message}'
    assert answer.json.get("reason", "") == reason
    assert api.get(f"/api/v1/namespaces/{place}/configmaps/denied").status == 404


def test_warnings_reach_the_client(api: Client, hooks: WebhookServer, place: str, register: Register) -> None:
    hooks.paths["/warn"] = lambda _: {"allowed": True, "warnings": ["mind the gap"]}
    register("validating", "/warn")
    answer = config_map(api, place, "warned")
    assert answer.status == 201
    assert any("mind the gap" in each for each in answer.warnings)


def test_rules_say_what_is_asked(api: Client, hooks: WebhookServer, place: str, register: Register) -> None:
    hooks.paths["/rules"] = allow
    rules = [
        {"operations": ["UPDATE"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/scale", "configmaps"]},
        {
            "operations": ["CREATE"],
            "apiGroups": ["apps"],
            "apiVersions": ["v1"],
            "resources": ["*"],
            "scope": "Cluster",
        },
    ]
    register("validating", "/rules", rules)
    assert config_map(api, place, "a").status == 201
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    path = f"/apis/apps/v1/namespaces/{place}/deployments"
    assert api.post(path, {"metadata": {"name": "d"}, "spec": spec}).status == 201
    assert hooks.asked("/rules") == []
    assert api.patch(f"{path}/d/scale", {"spec": {"replicas": 3}}).status == 200
    [review] = hooks.asked("/rules")
    assert review["kind"] == {"group": "autoscaling", "version": "v1", "kind": "Scale"}
    assert (review["resource"]["resource"], review["subResource"]) == ("deployments", "scale")
    assert review["object"]["spec"]["replicas"] == 3


def test_another_version_of_the_same_objects_is_meant_as_well(
    api: Client, hooks: WebhookServer, place: str, register: Register
) -> None:
    hooks.paths["/equivalent"] = allow
    hooks.paths["/exact"] = allow
    rules = [
        {
            "operations": ["CREATE"],
            "apiGroups": ["autoscaling"],
            "apiVersions": ["v1"],
            "resources": ["horizontalpodautoscalers"],
        }
    ]
    register("validating", "/equivalent", rules, matchPolicy="Equivalent")
    register("validating", "/exact", rules, matchPolicy="Exact")
    spec = {"scaleTargetRef": {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"}, "maxReplicas": 3}
    made = api.post(
        f"/apis/autoscaling/v2/namespaces/{place}/horizontalpodautoscalers", {"metadata": {"name": "h"}, "spec": spec}
    )
    assert made.status == 201, made.body
    [review] = hooks.asked("/equivalent")
    assert (review["kind"]["version"], review["requestKind"]["version"]) == ("v1", "v2")
    assert review["object"]["apiVersion"] == "autoscaling/v1"
    assert "targetCPUUtilizationPercentage" in review["object"]["spec"]
    assert hooks.asked("/exact") == []


def test_match_conditions_filter(api: Client, hooks: WebhookServer, place: str, register: Register) -> None:
    hooks.paths["/conditions"] = lambda _: {"allowed": False}
    conditions = [
        {"name": "named", "expression": "object.metadata.name.startsWith('bad')"},
        {"name": "user", "expression": "request.userInfo.username == 'kubernetes-admin'"},
        {"name": "may", "expression": "authorizer.requestResource.check('delete').allowed()"},
    ]
    register("validating", "/conditions", matchConditions=conditions)
    assert config_map(api, place, "good").status == 201
    assert config_map(api, place, "bad-1").status == 400


def test_a_condition_that_fails_follows_the_failure_policy(
    api: Client, hooks: WebhookServer, place: str, register: Register
) -> None:
    hooks.paths["/unknown"] = lambda _: {"allowed": False}
    conditions = [{"name": "fails", "expression": "object.nope == 1"}]
    path = register("validating", "/unknown", matchConditions=conditions)
    answer = config_map(api, place, "a")
    assert answer.status == 403
    assert "expression 'object.nope == 1' resulted in error: no such key: nope" in answer.message
    change = [{"op": "replace", "path": "/webhooks/0/failurePolicy", "value": "Ignore"}]
    assert api.patch(path, change, "json").status == 200
    assert config_map(api, place, "a").status == 201


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("object.", "compilation failed: ERROR: <input>:1:8: Syntax error"),
        ("nope == 1", "undeclared reference to 'nope' (in container '')"),
        ("1 + 1", "must evaluate to bool"),
        ("params.x == 1", "undeclared reference to 'params' (in container '')"),
    ],
)
def test_a_configuration_with_a_wrong_condition_is_refused(expression: str, message: str, api: Client) -> None:
    webhook = {
        "name": "a.example.com",
        "clientConfig": {"url": "https://example.com/"},
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "matchConditions": [{"name": "c", "expression": expression}],
    }
    for kind in ("validating", "mutating"):
        answer = api.post(f"{API}/{kind}webhookconfigurations", {"metadata": {"name": "w"}, "webhooks": [webhook]})
        assert answer.status == 422
        assert "webhooks[0].matchConditions[0].expression: Invalid value" in answer.message
        assert message in answer.message


def test_reinvocation_lets_the_first_see_what_the_second_did(
    api: Client, hooks: WebhookServer, place: str, register: Register
) -> None:
    def first(request: dict[str, Any]) -> dict[str, Any]:
        seen = ",".join(sorted((request["object"].get("data") or {}).keys()))
        return patch({"op": "add", "path": "/metadata/annotations", "value": {"seen": seen}})

    hooks.paths["/a-first"] = first
    hooks.paths["/b-second"] = lambda _: patch({"op": "add", "path": "/data", "value": {"second": "was here"}})
    register("mutating", "/a-first", reinvocationPolicy="IfNeeded")
    register("mutating", "/b-second")
    answer = config_map(api, place, "twice")
    assert answer.status == 201, answer.body
    assert answer.json["metadata"]["annotations"] == {"seen": "second"}
    assert len(hooks.asked("/a-first")) == 2
    assert len(hooks.asked("/b-second")) == 1


def test_dry_run_needs_a_webhook_without_side_effects(
    api: Client, hooks: WebhookServer, place: str, register: Register
) -> None:
    hooks.paths["/dry"] = allow
    path = register("validating", "/dry", sideEffects="NoneOnDryRun")
    assert config_map(api, place, "a", "?dryRun=All").status == 201
    assert hooks.asked("/dry")[0]["dryRun"] is True
    assert hooks.asked("/dry")[0]["options"]["dryRun"] == ["All"]
    assert api.get(f"/api/v1/namespaces/{place}/configmaps/a").status == 404
    assert path


def test_what_configures_admission_is_exempt(api: Client, hooks: WebhookServer, register: Register) -> None:
    hooks.paths["/all"] = lambda _: {"allowed": False}
    path = register("validating", "/all", EVERYTHING)
    assert api.patch(path, {"metadata": {"labels": {"a": "b"}}}).status == 200
    assert api.delete(path).status == 200


def test_a_change_of_the_configuration_holds_at_once(
    api: Client, hooks: WebhookServer, place: str, register: Register
) -> None:
    hooks.paths["/toggle"] = lambda _: {"allowed": False}
    path = register("validating", "/toggle")
    for round in range(3):
        assert config_map(api, place, f"a{round}").status == 400
        rules = [{"op": "replace", "path": "/webhooks/0/rules/0/operations", "value": ["DELETE"]}]
        assert api.patch(path, rules, "json").status == 200
        assert config_map(api, place, f"a{round}").status == 201
        rules[0]["value"] = ["CREATE"]
        assert api.patch(path, rules, "json").status == 200


def test_deletion_can_be_refused(api: Client, hooks: WebhookServer, place: str, register: Register) -> None:
    hooks.paths["/keep"] = lambda request: {"allowed": request["oldObject"]["metadata"]["name"] != "kept"}
    rules = [{"operations": ["DELETE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}]
    register("validating", "/keep", rules)
    for name in ("kept", "free"):
        assert config_map(api, place, name).status == 201
    assert api.delete(f"/api/v1/namespaces/{place}/configmaps/kept").status == 400
    assert api.delete(f"/api/v1/namespaces/{place}/configmaps/free").status == 200


def test_calls_are_counted(api: Client, hooks: WebhookServer, place: str, register: Register) -> None:
    hooks.paths["/counted"] = lambda _: {"allowed": False}
    register("validating", "/counted")
    config_map(api, place, "a")
    text = api.get("/metrics").body.decode()
    labels = 'name="counted.example.com",operation="CREATE"'
    assert re.search(rf"apiserver_admission_webhook_rejection_count{{.*{labels}.*rejection_code=\"400\"", text)
    assert re.search(rf"apiserver_admission_webhook_request_total{{.*code=\"400\",{labels}", text)


def test_custom_resources_are_asked_about_too(
    api: Client, hooks: WebhookServer, place: str, register: Register
) -> None:
    schema = {
        "type": "object",
        "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer", "default": 1}}}},
    }
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": "boxes", "singular": "box", "kind": "Box", "listKind": "BoxList"}
    crd = {
        "metadata": {"name": "boxes.hooks.example.com"},
        "spec": {"group": "hooks.example.com", "scope": "Namespaced", "names": names, "versions": [version]},
    }
    assert api.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd).status == 201
    hooks.paths["/box"] = lambda _: patch(
        {"op": "add", "path": "/spec", "value": {"unknown": "goes", "size": 7}},
    )
    rules = [{"operations": ["*"], "apiGroups": ["hooks.example.com"], "apiVersions": ["*"], "resources": ["boxes"]}]
    register("mutating", "/box", rules)
    box = {"apiVersion": "hooks.example.com/v1", "kind": "Box", "metadata": {"name": "b"}}
    path = f"/apis/hooks.example.com/v1/namespaces/{place}/boxes"
    made = tools.wait_until(lambda: (lambda a: a if a.status != 404 else None)(api.post(path, box)), "boxes are served")
    assert made.status == 201, made.body
    assert made.json["spec"] == {"size": 7}  # what the schema does not know is pruned again
    assert hooks.asked("/box")[0]["object"]["kind"] == "Box"
    assert json.dumps(made.json)


def test_an_old_webhook_speaks_v1beta1(api: Client, hooks: WebhookServer, place: str, register: Register) -> None:
    """Its answers need neither a uid nor a patch type."""
    encoded = base64.b64encode(b'[{"op": "add", "path": "/data", "value": {"a": "b"}}]').decode()
    hooks.paths["/old"] = lambda _: json.dumps({"response": {"allowed": True, "patch": encoded}}).encode()
    register("mutating", "/old", admissionReviewVersions=["v2", "v1beta1", "v1"])
    answer = config_map(api, place, "a")
    assert answer.status == 201, answer.body
    assert answer.json["data"] == {"a": "b"}


def test_who_the_server_is_to_a_webhook_stands_in_a_file(
    hooks: WebhookServer, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("identity")
    identity = pki.issue_client(hooks.authority, "the-api-server")
    (folder / "client.crt").write_bytes(identity.certificate_pem)
    (folder / "client.key").write_bytes(identity.key_pem)
    user = {"client-certificate": "client.crt", "client-key": "client.key"}
    kubeconfig = {"apiVersion": "v1", "kind": "Config", "users": [{"name": "*", "user": user}]}
    (folder / "kubeconfig.yaml").write_text(json.dumps(kubeconfig))
    configuration = {
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "WebhookAdmissionConfiguration",
        "kubeConfigFile": str(folder / "kubeconfig.yaml"),
    }
    plugins = [{"name": "ValidatingAdmissionWebhook", "configuration": configuration}]
    file = folder / "admission.yaml"
    kind = {"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AdmissionConfiguration"}
    file.write_text(json.dumps({**kind, "plugins": plugins}))
    hooks.paths["/identity"] = allow
    with tools.api_server(folder, f"--admission-control-config-file={file}") as server:
        client = Client(server)
        webhook = {
            "name": "identity.example.com",
            "clientConfig": {"url": hooks.url("/identity"), "caBundle": hooks.bundle},
            "rules": [
                {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}
            ],
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        }
        made = client.post(f"{API}/validatingwebhookconfigurations", {"metadata": {"name": "w"}, "webhooks": [webhook]})
        assert made.status == 201, made.body
        assert config_map(client, "default", "a").status == 201
    assert "the-api-server" in hooks.client_names[-1]
