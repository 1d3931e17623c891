"""TokenRequest, tokens in Secrets, keys and issuers that change, and what others need to verify our tokens."""

from __future__ import annotations

import base64
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from apiserver.authn.forge import claims_of, public_pem, token
from apiserver.client import Answer, Client
from cryptography.hazmat.primitives.asymmetric import ec, rsa

import tools
from pybernetes import jws, pki
from pybernetes.apiserver.options import parse

ISSUER = "https://kubernetes.default.svc.cluster.local"
WHO = "/apis/authentication.k8s.io/v1/selfsubjectreviews"


def who(server: tools.ApiServer, bearer: str) -> str:
    answer = Client(server, bearer).post(WHO, {})
    return str(answer.json["status"]["userInfo"]["username"]) if answer.status == 201 else str(answer.status)


@pytest.fixture
def account(client: Client, namespace: str) -> str:
    """The path of an account."""
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    assert client.post(path, {"metadata": {"name": "robot"}}).status == 201
    return f"{path}/robot"


def ask(client: Client, account: str, **spec: Any) -> Answer:
    return client.post(f"{account}/token", {"spec": spec})


def test_a_token_for_this_server_for_an_hour(client: Client, account: str) -> None:
    answer = client.post(f"{account}/token", {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest"})
    assert answer.status == 201
    made = answer.json
    uid = client.get(account).json["metadata"]["uid"]
    assert (made["metadata"]["name"], made["metadata"]["uid"]) == ("robot", uid)
    assert made["spec"] == {"audiences": [ISSUER], "expirationSeconds": 3600, "boundObjectRef": None}
    said = claims_of(made["status"]["token"])
    namespace = made["metadata"]["namespace"]
    assert said["exp"] - said["iat"] == 3600
    assert said["nbf"] == said["iat"]
    assert said == {
        "iss": ISSUER,
        "sub": f"system:serviceaccount:{namespace}:robot",
        "aud": [ISSUER],
        "jti": said["jti"],
        "iat": said["iat"],
        "nbf": said["iat"],
        "exp": said["exp"],
        "kubernetes.io": {"namespace": namespace, "serviceaccount": {"name": "robot", "uid": uid}},
    }
    ends = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(said["exp"]))
    assert made["status"]["expirationTimestamp"] == ends


def bound(kind: str, version: str = "v1") -> dict[str, Any]:
    return {"spec": {"boundObjectRef": {"kind": kind, "apiVersion": version, "name": "none"}}}


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        ({"spec": {"expirationSeconds": 599}}, 422, "may not specify a duration less than 10 minutes"),
        ({"spec": {"expirationSeconds": -1}}, 422, "may not specify a duration less than 10 minutes"),
        ({"spec": {"expirationSeconds": (1 << 32) + 1}}, 422, "may not specify a duration larger than 2^32 seconds"),
        ({"spec": {"expirationSeconds": "1h"}}, 400, ""),
        ({"metadata": {"name": "other"}}, 422, "must match the service account name if specified"),
        ({"metadata": {"namespace": "other"}}, 400, "does not match the namespace sent on the request"),
        ({"spec": {"boundObjectRef": {"kind": "Pod", "apiVersion": "v1"}}}, 400, "Name parameter required."),
        ({"metadata": {"uid": "1"}}, 409, "does not match the UID of the service account"),
        (
            {"spec": {"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "none"}}},
            404,
            'pods "none" not found',
        ),
        (
            {"spec": {"boundObjectRef": {"kind": "ConfigMap", "apiVersion": "v1", "name": "a"}}},
            400,
            "cannot bind token",
        ),
        ({"spec": {"boundObjectRef": {"kind": "Pod", "apiVersion": "a/v1", "name": "a"}}}, 400, "a/v1, Kind=Pod"),
        ({"kind": "Pod", "apiVersion": "v1"}, 400, ""),
    ],
)
def test_what_is_refused(client: Client, account: str, body: dict[str, Any], status: int, message: str) -> None:
    answer = client.post(f"{account}/token", body)
    assert answer.status == status, answer.body
    assert message in answer.message


def test_only_posts_and_only_for_accounts_that_are_there(client: Client, account: str) -> None:
    assert client.get(f"{account}/token").status == 405
    assert client.post(f"{account}-not/token", {}).status == 404


def test_a_token_cannot_be_bound_to_the_pod_of_another_account(client: Client, account: str) -> None:
    folder = account.removesuffix("/serviceaccounts/robot")
    spec = {"serviceAccountName": "other", "containers": [{"name": "c", "image": "i"}]}
    client.post(f"{folder}/serviceaccounts", {"metadata": {"name": "other"}})
    assert client.post(f"{folder}/pods", {"metadata": {"name": "p"}, "spec": spec}).status == 201
    answer = ask(client, account, boundObjectRef={"kind": "Pod", "apiVersion": "v1", "name": "p"})
    assert (answer.status, answer.message) == (
        400,
        'cannot bind token for serviceaccount "robot" to pod running with different serviceaccount name.',
    )


class Rotating:
    """A server with several keys and issuers."""

    def __init__(self, server: tools.ApiServer, old: Any, new: Any) -> None:
        self.server, self.old, self.new = server, old, new
        self.client = Client(server)


@pytest.fixture(scope="module")
def rotating(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rotating]:
    folder = tmp_path_factory.mktemp("rotating")
    old, new = rsa.generate_private_key(65537, 2048), pki.new_key()
    (folder / "old.pub").write_bytes(public_pem(old))
    (folder / "new.key").write_bytes(pki.private_pem(new))
    flags = [
        f"--service-account-key-file={folder}/old.pub",
        f"--service-account-key-file={folder}/new.key",
        f"--service-account-signing-key-file={folder}/new.key",
        "--service-account-issuer=https://new.example",
        "--service-account-jwks-uri=https://keys.example/jwks",
        "--service-account-max-token-expiration=2h",
        "--service-account-extend-token-expiration=false",
        "--api-audiences=api,other",
    ]
    with tools.api_server(folder, *flags) as server:
        yield Rotating(server, old, new)


def test_tokens_of_old_keys_and_issuers_are_good_and_new_ones_are_signed_with_the_new(rotating: Rotating) -> None:
    client = rotating.client
    namespace = client.namespace()
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    client.post(path, {"metadata": {"name": "robot"}})
    good = client.post(f"{path}/robot/token", {}).json["status"]["token"]
    said = claims_of(good)
    # The flags of `tools.api_server` come first, so its issuer signs; both count.
    assert (said["iss"], said["aud"]) == (ISSUER, ["api", "other"])
    user = f"system:serviceaccount:{namespace}:robot"
    assert who(rotating.server, good) == user
    assert who(rotating.server, token({**said, "iss": "https://new.example"}, rotating.new, "ES256")) == user
    for alg in ("RS256", "RS512", "PS256"):
        assert who(rotating.server, token(said, rotating.old, alg, kid=jws.key_id(rotating.old))) == user
    assert who(rotating.server, token(said, rotating.old, "RS256")) == user, "without the name of a key"
    assert who(rotating.server, token({**said, "iss": "https://other.example"}, rotating.new, "ES256")) == "401"
    assert who(rotating.server, token(said, ec.generate_private_key(ec.SECP256R1()), "ES256")) == "401"


def test_a_life_that_is_too_long_is_cut_with_a_warning(rotating: Rotating) -> None:
    client = rotating.client
    account = f"/api/v1/namespaces/{client.namespace()}/serviceaccounts"
    client.post(account, {"metadata": {"name": "robot"}})
    answer = ask(client, f"{account}/robot", expirationSeconds=10_000)
    said = claims_of(answer.json["status"]["token"])
    assert said["exp"] - said["iat"] == 7200
    assert answer.json["spec"]["expirationSeconds"] == 7200
    assert answer.warnings == ['299 - "requested expiration of 10000 seconds shortened to 7200 seconds"']


def test_keys_are_published(rotating: Rotating) -> None:
    client = rotating.client
    found = client.get("/.well-known/openid-configuration")
    assert found.headers["Cache-Control"] == "public, max-age=3600"
    assert found.json == {
        "issuer": ISSUER,
        "jwks_uri": "https://keys.example/jwks",
        "response_types_supported": ["id_token"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["ES256", "RS256"],
    }
    keys = client.get("/openid/v1/jwks")
    assert keys.headers["Content-Type"] == "application/jwk-set+json"
    described = {each["kid"]: each for each in keys.json["keys"]}
    assert {jws.key_id(rotating.old), jws.key_id(rotating.new)} <= set(described)
    assert jws.from_jwk(described[jws.key_id(rotating.new)]) == rotating.new.public_key()
    assert jws.from_jwk(described[jws.key_id(rotating.old)]) == rotating.old.public_key()
    assert all("d" not in each for each in keys.json["keys"]), "no private half"


def test_tokens_in_secrets(rotating: Rotating) -> None:
    client, server = rotating.client, rotating.server
    namespace = client.namespace()
    folder = f"/api/v1/namespaces/{namespace}"
    uid = client.post(f"{folder}/serviceaccounts", {"metadata": {"name": "robot"}}).json["metadata"]["uid"]

    def legacy(**other: str) -> str:
        prefix = "kubernetes.io/serviceaccount/"
        said = {
            "iss": "kubernetes/serviceaccount",
            "sub": f"system:serviceaccount:{namespace}:robot",
            f"{prefix}namespace": namespace,
            f"{prefix}secret.name": "s",
            f"{prefix}service-account.name": "robot",
            f"{prefix}service-account.uid": uid,
        }
        return token({**said, **other}, rotating.new, "ES256", kid=jws.key_id(rotating.new))

    good = legacy()
    secret = {
        "metadata": {"name": "s", "annotations": {"kubernetes.io/service-account.name": "robot"}},
        "type": "kubernetes.io/service-account-token",
        "data": {"token": base64.b64encode(good.encode()).decode()},
    }
    user = f"system:serviceaccount:{namespace}:robot"

    def problem(bearer: str) -> str:
        review = client.post("/apis/authentication.k8s.io/v1/tokenreviews", {"spec": {"token": bearer}})
        text: str = review.json["status"]["error"]
        return text.removeprefix("[invalid bearer token, ").removesuffix("]")

    assert who(server, good) == "401", "no Secret holds it"
    assert problem(good) == "Token has been invalidated"
    assert client.post(f"{folder}/secrets", secret).status == 201
    assert who(server, good) == user
    labels = client.get(f"{folder}/secrets/s").json["metadata"]["labels"]
    today = {time.strftime("%Y-%m-%d", time.gmtime(time.time() - seconds)) for seconds in (0, 60)}
    assert labels["kubernetes.io/legacy-token-last-used"] in today
    version = client.get(f"{folder}/secrets/s").json["metadata"]["resourceVersion"]
    assert who(server, good) == user
    assert client.get(f"{folder}/secrets/s").json["metadata"]["resourceVersion"] == version, "once a day"
    assert who(server, legacy(sub=f"system:serviceaccount:{namespace}:other")) == "401"
    assert problem(legacy(**{"kubernetes.io/serviceaccount/secret.name": ""})) == "secretName claim is missing"
    assert who(server, legacy(extra="x")) == "401", "signed, but not the one in the Secret"
    assert problem(legacy(extra="x")) == "Token does not match server's copy"

    client.patch(f"{folder}/serviceaccounts/robot", {"secrets": [{"name": "s"}]})
    warnings = Client(server, good).post(WHO, {}).warnings
    assert len(warnings) == 1
    assert "auto-generated secret-based tokens" in warnings[0]

    marked = {"metadata": {"labels": {"kubernetes.io/legacy-token-invalid-since": "2026-01-01"}}}
    assert client.patch(f"{folder}/secrets/s", marked).status == 200
    assert who(server, good) == "401"
    assert problem(good) == (
        f"the token in secret {namespace}/s for service account {namespace}/robot has been marked invalid. Use tokens "
        "from the TokenRequest API or manually created secret-based tokens, or remove the "
        "'kubernetes.io/legacy-token-invalid-since' label from the secret to temporarily allow use of this token"
    )
    client.patch(f"{folder}/secrets/s", {"metadata": {"labels": {"kubernetes.io/legacy-token-invalid-since": None}}})
    assert who(server, good) == user
    client.delete(f"{folder}/secrets/s")
    assert who(server, good) == "401"


def test_a_token_review_has_the_reason_of_a_bad_token(rotating: Rotating) -> None:
    client = rotating.client
    folder = f"/api/v1/namespaces/{client.namespace()}"
    spec = {"containers": [{"name": "c", "image": "i"}], "serviceAccountName": "robot"}
    paths = {"Pod": f"{folder}/pods", "Secret": f"{folder}/secrets", "Node": "/api/v1/nodes"}

    def make(path: str, **parts: Any) -> str:
        made = client.post(path, {"metadata": {"name": "robot"}, **parts})
        assert made.status == 201, made.message
        uid: str = made.json["metadata"]["uid"]
        return uid

    def request_token(**spec: Any) -> str:
        made: str = client.post(f"{folder}/serviceaccounts/robot/token", {"spec": spec}).json["status"]["token"]
        return made

    def problem(bearer: str) -> str:
        review = client.post("/apis/authentication.k8s.io/v1/tokenreviews", {"spec": {"token": bearer}})
        text: str = review.json["status"]["error"]
        return text.removeprefix("[invalid bearer token, ").removesuffix("]")

    account = make(f"{folder}/serviceaccounts")
    for kind, path in paths.items():
        parts = {"spec": spec} if kind == "Pod" else {}
        old = make(path, **parts)
        bearer = request_token(boundObjectRef={"kind": kind, "apiVersion": "v1", "name": "robot"})
        client.delete(f"{path}/robot")
        assert problem(bearer) == "service account token has been invalidated"
        new, noun = make(path, **parts), kind.lower()
        assert problem(bearer) == f"{noun} UID ({new}) does not match service account {noun} ref claim ({old})"
        client.delete(f"{path}/robot")
    bearer = request_token()
    client.delete(f"{folder}/serviceaccounts/robot")
    assert problem(bearer) == 'serviceaccounts "robot" not found'
    again = make(f"{folder}/serviceaccounts")
    assert problem(bearer) == f"service account UID ({again}) does not match claim ({account})"


def test_a_file_without_a_key_is_reported_at_once(tmp_path: Path) -> None:
    (tmp_path / "none.pem").write_text("no key")
    command = [
        *tools.PYTHON,
        "apiserver",
        "--etcd-servers=memory://",
        f"--cert-dir={tmp_path}",
        f"--service-account-signing-key-file={tmp_path}/none.pem",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    assert done.returncode == 1
    assert "does not contain any valid RSA or ECDSA keys" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--service-account-max-token-expiration=59m"], "must be between 1 hour and 2^32 seconds"),
        (["--service-account-issuer=a", "--service-account-issuer=a"], "is already specified"),
        (["--service-account-jwks-uri=http://x"], "requires https scheme"),
        (["--oidc-client-id=x"], "must be specified together"),
        (["--oidc-issuer-url=https://x", "--oidc-client-id=x", "--oidc-signing-algs=HS256"], "unsupported signing alg"),
        (["--requestheader-username-headers=X-Remote-User"], "needs --requestheader-client-ca-file"),
        (["--tls-cipher-suites=TLS_NULL"], "not supported or doesn't exist"),
        (["--anonymous-auth=maybe"], "not true or false"),
    ],
)
def test_flags_that_cannot_be_are_refused_at_once(
    flags: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        parse(["--etcd-servers=memory://", *flags])
    assert message in capsys.readouterr().err
