"""Secrets on the disk: not to be read there, and to be read through every change of keys."""

from __future__ import annotations

import base64
import json
import os
import sqlite3
import subprocess
from pathlib import Path

import pytest
from apiserver.client import Client
from store.kms_plugin import Plugin

import tools
from pybernetes.apiserver.encryption import resource_of

KEY1, KEY2 = (base64.b64encode(os.urandom(32)).decode() for _ in range(2))
SECRET = "swordfish-" * 4


def write(file: Path, *providers: tuple[str, str]) -> None:
    """A configuration for Secrets and Deployments: (kind, key name) each."""
    keys = {"k1": KEY1, "k2": KEY2}
    described = [
        {kind: {} if kind == "identity" else {"keys": [{"name": name, "secret": keys[name]}]}}
        for kind, name in providers
    ]
    content = {
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "EncryptionConfiguration",
        "resources": [{"resources": ["secrets", "*.apps"], "providers": described}],
    }
    temporary = file.with_suffix(".new")
    temporary.write_text(json.dumps(content))
    os.replace(temporary, file)


def stored(folder: Path, key: str) -> bytes:
    """What a thief of the disk finds; all bytes of all versions."""
    database = sqlite3.connect(f"file:{folder / 'store.db'}?mode=ro", uri=True)
    try:
        tables = [name for (name,) in database.execute("select name from sqlite_master where type = 'table'")]
        rows = [row for table in tables for row in database.execute(f"select * from {table}")]
    finally:
        database.close()
    return b"\n".join(
        cell
        for row in rows
        if any(each in (key, key.encode()) for each in row)
        for cell in row
        if isinstance(cell, bytes)
    )


def test_secrets_on_the_disk(tmp_path: Path) -> None:
    file, database = tmp_path / "encryption.json", tmp_path / "store.db"
    store = f"sqlite://{database}"
    flags = [f"--encryption-provider-config={file}", "--encryption-provider-config-automatic-reload"]
    path = "/api/v1/namespaces/default/secrets"
    key = "/registry/secrets/default/s"

    with tools.api_server(tmp_path / "a", store=store) as server:
        client = Client(server)
        assert client.post(path, {"metadata": {"name": "old"}, "stringData": {"p": SECRET}}).status == 201

    write(file, ("aesgcm", "k1"), ("identity", ""))
    with tools.api_server(tmp_path / "b", *flags, store=store) as server:
        client = Client(server)
        assert base64.b64decode(client.get(f"{path}/old").json["data"]["p"]).decode() == SECRET
        made = client.post(path, {"metadata": {"name": "s"}, "stringData": {"p": SECRET}})
        assert made.status == 201
        assert b"k8s:enc:aesgcm:v1:k1:" in stored(tmp_path, key)
        assert base64.b64encode(SECRET.encode()) not in stored(tmp_path, key)
        assert b"k8s:enc" not in stored(tmp_path, "/registry/serviceaccounts/default/default")
        with client.watch(f"{path}?watch=true&resourceVersion={made.json['metadata']['resourceVersion']}") as watch:
            before = client.get(f"{path}/old").json
            assert client.put(f"{path}/old", before).status == 200
            changed = watch.take(1)[0]["object"]
            assert changed["metadata"]["name"] == "old", "written again, though nothing has changed"
            assert changed["data"] == before["data"]
            again = client.put(f"{path}/old", changed).json
            assert again["metadata"]["resourceVersion"] == changed["metadata"]["resourceVersion"], "and not once more"
        assert b"k8s:enc:aesgcm:v1:k1:" in stored(tmp_path, "/registry/secrets/default/old")

        write(file, ("secretbox", "k2"), ("aesgcm", "k1"))

        def written_with_the_new_key() -> bool:
            current = client.get(f"{path}/s").json
            assert client.put(f"{path}/s", current).status == 200
            return b"k8s:enc:secretbox:v1:k2:" in stored(tmp_path, key)

        tools.wait_until(written_with_the_new_key, "the new configuration is used", every=0.1)
        file.write_text("nonsense")
        tools.wait_until(
            lambda: (written_with_the_new_key(), "the old one stays" in (tmp_path / "b/apiserver.log").read_text())[1],
            "a bad configuration is told of",
            every=0.1,
        )

    write(file, ("secretbox", "k2"))
    unreadable = pytest.raises(AssertionError, match="/registry/secrets/default/old cannot be decrypted")
    with unreadable, tools.api_server(tmp_path / "c", *flags, store=store):
        pass
    with pytest.raises(AssertionError, match="encrypted"), tools.api_server(tmp_path / "d", store=store):
        pass
    write(file, ("identity", ""), ("secretbox", "k2"), ("aesgcm", "k1"))
    with tools.api_server(tmp_path / "e", *flags, store=store) as server:
        client = Client(server)
        for name in ("old", "s"):
            current = client.get(f"{path}/{name}").json
            assert base64.b64decode(current["data"]["p"]).decode() == SECRET
            assert client.put(f"{path}/{name}", current).status == 200
    with tools.api_server(tmp_path / "f", store=store) as server:
        assert base64.b64decode(Client(server).get(f"{path}/s").json["data"]["p"]).decode() == SECRET


