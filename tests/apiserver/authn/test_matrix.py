"""Each kind of credential x what may be wrong with it: only the good one is accepted, and errors give no reason."""

from __future__ import annotations

import base64
import json
import time
from typing import Any

import pytest
from apiserver.authn.conftest import World, review
from apiserver.authn.forge import claims_of, part, public_pem, token
from apiserver.client import Client
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from hypothesis import given, settings
from hypothesis import strategies as st

from pybernetes import jws
from tools import wait_until

SA_ISSUER = "https://kubernetes.default.svc.cluster.local"


@pytest.fixture(scope="module")
def keys(world: World) -> dict[str, Any]:
    """The key of service accounts, and an unknown one."""
    pem = (world.server.folder / "pki/sa.key").read_bytes()
    return {"sa": jws.load_signing_key(pem), "stranger": ec.generate_private_key(ec.SECP256R1())}


@pytest.fixture
def account(world: World) -> tuple[str, str, str]:
    """A fresh account: its namespace, name and a token of it."""
    namespace = world.admin.namespace()
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    assert world.admin.post(path, {"metadata": {"name": "robot"}}).status == 201
    return namespace, "robot", request_token(world, namespace, "robot")


def request_token(world: World, namespace: str, name: str, spec: Any = None) -> str:
    answer = world.admin.post(
        f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token", {"spec": spec} if spec else {}
    )
    assert answer.status == 201, answer.body
    return str(answer.json["status"]["token"])


def changed(text: str, key: Any, alg: str = "ES256", header: Any = None, **claims: Any) -> str:
    """The token with other claims (None = without), signed anew."""
    said = {name: value for name, value in {**claims_of(text), **claims}.items() if value is not None}
    return token(said, key, alg, **(header if header is not None else {"kid": jws.key_id(key)}))


def test_service_account_tokens(world: World, account: tuple[str, str, str], keys: dict[str, Any]) -> None:
    _, _, good = account
    sa, stranger = keys["sa"], keys["stranger"]
    now = int(time.time())
    secret = public_pem(sa)
    kid = {"kid": jws.key_id(sa)}
    head, payload, signature = good.split(".")
    bad = {
        "expired": changed(good, sa, exp=now - 61),
        "not yet valid": changed(good, sa, nbf=now + 90),
        "issued in the future": changed(good, sa, iat=now + 90),
        "wrong signature": changed(good, stranger, header=kid),
        "unknown key": changed(good, stranger),
        "unnamed wrong key": changed(good, stranger, header={}),
        "wrong audience": changed(good, sa, aud=["elsewhere"]),
        "wrong issuer": changed(good, sa, iss="https://elsewhere.example"),
        "no issuer": changed(good, sa, iss=None),
        "alg none": token(claims_of(good), None, "none", **kid),
        "alg None": token(claims_of(good), None, "None"),
        "no alg": f"{part({})}.{payload}.{signature}",
        "key confusion": token(claims_of(good), secret, "HS256", **kid),
        "key confusion unnamed": token(claims_of(good), secret, "HS256"),
        "RS256 with an EC key": f"{part({'alg': 'RS256'})}.{payload}.{signature}",
        "critical extension": changed(good, sa, header={**kid, "crit": ["exp"]}),
        "other account": changed(good, sa, **{"kubernetes.io": {"namespace": "default"}}),
        "other uid": changed(
            good, sa, **{"kubernetes.io": {**claims_of(good)["kubernetes.io"], "serviceaccount": {"name": "robot"}}}
        ),
        "claims of the wrong type": changed(good, sa, exp="tomorrow"),
        "a payload that is a list": f"{head}.{part([])}.{signature}",
        "no signature": f"{head}.{payload}.",
        "cut": good[:-1],
        "padded": f"{good}=",
        "another spelling": f"{good[:-1]}{chr(ord(good[-1]) + 1) if good[-1] not in 'zZ9-_' else 'x'}",
        "with a newline": f"{head}.{payload}\t.{signature}",
        "plus for minus": f"{head}.{payload}.{signature[:-2]}+/",
        "garbage": "a.b.c",
        "three dots": "...",
        "huge": f"{head}.{part(b'[' * 600_000)}.{signature}",
    }
    assert world.name(f"Bearer {good}").startswith("system:serviceaccount:")
    assert world.name(f"bearer {good}").startswith("system:serviceaccount:")
    assert world.name(f"Bearer {changed(good, sa)}").startswith("system:serviceaccount:")
    assert world.name(f"Bearer {changed(good, sa, header={})}").startswith("system:serviceaccount:")
    assert world.name(f"Bearer {changed(good, sa, exp=now - 30)}").startswith("system:serviceaccount:"), "leeway"
    refused(world, {what: f"Bearer {each}" for what, each in bad.items()})


