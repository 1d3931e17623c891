"""Access reviews for a user or oneself, and rules reviews."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Any

import pytest
from apiserver.authz.conftest import User, check, grant, rule
from apiserver.client import Client

AsUser = Callable[..., User]
AUTHORIZATION = "/apis/authorization.k8s.io/v1"


@pytest.fixture
def reader(admin: Client, as_user: AsUser, place: str) -> User:
    name = f"reader-{secrets.token_hex(4)}"
    grant(admin, name, rule("get", "", "pods"), namespace=place)
    return as_user(name)


def question(user: str = "", **attributes: Any) -> dict[str, Any]:
    return {"spec": {"user": user, "resourceAttributes": {"verb": "get", "resource": "pods", **attributes}}}


def test_the_answer_names_the_binding(admin: Client, reader: User, place: str) -> None:
    role = f"{reader.name}-{place}"
    reason = f'RBAC: allowed by RoleBinding "{role}/{place}" of Role "{role}" to User "{reader.name}"'
    asked = question(reader.name, namespace=place)
    for path in ("subjectaccessreviews", f"namespaces/{place}/localsubjectaccessreviews"):
        answer = check(admin.post(f"{AUTHORIZATION}/{path}", asked), 201)
        assert answer.json["status"] == {"allowed": True, "reason": reason}
    mine = check(reader.post(f"{AUTHORIZATION}/selfsubjectaccessreviews", question(namespace=place)), 201)
    assert mine.json["status"] == {"allowed": True, "reason": reason}


def test_a_no_is_no_denial(admin: Client, reader: User) -> None:
    answer = check(admin.post(f"{AUTHORIZATION}/subjectaccessreviews", question(reader.name)), 201)
    assert answer.json["status"] == {"allowed": False}


def test_asking_about_others_takes_a_right(reader: User, place: str) -> None:
    check(reader.post(f"{AUTHORIZATION}/subjectaccessreviews", question("bob")), 403)
    check(reader.post(f"{AUTHORIZATION}/namespaces/{place}/localsubjectaccessreviews", question("bob")), 403)


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ({}, "exactly one of nonResourceAttributes or resourceAttributes must be specified"),
        (
            {"resourceAttributes": {}, "nonResourceAttributes": {}},
            "cannot be specified in combination with resourceAttributes",
        ),
        ({"resourceAttributes": {"fieldSelector": {}}}, "requirements or rawSelector is required"),
        (
            {"resourceAttributes": {"fieldSelector": {"rawSelector": "a=b", "requirements": [{"key": "a"}]}}},
            "may not specified at the same time as requirements",
        ),
        (
            {"resourceAttributes": {"fieldSelector": {"requirements": [{"key": "a", "operator": "In"}]}}},
            "must be specified when `operator` is 'In' or 'NotIn'",
        ),
    ],
)
def test_what_is_no_question_is_refused(reader: User, spec: dict[str, Any], problem: str) -> None:
    answer = check(reader.post(f"{AUTHORIZATION}/selfsubjectaccessreviews", {"spec": spec}), 422)
    assert problem in answer.message


def test_metadata_means_nothing_and_is_refused(reader: User) -> None:
    body = {"metadata": {"name": "x"}, **question()}
    problem = check(reader.post(f"{AUTHORIZATION}/selfsubjectaccessreviews", body), 422).message
    assert 'Invalid value: {"name":"x","managedFields":[{"manager":' in problem
    assert problem.endswith("must be empty")


def test_metadata_that_servers_set_is_passed_over(reader: User) -> None:
    meta = {"uid": "u", "deletionGracePeriodSeconds": 1, "creationTimestamp": "2020-01-01T00:00:00Z"}
    answer = check(reader.post(f"{AUTHORIZATION}/selfsubjectaccessreviews", question() | {"metadata": meta}), 201)
    assert list(answer.json["metadata"]) == ["managedFields"]


def test_a_local_review_is_about_its_namespace(admin: Client, place: str) -> None:
    path = f"{AUTHORIZATION}/namespaces/{place}/localsubjectaccessreviews"
    assert "must match metadata.namespace" in check(admin.post(path, question("bob", namespace="other")), 422).message
    elsewhere = {"metadata": {"namespace": "other"}, **question("bob", namespace=place)}
    check(admin.post(path, elsewhere), 400)
    paths = {"spec": {"user": "bob", "nonResourceAttributes": {"path": "/", "verb": "get"}}}
    assert "disallowed on this kind of request" in check(admin.post(path, paths), 422).message


def test_selectors_that_are_not_understood_are_reported(admin: Client) -> None:
    asked = question(
        "bob",
        fieldSelector={"rawSelector": "a b"},
        labelSelector={"requirements": [{"key": "a", "operator": "Exists"}, {"key": "a", "operator": "Near"}]},
    )
    answer = check(admin.post(f"{AUTHORIZATION}/subjectaccessreviews", asked), 201)
    assert answer.json["status"]["evaluationError"] == (
        "spec.resourceAttributes.fieldSelector ignored due to parse error; "
        "spec.resourceAttributes.labelSelector partially ignored due to parse error"
    )


def test_the_rules_of_the_caller(reader: User, place: str) -> None:
    answer = check(reader.post(f"{AUTHORIZATION}/selfsubjectrulesreviews", {"spec": {"namespace": place}}), 201)
    status = answer.json["status"]
    assert {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]} in status["resourceRules"]
    assert ["/healthz", "/livez", "/readyz", "/version", "/version/"] in [
        each["nonResourceURLs"] for each in status["nonResourceRules"]
    ]
    assert status["incomplete"] is False
    assert answer.json["spec"] == {}
    other = check(reader.post(f"{AUTHORIZATION}/selfsubjectrulesreviews", {"spec": {"namespace": "default"}}), 201)
    assert {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]} not in other.json["status"]["resourceRules"]
    check(reader.post(f"{AUTHORIZATION}/selfsubjectrulesreviews", {"spec": {}}), 400)


def test_what_a_node_may_do_cannot_be_listed(as_user: AsUser) -> None:
    node = as_user("system:node:n1", "system:nodes")
    answer = check(node.post(f"{AUTHORIZATION}/selfsubjectrulesreviews", {"spec": {"namespace": "default"}}), 201)
    status = answer.json["status"]
    assert status["incomplete"] is True
    assert status["evaluationError"] == "node authorizer does not support user rule resolution"
