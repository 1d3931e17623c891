"""The parts of authentication that need no server: tokens taken apart, signatures, chains, the union, the memory."""

from __future__ import annotations

import base64
import os
import time
from collections.abc import Awaitable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from apiserver.authn.forge import part, token
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from hypothesis import given
from hypothesis import strategies as st

from pybernetes import jws, pki
from pybernetes.api.errors import Unauthorized
from pybernetes.apiserver.authn import jwt
from pybernetes.apiserver.authn.anonymous import Anonymous
from pybernetes.apiserver.authn.authenticator import Authenticator, BadCredential, TokenUser, extra_key
from pybernetes.apiserver.authn.tokens import Bearer, Tokens
from pybernetes.apiserver.authn.union import Union
from pybernetes.apiserver.filters.authentication import Authentication
from pybernetes.apiserver.selfsigned import self_signed
from pybernetes.apiserver.user import User
from pybernetes.net.client_certificates import Trust
from pybernetes.net.http import Request, Response


@given(st.text(max_size=80) | st.binary(max_size=60).map(lambda data: base64.urlsafe_b64encode(data).decode()))
def test_whatever_is_no_token_is_said_to_be_none(text: str) -> None:
    for made in (text, f"{text}.{text}.{text}", f"{part({'alg': 'ES256'})}.{text}.{text}"):
        try:
            signed = jwt.parse(made)
            jwt.claims(signed.payload)
        except jwt.NotAToken:
            assert jwt.unverified_issuer(made) is None


@pytest.mark.parametrize(
    ("header", "claims"),
    [
        (b'{"alg":"ES256","alg":"none"}', b"{}"),
        (b'{"alg":"ES256"}', b'{"sub":"a","sub":"b"}'),
        (b'{"alg":"ES256"}', b'{"x":[{"y":{"z":1,"z":2}}]}'),
        (b'{"alg":"ES256","jwk":{"kty":"EC"}}', b"{}"),
        (b'{"alg":"ES256"}', b'{"exp":100000000000000000000}'),
        (b'{"alg":"ES256"}', b'{"nbf":-1e30}'),
        (b'{"alg":"ES256"}', b"{} x"),
        (b'{"alg":"ES256"}', b"\xff"),
    ],
)
def test_a_token_says_nothing_twice_and_nothing_that_cannot_be(header: bytes, claims: bytes) -> None:
    with pytest.raises(jwt.NotAToken):
        jwt.claims(jwt.parse(f"{jws.encode(header)}.{jws.encode(claims)}.").payload)


@given(st.binary(max_size=64))
def test_base64url_has_one_spelling(data: bytes) -> None:
    text = jws.encode(data)
    assert jwt.decode(text) == data
    for other in (f"{text}=", f"{text} ", text.replace("A", "A\n"), f"{text}+"):
        if other != text:
            with pytest.raises(jwt.NotAToken):
                jwt.decode(other)


@pytest.mark.parametrize(
    ("claims", "now", "problem"),
    [
        ({"exp": 100}, 160, ""),
        ({"exp": 100}, 161, "token has expired"),
        ({"nbf": 100}, 40, ""),
        ({"nbf": 100}, 39, "token is not valid yet"),
        ({"iat": 100}, 39, "token is issued in the future"),
        ({}, 1e12, ""),
    ],
)
def test_dates_have_a_minute_of_leeway(claims: dict[str, float], now: float, problem: str) -> None:
    assert jwt.check_dates(jwt.Claims(**claims), now) == problem  # type: ignore[arg-type]


KEYS: dict[str, Any] = {
    "RS256": rsa.generate_private_key(65537, 2048),
    "ES256": ec.generate_private_key(ec.SECP256R1()),
    "ES384": ec.generate_private_key(ec.SECP384R1()),
    "ES512": ec.generate_private_key(ec.SECP521R1()),
}