def refused(world: World, bad: dict[str, str]) -> None:
    """All of these get the same 401."""
    answers = {what: world.who(each) for what, each in bad.items()}
    assert {what: each.status for what, each in answers.items()} == dict.fromkeys(bad, 401)
    assert {each.message for each in answers.values()} == {"Unauthorized"}


def test_a_token_dies_with_its_account(world: World, account: tuple[str, str, str]) -> None:
    namespace, name, good = account
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    assert world.name(f"Bearer {good}") == f"system:serviceaccount:{namespace}:{name}"
    assert world.admin.delete(f"{path}/{name}").status == 200
    assert world.name(f"Bearer {good}") == "401"
    assert world.admin.post(path, {"metadata": {"name": name}}).status == 201
    assert world.name(f"Bearer {good}") == "401", "another account of the same name"
    assert "service account UID (" in world.log()
    assert good not in world.log()


@pytest.mark.parametrize("kind", ["Pod", "Secret", "Node"])
def test_a_token_dies_with_what_it_is_bound_to(world: World, account: tuple[str, str, str], kind: str) -> None:
    namespace, _, _ = account
    folder, body = {
        "Pod": (f"namespaces/{namespace}/pods", {"spec": POD}),
        "Secret": (f"namespaces/{namespace}/secrets", {}),
        "Node": ("nodes", {}),
    }[kind]
    name = f"bound-{namespace}"
    thing = {"metadata": {"name": name}, **body}
    made = world.admin.post(f"/api/v1/{folder}", thing)
    assert made.status == 201, made.body
    reference = {"kind": kind, "apiVersion": "v1", "name": name, "uid": made.json["metadata"]["uid"]}
    good = request_token(world, namespace, "robot", {"boundObjectRef": reference})
    answer = world.who(f"Bearer {good}")
    extra = answer.json["status"]["userInfo"]["extra"]
    assert extra["authentication.kubernetes.io/credential-id"] == [f"JTI={claims_of(good)['jti']}"]
    if kind != "Secret":
        assert extra[f"authentication.kubernetes.io/{kind.lower()}-name"] == [name]
        assert extra[f"authentication.kubernetes.io/{kind.lower()}-uid"] == [made.json["metadata"]["uid"]]
    wrong = world.admin.post(
        f"/api/v1/namespaces/{namespace}/serviceaccounts/robot/token",
        {"spec": {"boundObjectRef": {**reference, "uid": "1234"}}},
    )
    assert (wrong.status, wrong.json["reason"]) == (409, "Conflict")
    assert world.admin.delete(f"/api/v1/{folder}/{name}", {"gracePeriodSeconds": 0}).status == 200
    assert world.name(f"Bearer {good}") == "401"
    assert world.admin.post(f"/api/v1/{folder}", thing).status == 201
    assert world.name(f"Bearer {good}") == "401", "another one of the same name"
    world.admin.delete(f"/api/v1/{folder}/{name}", {"gracePeriodSeconds": 0})


POD = {"serviceAccountName": "robot", "containers": [{"name": "c", "image": "i"}]}


