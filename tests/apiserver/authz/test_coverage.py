"""What a set of PolicyRules grants and another does not, for rules that ask for millions of permissions too."""

from __future__ import annotations

import itertools

import pytest

from pybernetes.api.rbac.v1 import PolicyRule
from pybernetes.apiserver.authz.coverage import MAX_MISSING, TooManyCombinations, describe, missing


def rule(verbs: str, groups: str = "", resources: str = "pods", names: str = "") -> PolicyRule:
    return PolicyRule(
        verbs=verbs.split(","),
        api_groups=groups.split(","),
        resources=resources.split(","),
        resource_names=names.split(",") if names else None,
    )


def urls(verbs: str, paths: str) -> PolicyRule:
    return PolicyRule(verbs=verbs.split(","), non_resource_urls=paths.split(","))


def texts(prefix: str, count: int) -> list[str]:
    return [f"{prefix}{number}" for number in range(count)]


def test_a_rule_of_millions_of_permissions_is_refused_with_a_short_message() -> None:
    huge = PolicyRule(verbs=texts("v", 120), api_groups=texts("g", 120), resources=texts("r", 120))
    lacking = missing([rule("get")], [huge])
    assert len(lacking.rules) == MAX_MISSING
    assert lacking.more == 120**3 - MAX_MISSING
    lines = describe(lacking)
    assert lines[-1] == f"... and {lacking.more} more"
    assert sum(map(len, lines)) < 1 << 20


def test_a_huge_rule_that_one_held_rule_covers_is_granted() -> None:
    huge = PolicyRule(
        verbs=texts("v", 500), api_groups=texts("g", 500), resources=texts("r", 500), resource_names=texts("n", 500)
    )
    assert missing([rule("*", "*", "*")], [huge]).rules == []
    assert missing([rule("get"), huge], [huge]).rules == []


def test_a_huge_rule_that_held_rules_cover_together_is_granted() -> None:
    huge = PolicyRule(verbs=["get", "list"], api_groups=texts("g", 300), resources=texts("r", 300))
    halves = [
        PolicyRule(verbs=[verb], api_groups=huge.api_groups, resources=huge.resources) for verb in ("get", "list")
    ]
    assert missing(halves, [huge]).rules == []
    assert len(missing(halves[:1], [huge]).rules) == MAX_MISSING


def test_rules_that_combine_too_much_to_decide_are_an_error() -> None:
    texts_of = [texts(prefix, 100) for prefix in ("v", "g", "r")]
    held = [
        PolicyRule(verbs=[verb], api_groups=[group], resources=[resource])
        for verb, group, resource in zip(*texts_of, strict=True)
    ]
    with pytest.raises(TooManyCombinations):
        missing(held, [PolicyRule(verbs=texts_of[0], api_groups=texts_of[1], resources=texts_of[2])])


RULES = [
    rule("get,list", ",apps", "pods,deployments"),
    rule("get", "", "pods", "a,b"),
    rule("*", "apps", "deployments/scale,*/status"),
    rule("delete", "*", "*"),
    rule("get", "", "*", "a"),
    rule("list", "", "pods/status,*/scale"),
    urls("get,post", "/healthz,/api/*"),
    urls("*", "/metrics"),
    urls("get", "*"),
]


def test_every_pair_of_rules_is_decided_as_one_permission_after_the_other_is() -> None:
    for one, two, wanted in itertools.product(RULES, repeat=3):
        assert _flat(missing([one, two], [wanted]).rules) == _one_by_one([one, two], wanted), (one, two, wanted)


def _flat(rules: list[PolicyRule]) -> list[tuple[list[str] | None, ...]]:
    return [(r.api_groups, r.resources, r.verbs, r.resource_names, r.non_resource_urls) for r in rules]


def _one_by_one(held: list[PolicyRule], wanted: PolicyRule) -> list[tuple[list[str] | None, ...]]:
    found: list[tuple[list[str] | None, ...]] = []
    for group, resource, verb, name in itertools.product(
        wanted.api_groups or (), wanted.resources or (), wanted.verbs or (), wanted.resource_names or (None,)
    ):
        if not any(_grants(each, verb, group, resource, name) for each in held):
            found.append(([group], [resource], [verb], [name] if name else None, None))
    for url, verb in itertools.product(wanted.non_resource_urls or (), wanted.verbs or ()):
        if not any(_has(each.verbs, verb) and _path(each, url) for each in held):
            found.append((None, None, [verb], None, [url]))
    return found


def _grants(held: PolicyRule, verb: str, group: str, resource: str, name: str | None) -> bool:
    subresource = f"*/{resource.partition('/')[2]}"
    return (
        _has(held.verbs, verb)
        and _has(held.api_groups, group)
        and (_has(held.resources, resource) or ("/" in resource and subresource in (held.resources or ())))
        and (not held.resource_names or name in held.resource_names)
    )


def _path(held: PolicyRule, url: str) -> bool:
    return any(
        each == url or (each.endswith("*") and url.startswith(each.rstrip("*")))
        for each in held.non_resource_urls or ()
    )


def _has(values: list[str] | None, wanted: str) -> bool:
    return values is not None and (wanted in values or "*" in values)
