"""Which rule of an audit policy a request meets, and what is wrong with a policy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from pybernetes.apiserver.audit.policy import LEVELS, Policy, PolicyEvaluator, read
from pybernetes.apiserver.requestinfo import request_info
from pybernetes.apiserver.user import User

ALICE = User("alice", groups=("dev", "system:authenticated"))


def evaluator(*rules: dict[str, Any], **policy: Any) -> PolicyEvaluator:
    return PolicyEvaluator(msgspec.convert({"rules": list(rules), **policy}, Policy))


POD = "/api/v1/namespaces/a/pods/web"


@pytest.mark.parametrize(
    ("rule", "request_", "matches"),
    [
        ({}, f"GET {POD}", True),
        ({"users": ["alice"]}, f"GET {POD}", True),
        ({"users": ["bob"]}, f"GET {POD}", False),
        ({"userGroups": ["dev", "x"]}, f"GET {POD}", True),
        ({"userGroups": ["x"]}, f"GET {POD}", False),
        ({"verbs": ["get"]}, f"GET {POD}", True),
        ({"verbs": ["list"]}, f"GET {POD}", False),
        ({"namespaces": ["a"]}, f"GET {POD}", True),
        ({"namespaces": ["b"]}, f"GET {POD}", False),
        ({"namespaces": [""]}, "GET /api/v1/nodes", True),
        ({"namespaces": [""]}, "GET /healthz", False),
        ({"resources": [{"group": ""}]}, f"GET {POD}", True),
        ({"resources": [{"group": "apps"}]}, f"GET {POD}", False),
        ({"resources": [{"group": "*", "resources": ["pods"]}]}, f"GET {POD}", True),
        ({"resources": [{"resources": ["pods"]}]}, f"GET {POD}/log", False),
        ({"resources": [{"resources": ["pods/log"]}]}, f"GET {POD}/log", True),
        ({"resources": [{"resources": ["pods/*"]}]}, f"GET {POD}/log", True),
        ({"resources": [{"resources": ["pods/*"]}]}, f"GET {POD}", True),
        ({"resources": [{"resources": ["*/log"]}]}, f"GET {POD}/log", True),
        ({"resources": [{"resources": ["*/log"]}]}, f"GET {POD}", False),
        ({"resources": [{"resources": ["*"]}]}, f"GET {POD}/log", True),
        ({"resources": [{"resources": ["pods"], "resourceNames": ["web"]}]}, f"GET {POD}", True),
        ({"resources": [{"resources": ["pods"], "resourceNames": ["db"]}]}, f"GET {POD}", False),
        ({"nonResourceURLs": ["/healthz*"]}, "GET /healthz/etcd", True),
        ({"nonResourceURLs": ["/healthz*"]}, f"GET {POD}", False),
        ({"nonResourceURLs": ["*"]}, "GET /x", True),
    ],
)
def test_rules_match(rule: dict[str, Any], request_: str, matches: bool) -> None:
    method, _, path = request_.partition(" ")
    found = evaluator({"level": "Request", **rule}).evaluate(ALICE, request_info(method, path, ""))
    assert LEVELS[found.level] == ("Request" if matches else "None")


def test_the_first_rule_decides_and_stages_add_up() -> None:
    made = evaluator(
        {"level": "Metadata", "verbs": ["get"], "omitStages": ["Panic"], "omitManagedFields": False},
        {"level": "RequestResponse"},
        omitStages=["RequestReceived"],
        omitManagedFields=True,
    )
    first = made.evaluate(ALICE, request_info("GET", POD, ""))
    assert (LEVELS[first.level], first.omit_stages, first.omit_managed_fields) == (
        "Metadata",
        {"Panic", "RequestReceived"},
        False,
    )
    second = made.evaluate(None, request_info("PUT", POD, ""))
    assert (LEVELS[second.level], second.omit_stages, second.omit_managed_fields) == (
        "RequestResponse",
        {"RequestReceived"},
        True,
    )


HEAD = "apiVersion: audit.k8s.io/v1\nkind: Policy\n"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("kind: Policy\n", "unknown group version field audit.k8s.io/__internal, Kind=Policy in policy"),
        (
            "apiVersion: audit.k8s.io/v1beta1\nkind: Policy\n",
            'no kind "Policy" is registered for version "audit.k8s.io/v1beta1"',
        ),
        (
            HEAD + "rules: [{users: x}]",
            "cannot unmarshal string into Go struct field PolicyRule.rules.users of type []string",
        ),
        (HEAD, "loaded illegal policy with 0 rules"),
        (HEAD + "rules: [{}]", "rules[0].level: Required value"),
        (HEAD + "rules: [{level: All}]", 'rules[0].level: Unsupported value: "All"'),
        (HEAD + "rules: [{level: None, omitStages: [X]}]", "rules[0].omitStages[0]: Invalid value"),
        (HEAD + "omitStages: [X]\nrules: [{level: None}]", "omitStages[0]: Invalid value"),
        (HEAD + "rules: [{level: None, nonResourceURLs: [x]}]", "must begin with a '/' character"),
        (HEAD + "rules: [{level: None, nonResourceURLs: ['/a*b']}]", "must be the final character"),
        (HEAD + "rules: [{level: None, namespaces: [a], nonResourceURLs: [/a]}]", "cannot apply to both"),
        (HEAD + "rules: [{level: None, resources: [{group: a/v1}]}]", "rules[0].resources.group: Invalid value"),
        (HEAD + "rules: [{level: None, resources: [{resourceNames: [a]}]}]", "requires at least one resource"),
    ],
)
def test_what_is_wrong_with_a_policy(tmp_path: Path, text: str, problem: str) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(text)
    with pytest.raises(ValueError) as failed:  # noqa: PT011
        read(file)
    assert problem in str(failed.value)


def test_a_policy_with_unknown_fields_is_used_without_them(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(HEAD + "rules: [{level: Metadata, user: [a]}]")
    assert [each.level for each in read(file).rules] == ["Metadata"]
    assert 'unknown field "rules[0].user"' in caplog.text
