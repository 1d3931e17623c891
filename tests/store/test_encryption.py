"""Encryption at rest: providers, rules, and the store that applies them above each of the stores."""

from __future__ import annotations

import base64
import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pybernetes.store.base import Ciphertext, Page, RevisionMismatch, Store
from pybernetes.store.encryption.configuration import ResourceConfiguration, Rules, read
from pybernetes.store.encryption.providers import AESCBC, AESGCM, Identity, Provider, Secretbox, Undecipherable
from pybernetes.store.encryption.store import EncryptedStore

KEY = bytes(range(32))
SECRET = base64.b64encode(KEY).decode()
OTHER = base64.b64encode(bytes(reversed(KEY))).decode()

# What kube-apiserver v1.36 wrote for a Secret with this key, named k1, at /registry/secrets/default/enc-PROVIDER.
UPSTREAM = {
    AESCBC: (
        "azhzOmVuYzphZXNjYmM6djE6azE6ja7iR3qEvFWPA9/UDU6sYvsMvJIMhoTWBU6oLEtbAfmwKG9f2UpR+Kl8gzaVNQ4vvoJMUe/UQZPCnR3Z"
        "l2Xm98Bl4lHF+bwYjuxG2LIhHHNHazFvxeqs6uEzP8klk2QEO7bQpSIvhxNQJGe7rBnNEtvXallgKplBHZjOsEpzm/pBRafjhpAYnILXJ44t"
        "lnp0KtFdAL4MJlVawlJiCMNSgClwW10hBF4UDGlBcMlmkdh908t+DYnmz90j4EHTR0ymU9l4e46PrjuW6RmwJ4PVKhZl9dR5fiUR0qtCDCHk"
        "BmHEugU2LqCiYWQKQQAZcTvw"
    ),
    AESGCM: (
        "azhzOmVuYzphZXNnY206djE6azE66N8C/v8cEsJ9ltVNajT/rGpNOt4cWWsx/6JfcM2PwegEsQrMxNvLSinSDQtBafqfbxiBpvRHz86BCiVT"
        "IjnfGYtPXlKWDuYU/SdA+JZyyGLACmHFodQp3Yoc4ccLXRax4b8XP1LYEQhl4N4Wn/hLhib1DFDnt8/6JueqqqvtSdVf2IJbtE20Kqha4nCE"
        "L6Nzr+NaaC4Fq8sgcP1mem2cihQliI09EFzaXfgwhZ5R3YnYno/ga1qn4ZkFS1DODY3w7i9HIOsFbeeLyUDUjkBhK8L9s8RTZpmDy1oo+ptw"
        "hqtdcFc9VduBfzjC4m5Klg=="
    ),
    Secretbox: (
        "azhzOmVuYzpzZWNyZXRib3g6djE6azE6/9QQrbDyY4zfWgHy3CwgOvI7FtExo0y2y4aw6PCb+bYckTi3maiNcQ4jRbAQWtnrYwE1ilceSWtW"
        "QpfQvOqNlZsBSv1VOYDGXN38iaOVgCaBGHWDpY3ckssv0cM7ExOR5Ds6hWvNsxw5wVdgw1Zb/qdoEDA0S6Fj+467uV45FLPr+B+Sbyz1SuEw"
        "vRGvJ76cqRDvDKrtExx1seevoYsXQVGZcpAwZkD4V79zstL1A44uF0oMxQmhbuisDA9OylfpNRQQrhC8WpElmur4vY9H21rGUpHQFB+nBSm0"
        "8W9TC/9s3c6i5PCnq/A4wKX/oRsjw+HO5hwGDiyqboEgYg=="
    ),
}
KINDS: list[type[AESCBC] | type[AESGCM] | type[Secretbox]] = [AESCBC, AESGCM, Secretbox]


@pytest.mark.parametrize("kind", KINDS)
def test_what_upstream_wrote_is_read(kind: type[AESCBC]) -> None:
    provider = kind("k1", KEY)
    stored = base64.b64decode(UPSTREAM[kind])
    name = provider.prefix.decode().split(":")[2]
    assert stored.startswith(provider.prefix)
    value = provider.decrypt(stored[len(provider.prefix) :], f"/registry/secrets/default/enc-{name}")
    assert value.startswith(b"k8s\x00\n\x0c\n\x02v1\x12\x06Secret")
    assert b"bbb" in value


