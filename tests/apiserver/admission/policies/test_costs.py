"""Expressions that loop for long are evaluated beside the event loop: others are answered meanwhile."""

from __future__ import annotations

import pytest
from apiserver.admission.policies.conftest import Policy
from apiserver.client import Client
from apiserver.test_large_objects import answered_meanwhile

NESTED = "object.data.all(a, object.data.all(b, a != 'none' || b != 'none'))"


@pytest.mark.parametrize(
    "spec",
    [
        {"validations": [{"expression": NESTED}]},
        {"variables": [{"name": "x", "expression": NESTED}], "validations": [{"expression": "variables.x"}]},
        {"matchConditions": [{"name": "x", "expression": NESTED}], "validations": [{"expression": "true"}]},
    ],
    ids=["validation", "variable", "match condition"],
)
def test_others_are_answered_while_a_policy_loops(
    api: Client, place: str, policy: Policy, spec: dict[str, list[dict[str, str]]]
) -> None:
    maps = f"/api/v1/namespaces/{place}/configmaps"
    denied = {"validations": [*spec["validations"], {"expression": "!has(object.data.denied)", "message": "no"}]}
    policy("validating", {**spec, **denied})
    data = {f"key-{number}": "" for number in range(330)}

    def refused() -> bool:
        return api.post(maps, {"metadata": {"name": "x"}, "data": {"denied": ""}}).status == 422

    while not refused():  # the policy is not in force at once
        api.delete(f"{maps}/x")
    for name in ("first", "second"):
        answer, count = answered_meanwhile(
            api, lambda name=name: api.post(maps, {"metadata": {"name": name}, "data": data})
        )  # type: ignore[misc]
        assert answer.status == 201, answer.body
        assert count >= 5
    answer = api.post(maps, {"metadata": {"name": "third"}, "data": {**data, "denied": ""}})
    assert (answer.status, "denied request: no" in answer.message) == (422, True)


def test_an_expression_that_costs_too_much_is_an_error_as_before(api: Client, place: str, policy: Policy) -> None:
    maps = f"/api/v1/namespaces/{place}/configmaps"
    policy("validating", {"validations": [{"expression": NESTED}, {"expression": "!has(object.data.denied)"}]})
    while api.post(maps, {"metadata": {"name": "x"}, "data": {"denied": ""}}).status != 422:
        api.delete(f"{maps}/x")
    answer = api.post(maps, {"metadata": {"name": "y"}, "data": {f"key-{number}": "" for number in range(1500)}})
    assert answer.status == 422
    assert "operation cancelled: actual cost limit exceeded" in answer.message