def test_a_bearer_of_a_pod_knows_its_node_and_lives_while_the_pod_goes(
    world: World, account: tuple[str, str, str]
) -> None:
    namespace, _, _ = account
    pods = f"/api/v1/namespaces/{namespace}/pods"
    pod = {"metadata": {"name": "p"}, "spec": {**POD, "nodeName": "no-such-node"}}
    made = world.admin.post(pods, pod)
    assert made.status == 201, made.body
    reference = {"kind": "Pod", "apiVersion": "v1", "name": "p"}
    good = request_token(world, namespace, "robot", {"boundObjectRef": reference, "expirationSeconds": 3607})
    said = claims_of(good)
    assert said["kubernetes.io"]["node"] == {"name": "no-such-node"}
    assert said["kubernetes.io"]["warnafter"] == said["iat"] + 3607
    assert said["exp"] == said["iat"] + 365 * 24 * 3600
    extra = world.who(f"Bearer {good}").json["status"]["userInfo"]["extra"]
    assert extra["authentication.kubernetes.io/node-name"] == ["no-such-node"]
    assert world.admin.delete(f"{pods}/p").status == 200
    assert world.admin.get(f"{pods}/p").json["metadata"]["deletionTimestamp"]
    assert world.name(f"Bearer {good}").startswith("system:serviceaccount:"), "it may say goodbye"
    assert world.admin.delete(f"{pods}/p", {"gracePeriodSeconds": 0}).status == 200
    assert world.name(f"Bearer {good}") == "401"


def test_oidc_tokens(world: World) -> None:
    issuer = world.issuer
    now = int(time.time())
    key = issuer.keys["rsa"]
    stranger = rsa.generate_private_key(65537, 2048)
    assert world.name(f"Bearer {issuer.token()}") == "oidc:jane"
    for alg in ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"):
        assert world.name(f"Bearer {issuer.token('rsa', alg)}") == "oidc:jane", alg
    for name, alg in (("p256", "ES256"), ("p384", "ES384"), ("p521", "ES512")):
        assert world.name(f"Bearer {issuer.token(name, alg)}") == "oidc:jane", alg
    bad = {
        "expired": issuer.token(exp=now - 1),
        "without an end": issuer.token(exp=None),
        "not yet valid": issuer.token(nbf=now + 90),
        "wrong signature": token(issuer.claims(), stranger, "RS256", kid="rsa"),
        "unknown key": token(issuer.claims(), stranger, "RS256", kid="nobody"),
        "wrong key of the right issuer": token(issuer.claims(), issuer.keys["p256"], "ES256", kid="rsa"),
        "wrong curve": token(issuer.claims(), issuer.keys["p256"], "ES256", kid="p384"),
        "wrong audience": issuer.token(aud="elsewhere"),
        "no audience": issuer.token(aud=None),
        "wrong issuer": issuer.token(iss="https://elsewhere.example"),
        "issuer with a slash": issuer.token(iss=f"{issuer.url}/"),
        "our own issuer": token(issuer.claims(iss=SA_ISSUER), key, "RS256", kid="rsa"),
        "alg none": token(issuer.claims(), None, "none", kid="rsa"),
        "key confusion": token(issuer.claims(), public_pem(key), "HS256", kid="rsa"),
        "no name": issuer.token(sub=None),
        "a name that is none": issuer.token(sub=7),
        "refused by a rule about claims": issuer.token(hd="evil.example"),
        "refused by a rule about the user": issuer.token(sub="system:masters"),
        "groups that are none": issuer.token(groups=[{"a": 1}]),
        "garbage": f"{issuer.token()[:40]}.{issuer.token()[40:]}",
        "huge": issuer.token(groups=["x" * 700_000]) + "x",
    }
    refused(world, {what: f"Bearer {each}" for what, each in bad.items()})
    assert "wrong domain" in world.log()


def test_claims_become_a_user(world: World) -> None:
    made = world.issuer.token(groups=["a", "b"], uid=12, jti="the-id", org={"tenant": "t1"})
    assert world.who(f"Bearer {made}").json["status"]["userInfo"] == {
        "username": "oidc:jane",
        "uid": "12",
        "groups": ["oidc:a", "oidc:b", "system:authenticated"],
        "extra": {"authentication.kubernetes.io/credential-id": ["JTI=the-id"], "acme.io/tenant": ["t1"]},
    }
    one = world.who(f"Bearer {world.issuer.token(groups='only')}").json["status"]["userInfo"]
    assert one["groups"] == ["oidc:only", "system:authenticated"]


