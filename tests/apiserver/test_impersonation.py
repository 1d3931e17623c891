"""Impersonation."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest
from apiserver.client import Client

from pybernetes.api.authorization.v1 import SubjectRulesReviewStatus
from pybernetes.api.errors import BadRequest, Forbidden
from pybernetes.apiserver.authz.authorizer import AlwaysDeny, Decision
from pybernetes.apiserver.filters.impersonation import Impersonation, modes, wanted_user
from pybernetes.apiserver.requestinfo import RequestInfo, request_info
from pybernetes.apiserver.user import User
from pybernetes.net.http import Request

REVIEWS = "/apis/authentication.k8s.io/v1/selfsubjectreviews"


def who(client: Client, **headers: str) -> dict[str, object]:
    answer = client.post(REVIEWS, {}, **headers)
    assert answer.status == 201, answer.body
    found: dict[str, object] = answer.json["status"]["userInfo"]
    return found


def test_the_request_is_that_of_the_other_user(client: Client) -> None:
    assert who(client, Impersonate_User="jane") == {"username": "jane", "groups": ["system:authenticated"]}
    jane = who(client, Impersonate_User="jane", Impersonate_Group="dev,ops", Impersonate_Uid="7")
    assert jane == {"username": "jane", "uid": "7", "groups": ["dev,ops", "system:authenticated"]}
    extra = who(client, Impersonate_User="jane", Impersonate_Extra_scopes="view")
    assert extra["extra"] == {"scopes": ["view"]}


def test_names_are_utf8_without_blanks_around_them(client: Client) -> None:
    sent = {"Impersonate_User": "josé", "Impersonate_Group": "größe", "Impersonate_Extra_Scopes": " 日本 \t"}
    jose = who(client, **{name: value.encode().decode("latin-1") for name, value in sent.items()})
    assert jose["username"] == "josé"
    assert jose["groups"] == ["größe", "system:authenticated"]
    assert jose["extra"] == {"scopes": ["日本"]}
    assert who(client, Impersonate_User="jos\xe9")["username"] == "jos\ufffd", "invalid UTF-8 matches no user"


def test_a_header_that_comes_twice_has_two_values(client: Client) -> None:
    connection = client.connect()
    connection.putrequest("POST", REVIEWS)
    for name, value in (
        ("Authorization", f"Bearer {client.token}"),
        ("Impersonate-User", "jane"),
        ("Impersonate-Group", "a"),
        ("Impersonate-Group", "b,c"),
        ("Impersonate-Extra-Acme.io%2Fscope", "x"),
        ("Impersonate-Extra-Acme.io%2Fscope", "y"),
        ("Content-Type", "application/json"),
        ("Content-Length", "2"),
    ):
        connection.putheader(name, value)
    connection.endheaders(b"{}")
    answer = connection.getresponse().read()
    assert b'"groups":["a","b,c","system:authenticated"]' in answer.replace(b"\n", b"").replace(b" ", b"")
    assert b'"acme.io/scope":["x","y"]' in answer.replace(b"\n", b"").replace(b" ", b"")


def test_service_accounts_come_with_their_groups(client: Client) -> None:
    account = who(client, Impersonate_User="system:serviceaccount:ns:robot")
    assert account["groups"] == ["system:serviceaccounts", "system:serviceaccounts:ns", "system:authenticated"]


def test_nodes_come_with_their_group(client: Client) -> None:
    assert who(client, Impersonate_User="system:node:n1")["groups"] == ["system:nodes", "system:authenticated"]


def test_a_group_without_a_user_is_refused(client: Client) -> None:
    answer = client.post(REVIEWS, {}, Impersonate_Group="dev")
    assert (answer.status, answer.json["reason"]) == (400, "BadRequest")
    with pytest.raises(BadRequest):
        wanted_user(_request({"impersonate-uid": "7"}))


def _request(headers: dict[str, str]) -> Request:
    request = Request(None, "GET", "/api/v1/pods", "", headers, b"")  # type: ignore[arg-type]
    request.info = request_info("GET", "/api/v1/pods", "")
    return request


class _Only:
    """Allows what is in a table of (verb, resource, name)."""

    kind = name = "test"

    def __init__(self, *allowed: tuple[str, str, str]) -> None:
        self.allowed = set(allowed)
        self.asked: list[tuple[str, str, str]] = []
        self.users: list[User] = []

    async def authorize(self, user: User, info: RequestInfo) -> tuple[Decision, str]:
        question = (info.verb, f"{info.resource}/{info.subresource}" if info.subresource else info.resource, info.name)
        self.asked.append(question)
        self.users.append(user)
        return (Decision.ALLOW if question in self.allowed else Decision.NO_OPINION), ""

    def rules(self, user: User, namespace: str) -> SubjectRulesReviewStatus:
        raise NotImplementedError


def _try(authorizer: _Only, requestor: User, headers: dict[str, str]) -> User:
    request = _request(headers)
    request.user = requestor

    async def on(request: Request) -> None:
        assert not any(name.startswith("impersonate-") for name in request.headers)

    asyncio.run(Impersonation(on, SimpleNamespace(authorizers=[authorizer]))(request))  # type: ignore[arg-type]
    user: User = request.user
    return user


def test_impersonation_needs_permission() -> None:
    async def never(request: Request) -> None:
        raise AssertionError("the request went on")

    request = _request({"impersonate-user": "jane"})
    request.user = User("joe")
    denying = SimpleNamespace(authorizers=[AlwaysDeny()])
    with pytest.raises(Forbidden) as refused:
        asyncio.run(Impersonation(never, denying)(request))  # type: ignore[arg-type]
    assert refused.value.message == (
        'pods is forbidden: User "joe" cannot impersonate-on:user-info:list resource "pods" in API group "" '
        "at the cluster scope: Everything is forbidden."
    )


def test_every_header_asks_for_its_own_permission() -> None:
    authorizer = _Only(
        ("impersonate", "users", "system:anonymous"),
        ("impersonate", "groups", "a"),
        ("impersonate", "uids", "7"),
        ("impersonate", "userextras/scopes", "view"),
    )
    headers = {
        "impersonate-user": "system:anonymous",
        "impersonate-group": "a",
        "impersonate-uid": "7",
        "impersonate-extra-scopes": "view",
    }
    user = _try(authorizer, User("joe"), dict(headers))
    assert user.groups == ("a", "system:unauthenticated")
    assert authorizer.asked[1:] == [
        ("impersonate", "users", "system:anonymous"),
        ("impersonate", "uids", "7"),
        ("impersonate", "groups", "a"),
        ("impersonate", "userextras/scopes", "view"),
    ]
    for lost in list(authorizer.allowed):
        with pytest.raises(Forbidden):
            _try(_Only(*(authorizer.allowed - {lost})), User("joe"), dict(headers))


def test_constrained_impersonation_takes_both_who_and_what() -> None:
    both = (("impersonate-on:user-info:list", "pods", ""), ("impersonate:user-info", "users", "jane"))
    assert _try(_Only(*both), User("joe"), {"impersonate-user": "jane"}).name == "jane"
    for one in both:
        with pytest.raises(Forbidden):
            _try(_Only(one), User("joe"), {"impersonate-user": "jane"})


def test_constrained_impersonation_never_gives_masters() -> None:
    authorizer = _Only(
        ("impersonate-on:user-info:list", "pods", ""),
        ("impersonate:user-info", "users", "jane"),
        ("impersonate:user-info", "groups", "system:masters"),
    )
    with pytest.raises(Forbidden, match="impersonating the system:masters group is not allowed"):
        _try(authorizer, User("joe"), {"impersonate-user": "jane", "impersonate-group": "system:masters"})


def test_a_pod_of_a_node_may_be_its_own_node_only() -> None:
    agent = User(
        "system:serviceaccount:kube-system:agent", extra={"authentication.kubernetes.io/node-name": ["n1"], "a": ["b"]}
    )
    authorizer = _Only(
        ("impersonate-on:associated-node:list", "pods", ""), ("impersonate:associated-node", "nodes", "*")
    )
    assert _try(authorizer, agent, {"impersonate-user": "system:node:n1"}).groups == (
        "system:nodes",
        "system:authenticated",
    )
    assert authorizer.users[0].extra == {
        "authentication.kubernetes.io/associated-node-keys": ["a", "authentication.kubernetes.io/node-name"]
    }
    with pytest.raises(Forbidden):
        _try(authorizer, agent, {"impersonate-user": "system:node:n2"})
    with pytest.raises(Forbidden):
        _try(authorizer, User("joe", extra=agent.extra), {"impersonate-user": "system:node:n1"})


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (User("jane"), ["user-info", ""]),
        (User("jane", groups=("a",)), ["user-info", ""]),
        (User("system:node:n1"), ["arbitrary-node", ""]),
        (User("system:node:n1", groups=("system:masters",)), [""]),
        (User("system:node:N_1"), ["user-info", ""]),
        (User("system:serviceaccount:a:b"), ["serviceaccount", ""]),
        (User("system:serviceaccount:a:b", uid="1"), [""]),
        (User("system:serviceaccount:a:b:c"), ["user-info", ""]),
    ],
)
def test_which_ways_are_open(wanted: User, expected: list[str]) -> None:
    assert modes(wanted, User("joe")) == expected


def test_a_refusal_names_what_was_lacking_for_the_way_that_was_taken_last() -> None:
    async def on(request: Request) -> None:
        pass

    filter_ = Impersonation(on, SimpleNamespace(authorizers=[_Only(("impersonate", "users", "jane"))]))

    def become(name: str) -> str:
        request = _request({"impersonate-user": name})
        request.user = User("joe")
        try:
            asyncio.run(filter_(request))
        except Forbidden as refused:
            return refused.message
        return ""

    assert become("jill").startswith('pods is forbidden: User "joe" cannot impersonate-on:user-info:list')
    assert become("jane") == ""
    assert become("jill").startswith('users "jill" is forbidden: User "joe" cannot impersonate resource "users"')
