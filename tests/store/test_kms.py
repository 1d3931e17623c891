"""Keys that a KMS plugin keeps."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest
from store.kms_plugin import Plugin

from pybernetes.store.base import Ciphertext, Store, StoreUnavailable
from pybernetes.store.encryption import kms
from pybernetes.store.encryption.configuration import ResourceConfiguration, Rules, read, validate
from pybernetes.store.encryption.providers import Undecipherable
from pybernetes.store.encryption.store import EncryptedStore

Opened = Callable[[], contextlib.AbstractAsyncContextManager[Store]]


@pytest.fixture
def plugin(tmp_path: Path) -> Iterator[Plugin]:
    plugin = Plugin(tmp_path / "kms.sock")
    yield plugin
    plugin.close()


def encrypted(inner: Store, plugin: Plugin, **other: object) -> EncryptedStore:
    described = {"apiVersion": "v2", "name": "vault", "endpoint": plugin.endpoint, **other}
    part = {"resources": ["secrets"], "providers": [{"kms": described}, {"identity": {}}]}
    parts = [msgspec.convert(part, ResourceConfiguration)]
    assert validate(parts) == []
    return EncryptedStore(inner, Rules(parts), lambda key: ("", "secrets") if "/secrets/" in key else None)


async def test_the_plugin_is_asked_for_seeds_and_not_for_values(opened: Opened, prefix: str, plugin: Plugin) -> None:
    async with opened() as inner:
        store = encrypted(inner, plugin)
        revisions = [await store.create(f"{prefix}secrets/{name}", f"value {name}".encode()) for name in "abc"]
        assert plugin.calls == ["Status", "Encrypt"]
        raw = await inner.get(f"{prefix}secrets/a")
        assert raw is not None
        assert raw.value.startswith(b"k8s:enc:kms:v2:vault:")
        assert b"value" not in raw.value

        fresh = encrypted(inner, plugin)
        page = await fresh.range(prefix)
        assert [entry.value for entry in page.entries] == [b"value a", b"value b", b"value c"]
        assert plugin.calls[2:] == ["Decrypt"]
        watch = fresh.watch(prefix, after=revisions[0] - 1)
        seen = [event.value for event in await anext(aiter(watch))]
        assert seen[0] == b"value a"
        await watch.close()
        await store._plan.rules.close()
        await fresh._plan.rules.close()


async def test_a_new_key_of_the_plugin_is_used_and_old_values_are_stale(
    opened: Opened, prefix: str, plugin: Plugin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kms, "_CHECK", 0.0)
    monkeypatch.setattr(kms, "_RETRY", 0.0)
    key = f"{prefix}secrets/a"
    async with opened() as inner:
        store = encrypted(inner, plugin)
        revision = await store.create(key, b"value")
        await store.get(key)
        assert not store.stale(key)
        plugin.key = 2
        await store.create(f"{prefix}secrets/b", b"other")
        assert store.stale(key)
        await store.update(key, b"value", revision=revision)
        await store.get(key)
        assert not store.stale(key)
        plugin.lost.add("key-1")
        fresh = encrypted(inner, plugin)
        assert [entry.value for entry in (await fresh.range(prefix)).entries] == [b"value", b"other"]
        plugin.lost.add("key-2")
        forgetful = encrypted(inner, plugin)
        for entry in (await forgetful.range(prefix)).entries:
            assert isinstance(entry.value, Ciphertext)
            assert "no such key" in entry.value.why
        plugin.lost.clear()
        assert [entry.value for entry in (await forgetful.range(prefix)).entries] == [b"value", b"other"]
        await forgetful._plan.rules.close()
        await store._plan.rules.close()
        await fresh._plan.rules.close()


async def test_a_plugin_that_is_ill_stops_writes_after_a_while_and_never_reads(
    opened: Opened, prefix: str, plugin: Plugin, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = f"{prefix}secrets/a"
    async with opened() as inner:
        plugin.healthy = False
        store = encrypted(inner, plugin)
        with pytest.raises(StoreUnavailable, match="the vault is sealed"):
            await store.create(key, b"value")
        plugin.healthy = True
        await store.create(key, b"value")
        plugin.healthy = False
        monkeypatch.setattr(kms, "_CHECK", 0.0)
        await store.create(f"{prefix}secrets/b", b"within the patience")
        monkeypatch.setattr(kms, "_PATIENCE", 0.0)
        with pytest.raises(StoreUnavailable, match="the vault is sealed"):
            await store.create(f"{prefix}secrets/c", b"late")
        found = await store.get(key)
        assert found is not None
        assert found.value == b"value"
        plugin.close()
        store._plan.rules.plugins[0]._timeout = 0.2
        with pytest.raises(StoreUnavailable, match="Status"):
            await store.create(f"{prefix}secrets/d", b"late")
        await store._plan.rules.close()


async def test_a_plugin_is_not_asked_how_it_is_all_the_time(plugin: Plugin, monkeypatch: pytest.MonkeyPatch) -> None:
    provider = kms.KMS("vault", plugin.endpoint, 3.0)
    plugin.healthy = False
    for _ in range(2):
        with pytest.raises(StoreUnavailable, match="the vault is sealed"):
            await provider.check()
    assert plugin.calls == ["Status"]
    plugin.healthy = True
    monkeypatch.setattr(kms, "monotonic", lambda: time.monotonic() + 4)
    for _ in range(2):
        await provider.check()
    assert plugin.calls == ["Status", "Status", "Encrypt"]
    plugin.healthy = False
    monkeypatch.setattr(kms, "monotonic", lambda: time.monotonic() + 65)
    await provider.prepare_write()
    await provider.prepare_write()
    assert plugin.calls[3:] == ["Status"], "while it is ill the seed is good for a while, and no write waits for it"
    await provider.close()


async def test_a_plugin_that_starts_again_is_waited_for(plugin: Plugin, tmp_path: Path) -> None:
    provider = kms.KMS("vault", plugin.endpoint, 20.0)
    await provider.check()
    plugin.close()
    asked = asyncio.create_task(provider._call("Status", []))
    done, _ = await asyncio.wait([asked], timeout=0.5)
    assert not done
    again = Plugin(tmp_path / "kms.sock")
    try:
        assert (3, b"key-1") in await asked
    finally:
        await provider.close()
        again.close()


async def test_a_key_that_changes_between_two_answers_is_not_used(plugin: Plugin) -> None:
    provider = kms.KMS("vault", plugin.endpoint, 3.0)
    plugin.key, plugin.encrypts_with = 1, 2
    with pytest.raises(StoreUnavailable, match="the key of Status is not that of Encrypt"):
        await provider.prepare_write()
    plugin.key = 2
    await provider.prepare_write()
    await provider.close()


@pytest.mark.parametrize(
    "data", [b"", b"\x0a", b"\x0a\x05abc", b"\xff" * 12, b"\x0a\x01a", b"\x09" + bytes(8), b"\x0a\x04abc"]
)
def test_what_is_no_encrypted_object(data: bytes) -> None:
    provider = kms.KMS("vault", "unix:///none", 1.0)
    with pytest.raises(Undecipherable):
        provider.decrypt(data, "key")


def test_a_field_that_is_longer_than_the_message_is_refused() -> None:
    assert list(kms._fields(b"\x0a\x03abc\x10\x05")) == [(1, b"abc"), (2, (5).to_bytes(8, "little"))]
    with pytest.raises(Undecipherable):
        list(kms._fields(b"\x0a\x04abc"))


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"name": ""}, "name is a mandatory field"),
        ({"name": "a:b"}, "must not contain ':'"),
        ({"endpoint": ""}, "endpoint is a mandatory field"),
        ({"endpoint": "tcp://x"}, 'unsupported scheme "tcp" for KMS provider, only unix is supported'),
        ({"apiVersion": "v1"}, "KMSv1 is deprecated. Use KMSv2 instead."),
        ({"timeout": "0s"}, "timeout should be a positive value"),
        ({"timeout": "soon"}, 'time: invalid duration "soon"'),
        ({"cachesize": 5}, "cachesize is not supported in v2"),
    ],
)
def test_configurations_that_cannot_be_used(tmp_path: Path, other: dict[str, object], message: str) -> None:
    described = {"apiVersion": "v2", "name": "vault", "endpoint": "unix:///x", **other}
    document = {
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "EncryptionConfiguration",
        "resources": [{"resources": ["secrets"], "providers": [{"kms": described}]}],
    }
    file = tmp_path / "encryption.json"
    file.write_text(json.dumps(document))
    with pytest.raises(ValueError, match=re.escape(message)):
        read(file)