def test_an_issuer_changes_its_keys(world: World) -> None:
    issuer = world.issuer
    old = issuer.token("p256", "ES256")
    assert world.name(f"Bearer {old}") == "oidc:jane"
    issuer.keys["new"] = ec.generate_private_key(ec.SECP256R1())
    fresh = issuer.token("new", "ES256")
    # It does not ask more often than once a second.
    wait_until(lambda: world.name(f"Bearer {fresh}") == "oidc:jane", "the new key is known", every=0.1)


def test_groups_that_the_issuer_keeps_elsewhere(world: World) -> None:
    issuer = world.issuer
    issuer.documents["/groups"] = issuer.token(groups=["far"])
    sources = {"src": {"endpoint": f"{issuer.url}/groups", "access_token": "pass"}}
    made = issuer.token(_claim_names={"groups": "src"}, _claim_sources=sources)
    groups = world.who(f"Bearer {made}").json["status"]["userInfo"]["groups"]
    assert groups == ["oidc:far", "system:authenticated"]
    assert [headers["authorization"] for path, headers, _ in issuer.asked if path == "/groups"] == ["Bearer pass"]
    stranger = ec.generate_private_key(ec.SECP256R1())
    issuer.documents["/groups"] = token(issuer.claims(groups=["system:masters"]), stranger, "ES256", kid="p256")
    made = issuer.token(_claim_names={"groups": "src"}, _claim_sources=sources, jti="2")
    assert world.name(f"Bearer {made}") == "401"


def test_passwords(world: World) -> None:
    def basic(text: str) -> str:
        return "Basic " + base64.b64encode(text.encode()).decode()

    assert world.name(basic("bob:secret")) == "bob"
    assert world.name(basic("carol:x:y")) == "carol"
    info = world.who(basic("bob:secret")).json["status"]["userInfo"]
    assert info == {"username": "bob", "uid": "7", "groups": ["dev", "ops", "system:authenticated"]}
    bad = ["bob:wrong", "bob:", "bob", ":", "nobody:secret", "bob:secret ", "BOB:secret", "secret:bob"]
    refused(world, {each: basic(each) for each in bad} | {"garbage": "Basic ???", "huge": basic("b" * 500_000)})
    refused(world, {"not encoded": "Basic bob:secret", "as a token": f"Bearer {basic('bob:secret')[6:]}"})


def test_tokens_of_the_file(world: World) -> None:
    good = world.admin.token
    assert world.name(f"Bearer {good}") == "kubernetes-admin"
    assert world.name(f"Bearer {good} ignored") == "kubernetes-admin", "upstream takes the second word"
    bad = [good[:-1], f"{good}x", good.upper(), "", f"{good},x", f"x,{good}", "%00", "x" * 900_000]
    refused(world, {each[:40]: f"Bearer {each}" for each in bad if each})
    refused(world, {"other scheme": f"Token {good}", "no scheme": good})


def secret(token_id: str, **more: str) -> dict[str, Any]:
    data = {"token-id": token_id, "token-secret": "0123456789abcdef", "usage-bootstrap-authentication": "true", **more}
    return {
        "metadata": {"name": f"bootstrap-token-{token_id}", "namespace": "kube-system"},
        "type": "bootstrap.kubernetes.io/token",
        "stringData": {name.replace("_", "-"): value for name, value in data.items()},
    }