def test_keys_that_a_plugin_keeps(tmp_path: Path) -> None:
    plugin = Plugin(tmp_path / "kms.sock")
    file = tmp_path / "encryption.json"
    vault = {"apiVersion": "v2", "name": "vault", "endpoint": plugin.endpoint}
    content = {
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "EncryptionConfiguration",
        "resources": [{"resources": ["secrets"], "providers": [{"kms": vault}]}],
    }
    file.write_text(json.dumps(content))
    path = "/api/v1/namespaces/default/secrets"
    flags, store = [f"--encryption-provider-config={file}"], f"sqlite://{tmp_path}/store.db"
    try:
        with tools.api_server(tmp_path / "a", *flags, store=store) as server:
            client = Client(server)
            assert client.post(path, {"metadata": {"name": "s"}, "stringData": {"p": SECRET}}).status == 201
            assert b"k8s:enc:kms:v2:vault:" in stored(tmp_path, "/registry/secrets/default/s")
            assert base64.b64encode(SECRET.encode()) not in stored(tmp_path, "/registry/secrets/default/s")
        with tools.api_server(tmp_path / "b", *flags, store=store) as server:
            assert base64.b64decode(Client(server).get(f"{path}/s").json["data"]["p"]).decode() == SECRET
            plugin.healthy = False
            refused = Client(server).post(path, {"metadata": {"name": "t"}})
            assert (refused.status, refused.json["reason"]) == (503, "ServiceUnavailable")
            assert "the vault is sealed" in refused.message
    finally:
        plugin.close()


def test_the_flags_are_checked(tmp_path: Path) -> None:
    def run(*flags: str) -> str:
        command = [*tools.PYTHON, "apiserver", "--etcd-servers=memory://", f"--cert-dir={tmp_path}", *flags]
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
        assert done.returncode != 0
        assert "Traceback" not in done.stderr
        return done.stderr

    assert "must be set with" in run("--encryption-provider-config-automatic-reload")
    assert "no such file" in run(f"--encryption-provider-config={tmp_path}/none")
    (tmp_path / "kms.yaml").write_text(
        "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\n"
        "resources: [{resources: [secrets], providers: [{kms: {name: vault, apiVersion: v1, endpoint: 'unix:///x'}}]}]"
    )
    assert "KMSv1 is deprecated" in run(f"--encryption-provider-config={tmp_path}/kms.yaml")


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("/registry/secrets/default/a", ("", "secrets")),
        ("/registry/namespaces/a", ("", "namespaces")),
        ("/registry/services/specs/default/a", ("", "services")),
        ("/registry/minions/a", ("", "nodes")),
        ("/registry/deployments/default/a", ("apps", "deployments")),
        ("/registry/events/default/a", ("", "events")),
        ("/registry/acme.io/rockets/default/a", ("acme.io", "rockets")),
        ("/registry/acme.io/rockets/a", ("acme.io", "rockets")),
        ("/registry/ranges/serviceips", None),
    ],
)
def test_which_resource_is_kept_where(key: str, expected: tuple[str, str] | None) -> None:
    assert resource_of(key) == expected
