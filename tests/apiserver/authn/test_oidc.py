"""OpenID Connect by flags, configurations that are read again, and what may not stand in one."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from apiserver.authn.forge import Issuer, claims_of, token
from apiserver.client import Client

import tools
from pybernetes import pki
from pybernetes.api.field import aggregate
from pybernetes.apiserver.authn.authenticator import BadCredential
from pybernetes.apiserver.authn.oidc.authenticator import OIDC
from pybernetes.apiserver.authn.oidc.claims import PublicClaims, check, issuer_of
from pybernetes.apiserver.authn.oidc.configuration import AuthenticationConfiguration, JWTAuthenticator, read
from pybernetes.apiserver.authn.oidc.mapping import Mapping
from pybernetes.apiserver.authn.oidc.validation import validate
from pybernetes.apiserver.user import User

WHO = "/apis/authentication.k8s.io/v1/selfsubjectreviews"


class World:
    def __init__(self, folder: Path) -> None:
        self.authority = pki.create_authority("issuers")
        self.issuer = Issuer(self.authority)
        self.file = folder / "ca.crt"
        self.file.write_bytes(self.authority.certificate_pem)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    world = World(tmp_path_factory.mktemp("issuer"))
    yield world
    world.issuer.close()


def who(server: tools.ApiServer, bearer: str) -> Any:
    answer = Client(server, bearer).post(WHO, {})
    return answer.json["status"]["userInfo"] if answer.status == 201 else answer.status


def test_flags(world: World, tmp_path: Path) -> None:
    issuer = world.issuer
    flags = [
        f"--oidc-issuer-url={issuer.url}",
        "--oidc-client-id=kube",
        f"--oidc-ca-file={world.file}",
        "--oidc-groups-claim=groups",
        "--oidc-groups-prefix=g:",
        "--oidc-required-claim=tenant=acme",
        "--oidc-signing-algs=RS256,ES256",
    ]
    with tools.api_server(tmp_path, *flags) as server:
        good = who(server, issuer.token(tenant="acme", groups=["a"]))
        assert good == {"username": f"{issuer.url}#jane", "groups": ["g:a", "system:authenticated"]}
        assert who(server, issuer.token("p256", "ES256", tenant="acme"))["username"] == f"{issuer.url}#jane"
        assert who(server, issuer.token(alg="PS256", tenant="acme")) == 401
        assert who(server, issuer.token()) == 401
        assert who(server, issuer.token(tenant="other")) == 401


def configuration(world: World, **mappings: Any) -> dict[str, Any]:
    issuer = {
        "url": world.issuer.url,
        "audiences": ["kube"],
        "certificateAuthority": world.authority.certificate_pem.decode(),
    }
    named = {"username": {"claim": "sub", "prefix": ""}, **mappings}
    return {
        "apiVersion": "apiserver.config.k8s.io/v1beta1",
        "kind": "AuthenticationConfiguration",
        "jwt": [{"issuer": issuer, "claimMappings": named}],
    }


def test_a_configuration_is_read_again_and_a_bad_one_is_not_used(world: World, tmp_path: Path) -> None:
    file = tmp_path / "authentication.json"
    file.write_text(json.dumps(configuration(world)))
    with tools.api_server(tmp_path, f"--authentication-config={file}") as server:
        assert who(server, world.issuer.token())["username"] == "jane"
        changed = configuration(world, username={"claim": "sub", "prefix": "new:"})
        replace(file, json.dumps(changed))

        def name() -> Any:
            return who(server, world.issuer.token(jti=os.urandom(4).hex()))["username"]

        tools.wait_until(lambda: name() == "new:jane", "the new configuration", every=0.1)
        changed["jwt"][0]["issuer"]["url"] = "http://plain.example"
        replace(file, json.dumps(changed))
        log = tmp_path / "apiserver.log"
        tools.wait_until(lambda: (name(), "URL scheme must be https" in log.read_text())[1], "the log", every=0.1)
        assert name() == "new:jane"


def replace(file: Path, content: str) -> None:
    temporary = file.with_suffix(".new")
    temporary.write_text(content)
    os.replace(temporary, file)


class Clock:
    def __init__(self) -> None:
        self.now = time.time()

    def __call__(self) -> float:
        return self.now


async def refused(authenticator: OIDC, bearer: str) -> str:
    try:
        return f"user {await authenticator.user_of(bearer)}"
    except BadCredential as bad:
        return str(bad)


async def test_an_issuer_that_is_away_is_asked_again_and_never_flooded(tmp_path: Path) -> None:
    world = World(tmp_path)
    issuer = world.issuer
    clock = Clock()
    try:
        made = msgspec.convert(configuration(world), AuthenticationConfiguration)
        authenticator = OIDC(made, now=clock)
        answers = issuer.answer
        issuer.answer = lambda *_: (503, {}, "")
        good = issuer.token()
        assert "answered 503" in await refused(authenticator, good)
        asked = len(issuer.asked)
        assert await refused(authenticator, good) == "oidc: authenticator not initialized", "not at once again"
        assert len(issuer.asked) == asked
        issuer.answer = answers
        clock.now += 2
        assert await authenticator.user_of(good) == User("jane")
        count = sum(path == "/keys" for path, _, _ in issuer.asked)
        assert await authenticator.user_of(issuer.token(jti="2")) == User(
            "jane", extra={"authentication.kubernetes.io/credential-id": ["JTI=2"]}
        )
        assert sum(path == "/keys" for path, _, _ in issuer.asked) == count, "keys are kept"

        issuer.cache_control = "public, max-age=100"
        clock.now += 2
        stranger = token(issuer.claims(), pki.new_key(), "ES256", kid="unknown")
        assert "failed to verify" in await refused(authenticator, stranger)
        count = sum(path == "/keys" for path, _, _ in issuer.asked)
        for _ in range(20):
            clock.now += 2
            assert "failed to verify" in await refused(authenticator, stranger)
        assert sum(path == "/keys" for path, _, _ in issuer.asked) == count, "as long as the keys are fresh"
        clock.now += 60
        await refused(authenticator, stranger)
        assert sum(path == "/keys" for path, _, _ in issuer.asked) == count + 1
    finally:
        issuer.close()


async def test_an_issuer_that_says_it_is_another_is_not_believed(tmp_path: Path) -> None:
    world = World(tmp_path)
    try:
        authenticator = OIDC(msgspec.convert(configuration(world), AuthenticationConfiguration))
        world.issuer.answer = lambda *_: (200, {}, {"issuer": "https://other.example", "jwks_uri": world.issuer.url})
        assert "issuer did not match" in await refused(authenticator, world.issuer.token())
        authenticator = OIDC(msgspec.convert(configuration(world), AuthenticationConfiguration))
        world.issuer.answer = lambda *_: (200, {}, {"issuer": world.issuer.url, "jwks_uri": "http://127.0.0.1:1/"})
        assert "no https URL" in await refused(authenticator, world.issuer.token())
        assert await authenticator.user_of("nonsense") is None
        assert await authenticator.user_of(world.issuer.token(iss="https://other.example")) is None
        assert claims_of(world.issuer.token())["iss"] == world.issuer.url
    finally:
        world.issuer.close()


def signed(world: World, claims: dict[str, Any], **header: Any) -> str:
    return token({**world.issuer.claims(), **claims}, world.issuer.keys["rsa"], "RS256", **{"kid": "rsa", **header})


async def test_what_issuers_write_into_tokens_besides(world: World) -> None:
    groups, uid = {"claim": "groups", "prefix": "g:"}, {"claim": "uid"}
    described = configuration(world, groups=groups, uid=uid)
    authenticator = OIDC(msgspec.convert(described, AuthenticationConfiguration))
    later = int(time.time()) + 600
    good: dict[str, Any] = {"uid": "u"}
    jane = User("jane", "u")
    for claims, user in [
        (good, jane),
        ({**good, "exp": str(later)}, jane),
        ({**good, "exp": later + 0.5, "nbf": "1", "iat": "1e3"}, jane),
        ({**good, "jti": 5}, jane),
        ({"uid": None}, User("jane")),
        ({**good, "sub": None}, User("", "u")),
        ({**good, "groups": ["a", None]}, User("jane", "u", ("g:a", "g:"))),
        ({**good, "deep": json.loads("[" * 400 + "]" * 400)}, jane),
        ({**good, "_claim_names": {"x": "s"}, "_claim_sources": {"s": {}}}, jane),
    ]:
        assert await authenticator.user_of(signed(world, claims)) == user, claims


@pytest.mark.parametrize(
    ("claims", "header", "reason"),
    [
        ({"exp": "later"}, {}, "'later' is no date"),
        ({"exp": "nan"}, {}, "'nan' is no date"),
        ({"exp": ""}, {}, "'' is no date"),
        ({"exp": None}, {}, "token is expired"),
        ({"exp": "1"}, {}, "token is expired"),
        ({"nbf": "99999999999"}, {}, "before the nbf"),
        ({"iat": "x"}, {}, "'x' is no date"),
        ({"nonce": 5}, {}, "failed to unmarshal claims"),
        ({"at_hash": 5}, {}, "failed to unmarshal claims"),
        ({"aud": None}, {}, "expected audience in"),
        ({"_claim_names": {"x": ""}, "_claim_sources": {}}, {}, "failed to obtain source from claim name"),
        ({"_claim_names": {"x": "q"}, "_claim_sources": {"s": {}}}, {}, "source does not exist"),
        ({}, {"kid": "p256"}, "failed to verify signature: failed to verify id token signature"),
    ],
)
async def test_what_no_issuer_writes(world: World, claims: dict[str, Any], header: dict[str, Any], reason: str) -> None:
    authenticator = OIDC(msgspec.convert(configuration(world), AuthenticationConfiguration))
    found = await refused(authenticator, signed(world, claims, **header))
    assert found.startswith("oidc: verify token: ")
    assert reason in found


async def test_how_a_token_may_not_be_signed(world: World) -> None:
    authenticator = OIDC(msgspec.convert(configuration(world), AuthenticationConfiguration))
    assert await refused(authenticator, token(world.issuer.claims(), None, "none")) == (
        "oidc: verify token: oidc: id token signed with unsupported algorithm, expected "
        '["ES256" "ES384" "ES512" "PS256" "PS384" "PS512" "RS256" "RS384" "RS512"] got "none"'
    )
    assert await authenticator.user_of(signed(world, {}, b64=False)) is None, "no issuer accepts the token"


async def test_an_issuer_may_be_asked_elsewhere_than_its_name_says(tmp_path: Path) -> None:
    world = World(tmp_path)
    name = "https://issuer.example/realm"
    try:
        described = configuration(world)
        described["jwt"][0]["issuer"] |= {"url": name, "discoveryURL": f"{world.issuer.url}/inside"}
        authenticator = OIDC(msgspec.convert(described, AuthenticationConfiguration))
        world.issuer.documents["/inside"] = {"issuer": name, "jwks_uri": f"{world.issuer.url}/keys"}
        assert await authenticator.user_of(world.issuer.token(iss=name)) == User("jane")
        assert [path for path, _, _ in world.issuer.asked] == ["/inside", "/keys"]
    finally:
        world.issuer.close()


async def test_claims_that_are_nested_too_deep_for_expressions_are_refused(world: World) -> None:
    described = configuration(world, username={"expression": "claims.sub"})
    authenticator = OIDC(msgspec.convert(described, AuthenticationConfiguration))
    deep = signed(world, {"deep": json.loads("[" * 700 + "]" * 700)})
    assert await refused(authenticator, deep) == "oidc: the claims are nested too deep"


def test_google_writes_its_name_without_the_scheme() -> None:
    google = "https://accounts.google.com"
    claims = PublicClaims(iss="accounts.google.com", aud="kube", exp=10)
    check(claims, google, ["kube"], 5)
    assert issuer_of(claims.iss) == google
    with pytest.raises(ValueError, match="different provider"):
        check(claims, "https://issuer.example", ["kube"], 5)


def jwt(**parts: Any) -> JWTAuthenticator:
    usual = {
        "issuer": {"url": "https://issuer.example", "audiences": ["kube"]},
        "claimMappings": {"username": {"claim": "sub", "prefix": ""}},
    }
    return msgspec.convert({**usual, **parts}, JWTAuthenticator)


@pytest.mark.parametrize(
    ("parts", "claims", "expected"),
    [
        ({}, {"sub": "a"}, User("a")),
        ({}, {}, "claim not present"),
        ({"claimMappings": {"username": {"claim": "email", "prefix": "p:"}}}, {"email": "a@b"}, User("p:a@b")),
        (
            {"claimMappings": {"username": {"claim": "email", "prefix": ""}}},
            {"email": "a@b", "email_verified": False},
            "email not verified",
        ),
        (
            {"claimMappings": {"username": {"expression": "claims.a__dot__b.c__dash__d + '!'"}}},
            {"a.b": {"c-d": "x"}},
            User("x!"),
        ),
        ({"claimMappings": {"username": {"expression": "claims['x']"}}}, {"x": 1}, "must return a string"),
        ({"claimMappings": {"username": {"expression": "claims.x"}}}, {"x": ""}, "empty username"),
        ({"claimMappings": {"username": {"expression": "claims.none"}}}, {"x": ""}, "no such key"),
        (
            {
                "claimMappings": {
                    "username": {"claim": "sub", "prefix": ""},
                    "groups": {"expression": "claims.roles.split(',') + ['all', '']"},
                    "extra": [{"key": "a.b/c", "valueExpression": "claims.?none.orValue('')"}],
                }
            },
            {"sub": "a", "roles": "x,y"},
            User("a", groups=("x", "y", "all")),
        ),
        (
            {"claimValidationRules": [{"claim": "hd", "requiredValue": "acme"}]},
            {"sub": "a", "hd": ["acme"]},
            "not a string",
        ),
        (
            {"userValidationRules": [{"expression": "user.groups.all(g, !g.startsWith('system:'))"}]},
            {"sub": "a"},
            User("a"),
        ),
    ],
)
def test_mappings(parts: dict[str, Any], claims: dict[str, Any], expected: User | str) -> None:
    configured = jwt(**parts)
    assert validate(AuthenticationConfiguration(jwt=[configured]), ()) == []
    mapping = Mapping(configured)
    if isinstance(expected, User):
        assert mapping.user(claims) == expected
    else:
        with pytest.raises(BadCredential, match=expected):
            mapping.user(claims)


def issuer(**parts: Any) -> dict[str, Any]:
    return {"issuer": {"url": "https://issuer.example", "audiences": ["kube"], **parts}}


def named(**username: Any) -> dict[str, Any]:
    return {"claimMappings": {"username": username}}


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        (issuer(url=""), "jwt[0].issuer.url: Required value"),
        (issuer(url="http://x"), "URL scheme must be https"),
        (issuer(url="https://a:b@x"), "must not contain a username or password"),
        (issuer(url="https://x?a=b"), "must not contain a query"),
        (issuer(url="https://x#a"), "must not contain a fragment"),
        (issuer(url="https://ours"), "URL must not overlap with disallowed issuers: [https://ours]"),
        (issuer(discoveryURL="https://issuer.example/"), "discoveryURL must be different from URL"),
        (issuer(audiences=[]), "at least one jwt[0].issuer.audiences is required"),
        (issuer(audiences=["a", "a"], audienceMatchPolicy="MatchAny"), "audiences[1]: Duplicate value"),
        (issuer(audiences=["a", "b"]), "audienceMatchPolicy must be MatchAny for multiple audiences"),
        (issuer(audienceMatchPolicy="MatchAll"), "must be empty or MatchAny for single audience"),
        (issuer(certificateAuthority="x"), 'certificateAuthority: Invalid value: "<omitted>"'),
        (issuer(egressSelectorType="cluster"), "egress selectors are not supported"),
        (named(), "username: Required value: claim or expression is required"),
        (named(claim="sub"), "prefix is required when claim is set"),
        (named(claim="sub", prefix="", expression="claims.sub"), "claim and expression can't both be set"),
        (named(expression="claims.sub", prefix=""), "may not be specified when expression is set"),
        (named(expression="claims."), "compilation failed"),
        (named(expression="user.name"), "undeclared reference to 'user'"),
        (named(expression="claims.email"), "claims.email_verified must be used in"),
        ({"claimValidationRules": [{}]}, "claim or expression is required"),
        ({"claimValidationRules": [{"expression": "claims.sub"}]}, "must evaluate to bool"),
        ({"claimValidationRules": [{"claim": "a", "message": "x"}]}, "may not be specified when claim is set"),
        ({"claimValidationRules": [{"claim": "a"}, {"claim": "a"}]}, "claimValidationRules[1].claim: Duplicate value"),
        ({"userValidationRules": [{"expression": ""}]}, "userValidationRules[0].expression: Required value"),
        ({"userValidationRules": [{"expression": "user.username"}]}, "must evaluate to bool"),
        ({"userValidationRules": [{"expression": "claims.sub == 'a'"}]}, "undeclared reference to 'claims'"),
    ],
)
def test_what_may_not_stand_in_a_configuration(parts: dict[str, Any], message: str) -> None:
    errors = validate(AuthenticationConfiguration(jwt=[jwt(**parts)]), ["https://ours"])
    assert message in aggregate(errors)


@pytest.mark.parametrize(
    ("expression", "rule", "good"),
    [
        ("claims.email", "claims.?email_verified.orValue(true) == true", True),
        ("claims.email", "has(claims.email_verified)", True),
        ("claims.?email.orValue('x')", "has(claims.sub)", False),
        ("[claims.email][0]", "claims['email_verified'] == true", False),
        ("claims['email']", "has(claims.sub)", True),
    ],
)
def test_who_is_named_by_an_address_needs_a_verified_one(expression: str, rule: str, good: bool) -> None:
    configured = jwt(**named(expression=expression), claimValidationRules=[{"expression": rule}])
    errors = validate(AuthenticationConfiguration(jwt=[configured]), [])
    assert [each.field for each in errors] == ([] if good else ["jwt[0].claimMappings.username.expression"])


def test_two_issuers_of_the_same_name_are_refused() -> None:
    errors = validate(AuthenticationConfiguration(jwt=[jwt(), jwt()]), [])
    assert aggregate(errors) == 'jwt[1].issuer.url: Duplicate value: "https://issuer.example"'


@pytest.mark.parametrize("key", ["a", "A.b/c", "kubernetes.io/x", "x.k8s.io/y", "/x", "a.b/"])
def test_extra_keys_belong_to_a_domain_that_is_not_ours(key: str) -> None:
    mapping = {"username": {"claim": "sub", "prefix": ""}, "extra": [{"key": key, "valueExpression": "claims.a"}]}
    assert validate(AuthenticationConfiguration(jwt=[jwt(claimMappings=mapping)]), [])


@pytest.mark.parametrize("text", ["", "{}", "kind: Pod\napiVersion: v1", "a: b", "kind: [", '{"jwt": {}}'])
def test_files_that_are_none(tmp_path: Path, text: str) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(text)
    with pytest.raises(ValueError, match=r"a\.yaml"):
        read(file)


def test_a_changed_file_may_not_say_anything_else_of_anonymous_users(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "authentication.yaml"
    head = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\n"
    file.write_text(f"{head}anonymous: {{enabled: true}}\n")
    changes: list[bool] = []
    authenticator = OIDC(read(file), file=file, changed=lambda: changes.append(True))

    def look() -> str:
        caplog.clear()
        authenticator._watched._next = 0.0
        authenticator._refresh()
        return caplog.text

    file.write_text(f"{head}anonymous: {{enabled: true, conditions: [{{path: /livez}}]}}\n")
    assert "anonymous: Forbidden: changed from initial configuration file" in look()
    assert not changes
    file.write_text(f"{head}anonymous: {{enabled: true}}\njwt: []\n")
    assert look() == ""
    assert changes == [True]


async def test_other_issuers_are_used_when_they_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pybernetes.apiserver.authn.oidc.authenticator._EVERY", 0.02)
    monkeypatch.setattr("pybernetes.apiserver.authn.oidc.authenticator._WITHIN", 0.0)
    world = World(tmp_path)
    file = tmp_path / "authentication.json"
    file.write_text(json.dumps(configuration(world)))
    authenticator = OIDC(read(file), file=file)
    answers = world.issuer.answer
    try:
        assert await authenticator.user_of(world.issuer.token()) == User("jane")
        world.issuer.answer = lambda *_: (503, {}, "")
        replace(file, json.dumps(configuration(world, username={"claim": "sub", "prefix": "new:"})))
        authenticator._watched._next = 0.0
        assert await authenticator.user_of(world.issuer.token()) == User("jane")
        looking, reloads = authenticator._looking, authenticator._reloads
        assert looking is not None
        assert reloads is not None
        await asyncio.to_thread(tools.wait_until, lambda: "failure" in reloads._counts, "the failure is counted")
        assert await authenticator.user_of(world.issuer.token()) == User("jane"), "the old one stays"
        world.issuer.answer = answers
        async with asyncio.timeout(tools.PATIENCE):
            await looking
        assert reloads._counts["success"] == 1
        assert await authenticator.user_of(world.issuer.token()) == User("new:jane")
    finally:
        world.issuer.close()


def test_what_is_counted_of_a_file_that_changes(tmp_path: Path) -> None:
    file = tmp_path / "authentication.yaml"
    head = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\n"
    file.write_text(f"{head}jwt: []\n")
    authenticator = OIDC(read(file), file=file)

    def counted() -> dict[str, float]:
        authenticator._watched._next = 0.0
        authenticator._refresh()
        assert authenticator._reloads is not None
        name = "apiserver_authentication_config_controller_automatic_reloads_total"
        samples = [each for family in authenticator._reloads.collect() for each in family.samples]
        return {each.labels["status"]: each.value for each in samples if each.name == name}

    assert counted() == {}
    replace(file, f"{head}jwt: []\n")
    assert counted() == {}, "another file that says the same"
    replace(file, "nonsense")
    assert counted() == {"failure": 1}
    replace(file, "nonsense")
    assert counted() == {"failure": 1}
    file.unlink()
    assert counted() == {"failure": 2}
    file.write_text(f"{head}jwt: []\n")
    assert counted() == {"failure": 2, "success": 1}


def test_a_file_that_goes_away_while_it_is_read_again_is_reported_or_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "authentication.yaml"
    head = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\n"
    file.write_text(f"{head}jwt: []\n")
    changes: list[bool] = []
    authenticator = OIDC(read(file), file=file, changed=lambda: changes.append(True))

    def read_and_remove(path: Path) -> AuthenticationConfiguration:
        found = read(path)
        path.unlink()
        return found

    monkeypatch.setattr("pybernetes.apiserver.authn.oidc.authenticator.read", read_and_remove)
    file.write_text(f"{head}jwt: []\n\n")
    authenticator._refresh()
    assert changes == [True]
