"""Roles and bindings decide, at once and in upstream's words."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Any

import pytest
from apiserver.authz.conftest import RBAC, User, binding, check, grant, rule
from apiserver.client import Client

AsUser = Callable[..., User]


@pytest.fixture
def name() -> str:
    return f"user-{secrets.token_hex(4)}"


def test_a_user_without_roles_is_forbidden_with_the_missing_permission(as_user: AsUser, place: str, name: str) -> None:
    answer = as_user(name).get(f"/api/v1/namespaces/{place}/pods/web/log")
    assert answer.status == 403
    assert answer.json == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": f'pods "web" is forbidden: User "{name}" cannot get resource "pods/log" in API group "" '
        f'in the namespace "{place}"',
        "reason": "Forbidden",
        "details": {"name": "web", "kind": "pods"},
        "code": 403,
    }
    everywhere = as_user(name).post("/apis/apps/v1/deployments", {})
    assert everywhere.message == (
        f'deployments.apps is forbidden: User "{name}" cannot create resource "deployments" in API group "apps" '
        "at the cluster scope"
    )
    assert as_user(name).get("/metrics").message == f'forbidden: User "{name}" cannot get path "/metrics"'


def test_a_refusal_is_not_to_be_sniffed(as_user: AsUser, name: str) -> None:
    for path in ("/api/v1/pods", "/nope"):
        assert check(as_user(name).get(path), 403).headers["X-Content-Type-Options"] == "nosniff"


def test_a_role_holds_in_its_namespace_only(admin: Client, as_user: AsUser, place: str, name: str) -> None:
    grant(admin, name, rule("get,list", "", "pods"), namespace=place)
    check(as_user(name).get(f"/api/v1/namespaces/{place}/pods"), 200)
    check(as_user(name).get("/api/v1/namespaces/default/pods"), 403)
    check(as_user(name).get("/api/v1/pods"), 403)


def test_a_cluster_role_holds_in_a_namespace_when_bound_there(
    admin: Client, as_user: AsUser, place: str, name: str
) -> None:
    check(admin.post(f"{RBAC}/namespaces/{place}/rolebindings", binding("v", "system:aggregate-to-view", name)), 201)
    check(as_user(name).get(f"/api/v1/namespaces/{place}/pods"), 200)
    check(as_user(name).get("/api/v1/pods"), 403)


RULES = [
    # rule, request, allowed
    (rule("get", "", "secrets", "a,b"), "GET secrets/a", True),
    (rule("get", "", "secrets", "a,b"), "GET secrets/c", False),
    (rule("list,watch", "", "secrets", "a"), "GET secrets?fieldSelector=metadata.name%3Da", True),
    (rule("list,watch", "", "secrets", "a"), "GET secrets?fieldSelector=metadata.name%21%3Da", False),
    (rule("list,watch", "", "secrets", "a"), "GET secrets", False),
    (rule("deletecollection", "", "secrets", "a"), "DELETE secrets?fieldSelector=metadata.name%3Da", False),
    (rule("create", "", "secrets", "a"), "POST secrets", False),
    (rule("get", "", "pods"), "GET pods/a/status", False),
    (rule("get", "", "pods/status"), "GET pods/a/status", True),
    (rule("get", "", "pods/status"), "GET pods/a", False),
    (rule("get", "", "*/status"), "GET pods/a/status", True),
    (rule("get", "", "*/stat"), "GET pods/a/status", False),
    (rule("get", "", "*"), "GET pods/a/status", True),
    (rule("*", "", "pods"), "DELETE pods", True),
    (rule("get", "*", "*/scale"), "GET apps/v1/deployments/a/scale", True),
    (rule("get", "apps", "deployments"), "GET apps/v1/deployments/a", True),
    (rule("get", "", "deployments"), "GET apps/v1/deployments/a", False),
    (rule("get", "apps", "deployments"), "GET apps/v1/deployments", False),
    (rule("delete", "", "configmaps"), "DELETE configmaps", False),
    (rule("delete", "", "configmaps"), "DELETE configmaps/a", True),
    (rule("update", "", "configmaps"), "PATCH configmaps/a", False),
]


@pytest.mark.parametrize(("given", "asked", "allowed"), RULES, ids=[f"{g}-{a}" for g, a, _ in RULES])
def test_rules_match(
    admin: Client, as_user: AsUser, place: str, name: str, given: dict[str, list[str]], asked: str, allowed: bool
) -> None:
    grant(admin, name, given, namespace=place)
    method, _, what = asked.partition(" ")
    group, version, rest = what.split("/", 2) if what.startswith("apps/") else ("", "v1", what)
    prefix = f"/apis/{group}/{version}" if group else "/api/v1"
    body = {} if method in ("POST", "PUT", "PATCH") else None
    answer = as_user(name)(method, f"{prefix}/namespaces/{place}/{rest}", body)
    assert (answer.status != 403) == allowed, answer.body


@pytest.mark.parametrize(
    ("url", "path", "allowed"),
    [
        ("/logs", "/logs", True),
        ("/logs", "/logs/x", False),
        ("/logs/*", "/logs/x/y", True),
        ("/logs/*", "/logs", False),
        ("*", "/anything", True),
        ("/lo*", "/logs", True),
    ],
)
def test_paths_match(admin: Client, as_user: AsUser, name: str, url: str, path: str, allowed: bool) -> None:
    grant(admin, name, {"verbs": ["get"], "nonResourceURLs": [url]})
    assert as_user(name).get(path).status == (404 if allowed else 403)
    assert as_user(name).post(path, {}).status == 403


def test_a_change_of_a_role_or_binding_counts_at_once(admin: Client, as_user: AsUser, place: str, name: str) -> None:
    path, user = f"/api/v1/namespaces/{place}/pods", as_user(name)
    grant(admin, name, rule("list", "", "services"), namespace=place)
    role = f"{RBAC}/namespaces/{place}/roles/{name}-{place}"
    bound = f"{RBAC}/namespaces/{place}/rolebindings/{name}-{place}"
    check(user.get(path), 403)
    check(admin.patch(role, {"rules": [rule("list", "", "pods")]}), 200)
    check(user.get(path), 200)
    check(admin.patch(bound, {"subjects": []}), 200)
    check(user.get(path), 403)
    check(admin.delete(bound), 200)
    check(admin.post(f"{RBAC}/namespaces/{place}/rolebindings", binding("again", f"{name}-{place}", name, "Role")), 201)
    check(user.get(path), 200)
    check(admin.delete(role), 200)
    gone = check(user.get(path), 403)
    assert gone.message.endswith(f': RBAC: role.rbac.authorization.k8s.io "{name}-{place}" not found')


def test_groups_and_service_accounts_are_subjects_too(admin: Client, as_user: AsUser, place: str, name: str) -> None:
    grant(admin, name, rule("list", "", "pods"), namespace=place)
    subjects: list[dict[str, Any]] = [
        {"kind": "Group", "apiGroup": "rbac.authorization.k8s.io", "name": f"{name}-group"},
        {"kind": "ServiceAccount", "name": "robot"},
        {"kind": "ServiceAccount", "name": "robot", "namespace": "elsewhere"},
    ]
    bound = f"{RBAC}/namespaces/{place}/rolebindings/{name}-{place}"
    check(admin.patch(bound, {"subjects": subjects}), 200)
    path = f"/api/v1/namespaces/{place}/pods"
    check(as_user("any", f"{name}-group").get(path), 200)
    check(as_user("any", f"{name}-grou").get(path), 403)
    check(as_user(f"system:serviceaccount:{place}:robot").get(path), 200)
    check(as_user("system:serviceaccount:elsewhere:robot").get(path), 200)
    check(as_user("system:serviceaccount:default:robot").get(path), 403)
    check(as_user("robot").get(path), 403)


def test_masters_may_do_everything_whatever_the_roles_say(as_user: AsUser) -> None:
    check(as_user("anybody", "system:masters").get("/api/v1/secrets"), 200)


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/healthz", 200),
        ("/livez", 200),
        ("/readyz", 200),
        ("/version", 200),
        ("/version/", 200),
        ("/api", 403),
        ("/apis", 403),
        ("/openapi/v2", 403),
        ("/metrics", 403),
        ("/healthz/etcd", 403),
        ("/", 403),
        ("/api/v1/namespaces", 403),
    ],
)
def test_anonymous_sees_what_upstream_shows(admin: Client, path: str, status: int) -> None:
    without_token = Client(admin.server, token="")
    answer = check(without_token.get(path), status)
    if status == 403:
        assert '"system:anonymous"' in answer.message


def test_who_is_known_may_discover(as_user: AsUser, name: str) -> None:
    for path in ("/api", "/apis", "/apis/apps/v1", "/openapi/v2", "/version"):
        check(as_user(name).get(path), 200)