@pytest.mark.parametrize("kind", KINDS)
@given(value=st.binary(max_size=100), place=st.text(max_size=10))
def test_what_was_encrypted_comes_back(kind: type[AESCBC], value: bytes, place: str) -> None:
    provider = kind("k", KEY)
    once, again = provider.encrypt(value, place), provider.encrypt(value, place)
    assert provider.decrypt(once, place) == value
    assert once != again
    assert len(value) < 8 or value not in once


@pytest.mark.parametrize("kind", [AESGCM, Secretbox])
def test_what_was_changed_is_noticed(kind: type[AESGCM]) -> None:
    provider = kind("k", KEY)
    good = provider.encrypt(b"value", "/here")
    for position in range(len(good)):
        bad = good[:position] + bytes([good[position] ^ 1]) + good[position + 1 :]
        with pytest.raises(Undecipherable):
            provider.decrypt(bad, "/here")
    for length in range(len(good)):
        with pytest.raises(Undecipherable):
            provider.decrypt(good[:length], "/here")


def test_a_value_cannot_be_moved_under_aesgcm() -> None:
    provider = AESGCM("k", KEY)
    with pytest.raises(Undecipherable):
        provider.decrypt(provider.encrypt(b"value", "/here"), "/there")


@pytest.mark.parametrize("kind", KINDS)
def test_another_key_reads_nothing(kind: type[AESCBC]) -> None:
    good = kind("k", KEY).encrypt(b"x" * 100, "/here")
    with contextlib.suppress(Undecipherable):  # CBC may find a padding by chance, once in 256
        assert kind("k", KEY[::-1]).decrypt(good, "/here") != b"x" * 100


def rules(*parts: tuple[list[str], list[str]]) -> Rules:
    """Parts of resources and providers, those as `aesgcm:name:secret` or `identity`."""
    made = []
    for resources, providers in parts:
        described = []
        for each in providers:
            kind, _, rest = each.partition(":")
            name, _, secret = rest.partition(":")
            keys = [{"name": name, "secret": secret or SECRET}]
            described.append({"identity": {}} if kind == "identity" else {kind: {"keys": keys}})
        made.append(msgspec.convert({"resources": resources, "providers": described}, ResourceConfiguration))
    return Rules(made)


@pytest.mark.parametrize(
    ("group", "plural", "expected"),
    [
        ("", "secrets", "one"),
        ("", "configmaps", "core"),
        ("apps", "deployments", "exact"),
        ("apps", "replicasets", "apps"),
        ("batch", "jobs", "all"),
        ("acme.io", "rockets", "all"),
    ],
)
def test_the_closest_rule_counts(group: str, plural: str, expected: str) -> None:
    found = rules(
        (["secrets"], ["aesgcm:one"]),
        (["*.", "deployments.apps"], ["aesgcm:core"]),
        (["*.apps"], ["aesgcm:apps"]),
        (["*.*"], ["aesgcm:all"]),
    ).providers(group, plural)
    assert found is not None
    expected = "core" if expected == "exact" else expected
    assert found[0].prefix == f"k8s:enc:aesgcm:v1:{expected}:".encode()


def of(key: str) -> tuple[str, str] | None:
    return ("", "secrets") if "/secrets/" in key else None


Opened = Callable[[], contextlib.AbstractAsyncContextManager[Store]]


async def test_values_are_encrypted_below_and_plain_above(opened: Opened, prefix: str) -> None:
    async with opened() as inner:
        store = EncryptedStore(inner, rules((["secrets"], ["aesgcm:k1"])), of)
        key, open_key = f"{prefix}secrets/a", f"{prefix}other/a"
        start = await store.revision()
        watch = store.watch(prefix, after=start)
        batches = aiter(watch)
        first = await store.create(key, b"top secret")
        await store.create(open_key, b"public")
        second = await store.update(key, b"more secret", revision=first)
        with pytest.raises(RevisionMismatch) as mismatch:
            await store.update(key, b"late", revision=first)
        assert mismatch.value.current is not None
        assert mismatch.value.current.value == b"more secret"
        below = await inner.get(key)
        assert below is not None
        assert below.value.startswith(b"k8s:enc:aesgcm:v1:k1:")
        assert b"secret" not in below.value[25:]
        plain = await inner.get(open_key)
        assert plain is not None
        assert plain.value == b"public"
        above = await store.get(key)
        assert above is not None
        assert (above.value, above.revision) == (b"more secret", second)
        assert [entry.value for entry in (await store.range(prefix)).entries] == [b"public", b"more secret"]
        assert (await store.range(prefix, revision=first)).entries[0].value == b"top secret"
        await store.delete(key, revision=second)
        seen = []
        while len(seen) < 4:
            seen += [(event.value, event.previous.value if event.previous else None) for event in await anext(batches)]
        assert seen == [
            (b"top secret", None),
            (b"public", None),
            (b"more secret", b"top secret"),
            (None, b"more secret"),
        ]
        await watch.close()


