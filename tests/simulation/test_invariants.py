"""The rules that are checked at each write of a simulation: each finds what breaks it, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from pybernetes.simulation import invariants
from pybernetes.simulation.invariants import checks


def obj(kind: str, *, uid: str = "1", metadata: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    """An object as it is stored."""
    return {"kind": kind, "metadata": {"name": "a", "namespace": "default", "uid": uid, **(metadata or {})}, **fields}


def quota(used: int) -> dict[str, Any]:
    """A ResourceQuota of two pods."""
    return obj("ResourceQuota", status={"hard": {"pods": "2", "requests.cpu": "1"}, "used": {"pods": str(used)}})


BROKEN: list[tuple[str, dict[str, Any] | None, dict[str, Any] | None]] = [
    ("moved from node a to b", obj("Pod", spec={"nodeName": "a"}), obj("Pod", spec={"nodeName": "b"})),
    ("with finalizers x", obj("Pod", metadata={"finalizers": ["x"]}, spec={}), None),
    ("uid changed", obj("ConfigMap", uid="1"), obj("ConfigMap", uid="2")),
    (
        "was Succeeded and is Running",
        obj("Pod", spec={}, status={"phase": "Succeeded"}),
        obj("Pod", spec={}, status={"phase": "Running"}),
    ),
    ("quota default/a: 3 pods of 2", quota(2), quota(3)),
    ("succeeded fell from 2 to 1", obj("Job", status={"succeeded": 2}), obj("Job", status={"succeeded": 1})),
    (
        "its revision fell from 3 to 2",
        obj("Deployment", metadata={"annotations": {invariants.REVISION: "3"}}),
        obj("Deployment", metadata={"annotations": {invariants.REVISION: "2"}}),
    ),
]


@pytest.mark.parametrize(("message", "before", "after"), BROKEN, ids=[message for message, _, _ in BROKEN])
def test_a_broken_rule_is_found_and_its_opposite_is_none(message: str, before: Any, after: Any) -> None:
    found = [wrong for check in checks() if (wrong := check(before, after))]
    assert len(found) == 1
    assert message in found[0]
    if after is not None and message != "uid changed":
        unchanged = [wrong for check in checks() if (wrong := check(after, after))]
        assert unchanged == []


def test_an_address_is_given_twice_only_after_it_was_given_back() -> None:
    check = invariants.AddressesAreUnique()
    one = obj("Service", uid="1", spec={"clusterIPs": ["10.96.0.7"]})
    other = obj("Service", uid="2", spec={"clusterIPs": ["10.96.0.7"]})
    headless = obj("Service", uid="3", spec={"clusterIPs": ["None"]})
    assert check(None, one) is None
    assert check(None, headless) is None
    assert check(None, {**headless, "metadata": {**headless["metadata"], "uid": "4"}}) is None
    assert check(one, one) is None
    assert "service default/a got 10.96.0.7, which another one has" in str(check(None, other))
    assert check(one, None) is None
    assert check(None, other) is None


def test_a_pod_that_has_ended_gives_its_address_back() -> None:
    check = invariants.AddressesAreUnique()
    running = {"phase": "Running", "podIPs": [{"ip": "10.244.0.2"}]}
    one = obj("Pod", uid="1", spec={}, status=running)
    assert check(None, one) is None
    assert check(one, obj("Pod", uid="1", spec={}, status={**running, "phase": "Failed"})) is None
    assert check(None, obj("Pod", uid="2", spec={}, status=running)) is None
