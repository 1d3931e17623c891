"""Who may write which part of a ResourceClaim's status."""

from __future__ import annotations

from typing import Any

import pytest
from apiserver.authz.conftest import User, check, grant, rule
from apiserver.client import Answer, Client

from tools import ApiServer

DRIVER, NODE = "d.example.com", "n1"
REQUEST = {"name": "r", "exactly": {"deviceClassName": "x", "allocationMode": "ExactCount", "count": 1}}
RESULT = {"request": "r", "driver": DRIVER, "pool": "p", "device": "dev"}
ON_NODE = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [NODE]}]}
ALLOCATION = {"devices": {"results": [RESULT]}, "nodeSelector": {"nodeSelectorTerms": [ON_NODE]}}
RESERVED = [{"resource": "pods", "name": "web", "uid": "1"}]
DEVICES = [{"driver": DRIVER, "pool": "p", "device": "dev"}]
GROUP = "resource.k8s.io"


class OnNode(User):
    """A service account with a token that is bound to a node."""

    node = NODE

    def _headers(self, body: Any, extra: dict[str, str]) -> dict[str, str]:
        bound = {"Impersonate-Extra-authentication.kubernetes.io%2Fnode-name": self.node}
        return {**super()._headers(body, extra), **bound}


def causes(answer: Answer) -> list[tuple[str, str]]:
    check(answer, 422)
    return [(each["field"], each["message"]) for each in answer.json["details"]["causes"]]


@pytest.fixture
def claim(admin: Client, place: str) -> str:
    path = f"/apis/resource.k8s.io/v1/namespaces/{place}/resourceclaims"
    check(admin.post(path, {"metadata": {"name": "c"}, "spec": {"devices": {"requests": [REQUEST]}}}), 201)
    return f"{path}/c/status"


def somebody(admin: Client, server: ApiServer, name: str, *rules: dict[str, list[str]], at: str = "") -> User:
    grant(admin, name, rule("*", GROUP, "resourceclaims,resourceclaims/status"), *rules)
    user = OnNode(server, name) if at else User(server, name)
    if isinstance(user, OnNode):
        user.node = at
    return user


def test_who_allocates_and_reserves_needs_permission_to_bind(
    admin: Client, guarded: ApiServer, claim: str, place: str
) -> None:
    anybody = somebody(admin, guarded, f"anybody-{place}")
    scheduler = somebody(admin, guarded, f"scheduler-{place}", rule("patch", GROUP, "resourceclaims/binding"))
    why = (
        "Forbidden: changing status.allocation or status.reservedFor requires "
        'resource="resourceclaims/binding", verb="patch" permission: resourceclaims.resource.k8s.io is forbidden: '
        f'User "{anybody.name}" cannot patch resource "resourceclaims/binding" in API group "{GROUP}" '
        "at the cluster scope"
    )
    for status in ({"allocation": ALLOCATION}, {"reservedFor": RESERVED}):
        assert ("status.allocation", why) in causes(anybody.patch(claim, {"status": status}))
    check(anybody.patch(claim, {"status": {}}), 200)
    check(scheduler.patch(claim, {"status": {"allocation": ALLOCATION, "reservedFor": RESERVED}}), 200)
    refused = causes(scheduler.put(claim, {**admin.get(claim).json, "status": {"allocation": ALLOCATION}}))
    assert [field for field, _ in refused] == ["status.allocation"]  # it may patch, not update
    assert causes(anybody.patch(claim, {"status": {"allocation": None}}))[0][0] == "status.allocation"
    check(scheduler.patch(claim, {"status": {"allocation": None, "reservedFor": None}}), 200)


def test_drivers_speak_for_their_own_devices_on_their_own_node(
    admin: Client, guarded: ApiServer, claim: str, place: str
) -> None:
    near = rule("associated-node:patch", GROUP, "resourceclaims/driver", DRIVER)
    far = rule("arbitrary-node:patch", GROUP, "resourceclaims/driver", DRIVER)
    prefix = f"system:serviceaccount:{place}"
    here = somebody(admin, guarded, f"{prefix}:here", near, at=NODE)
    elsewhere = somebody(admin, guarded, f"{prefix}:elsewhere", near, at="n2")
    person = somebody(admin, guarded, f"person-{place}", near)
    controller = somebody(admin, guarded, f"controller-{place}", far)
    check(admin.patch(claim, {"status": {"allocation": ALLOCATION}}), 200)
    change = {"status": {"devices": DEVICES}}
    for user in (elsewhere, person):
        ((field, why),) = causes(user.patch(claim, change))
        assert field == "status.devices"
        assert why.startswith(
            'Forbidden: changing status.devices requires resource="resourceclaims/driver", '
            f'verb="[arbitrary-node:patch]" permission: resourceclaims.resource.k8s.io "{DRIVER}" is forbidden: '
        )
    check(here.patch(claim, change), 200)
    other = [{"driver": "other.example.com", "pool": "p", "device": "dev"}]
    fields = [field for field, why in causes(here.patch(claim, {"status": {"devices": other}})) if "other" in why]
    assert fields[0] == "status.devices"
    assert [field for field, _ in causes(person.patch(claim, {"status": {"devices": None}}))] == ["status.devices"]
    check(controller.patch(claim, {"status": {"devices": None}}), 200)