async def test_the_first_provider_writes_all_read_and_writing_again_changes_the_key(
    opened: Opened, prefix: str
) -> None:
    key = f"{prefix}secrets/a"
    async with opened() as inner:
        steps = [
            ["identity", "aescbc:k1"],
            ["aescbc:k1", "identity"],
            ["secretbox:k2", "aescbc:k1", "identity"],
            ["secretbox:k3", "secretbox:k2", "aescbc:k1"],
            ["aesgcm:k3", "secretbox:k3"],
            ["identity", "aesgcm:k3"],
        ]
        revision = await inner.create(key, b"value")
        for providers in steps:
            store = EncryptedStore(inner, rules((["secrets"], providers)), of)
            page = await store.range(prefix)
            assert [entry.value for entry in page.entries] == [b"value"], providers
            assert store.stale(key) is (providers[0] != "identity" or providers is steps[-1])
            revision = await store.update(key, b"value", revision=revision)
            await store.get(key)
            assert not store.stale(key)
            raw = await inner.get(key)
            assert raw is not None
            kind, _, name = providers[0].partition(":")
            expected = b"value" if kind == "identity" else f"k8s:enc:{kind}:v1:{name}:".encode()
            assert raw.value.startswith(expected)


async def test_an_operation_goes_on_with_the_rules_it_began_with(opened: Opened, prefix: str) -> None:
    key = f"{prefix}secrets/a"
    async with opened() as inner:
        old, new = rules((["secrets"], ["aesgcm:k1"])), rules((["secrets"], [f"aesgcm:k1:{OTHER}"]))
        fresh: list[Rules] = []
        store = EncryptedStore(inner, old, of, lambda: fresh.pop() if fresh else None)
        await store.create(key, b"value")
        read = inner.range

        async def change_meanwhile(*args: Any, **kwargs: Any) -> Page:
            page = await read(*args, **kwargs)
            fresh.append(new)
            store.stale(key)  # another task uses the store, and so the new rules
            return page

        inner.range = change_meanwhile  # type: ignore[method-assign]
        (entry,) = (await store.range(prefix)).entries
        assert entry.value == b"value"
        inner.range = read  # type: ignore[method-assign]
        (entry,) = (await store.range(prefix)).entries
        assert isinstance(entry.value, Ciphertext)


