"""Where the server is and who we are, from kubeconfig files and from a pod."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import ssl
from pathlib import Path
from typing import Any

import pytest
import yaml

import tools
from pybernetes.api.core.v1 import Namespace
from pybernetes.client import config
from pybernetes.client.client import Client
from pybernetes.client.transport import Transport


def write(path: Path, *, context: str = "", **entries: dict[str, Any]) -> Path:
    """`cluster_a={...}` is the cluster `a`, likewise for users and contexts."""
    document: dict[str, Any] = {"apiVersion": "v1", "kind": "Config", "current-context": context}
    for key, value in entries.items():
        kind, _, name = key.partition("_")
        document.setdefault(f"{kind}s", []).append({"name": name, kind: value})
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(document))
    return path


CLUSTER = {"server": "https://one:6443/"}


def test_the_current_context_names_cluster_and_user(tmp_path: Path) -> None:
    path = write(
        tmp_path / "config",
        context="x",
        cluster_a=CLUSTER,
        cluster_b={"server": "https://two"},
        user_u={"token": "secret", "username": "ann", "password": "pw"},
        context_x={"cluster": "a", "user": "u", "namespace": "team"},
        context_y={"cluster": "b"},
    )
    found = config.load(path)
    assert (found.server, found.token, found.namespace, found.username) == ("https://one:6443", "secret", "team", "ann")
    assert "secret" not in repr(found)
    assert config.load(path, "y").server == "https://two"


def test_the_first_file_to_say_something_wins_and_paths_are_relative_to_their_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = write(tmp_path / "1" / "config", cluster_a={**CLUSTER, "certificate-authority": "ca.crt"})
    two = write(
        tmp_path / "2" / "config",
        context="x",
        cluster_a={"server": "https://never"},
        user_u={"tokenFile": "token"},
        context_x={"cluster": "a", "user": "u"},
    )
    (tmp_path / "1" / "ca.crt").write_text("authority")
    (tmp_path / "2" / "token").write_text("fresh\n")
    monkeypatch.setenv("KUBECONFIG", os.pathsep.join(map(str, (one, tmp_path / "missing", two))))
    found = config.load()
    assert (found.server, found.ca_data) == ("https://one:6443", b"authority")
    assert found.token_file == str(tmp_path / "2" / "token")


def test_inline_data_comes_before_files(tmp_path: Path) -> None:
    inline = base64.b64encode(b"inline").decode()
    path = write(
        tmp_path / "config",
        context="x",
        cluster_a={**CLUSTER, "certificate-authority": "missing", "certificate-authority-data": inline},
        user_u={"client-certificate-data": inline, "client-key-data": inline},
        context_x={"cluster": "a", "user": "u"},
    )
    found = config.load(path)
    assert found.ca_data == found.client_certificate_data == found.client_key_data == b"inline"


def test_json_is_a_kubeconfig_too(tmp_path: Path) -> None:
    path = write(tmp_path / "yaml", context="x", cluster_a=CLUSTER, context_x={"cluster": "a"})
    (tmp_path / "json").write_text(json.dumps(yaml.safe_load(path.read_text())))
    assert config.load(tmp_path / "json") == config.load(path)


@pytest.mark.parametrize(
    ("entries", "context", "words"),
    [
        ({"cluster_a": CLUSTER}, "", "no current context"),
        ({"cluster_a": CLUSTER}, "x", "context 'x' is not in"),
        ({"context_x": {"cluster": "a"}}, "x", "names the cluster 'a'"),
        ({"cluster_a": CLUSTER, "context_x": {"cluster": "a", "user": "u"}}, "x", "names the user 'u'"),
        ({"cluster_a": {"server": ""}, "context_x": {"cluster": "a"}}, "x", "has no server"),
        ({"cluster_a": {**CLUSTER, "certificate-authority": "no"}, "context_x": {"cluster": "a"}}, "x", "cannot read"),
    ],
)
def test_what_is_missing_is_named(tmp_path: Path, entries: dict[str, Any], context: str, words: str) -> None:
    with pytest.raises(config.ConfigError, match=words):
        config.load(write(tmp_path / "config", context=context, **entries))


@pytest.mark.parametrize("text", ["- a\n- b\n", "a: [unclosed"])
def test_what_is_no_kubeconfig_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "config").write_text(text)
    with pytest.raises(config.ConfigError, match="kubeconfig"):
        config.load(tmp_path / "config")


def test_inside_of_a_pod(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    with pytest.raises(config.ConfigError, match="no kubeconfig found"):
        config.load()
    with pytest.raises(config.ConfigError, match="not inside of a pod"):
        config.in_cluster(tmp_path)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    with pytest.raises(config.ConfigError, match="no service account"):
        config.in_cluster(tmp_path)
    for name, text in (("token", "tok\n"), ("ca.crt", "authority"), ("namespace", "mine")):
        (tmp_path / name).write_text(text)
    found = config.in_cluster(tmp_path)
    assert (found.server, found.token, found.namespace) == ("https://[fd00::1]:443", "tok", "mine")


def test_tls_verifies_the_server_by_default(cluster: tools.ApiServer) -> None:
    found = config.load(cluster.kubeconfig)
    context = found.tls()
    assert context is not None
    assert context.verify_mode == ssl.CERT_REQUIRED
    assert context.check_hostname
    insecure = config.Config("https://x", insecure_skip_tls_verify=True).tls()
    assert insecure is not None
    assert insecure.verify_mode == ssl.CERT_NONE
    assert config.Config("http://x").tls() is None


async def test_a_token_file_is_read_again_when_it_is_old(cluster: tools.ApiServer, tmp_path: Path) -> None:
    from pybernetes.client.clock import JumpingClock

    file, clock = tmp_path / "token", JumpingClock()
    file.write_text(cluster.token)
    found = config.load(cluster.kubeconfig)
    settings = config.Config(found.server, ca_data=found.ca_data, token_file=str(file))
    async with Client(transport=Transport(settings, clock=clock)) as client:
        assert (await client.get(Namespace, "default")).metadata.name == "default"
        file.write_text("stale")
        assert (await client.get(Namespace, "default")).metadata.name == "default"
        clock.advance(61)
        from pybernetes.api import errors

        with pytest.raises(errors.Unauthorized):
            await client.get(Namespace, "default")


async def test_a_credential_plugin_gives_the_token(cluster: tools.ApiServer, tmp_path: Path) -> None:
    script = tmp_path / "plugin"
    script.write_text(
        "#!/bin/sh\n"
        'case "$KUBERNETES_EXEC_INFO" in *ExecCredential*) ;; *) exit 1 ;; esac\n'
        f"echo x >> {tmp_path}/calls\n"
        'printf \'{"status": {"token": "%s%s"}}\' "$PREFIX" "$1"\n'
    )
    script.chmod(0o755)
    plain = config.load(cluster.kubeconfig)
    path = write(
        tmp_path / "config",
        context="x",
        cluster_a={"server": plain.server, "certificate-authority": str(cluster.ca_file)},
        context_x={"cluster": "a", "user": "u"},
        user_u={
            "exec": {
                "apiVersion": "client.authentication.k8s.io/v1",
                "command": "./plugin",
                "args": [cluster.token[4:]],
                "env": [{"name": "PREFIX", "value": cluster.token[:4]}],
            }
        },
    )
    async with Client(config.load(path)) as client:
        for _ in range(2):
            await client.get(Namespace, "default")
    assert await asyncio.to_thread((tmp_path / "calls").read_text) == "x\n"