@pytest.mark.parametrize("alg", KEYS)
def test_only_the_key_and_algorithm_of_a_signature_verify_it(alg: str) -> None:
    signed = jwt.parse(jws.sign_token({"a": 1}, KEYS[alg]))
    assert signed.header.alg == alg
    for name, key in KEYS.items():
        good = jws.verifies(alg, signed.text, signed.signature, key.public_key())
        assert good is (name == alg)
    public = KEYS[alg].public_key()
    for other in ("none", "HS256", "RS384", "ES256K", "EdDSA", "", "ES512" if alg == "ES256" else "ES256"):
        if other != alg:
            assert not jws.verifies(other, signed.text, signed.signature, public)
    assert not jws.verifies(alg, signed.text + b"x", signed.signature, public)
    assert not jws.verifies(alg, signed.text, b"", public)
    assert not jws.verifies(alg, signed.text, bytes(len(signed.signature)), public)


@pytest.mark.parametrize("alg", KEYS)
def test_keys_survive_being_jwks(alg: str) -> None:
    public = KEYS[alg].public_key()
    assert jws.from_jwk(jws.to_jwk(public)) == public


@pytest.mark.parametrize(
    "jwk",
    [
        {},
        {"kty": "oct", "k": "AAAA"},
        {"kty": "RSA", "n": "AQAB"},
        {"kty": "EC", "crv": "P-256", "x": "AA", "y": "AA"},
        {"kty": "EC", "crv": "P-1", "x": "AA", "y": "AA"},
        {"kty": "RSA", "n": 7, "e": 7},
    ],
)
def test_what_is_no_jwk(jwk: dict[str, Any]) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        jws.from_jwk(jwk)


def test_keys_in_files() -> None:
    private = pki.private_pem(KEYS["ES256"])
    both = b"some text\n" + pki.public_pem(KEYS["ES256"]) + pki.create_authority("x").certificate_pem + private
    found = jws.load_public_keys(both)
    assert [jws.key_id(key) for key in found][::2] == [jws.key_id(KEYS["ES256"])] * 2
    ed = ed25519.Ed25519PrivateKey.generate()
    for bad in (b"", b"-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----"):
        with pytest.raises(ValueError):  # noqa: PT011
            jws.load_public_keys(bad)
    with pytest.raises(ValueError, match="only RSA keys and ECDSA"):
        jws.load_signing_key(ed.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))


def request(**headers: str) -> Request:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    connection: Any = SimpleNamespace(peer_address="203.0.113.9", peer_certificate=None, stranger=True)
    return Request(connection, "GET", "/", "", named, b"")


class Says:
    """Answers at once: a user, that there is none, or what is wrong."""

    def __init__(self, answer: User | str | None) -> None:
        self.answer = answer

    def authenticate(self, request: Request) -> User | None:
        if isinstance(self.answer, str):
            raise BadCredential(self.answer)
        return self.answer


class SaysLater(Says):
    """Takes its time for the same."""

    def authenticate(self, request: Request) -> Any:
        async def answer() -> User | None:
            return Says.authenticate(self, request)

        return answer()


async def identified(by: Authenticator, asked: Request) -> User | None:
    answer = by.authenticate(asked)
    return await answer if isinstance(answer, Awaitable) else answer


@pytest.mark.parametrize("kinds", [(Says, Says), (Says, SaysLater), (SaysLater, Says), (SaysLater, SaysLater)])
@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ([None, User("a"), User("b")], "a"),
        (["bad", User("a")], "a"),
        (["bad", "worse", User("a")], "a"),
        ([None, None], "system:anonymous"),
        (["bad", None], None),
        ([None, "bad"], None),
        ([], "system:anonymous"),
    ],
)
async def test_the_union(
    answers: list[User | str | None],
    expected: str | None,
    kinds: tuple[type[Says], type[Says]],
    caplog: pytest.LogCaptureFixture,
) -> None:
    authenticators: list[Authenticator] = [kinds[index % 2](answer) for index, answer in enumerate(answers)]
    union = Union(authenticators, Anonymous())
    if expected is None:
        with pytest.raises(Unauthorized) as refused:
            await identified(union, request())
        assert str(refused.value) == "Unauthorized"
        assert "bad" in caplog.text
    else:
        user = await identified(union, request())
        assert user is not None
        assert user.name == expected
        assert ("system:authenticated" in user.groups) is (expected != "system:anonymous")
    results = {sample.labels["result"]: sample.value for sample in list(union.collect())[1].samples}
    assert results == {"success": expected is not None, "failure": 0, "error": expected is None}