async def test_unreadable_values_are_returned_encrypted_with_the_reason(opened: Opened, prefix: str) -> None:
    key = f"{prefix}secrets/a"
    async with opened() as inner:
        await EncryptedStore(inner, rules((["secrets"], ["aesgcm:k1"])), of).create(key, b"value")
        for providers, why in (
            (["identity"], "no matching prefix found"),
            (["secretbox:k1"], "no matching prefix found"),
            (["aesgcm:k2"], "no matching key was found for the provided AES transformer"),
            (["aesgcm:k2", "identity"], "no matching key was found for the provided AES transformer"),
            ([f"aesgcm:k1:{OTHER}"], "cipher: message authentication failed"),
        ):
            store = EncryptedStore(inner, rules((["secrets"], providers)), of)
            (entry,) = (await store.range(prefix)).entries
            assert isinstance(entry.value, Ciphertext)
            assert entry.value.why == why
            assert entry.value.startswith(b"k8s:enc:aesgcm:v1:k1:")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("kind: EncryptionConfiguration\nresources: [secret]", "Object 'apiVersion' is missing in '...'"),
        ("kind: Pod\napiVersion: v1", 'no kind "Pod"'),
        ("{", "unexpected end of JSON input"),
        ("resources: []", "at least one resources is required"),
        ("resources: [{resources: [secrets]}]", "at least one resources[0].providers is required"),
        ("resources: [{resources: [secrets], providers: [{}]}]", "does not contain any of the expected providers"),
        ("resources: [{resources: [secrets], providers: [{identity: {}, kms: {}}]}]", "more than one provider"),
        ("resources: [{resources: [secrets], providers: [{kms: {name: x}}]}]", "endpoint is a mandatory field"),
        ("resources: [{resources: [a], providers: [{kms: {name: x, endpoint: 'unix:///x'}}]}]", "KMSv1 is deprecated"),
        (
            "resources: [{resources: [a], providers: ["
            "{kms: {apiVersion: v2, name: x, endpoint: 'unix:///x'}}, {kms: {apiVersion: v2, name: x, endpoint: 'unix:///y'}}]}]",
            "duplicate KMS provider name x, names must be unique",
        ),
        (
            "resources: [{resources: [a], providers: [{kms: {name: x, timeout: ever}}]}]",
            'invalid duration "ever"',
        ),
        ("resources: [{resources: [secrets], providers: [{aesgcm: {}}]}]", "at least one keys is required"),
        (
            "resources: [{resources: [secrets], providers: [{rot13: {}}]}]",
            'unknown field "resources[0].providers[0].rot13"',
        ),
        (
            "resources: [{resources: [secrets], providers: [{identity: {a: 1}}]}]",
            'unknown field "resources[0].providers[0].identity.a"',
        ),
        (
            "resources: [{resources: [secrets], providers: [{aesgcm: {keys: [{name: a, secret: SGVsbG8=}]}}]}]",
            "got 5, expected one of [16 24 32]",
        ),
        (
            "resources: [{resources: [secrets], providers: [{secretbox: {keys: [{name: a, secret: '*'}]}}]}]",
            'secret: Invalid value: "REDACTED": secrets must be base64 encoded',
        ),
        ("resources: [{resources: ['*'], providers: [{identity: {}}]}]", "use '*.' to encrypt all"),
        ("resources: [{resources: ['secrets.*'], providers: [{identity: {}}]}]", "across groups is not supported"),
        ("resources: [{resources: [secrets, '*.'], providers: [{identity: {}}]}]", "they will be masked"),
        ("resources: [{resources: [a.b, '*.*'], providers: [{identity: {}}]}]", "they will be masked"),
        ("resources: [{resources: [secrets, secrets], providers: [{identity: {}}]}]", "multiple times"),
        (
            "resources: [{resources: ['*.'], providers: [{identity: {}}]}, "
            "{resources: [secrets], providers: [{identity: {}}]}]",
            'error while building transformers: resource "secrets" is masked by earlier rule "*."',
        ),
        (
            "resources: [{resources: ['*.*'], providers: [{identity: {}}]}, "
            "{resources: ['*.apps'], providers: [{identity: {}}]}]",
            'resource "*.apps" is masked by earlier rule "*.*"',
        ),
        ("resources: [{resources: [Secrets], providers: [{identity: {}}]}]", "capital letters"),
        ("resources: [{resources: [events.events.k8s.io], providers: [{identity: {}}]}]", "Use 'events' instead"),
    ],
)
def test_a_configuration_that_cannot_be_used_is_refused(tmp_path: Path, text: str, message: str) -> None:
    if text.startswith("resources"):
        text = f"apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\n{text}"
    file = tmp_path / "encryption.yaml"
    file.write_text(text)
    with pytest.raises(ValueError, match="error while") as refused:
        read(file)
    assert message in str(refused.value)


@pytest.mark.parametrize(
    "providers",
    [
        "{aescbc: {keys: [{name: 'a:b', secret: a2tra2tra2tra2tra2tra2tra2tra2tra2tra2tra2s=}]}}",
        '{aescbc: {keys: [{name: a, secret: "a2tra2tra2tra2tra2tra2tra2tra2tra2tra2tra2s=\\n"}]}}',
    ],
)
def test_what_upstream_takes_is_taken(tmp_path: Path, providers: str) -> None:
    file = tmp_path / "encryption.yaml"
    for kind in (
        "apiVersion: v1\nkind: EncryptionConfig",
        "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration",
    ):
        file.write_text(f"{kind}\nresources: [{{resources: [secrets], providers: [{providers}]}}]")
        assert read(file).providers("", "secrets")


def test_what_several_parts_say_of_a_resource_counts_in_their_order() -> None:
    found = rules((["secrets", "a.apps"], ["aesgcm:a"]), (["secrets.", "*.apps"], ["aescbc:b", "identity"]))
    secrets = found.providers("", "secrets")
    assert secrets is not None
    assert [type(each) for each in secrets] == [AESGCM, AESCBC, Identity]
    for plural, expected in (("a", [AESGCM]), ("b", [AESCBC, Identity])):
        assert [type(each) for each in found.providers("apps", plural) or ()] == expected


def test_identity_is_nothing() -> None:
    provider: Provider = Identity()
    assert provider.decrypt(provider.encrypt(b"x", "k"), "k") == b"x"