def test_bootstrap_tokens(world: World) -> None:
    path = "/api/v1/namespaces/kube-system/secrets"
    good = secret("aaaaaa", auth_extra_groups="system:bootstrappers:b,system:bootstrappers:a")
    assert world.admin.post(path, good).status == 201
    info = world.who("Bearer aaaaaa.0123456789abcdef").json["status"]["userInfo"]
    assert info["username"] == "system:bootstrap:aaaaaa"
    assert info["groups"] == [
        "system:bootstrappers",
        "system:bootstrappers:a",
        "system:bootstrappers:b",
        "system:authenticated",
    ]
    for token_id, more in {
        "expire": {"expiration": "2020-01-01T00:00:00Z"},
        "noexpi": {"expiration": "tomorrow"},
        "nouse1": {"usage_bootstrap_authentication": "false"},
        "groups": {"auth_extra_groups": "system:masters"},
        "wrgid0": {"token_id": "other0"},
    }.items():
        bad = secret(token_id)
        bad["stringData"] |= {name.replace("_", "-"): value for name, value in more.items()}
        assert world.admin.post(path, bad).status == 201
        refused(world, {token_id: f"Bearer {token_id}.0123456789abcdef"})
    opaque = secret("opaque")
    del opaque["type"]
    assert world.admin.post(path, opaque).status == 201
    refused(
        world,
        {
            "opaque": "Bearer opaque.0123456789abcdef",
            "wrong secret": "Bearer aaaaaa.0123456789abcdeg",
            "cut": "Bearer aaaaaa.0123456789abcde",
            "no such token": "Bearer bbbbbb.0123456789abcdef",
            "a path": "Bearer ../../.0123456789abcdef",
        },
    )
    assert world.admin.delete(f"{path}/bootstrap-token-aaaaaa").status == 200
    refused(world, {"deleted": "Bearer aaaaaa.0123456789abcdef"})


def test_the_webhook_knows_others(world: World) -> None:
    webhook = world.webhook
    user = {"username": "hooked", "uid": "9", "groups": ["g"], "extra": {"k": ["v"]}}
    answers: dict[str, dict[str, Any]] = {
        "good": review(authenticated=True, user=user),
        "audience": review(authenticated=True, user=user, audiences=["api"]),
        "elsewhere": review(authenticated=True, user=user, audiences=["elsewhere"]),
        "refused": review(authenticated=False),
        "error": review(authenticated=False, error="no such token"),
        "kind": {**review(authenticated=True, user=user), "kind": "Pod"},
        "version": {**review(authenticated=True, user=user), "apiVersion": "authentication.k8s.io/v2"},
        "empty": {},
    }
    before = webhook.answer

    def answer(path: str, headers: dict[str, str], body: bytes) -> tuple[int, dict[str, str], Any]:
        asked = json.loads(body)
        assert (path, asked["kind"], asked["apiVersion"]) == (
            "/review?timeout=30s",
            "TokenReview",
            "authentication.k8s.io/v1",
        )
        assert asked["spec"]["audiences"] == [SA_ISSUER, "api"]
        found = answers.get(asked["spec"]["token"])
        return (200, {}, found) if found is not None else (403, {}, "no")

    webhook.answer = answer
    try:
        info = world.who("Bearer good").json["status"]["userInfo"]
        assert info == {**user, "groups": ["g", "system:authenticated"]}
        assert world.name("Bearer audience") == "hooked"
        refused(world, {name: f"Bearer {name}" for name in answers if name not in ("good", "audience")})
        refused(world, {"403": "Bearer other"})
        count = len(webhook.asked)
        assert world.name("Bearer good") == "hooked"
        refused(world, {"refused": "Bearer refused"})
        assert len(webhook.asked) == count, "yes and no are kept"
        refused(world, {"error": "Bearer error"})
        assert len(webhook.asked) == count + 1, "an error is not"
    finally:
        webhook.answer = before


def test_a_bad_credential_is_not_anonymous(world: World) -> None:
    without_token = Client(world.server, "")
    assert without_token.get("/version").status == 200
    assert without_token.get("/readyz").status == 200
    assert without_token.get("/livez").status == 401, "not in the configuration"
    assert without_token.get("/version", Authorization="Bearer nonsense").status == 401
    assert without_token.get("/version", Authorization="Basic ???").status == 401
    assert without_token.get("/version", Authorization="Digest x").status == 200, (
        "no credential of a kind that is known"
    )


@pytest.mark.parametrize(
    ("tokens", "status"), [(("bad", "good"), 401), (("good", "bad"), 200), (("good", "good"), 200)]
)
def test_of_several_authorizations_the_first_counts(world: World, tokens: tuple[str, ...], status: int) -> None:
    connection = world.admin.connect()
    connection.putrequest("GET", "/api/v1/namespaces")
    for each in tokens:
        connection.putheader("Authorization", f"Bearer {world.admin.token if each == 'good' else each}")
    connection.endheaders()
    assert connection.getresponse().status == status