@pytest.mark.parametrize("kind", [Says, SaysLater])
@pytest.mark.parametrize("answer", [User("a"), "bad", None])
async def test_the_filter_passes_on_authenticated_requests(kind: type[Says], answer: User | str | None) -> None:
    passed: list[tuple[str, list[str]]] = []

    async def serve(request: Request) -> Response:
        raise Unauthorized  # of the handler behind the filter

    def handler(request: Request) -> Awaitable[Response]:
        passed.append((request.user.name, list(request.headers)))
        return serve(request)

    turns: Any = SimpleNamespace(taken=[])

    async def once(flow: str) -> None:
        turns.taken.append(flow)

    turns.once = once
    asked = request(authorization="x", x_remote_user="y", accept="z")
    pending = Authentication(handler, Union([kind(answer)], None), turns)(asked)
    assert bool(passed) is (kind is Says and isinstance(answer, User)), "at once or when awaited"
    with pytest.raises(Unauthorized):
        await pending
    if isinstance(answer, User):
        assert (passed, turns.taken) == ([("a", ["accept"])], [])
    else:
        assert (passed, turns.taken) == ([], ["unauthenticated/203.0.113.9"])


class Counting:
    """Knows one token; `good` says whether what it stands on is still there."""

    def __init__(self) -> None:
        self.asked = 0
        self.good = True
        self.lifetime = 1e9

    async def authenticate_token(self, token: str, audiences: Sequence[str]) -> TokenUser | None:
        self.asked += 1
        if token != "good" or not self.good:
            return None
        return TokenUser(User("jane"), tuple(audiences), holds=lambda: self.good, lifetime=self.lifetime)


async def test_good_answers_are_remembered_while_they_hold() -> None:
    kind = Counting()
    tokens = Tokens([kind], ["api"])
    for _ in range(5):
        assert await tokens.find("good") is not None
        assert await tokens.find("bad") is None
    assert kind.asked == 1 + 5
    kind.good = False
    assert await tokens.find("good") is None
    kind.good = True
    assert await tokens.find("good") is not None
    count = kind.asked
    tokens.forget()
    assert await tokens.find("good") is not None
    assert kind.asked == count + 1
    kind.lifetime = 0
    tokens.forget()
    await tokens.find("good")
    await tokens.find("good")
    assert kind.asked == count + 3, "not to be remembered"


async def test_a_websocket_brings_its_token_among_its_protocols() -> None:
    bearer = Bearer(Tokens([Counting()], ["api"]))
    prefix = "base64url.bearer.authorization.k8s.io."
    asked = request(upgrade="websocket", sec_websocket_protocol=f"v5.channel.k8s.io, {prefix}{part(b'good')}")
    assert await identified(bearer, asked) == User("jane", groups=("system:authenticated",))
    assert asked.headers["sec-websocket-protocol"] == "v5.channel.k8s.io"
    for protocols in (
        f"a, {prefix}{part(b'bad')}",
        f"{prefix}{part(b'good')}",
        f"a, {prefix}{part(b'good')}, {prefix}{part(b'good')}",
        f"a, {prefix}???",
    ):
        with pytest.raises(BadCredential):
            await identified(bearer, request(upgrade="websocket", sec_websocket_protocol=protocols))
    assert bearer.authenticate(request(sec_websocket_protocol=f"a, {prefix}{part(b'good')}")) is None
    assert bearer.authenticate(request(upgrade="websocket", sec_websocket_protocol="a")) is None


