"""Secrets on the disk: not to be read there, and to be read through every change of keys."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import sqlite3
import subprocess
from pathlib import Path

import pytest
from apiserver.client import Client
from store.kms_plugin import Plugin

import tools
from pybernetes.apiserver.encryption import _counting, resource_of
from pybernetes.store.encryption import configuration
from pybernetes.store.log import Log

KEY1, KEY2 = (base64.b64encode(os.urandom(32)).decode() for _ in range(2))
KEY = {"name": "k1", "secret": KEY1}
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
    path = folder / "store.db"
    with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
        tables = [name for (name,) in database.execute("select name from sqlite_master where type = 'table'")]
        rows = [row for table in tables for row in database.execute(f"select * from {table}")]
        meta = dict(database.execute("select name, value from meta"))
    rows += Log(str(path), meta["identity"]).read(meta["folded"])
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
            "a bad configuration is logged",
            every=0.1,
        )

    write(file, ("identity", ""), ("secretbox", "k2"), ("aesgcm", "k1"))
    with tools.api_server(tmp_path / "e", *flags, store=store) as server:
        client = Client(server)
        for name in ("old", "s"):
            current = client.get(f"{path}/{name}").json
            assert base64.b64decode(current["data"]["p"]).decode() == SECRET
            assert client.put(f"{path}/{name}", current).status == 200
    with tools.api_server(tmp_path / "f", store=store) as server:
        assert base64.b64decode(Client(server).get(f"{path}/s").json["data"]["p"]).decode() == SECRET


LOST = "no matching key was found for the provided AES transformer"
INITIALIZING = "storage is (re)initializing: failed to list "


def test_an_object_whose_key_is_lost_is_refused_and_all_others_are_served(tmp_path: Path) -> None:
    file, store = tmp_path / "encryption.json", f"sqlite://{tmp_path / 'store.db'}"
    flags = [f"--encryption-provider-config={file}", "--encryption-provider-config-automatic-reload"]
    path, everywhere = "/apis/apps/v1/namespaces/default/replicasets", "/apis/apps/v1/replicasets"
    transform = f'unable to transform key "/registry/replicasets/default/b": {LOST}'

    def replicaset(name: str) -> dict[str, object]:
        template = {"metadata": {"labels": {"a": name}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
        return {"metadata": {"name": name}, "spec": {"selector": {"matchLabels": {"a": name}}, "template": template}}

    write(file, ("aesgcm", "k1"))
    with tools.api_server(tmp_path / "a", *flags, store=store) as server:
        assert Client(server).post(path, replicaset("b")).status == 201
    write(file, ("aesgcm", "k2"))
    with tools.api_server(tmp_path / "b", *flags, store=store) as server:
        client = Client(server)
        for name in ("a", "c"):
            assert client.post(path, replicaset(name)).status == 201
        assert client.get(f"{path}/a").status == 200
        for refused in (
            client.get(f"{path}/b"),
            client.put(f"{path}/b", replicaset("b")),
            client.patch(f"{path}/b", {"metadata": {"labels": {"x": "y"}}}),
            client.delete(f"{path}/b"),
        ):
            assert (refused.status, refused.json["reason"]) == (500, "InternalError")
            assert refused.message == f"Internal error occurred: {LOST}"
        assert client.post(path, replicaset("b")).json["reason"] == "AlreadyExists"
        for query in (path, everywhere, f"{path}?limit=2", f"{path}?labelSelector=x", f"{path}?limit=9"):
            answer = client.get(query)
            assert (answer.status, answer.message) == (500, f"Internal error occurred: {transform}"), query
        first = client.get(f"{path}?limit=1").json
        assert [each["metadata"]["name"] for each in first["items"]] == ["a"]
        assert first["metadata"]["remainingItemCount"] == 2
        assert client.get(f"{path}?continue={first['metadata']['continue']}").status == 500
        assert client.get(f"{path}?fieldSelector=metadata.name=c").status == 200
        assert client.get("/apis/apps/v1/namespaces/kube-system/replicasets").status == 200
        assert client.delete(path).status == 500
        for query in (f"{path}?watch=true", f"{path}?resourceVersion=0"):
            answer = client.get(query)
            assert (answer.status, answer.json["reason"]) == (429, "TooManyRequests")
            assert answer.message == f"{INITIALIZING}*apps.ReplicaSet: {transform}"
        assert client.get("/apis/apps/v1/deployments").status == 200

        write(file, ("aesgcm", "k2"), ("aesgcm", "k1"))
        tools.wait_until(lambda: client.get(path).status == 200, "the key that was given back is used", every=0.1)
        assert [each["metadata"]["name"] for each in client.get(path).json["items"]] == ["a", "b", "c"]
        with client.watch(f"{path}?watch=true") as watch:
            assert [each["object"]["metadata"]["name"] for each in watch.take(3)] == ["a", "b", "c"]
            assert client.delete(f"{path}/b").status == 200
            assert watch.take(1)[0]["type"] == "DELETED"


def test_a_server_is_not_ready_while_it_cannot_read_a_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, store = tmp_path / "encryption.json", f"sqlite://{tmp_path / 'store.db'}"
    flags = [f"--encryption-provider-config={file}", "--v=2"]
    path = "/api/v1/namespaces/default/secrets"
    write(file, ("aescbc", "k1"))
    with tools.api_server(tmp_path / "a", *flags, store=store) as server:
        assert Client(server).post(path, {"metadata": {"name": "s"}}).status == 201
    write(file, ("identity", ""))
    log = tmp_path / "b" / "apiserver.log"
    monkeypatch.setattr(tools, "Probe", lambda *_: lambda: "serving securely" in log.read_text())
    with tools.api_server(tmp_path / "b", *flags, store=store) as server:
        client = Client(server)
        ready = client.get("/readyz")
        assert ready.status == 500
        assert [line for line in ready.body.decode().splitlines() if line.startswith("[-]")] == [
            "[-]informer-sync failed: reason withheld"
        ]
        assert client.get("/livez").status == 200
        assert client.get(f"{path}/s").message == "Internal error occurred: no matching prefix found"
        assert client.post(path, {"metadata": {"name": "t"}}).status == 201


def test_a_server_does_not_run_without_what_it_decides_by(tmp_path: Path) -> None:
    file, store = tmp_path / "encryption.json", f"sqlite://{tmp_path / 'store.db'}"
    content = {
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "EncryptionConfiguration",
        "resources": [{"resources": ["resourcequotas"], "providers": [{"aesgcm": {"keys": [KEY]}}]}],
    }
    file.write_text(json.dumps(content))
    with tools.api_server(tmp_path / "a", f"--encryption-provider-config={file}", store=store) as server:
        assert (
            Client(server).post("/api/v1/namespaces/default/resourcequotas", {"metadata": {"name": "q"}}).status == 201
        )
    refused = (
        'unable to transform key "/registry/resourcequotas/default/q": identity transformer tried to read encrypted'
    )
    with pytest.raises(AssertionError, match=refused), tools.api_server(tmp_path / "b", store=store):
        pass


def test_a_file_that_says_the_same_is_not_used_again(tmp_path: Path) -> None:
    file = tmp_path / "encryption.json"
    write(file, ("aesgcm", "k1"))
    read = _counting(file.read_bytes(), configuration.read)
    write(file, ("aesgcm", "k1"))
    assert read(file) is None
    write(file, ("aesgcm", "k2"))
    assert read(file) is not None
    assert read(file) is None
    file.write_text("nonsense")
    for _ in range(2):
        with pytest.raises(ValueError, match="error while parsing file"):
            read(file)
    write(file, ("aesgcm", "k2"))
    assert read(file) is None, "what is used all the time"


def test_keys_that_a_plugin_keeps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
            assert client.get("/readyz/kms-providers").status == 200
            assert client.get("/livez/kms-providers").status == 404
        plugin.healthy = False
        log = tmp_path / "b" / "apiserver.log"
        monkeypatch.setattr(tools, "Probe", lambda *_: lambda: "serving securely" in log.read_text())
        with tools.api_server(tmp_path / "b", "--v=2", *flags, store=store) as server:
            client = Client(server)
            assert base64.b64decode(client.get(f"{path}/s").json["data"]["p"]).decode() == SECRET
            refused = client.post(path, {"metadata": {"name": "t"}})
            assert (refused.status, refused.json["reason"]) == (503, "ServiceUnavailable")
            assert "the vault is sealed" in refused.message
            for asked in ("readyz", "healthz"):
                ill = client.get(f"/{asked}")
                assert ill.status == 500
                assert "[-]kms-providers failed: reason withheld" in ill.body.decode()
            assert client.get("/livez").status == 200
            plugin.healthy = True
            tools.wait_until(lambda: client.get("/readyz/kms-providers").status == 200, "the plugin is well again")
            assert client.post(path, {"metadata": {"name": "t"}}).status == 201
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
