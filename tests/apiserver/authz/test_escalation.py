"""Escalation checks: users grant only permissions that they have."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Any

import pytest
from apiserver.authz.conftest import RBAC, User, binding, check, grant, rule
from apiserver.client import Answer, Client

AsUser = Callable[..., User]
EDITOR = rule(
    "create,update,patch,delete,get",
    "rbac.authorization.k8s.io",
    "roles,clusterroles,rolebindings,clusterrolebindings",
)
EVERYTHING = rule("*", "*", "*")


@pytest.fixture
def editor(admin: Client, as_user: AsUser) -> User:
    """May write roles and bindings, and read pods; no more."""
    name = f"editor-{secrets.token_hex(4)}"
    grant(admin, name, EDITOR, rule("get,list", "", "pods"))
    return as_user(name)


def role(name: str, *rules: dict[str, list[str]]) -> dict[str, Any]:
    return {"metadata": {"name": name}, "rules": list(rules)}


def create(user: User, name: str) -> Answer:
    return user.post(f"{RBAC}/clusterroles", role(name, EVERYTHING))


def put(user: User, name: str) -> Answer:
    return user.put(f"{RBAC}/clusterroles/{name}", role(name, EVERYTHING))


def apply(user: User, name: str) -> Answer:
    body = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", **role(name, EVERYTHING)}
    return user.patch(f"{RBAC}/clusterroles/{name}?fieldManager=x", body, "apply")


def change(user: User, name: str) -> Answer:
    check(user.post(f"{RBAC}/clusterroles", role(name, rule("get", "", "pods"))), 201)
    return user.patch(f"{RBAC}/clusterroles/{name}", {"rules": [EVERYTHING]})


def replace(user: User, name: str) -> Answer:
    check(user.post(f"{RBAC}/clusterroles", role(name, rule("get", "", "pods"))), 201)
    return put(user, name)


def json_patch(user: User, name: str) -> Answer:
    check(user.post(f"{RBAC}/clusterroles", role(name, rule("get", "", "pods"))), 201)
    return user.patch(
        f"{RBAC}/clusterroles/{name}", [{"op": "replace", "path": "/rules/0/verbs/0", "value": "*"}], "json"
    )


@pytest.mark.parametrize("way", [create, put, apply, change, replace, json_patch])
def test_no_way_of_writing_a_role_grants_more_than_one_has(editor: User, way: Callable[[User, str], Answer]) -> None:
    answer = check(way(editor, f"role-{secrets.token_hex(4)}"), 403)
    assert "is attempting to grant RBAC permissions not currently held:" in answer.message


def test_the_refusal_names_what_is_missing(editor: User, place: str) -> None:
    wanted = (
        rule("get,delete", ",apps", "pods,deployments/scale"),
        rule("get", "", "secrets", "a,b"),
        {"verbs": ["get"], "nonResourceURLs": ["/x"]},
    )
    answer = check(editor.post(f"{RBAC}/clusterroles", role("wanted", *wanted)), 403)
    groups = '["system:authenticated"]'
    assert answer.message == (
        f'clusterroles.rbac.authorization.k8s.io "wanted" is forbidden: user "{editor.name}" (groups={groups}) '
        "is attempting to grant RBAC permissions not currently held:\n"
        '{APIGroups:[""], Resources:["deployments/scale"], Verbs:["get" "delete"]}\n'
        '{APIGroups:[""], Resources:["pods"], Verbs:["delete"]}\n'
        '{APIGroups:[""], Resources:["secrets"], ResourceNames:["a"], Verbs:["get"]}\n'
        '{APIGroups:[""], Resources:["secrets"], ResourceNames:["b"], Verbs:["get"]}\n'
        '{APIGroups:["apps"], Resources:["deployments/scale"], Verbs:["get" "delete"]}\n'
        '{APIGroups:["apps"], Resources:["pods"], Verbs:["get" "delete"]}\n'
        '{NonResourceURLs:["/x"], Verbs:["get"]}'
    )


def test_what_one_has_can_be_granted(editor: User, place: str) -> None:
    check(editor.post(f"{RBAC}/namespaces/{place}/roles", role("mine", rule("get", "", "pods", "a"))), 201)
    check(editor.post(f"{RBAC}/namespaces/{place}/rolebindings", binding("mine", "mine", "bob", "Role")), 201)


def test_binding_takes_what_the_role_grants(admin: Client, editor: User, place: str) -> None:
    refused = check(editor.post(f"{RBAC}/clusterrolebindings", binding("b", "cluster-admin", editor.name)), 403)
    assert '{APIGroups:["*"], Resources:["*"], Verbs:["*"]}' in refused.message
    check(editor.post(f"{RBAC}/namespaces/{place}/rolebindings", binding("b", "cluster-admin", editor.name)), 403)
    unknown = check(editor.post(f"{RBAC}/clusterrolebindings", binding("b", "unknown", editor.name)), 404)
    assert unknown.message == 'clusterrolebindings.rbac.authorization.k8s.io "unknown" not found'
    nowhere = binding("b", "unknown", editor.name, "Role")
    assert check(editor.post(f"{RBAC}/clusterrolebindings", nowhere), 400).message == "Namespace parameter required."
    kept = f"{RBAC}/namespaces/{place}/rolebindings/kept"
    check(admin.post(f"{RBAC}/namespaces/{place}/rolebindings", binding("kept", "cluster-admin", "somebody")), 201)
    check(editor.patch(kept, {"subjects": binding("x", "y", editor.name)["subjects"]}), 403)
    check(editor.patch(kept, {"metadata": {"labels": {"a": "b"}}}), 403)


def test_owners_and_finalizers_can_always_be_changed(admin: Client, editor: User) -> None:
    name = f"role-{secrets.token_hex(4)}"
    check(admin.post(f"{RBAC}/clusterroles", role(name, EVERYTHING)), 201)
    check(editor.patch(f"{RBAC}/clusterroles/{name}", {"metadata": {"finalizers": ["a.b/c"]}}), 200)
    check(editor.patch(f"{RBAC}/clusterroles/{name}", {"metadata": {"finalizers": None}}), 200)
    check(editor.patch(f"{RBAC}/clusterroles/{name}", {"metadata": {"labels": {"a": "b"}}}), 403)


def test_the_verbs_escalate_and_bind_allow_it(admin: Client, as_user: AsUser, place: str) -> None:
    name = f"boss-{secrets.token_hex(4)}"
    group = "rbac.authorization.k8s.io"
    grant(admin, name, EDITOR, rule("escalate", group, "roles"), rule("bind", group, "clusterroles", "admin"))
    boss = as_user(name)
    check(boss.post(f"{RBAC}/namespaces/{place}/roles", role("all", EVERYTHING)), 201)
    check(boss.post(f"{RBAC}/clusterroles", role("all", EVERYTHING)), 403)
    check(boss.post(f"{RBAC}/namespaces/{place}/rolebindings", binding("b", "admin", name)), 201)
    check(boss.post(f"{RBAC}/namespaces/{place}/rolebindings", binding("c", "cluster-admin", name)), 403)


def test_aggregation_takes_all_rights(admin: Client, editor: User) -> None:
    selector = {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}
    body = {"metadata": {"name": "gathers"}, "aggregationRule": selector}
    refused = check(editor.post(f"{RBAC}/clusterroles", body), 403)
    assert refused.message.endswith("must have cluster-admin privileges to use the aggregationRule")


def test_impersonation_and_front_proxy_headers_without_permission_change_no_user(admin: Client, editor: User) -> None:
    without_token = Client(admin.server, token="")
    check(without_token.get("/api/v1/secrets", X_Remote_User="admin", X_Remote_Group="system:masters"), 403)
    check(without_token.get("/api/v1/secrets", Impersonate_User="x", Impersonate_Group="system:masters"), 403)


def test_a_token_of_an_account_takes_the_right_to_ask_for_it(admin: Client, as_user: AsUser, place: str) -> None:
    check(admin.post(f"/api/v1/namespaces/{place}/serviceaccounts", {"metadata": {"name": "robot"}}), 201)
    path = f"/api/v1/namespaces/{place}/serviceaccounts/robot/token"
    check(as_user("thief").post(path, {}), 403)
    name = f"user-{secrets.token_hex(4)}"
    grant(admin, name, rule("create", "", "serviceaccounts"), namespace=place)
    check(as_user(name).post(path, {}), 403)
    check(as_user("system:node:n1", "system:nodes").post(path, {}), 403)


def test_an_update_that_creates_takes_the_right_to_create(admin: Client, as_user: AsUser, place: str) -> None:
    name = f"user-{secrets.token_hex(4)}"
    grant(admin, name, rule("patch,update,get", ",coordination.k8s.io", "configmaps,leases"), namespace=place)
    user = as_user(name)
    path = f"/api/v1/namespaces/{place}/configmaps/a"
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
    refused = check(user.patch(f"{path}?fieldManager=m", body, "apply"), 403)
    assert refused.message == (
        f'configmaps "a" is forbidden: User "{name}" cannot create resource "configmaps" in API group "" '
        f'in the namespace "{place}"'
    )
    leases = f"/apis/coordination.k8s.io/v1/namespaces/{place}/leases/l"
    check(user.put(leases, {"metadata": {"name": "l"}}), 403)
    check(admin.post(f"/api/v1/namespaces/{place}/configmaps", body), 201)
    check(user.patch(f"{path}?fieldManager=m", body, "apply"), 200)


def test_a_role_that_combines_millions_of_permissions_is_refused_with_a_short_message(editor: User, place: str) -> None:
    huge = {
        "verbs": [f"v{n}" for n in range(120)],
        "apiGroups": [f"g{n}" for n in range(120)],
        "resources": [f"r{n}" for n in range(120)],
    }
    answer = check(editor.post(f"{RBAC}/namespaces/{place}/roles", role("huge", huge)), 403)
    assert answer.message.endswith("\n... and 1726000 more")
    assert len(answer.message) < 1 << 20
