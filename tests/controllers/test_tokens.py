"""Tokens: bootstrap tokens sign and end, token Secrets are filled, forgotten ones go."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from controllers.conftest import Harness, MakeHarness
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

from pybernetes.api.core.v1 import ConfigMap, Pod, Secret, ServiceAccount
from pybernetes.controllers.bootstrap.signer import signed
from pybernetes.controllers.bootstrap.tokens import Token, signing_token
from pybernetes.controllers.legacytokencleaner import judge, secret_names
from pybernetes.controllers.options import Options
from pybernetes.jws import detached_signature, key_id, sign_token

NOW = 1_800_000_000.0  # 2027-01-15


def decode(part: str) -> bytes:
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))


def b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def bootstrap(name: str = "bootstrap-token-abcdef", **data: str) -> Secret:
    values = {"token-id": "abcdef", "token-secret": "s", "usage-bootstrap-signing": "true", **data}
    encoded = {key.replace("_", "-"): b64(value) for key, value in values.items()}
    return msgspec.convert({"metadata": {"name": name}, "data": encoded}, Secret)


def test_a_detached_signature_is_an_hmac_over_header_and_content() -> None:
    header, empty, signature = detached_signature("content", "abcdef", "secret").split(".")
    assert json.loads(decode(header)) == {"alg": "HS256", "kid": "abcdef"}
    assert empty == ""
    text = f"{header}.{base64.urlsafe_b64encode(b'content').rstrip(b'=').decode()}"
    assert decode(signature) == hmac.new(b"secret", text.encode(), hashlib.sha256).digest()


@pytest.mark.parametrize("kind", ["rsa", "ec"])
def test_tokens_can_be_verified_with_the_public_key(kind: str) -> None:
    key = rsa.generate_private_key(65537, 2048) if kind == "rsa" else ec.generate_private_key(ec.SECP256R1())
    header, claims, signature = sign_token({"b": 1, "a": 2}, key).split(".")
    assert json.loads(decode(header)) == {"alg": "RS256" if kind == "rsa" else "ES256", "kid": key_id(key)}
    assert decode(claims) == b'{"a":2,"b":1}'
    text, raw = f"{header}.{claims}".encode(), decode(signature)
    if isinstance(key, rsa.RSAPrivateKey):
        key.public_key().verify(raw, text, padding.PKCS1v15(), hashes.SHA256())
    else:
        r, s = int.from_bytes(raw[:32], "big"), int.from_bytes(raw[32:], "big")
        key.public_key().verify(encode_dss_signature(r, s), text, ec.ECDSA(hashes.SHA256()))


@pytest.mark.parametrize(
    ("secret", "expected"),
    [
        (bootstrap(), Token("abcdef", "s")),
        (bootstrap(expiration="2030-01-01T00:00:00Z"), Token("abcdef", "s")),
        (bootstrap(expiration="2020-01-01T00:00:00Z"), None),
        (bootstrap(expiration="soon"), None),
        (bootstrap("bootstrap-token-zzzzzz"), None),
        (bootstrap("other"), None),
        (bootstrap(**{"usage-bootstrap-signing": "false"}), None),
        (bootstrap(**{"token-secret": ""}), None),
    ],
)
def test_which_tokens_may_sign(secret: Secret, expected: Token | None) -> None:
    assert signing_token(secret, NOW) == expected


def test_only_signatures_of_present_tokens_are_kept() -> None:
    data = signed({"kubeconfig": "k", "jws-kubeconfig-oldold": "x", "other": "y"}, [Token("abcdef", "s")])
    assert data == {"kubeconfig": "k", "other": "y", "jws-kubeconfig-abcdef": detached_signature("k", "abcdef", "s")}
    assert signed({}, [Token("abcdef", "s")]) is None


async def test_cluster_info_is_signed_by_tokens_until_they_end(harness: MakeHarness) -> None:
    async with harness("bootstrap-signer-controller", "token-cleaner-controller") as h:
        token = bootstrap(expiration="2026-01-01T00:00:00Z")
        body: dict[str, Any] = {
            "metadata": {"name": "bootstrap-token-abcdef"},
            "type": "bootstrap.kubernetes.io/token",
            "data": {**(token.data or {}), "expiration": b64(_later(h, 3600))},
        }
        await h.client.call("POST", "/api/v1/namespaces/kube-system/secrets", body)
        body = {"metadata": {"name": "cluster-info"}, "data": {"kubeconfig": "content"}}
        await h.client.call("POST", "/api/v1/namespaces/kube-public/configmaps", body)

        async def data() -> dict[str, str]:
            return (await h.client.get(ConfigMap, "cluster-info", "kube-public")).data or {}

        async def is_signed() -> bool:
            return (await data()).get("jws-kubeconfig-abcdef") == detached_signature("content", "abcdef", "s")

        async def is_not_signed() -> bool:
            return await data() == {"kubeconfig": "content"}

        await h.until(is_signed)
        await h.until(lambda: h.controller("token-cleaner-controller").queue.delayed)
        h.clock.advance(3700)
        await h.until(is_not_signed)


def _later(h: Harness, seconds: float) -> str:
    from pybernetes.api.times import rfc3339

    return rfc3339(h.clock.now() + seconds)


async def test_token_secrets_are_filled_and_go_with_their_account(harness: MakeHarness, tmp_path: Path) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    path, ca = tmp_path / "sa.key", tmp_path / "ca.crt"
    path.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    ca.write_text("authority")
    options = Options(service_account_private_key_file=str(path), root_ca_file=str(ca))
    async with harness("serviceaccount-token-controller", options=options) as h:
        account = await h.client.get(ServiceAccount, "default", h.namespace)
        body = {
            "metadata": {"name": "t", "annotations": {"kubernetes.io/service-account.name": "default"}},
            "type": "kubernetes.io/service-account-token",
        }
        await h.client.call("POST", f"/api/v1/namespaces/{h.namespace}/secrets", body)

        async def filled() -> Secret | None:
            found = await h.get(Secret, "t")
            return found if found is not None and "token" in (found.data or {}) else None

        secret = await h.until(filled)
        assert secret is not None
        data = {name: base64.b64decode(value).decode() for name, value in (secret.data or {}).items()}
        assert (data["ca.crt"], data["namespace"]) == ("authority", h.namespace)
        claims = json.loads(decode(data["token"].split(".")[1]))
        uid = account.metadata.uid if account.metadata else ""
        assert claims == {
            "iss": "kubernetes/serviceaccount",
            "sub": f"system:serviceaccount:{h.namespace}:default",
            "kubernetes.io/serviceaccount/namespace": h.namespace,
            "kubernetes.io/serviceaccount/secret.name": "t",
            "kubernetes.io/serviceaccount/service-account.name": "default",
            "kubernetes.io/serviceaccount/service-account.uid": uid,
        }
        assert secret.metadata is not None
        assert (secret.metadata.annotations or {})["kubernetes.io/service-account.uid"] == uid
        await h.client.delete(ServiceAccount, "default", h.namespace)

        async def gone() -> bool:
            return await h.get(Secret, "t") is None

        await h.until(gone)


async def test_an_account_forgets_a_deleted_token_and_keeps_its_other_secrets(
    harness: MakeHarness, tmp_path: Path
) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    path = tmp_path / "sa.key"
    path.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    async with harness(
        "serviceaccount-token-controller", options=Options(service_account_private_key_file=str(path))
    ) as h:
        accounts = f"/api/v1/namespaces/{h.namespace}/serviceaccounts"
        await h.client.call(
            "POST", accounts, {"metadata": {"name": "a"}, "secrets": [{"name": "t"}, {"name": "other"}]}
        )
        body = {
            "metadata": {"name": "t", "annotations": {"kubernetes.io/service-account.name": "a"}},
            "type": "kubernetes.io/service-account-token",
        }
        await h.client.call("POST", f"/api/v1/namespaces/{h.namespace}/secrets", body)

        async def filled() -> bool:
            found = await h.get(Secret, "t")
            return found is not None and "token" in (found.data or {})

        await h.until(filled)
        await h.client.delete(Secret, "t", h.namespace)

        async def forgotten() -> bool:
            account = await h.get(ServiceAccount, "a")
            assert account is not None
            return [each.name for each in account.secrets or ()] != ["t", "other"]

        await h.until(forgotten)
        account = await h.get(ServiceAccount, "a")
        assert account is not None
        assert [each.name for each in account.secrets or ()] == ["other"]


async def test_a_token_of_an_account_that_is_not_there_is_deleted(harness: MakeHarness, tmp_path: Path) -> None:
    path = tmp_path / "sa.key"
    path.write_bytes(
        ec.generate_private_key(ec.SECP256R1()).private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    async with harness(
        "serviceaccount-token-controller", options=Options(service_account_private_key_file=str(path))
    ) as h:
        body = {
            "metadata": {"name": "t", "annotations": {"kubernetes.io/service-account.name": "nobody"}},
            "type": "kubernetes.io/service-account-token",
        }
        await h.client.call("POST", f"/api/v1/namespaces/{h.namespace}/secrets", body)

        async def gone() -> bool:
            return await h.get(Secret, "t") is None

        await h.until(gone)


def legacy(created: str = "2020-01-01T00:00:00Z", **labels: str) -> Secret:
    return msgspec.convert(
        {
            "metadata": {
                "name": "t",
                "creationTimestamp": created,
                "labels": {
                    f"kubernetes.io/legacy-token-{key.replace('_', '-')}": value for key, value in labels.items()
                },
                "annotations": {"kubernetes.io/service-account.uid": "u"},
            }
        },
        Secret,
    )


ACCOUNT = msgspec.convert({"metadata": {"uid": "u"}, "secrets": [{"name": "t"}]}, ServiceAccount)
YEAR = 365 * 24 * 3600.0


@pytest.mark.parametrize(
    ("secret", "account", "mounted", "expected"),
    [
        (legacy(), ACCOUNT, [], "mark"),
        (legacy("2026-12-01T00:00:00Z"), ACCOUNT, [], "keep"),
        (legacy(last_used="2026-06-01"), ACCOUNT, [], "keep"),
        (legacy(last_used="2021-06-01"), ACCOUNT, [], "mark"),
        (legacy(last_used="nonsense"), ACCOUNT, [], "keep"),
        (legacy(), None, [], "keep"),
        (legacy(), ServiceAccount(), [], "keep"),
        (legacy(), ACCOUNT, ["t"], "keep"),
        (legacy(invalid_since="2026-12-01"), ACCOUNT, [], "keep"),
        (legacy(invalid_since="2025-12-01"), ACCOUNT, [], "delete"),
    ],
)
def test_unused_legacy_tokens_are_marked_and_a_period_later_deleted(
    secret: Secret, account: ServiceAccount | None, mounted: list[str], expected: str
) -> None:
    assert judge(secret, account, mounted, NOW, YEAR) == expected


def test_all_secrets_that_a_pod_names_are_found() -> None:
    pod = msgspec.convert(
        {
            "spec": {
                "imagePullSecrets": [{"name": "pull"}],
                "containers": [
                    {
                        "name": "c",
                        "envFrom": [{"secretRef": {"name": "from"}}],
                        "env": [{"name": "e", "valueFrom": {"secretKeyRef": {"name": "key", "key": "k"}}}],
                    }
                ],
                "volumes": [
                    {"name": "a", "secret": {"secretName": "volume"}},
                    {"name": "b", "projected": {"sources": [{"secret": {"name": "projected"}}]}},
                ],
            }
        },
        Pod,
    )
    assert sorted(secret_names(pod)) == ["from", "key", "projected", "pull", "volume"]