def test_a_token_behind_two_spaces_is_none_and_the_client_is_warned(world: World) -> None:
    answer = Client(world.server, "").get("/version", Authorization=f"Bearer  {world.admin.token}")
    assert answer.status == 200, "as anonymous"
    (warning,) = answer.warnings
    assert "contains extra space before the bearer token, and is ignored" in warning


def test_token_reviews(world: World, account: tuple[str, str, str]) -> None:
    namespace, _, _ = account
    path = "/apis/authentication.k8s.io/v1/tokenreviews"

    def ask(token: str, *audiences: str) -> dict[str, Any]:
        spec = {"token": token} | ({"audiences": list(audiences)} if audiences else {})
        answer = world.admin.post(path, {"spec": spec})
        assert answer.status == 201
        found: dict[str, Any] = answer.json["status"]
        return found

    vault = request_token(world, namespace, "robot", {"audiences": ["vault", "api"]})
    assert ask(vault)["audiences"] == ["api"]
    assert ask(vault, "vault", "other")["audiences"] == ["vault"]
    assert ask(vault, "api", "vault")["audiences"] == ["api", "vault"], "in the order they were asked for"
    refused_ = ask(vault, "other")
    assert refused_["user"] == {}
    assert refused_["error"] == (
        '[invalid bearer token, token audiences ["vault" "api"] is invalid for the target audiences ["other"]]'
    )
    only_vault = request_token(world, namespace, "robot", {"audiences": ["vault"]})
    assert world.name(f"Bearer {only_vault}") == "401"
    assert ask(only_vault, "vault")["authenticated"] is True
    assert ask(world.admin.token)["audiences"] == [SA_ISSUER, "api"]
    assert ask(world.admin.token, "api", SA_ISSUER)["audiences"] == ["api", SA_ISSUER]
    assert ask(f"{world.admin.token}\n")["authenticated"] is True, "as the header of a request is read"
    assert ask(f" {world.admin.token}") == {"user": {}, "error": "invalid bearer token"}
    assert ask(world.admin.token, "other") == {"user": {}, "error": "invalid bearer token"}
    assert world.admin.post(path, {"spec": {}}).status == 400


def test_attempts_are_counted(world: World) -> None:
    def counted(result: str) -> float:
        lines = world.admin.get("/metrics").body.decode().splitlines()
        name = f'authentication_attempts{{result="{result}"}} '
        return float(next(line.removeprefix(name) for line in lines if line.startswith(name)))

    before = {result: counted(result) for result in ("success", "failure", "error")}
    world.who("Bearer nonsense")
    world.who("")
    after = {result: counted(result) for result in before}
    assert after["error"] == before["error"] + 1
    assert after["failure"] == before["failure"] + 1
    assert after["success"] > before["success"]


def test_what_a_stranger_sends_does_not_break_a_line_of_the_log(world: World) -> None:
    made = world.issuer.token(hd="x\n2026-01-01 00:00:00 W forged")
    assert world.name(f"Bearer {made}") == "401"
    assert "\n2026-01-01 00:00:00 W forged" not in world.log()


def test_a_token_gives_no_token_of_another_account(world: World, account: tuple[str, str, str]) -> None:
    namespace, name, good = account
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    world.admin.post(path, {"metadata": {"name": "boss"}})
    robot = Client(world.server, good)
    for other in ("boss", name):
        answer = robot.post(f"{path}/{other}/token", {})
        assert answer.status == 403
        assert f'cannot create resource "serviceaccounts/token" in API group "" in the namespace "{namespace}"' in (
            answer.message
        )


@settings(max_examples=150, deadline=None)
@given(
    scheme=st.sampled_from(["Bearer ", "Basic ", "bearer\t", "", "Negotiate "]),
    text=st.text(st.characters(min_codepoint=33, max_codepoint=255, exclude_characters="\x7f"), max_size=60)
    | st.binary(max_size=60).map(lambda data: base64.b64encode(data).decode())
    | st.lists(st.binary(max_size=30).map(part), min_size=2, max_size=4).map(".".join),
)
def test_no_header_is_too_strange_for_a_401(world: World, scheme: str, text: str) -> None:
    answer = world.who((scheme + text).strip() or "x")
    assert answer.status == 401, answer.body