async def test_a_token_that_is_known_is_answered_for_at_once() -> None:
    kind = Counting()
    bearer = Bearer(Tokens([kind], ["api"]))
    found = bearer.authenticate(request(authorization="Bearer good"))
    assert isinstance(found, Awaitable), "the webhook has to be asked"
    jane = await found
    assert bearer.authenticate(request(authorization="Bearer good")) == jane
    assert kind.asked == 1
    kind.good = False
    found = bearer.authenticate(request(authorization="Bearer good"))
    assert isinstance(found, Awaitable), "what it stands on has changed"
    with pytest.raises(BadCredential):
        await found


def test_chains(tmp_path: Path) -> None:
    from cryptography.hazmat.primitives.serialization import Encoding

    ours, other = pki.create_authority("ours"), pki.create_authority("ours")
    file = tmp_path / "ca.crt"
    file.write_bytes(ours.certificate_pem)
    trust = Trust(file)
    now = time.time()

    def der(identity: pki.Identity) -> bytes:
        return identity.certificate.public_bytes(Encoding.DER)

    client = pki.issue_client(ours, "jane")
    assert trust.problem([der(client)], now) == ""
    assert "unknown authority" in trust.problem([der(pki.issue_client(other, "jane"))], now)
    assert "incompatible key usage" in trust.problem([der(pki.issue_server(ours, "x", ["x"]))], now)
    assert "expired" in trust.problem([der(client)], now + 366 * 86400)
    assert "expired" in trust.problem([der(client)], now - 86400)
    assert trust.problem([b"garbage"], now).startswith("x509:")
    # The holder of a certificate cannot sign others.
    assert "unknown authority" in trust.problem([der(pki.issue_client(_as_authority(client), "x")), der(client)], now)
    file.write_bytes(other.certificate_pem)
    os.utime(file, ns=(1, 1))
    trust.refresh()
    assert trust.generation == 2
    assert "unknown authority" in trust.problem([der(client)], now)


def _as_authority(identity: pki.Identity) -> pki.Identity:
    """The identity with the extension that `pki` looks for in who signs."""

    class Pretender:
        subject = identity.certificate.subject
        extensions = pki.create_authority("x").certificate.extensions

    return SimpleNamespace(key=identity.key, certificate=Pretender)  # type: ignore[return-value]


def test_a_certificate_for_a_server_without_one_is_made_again_before_it_ends(tmp_path: Path) -> None:
    certificate, key = self_signed(tmp_path, "192.0.2.1")
    assert key.stat().st_mode & 0o777 == 0o600
    first = certificate.read_bytes()
    self_signed(tmp_path, "192.0.2.1")
    assert certificate.read_bytes() == first
    old = time.time() - 340 * 86400
    os.utime(certificate, (old, old))
    self_signed(tmp_path, "192.0.2.1")
    assert certificate.read_bytes() != first


def test_the_forge_forges() -> None:
    """A token made by hand is one that the server would take."""
    made = token({"iss": "x"}, KEYS["ES256"], "ES256")
    signed = jwt.parse(made)
    assert jws.verifies("ES256", signed.text, signed.signature, KEYS["ES256"].public_key())


@pytest.mark.parametrize(
    ("text", "expected"), [("scopes", "scopes"), ("acme.io%2fx", "acme.io/x"), ("a%2fb%zz", "a%2fb%zz"), ("%", "%")]
)
def test_keys_in_names_of_headers(text: str, expected: str) -> None:
    assert extra_key(text) == expected


def test_an_authority_that_is_none_is_named(tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_text("nothing")
    with pytest.raises(ValueError, match=r"ca\.crt: data does not contain any valid"):
        Trust(tmp_path / "ca.crt")
