"""Each authorizer: allow, deny, no opinion; and the order in which they are asked."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from pybernetes.api.errors import Forbidden
from pybernetes.apiserver.authz import metrics
from pybernetes.apiserver.authz.abac import ABAC, read_policies
from pybernetes.apiserver.authz.authorizer import AlwaysAllow, AlwaysDeny, Authorizer, Decision, Undecided
from pybernetes.apiserver.authz.conditions import MatchConditions
from pybernetes.apiserver.authz.privileged import PrivilegedGroups
from pybernetes.apiserver.authz.union import decide
from pybernetes.apiserver.authz.webhook import Webhook
from pybernetes.apiserver.filters.authorization import Authorization
from pybernetes.apiserver.requestinfo import RequestInfo, request_info
from pybernetes.apiserver.review_webhook import Outcome, WebhookFailed
from pybernetes.apiserver.user import User
from pybernetes.net.http import Request, Response

ALICE = User("alice", "7", ("dev", "system:authenticated"), {"scope": ["x"]})
ALLOW, DENY, NO_OPINION = Decision.ALLOW, Decision.DENY, Decision.NO_OPINION


def get(path: str, method: str = "GET") -> RequestInfo:
    path, _, query = path.partition("?")
    return request_info(method, path, query)


def ask(authorizer: Authorizer, info: RequestInfo, user: User = ALICE) -> tuple[Decision, str]:
    async def answer() -> tuple[Decision, str]:
        said = authorizer.authorize(user, info)
        return said if isinstance(said, tuple) else await said

    return asyncio.run(answer())


# -- the simple ones


def test_the_simple_ones() -> None:
    info = get("/api/v1/pods")
    assert ask(AlwaysAllow(), info) == (ALLOW, "")
    assert ask(AlwaysDeny(), info) == (NO_OPINION, "Everything is forbidden.")
    assert ask(PrivilegedGroups(), info) == (NO_OPINION, "")
    assert ask(PrivilegedGroups(), info, User("root", groups=("system:masters",))) == (ALLOW, "")


class Says:
    """An authorizer that always says the same, when it is awaited."""

    kind = name = "test"

    def __init__(self, decision: Decision, reason: str = "", error: str = "") -> None:
        self.decision, self.reason, self.error = decision, reason, error

    async def authorize(self, user: User, info: RequestInfo) -> tuple[Decision, str]:
        if self.error:
            raise Undecided(self.error, self.decision)
        return self.decision, self.reason

    def rules(self, user: User, namespace: str) -> Any:
        raise NotImplementedError


class SaysAtOnce(Says):
    """Need not be awaited."""

    def authorize(self, user: User, info: RequestInfo) -> Any:
        return self.decision, self.reason


@pytest.mark.parametrize(
    ("said", "outcome"),
    [
        ([], (NO_OPINION, "", "")),
        ([Says(NO_OPINION, "a"), Says(NO_OPINION), Says(NO_OPINION, "b")], (NO_OPINION, "a\nb", "")),
        ([Says(NO_OPINION, "a"), Says(ALLOW, "yes"), Says(DENY, "no")], (ALLOW, "yes", "")),
        ([Says(NO_OPINION, "a"), Says(DENY, "no"), Says(ALLOW, "yes")], (DENY, "no", "")),
        ([Says(NO_OPINION, error="x"), Says(ALLOW, "yes")], (ALLOW, "yes", "")),
        ([Says(NO_OPINION, error="x"), Says(NO_OPINION, error="y")], (NO_OPINION, "", "[x, y]")),
        ([Says(DENY, error="x"), Says(ALLOW, "yes")], (DENY, "", "x")),
    ],
)
def test_the_first_that_has_an_opinion_decides(said: Sequence[Says], outcome: tuple[Decision, str, str]) -> None:
    mixed: list[Authorizer] = [each if each.error else SaysAtOnce(each.decision, each.reason) for each in said]
    for authorizers in (said, mixed, [*said[:1], *mixed[1:]], [*mixed[:1], *said[1:]]):
        assert asyncio.run(decide(authorizers, ALICE, get("/api/v1/pods"))) == outcome


@pytest.mark.parametrize("kind", [Says, SaysAtOnce])
@pytest.mark.parametrize(
    ("said", "result"),
    [((ALLOW, "yes"), "allowed"), ((DENY, "no"), "denied"), ((NO_OPINION, "why"), "no-opinion")],
)
async def test_the_filter_passes_on_what_is_allowed(kind: type[Says], said: tuple[Decision, str], result: str) -> None:
    passed = []

    async def serve() -> Response:
        return Response(b"served")

    def handler(request: Request) -> Awaitable[Response]:
        passed.append(request)
        return serve()

    connection: Any = None
    request = Request(connection, "GET", "/api/v1/pods", "", {}, b"", user=ALICE, info=get("/api/v1/pods"))
    request.audit = SimpleNamespace(annotations={})
    before = attempts()
    pending = Authorization(handler, SimpleNamespace(authorizers=[kind(*said)]))(request)
    assert bool(passed) is (kind is SaysAtOnce and result == "allowed"), "at once or when awaited"
    if result == "allowed":
        answer = await pending
        assert answer is not None
        assert answer.body == b"served"
    else:
        with pytest.raises(Forbidden, match=f"alice.*{said[1]}"):
            await pending
    assert len(passed) == (result == "allowed")
    assert attempts() == {**before, result: before.get(result, 0) + 1}
    word = "allow" if result == "allowed" else "forbid"
    assert request.audit.annotations == {
        "authorization.k8s.io/decision": word,
        "authorization.k8s.io/reason": said[1],
    }


async def test_authorizers_without_a_decision_are_an_internal_error() -> None:
    connection: Any = None
    request = Request(connection, "GET", "/a<b", "", {}, b"", user=ALICE, info=get("/a<b"))
    before = attempts()
    answer = await Authorization(_never, SimpleNamespace(authorizers=[Says(NO_OPINION, error="away")]))(request)
    assert answer is not None
    assert (answer.status, answer.body) == (500, b'Internal Server Error: "/a&lt;b": away\n')
    assert attempts() == {**before, "error": before.get("error", 0) + 1}


def _never(request: Request) -> Awaitable[Response]:
    raise AssertionError


def attempts() -> dict[str, float]:
    """How often what was decided, as /metrics tells."""
    found = next(each for each in metrics.collect() if each.name == "authorization_attempts")
    return {sample.labels["result"]: sample.value for sample in found.samples if sample.name.endswith("_total")}


# -- ABAC


def policy(**spec: Any) -> str:
    return json.dumps({"apiVersion": "abac.authorization.kubernetes.io/v1beta1", "kind": "Policy", "spec": spec})


@pytest.mark.parametrize(
    ("line", "request_", "allowed"),
    [
        (policy(user="alice", namespace="*", resource="*", apiGroup="*"), get("/api/v1/pods"), True),
        (policy(user="bob", namespace="*", resource="*", apiGroup="*"), get("/api/v1/pods"), False),
        (policy(group="dev", namespace="*", resource="*", apiGroup="*"), get("/api/v1/pods"), True),
        (policy(user="alice", group="ops", namespace="*", resource="*", apiGroup="*"), get("/api/v1/pods"), False),
        (policy(user="*", namespace="*", resource="*", apiGroup="*"), get("/api/v1/pods"), True),
        (policy(namespace="*", resource="*", apiGroup="*"), get("/api/v1/pods"), False),
        (policy(user="alice", namespace="a", resource="pods"), get("/api/v1/namespaces/a/pods"), True),
        (policy(user="alice", namespace="a", resource="pods"), get("/api/v1/namespaces/b/pods"), False),
        (policy(user="alice", namespace="a", resource="pods"), get("/api/v1/pods"), False),
        (policy(user="alice", namespace="*", resource="pods"), get("/apis/x/v1/pods"), False),
        (policy(user="alice", namespace="*", resource="pods", readonly=True), get("/api/v1/pods?watch=1"), True),
        (policy(user="alice", namespace="*", resource="pods", readonly=True), get("/api/v1/pods", "POST"), False),
        (policy(user="alice", nonResourcePath="/logs/*"), get("/logs/x"), True),
        (policy(user="alice", nonResourcePath="/logs/*"), get("/other"), False),
        (policy(user="alice", nonResourcePath="*"), get("/api/v1/pods"), False),
        ('{"user":"alice"}', get("/api/v1/pods"), True),
        ('{"user":"alice"}', get("/logs"), True),
        ('{"user":"alice","resource":"pods"}', get("/logs"), False),
        ('{"apiVersion":"abac.authorization.kubernetes.io/v0","kind":"Policy","user":"alice"}', get("/logs"), True),
        ('{"kind":"Policy","user":"alice"}', get("/logs"), True),
        ("user: alice", get("/logs"), True),
        (policy(user="alice", namespace="*", resource="*", apiGroup="*", more=1), get("/api/v1/pods"), True),
        ('{"readonly":true}', get("/api/v1/pods"), True),
        ('{"readonly":true}', get("/api/v1/pods", "POST"), False),
    ],
)
def test_policies_match(tmp_path: Path, line: str, request_: RequestInfo, allowed: bool) -> None:
    file = tmp_path / "policy"
    file.write_text(f"# a comment\n\n{line}\n")
    assert ask(ABAC(file), request_) == ((ALLOW, "") if allowed else (NO_OPINION, "No policy matched."))


def test_a_bad_line_is_named(tmp_path: Path) -> None:
    file = tmp_path / "policy"
    for bad, why in (
        ("{", "couldn't get version/kind; json parse error: unexpected end of JSON input"),
        ('{"kind":"Policy","apiVersion":"v9"}', 'no kind "Policy" is registered for version "v9" in scheme'),
        ('{"user":7}', "cannot unmarshal number into Go struct field"),
        (policy(readonly="x"), "cannot unmarshal string into Go struct field PolicySpec.spec.readonly of type bool"),
    ):
        file.write_text(f"{policy(user='a')}\n{bad}\n")
        with pytest.raises(ValueError, match="line 2") as failed:
            read_policies(file)
        assert f"error reading policy file {file}, line 2: {bad}: " in str(failed.value)
        assert why in str(failed.value)
    file.write_text(" " * 70_000)
    with pytest.raises(ValueError, match="token too long"):
        read_policies(file)


def test_policies_are_rules_too(tmp_path: Path) -> None:
    file = tmp_path / "policy"
    file.write_text(policy(user="alice", namespace="a", resource="pods", readonly=True) + "\n")
    rules = ABAC(file).rules(ALICE, "a").resource_rules
    assert rules is not None
    assert [each.verbs for each in rules] == [["get", "list", "watch"]]
    assert ABAC(file).rules(ALICE, "b").resource_rules == []


# -- webhooks


class Remote:
    """A webhook without a network: answers from a list, and remembers the questions."""

    def __init__(self, *answers: dict[str, Any] | Exception) -> None:
        self.answers = list(answers)
        self.asked: list[dict[str, Any]] = []

    async def post(self, body: bytes, attempted: Outcome) -> bytes:
        self.asked.append(msgspec.json.decode(body))
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return msgspec.json.encode({"status": answer})

    async def close(self) -> None:
        pass


def webhook(*answers: dict[str, Any] | Exception, **settings: Any) -> tuple[Webhook, Remote]:
    remote = Remote(*answers)
    return Webhook(remote, **settings), remote  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("answer", "decision"),
    [
        ({"allowed": True, "reason": "r"}, (ALLOW, "r")),
        ({"allowed": False, "reason": "r"}, (NO_OPINION, "r")),
        ({"allowed": False, "denied": True, "reason": "r"}, (DENY, "r")),
        ({}, (NO_OPINION, "")),
    ],
)
def test_what_a_webhook_says_counts(answer: dict[str, Any], decision: tuple[Decision, str]) -> None:
    assert ask(webhook(answer)[0], get("/api/v1/pods")) == decision


@pytest.mark.parametrize("trouble", [WebhookFailed("away"), {"allowed": "perhaps"}])
@pytest.mark.parametrize("policy_", [NO_OPINION, DENY])
def test_a_webhook_that_does_not_answer_is_an_error_by_its_policy(trouble: Any, policy_: Decision) -> None:
    with pytest.raises(Undecided) as failed:
        ask(webhook(trouble, on_error=policy_)[0], get("/api/v1/pods"))
    assert failed.value.decision is policy_


def test_yes_and_no_at_once_is_a_no() -> None:
    with pytest.raises(Undecided) as failed:
        ask(webhook({"allowed": True, "denied": True})[0], get("/api/v1/pods"))
    assert failed.value.decision is DENY


def test_the_question_holds_all_there_is() -> None:
    authorizer, remote = webhook({}, {}, version="v1")
    ask(
        authorizer, get("/apis/apps/v1/namespaces/a/deployments?fieldSelector=metadata.name%3Dx&labelSelector=k+in+(v)")
    )
    assert remote.asked[0]["apiVersion"] == "authorization.k8s.io/v1"
    assert remote.asked[0]["spec"] == {
        "user": "alice",
        "uid": "7",
        "groups": ["dev", "system:authenticated"],
        "extra": {"scope": ["x"]},
        "resourceAttributes": {
            "namespace": "a",
            "verb": "list",
            "group": "apps",
            "version": "v1",
            "resource": "deployments",
            "name": "x",
            "fieldSelector": {"requirements": [{"key": "metadata.name", "operator": "In", "values": ["x"]}]},
            "labelSelector": {"requirements": [{"key": "k", "operator": "In", "values": ["v"]}]},
        },
    }
    ask(authorizer, get("/logs"))
    assert remote.asked[1]["spec"]["nonResourceAttributes"] == {"path": "/logs", "verb": "get"}


def test_the_old_version_calls_groups_group() -> None:
    authorizer, remote = webhook({}, version="v1beta1")
    ask(authorizer, get("/logs"))
    assert remote.asked[0]["spec"]["group"] == ["dev", "system:authenticated"]
    assert "groups" not in remote.asked[0]["spec"]


def test_answers_are_kept_as_long_as_they_may_be() -> None:
    now = [0.0]
    yes, no = {"allowed": True}, {"allowed": False}
    authorizer, remote = webhook(yes, no, yes, no, clock=lambda: now[0])
    pods, nodes = get("/api/v1/pods"), get("/api/v1/nodes")

    def both() -> list[Decision]:
        return [ask(authorizer, pods)[0], ask(authorizer, nodes)[0]]

    assert both() == both() == [ALLOW, NO_OPINION]
    assert len(remote.asked) == 2
    now[0] = 31.0
    remote.answers = [yes]
    assert both() == [ALLOW, ALLOW]
    now[0] = 301.0
    remote.answers = [no]
    assert both() == [NO_OPINION, ALLOW]
    assert len(remote.asked) == 4


def test_answers_to_very_long_questions_are_not_kept() -> None:
    authorizer, remote = webhook({"allowed": True}, {"allowed": True})
    long = get(f"/api/v1/namespaces/{'a' * 10_000}/pods")
    assert ask(authorizer, long) == ask(authorizer, long) == (ALLOW, "")
    assert len(remote.asked) == 2


@pytest.mark.parametrize(
    ("conditions", "asked"),
    [
        (["request.user == 'alice'"], True),
        (["request.user == 'bob'"], False),
        (["has(request.resourceAttributes)", "request.resourceAttributes.namespace == 'a'"], True),
        (["has(request.resourceAttributes) && request.resourceAttributes.subresource == ''"], True),
        (["'dev' in request.groups", "!('ops' in request.groups)"], True),
        (["request.extra['scope'].exists(s, s == 'x')"], True),
        (["request.resourceAttributes.?fieldSelector.hasValue()"], False),
        (["request.extra['none'][0] == 'x'", "request.user == 'bob'"], False),  # false beats an error
    ],
)
def test_conditions_say_whether_a_webhook_is_asked(conditions: list[str], asked: bool) -> None:
    authorizer, remote = webhook({"allowed": True}, conditions=MatchConditions(conditions))
    decision = ask(authorizer, get("/api/v1/namespaces/a/pods"))
    assert decision == ((ALLOW, "") if asked else (NO_OPINION, ""))
    assert bool(remote.asked) == asked


def test_a_condition_that_fails_is_an_error_by_the_policy_of_the_webhook() -> None:
    conditions = MatchConditions(["request.extra['none'][0] == 'x'"])
    with pytest.raises(Undecided, match="cel evaluation error") as failed:
        ask(webhook({}, conditions=conditions, on_error=DENY)[0], get("/api/v1/pods"))
    assert failed.value.decision is DENY


@pytest.mark.parametrize("bad", ["request.", "request.unknown == 'x'", "request.user", "1 + 1"])
def test_what_is_no_condition_is_refused(bad: str) -> None:
    with pytest.raises(ValueError, match=r"compilation failed|must evaluate to bool"):
        MatchConditions([bad])
