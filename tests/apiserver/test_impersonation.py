"""Acting as somebody else."""

from __future__ import annotations

import asyncio

import pytest
from apiserver.client import Client

from pybernetes.api.errors import BadRequest, Forbidden
from pybernetes.apiserver.authn.user import User
from pybernetes.apiserver.authz.authorizer import AlwaysDeny
from pybernetes.apiserver.filters.impersonation import Impersonation, impersonated
from pybernetes.apiserver.http import Request

REVIEWS = "/apis/authentication.k8s.io/v1/selfsubjectreviews"


def who(client: Client, **headers: str) -> dict[str, object]:
    answer = client.post(REVIEWS, {}, **headers)
    assert answer.status == 201, answer.body
    found: dict[str, object] = answer.json["status"]["userInfo"]
    return found


def test_the_request_is_that_of_the_other_user(client: Client) -> None:
    assert who(client, Impersonate_User="jane") == {"username": "jane", "groups": ["system:authenticated"]}
    jane = who(client, Impersonate_User="jane", Impersonate_Group="dev,ops", Impersonate_Uid="7")
    assert jane == {"username": "jane", "uid": "7", "groups": ["dev", "ops", "system:authenticated"]}
    extra = who(client, Impersonate_User="jane", Impersonate_Extra_scopes="view")
    assert extra["extra"] == {"scopes": ["view"]}


def test_service_accounts_come_with_their_groups(client: Client) -> None:
    account = who(client, Impersonate_User="system:serviceaccount:ns:robot")
    assert account["groups"] == ["system:serviceaccounts", "system:serviceaccounts:ns", "system:authenticated"]


def test_a_group_without_a_user_is_refused(client: Client) -> None:
    answer = client.post(REVIEWS, {}, Impersonate_Group="dev")
    assert (answer.status, answer.json["reason"]) == (400, "BadRequest")
    with pytest.raises(BadRequest):
        impersonated({"impersonate-uid": "7"})


def test_nobody_impersonates_without_permission() -> None:
    async def never(request: Request) -> None:
        raise AssertionError("the request went on")

    request = Request(None, "GET", "/api/v1/pods", "", {"impersonate-user": "jane"}, b"")  # type: ignore[arg-type]
    request.user = User("joe")
    with pytest.raises(Forbidden) as refused:
        asyncio.run(Impersonation(never, [AlwaysDeny()])(request))  # type: ignore[arg-type]
    assert refused.value.message == (
        'users "jane" is forbidden: User "joe" cannot impersonate resource "users" in API group "" '
        "at the cluster scope: Everything is forbidden."
    )


def test_every_header_asks_for_its_own_permission() -> None:
    user, questions = impersonated(
        {
            "impersonate-user": "system:anonymous",
            "impersonate-group": "a",
            "impersonate-uid": "7",
            "impersonate-extra-scopes": "view",
        }
    )
    assert user.groups == ("a", "system:unauthenticated")
    assert [(q.resource, q.subresource, q.name) for q in questions] == [
        ("users", "", "system:anonymous"),
        ("groups", "", "a"),
        ("userextras", "scopes", "view"),
        ("uids", "", "7"),
    ]
