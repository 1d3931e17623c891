"""Which kubeconfig entries and flags win, and which credentials a request carries."""

from __future__ import annotations

import base64
import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from pybernetes.kubectl import main as kubectl


class Server:
    """Answers every GET with a namespace, remembers the headers, and gives out OIDC tokens."""

    def __init__(self) -> None:
        self.headers: list[dict[str, str]] = []
        self.forms: list[str] = []
        self.token = ""
        owner = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, format: str, *arguments: Any) -> None:
                pass

            def answer(self, content: Any) -> None:
                body = json.dumps(content).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def do_GET(self) -> None:
                if self.path.startswith("/issuer"):
                    self.answer({"token_endpoint": f"{owner.url}/issuer/token"})
                    return
                owner.headers.append({name.lower(): value for name, value in self.headers.items()})
                self.answer({"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "x"}})

            def do_POST(self) -> None:
                owner.forms.append(self.rfile.read(int(self.headers["Content-Length"])).decode())
                self.answer({"id_token": owner.token, "refresh_token": "newer"})

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    running = Server()
    yield running
    running.server.shutdown()
    running.server.server_close()


def write(path: Path, url: str, user: dict[str, Any], **cluster: Any) -> str:
    path.write_text(
        yaml.safe_dump(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": "c",
                "clusters": [{"name": "c", "cluster": {"server": url, **cluster}}],
                "users": [{"name": "u", "user": user}],
                "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            }
        )
    )
    return str(path)


def get(config: str, *flags: str) -> int:
    return kubectl.main(["get", "--raw", "/api/v1/namespaces/x", f"--kubeconfig={config}", *flags])


def jwt(expires: float) -> str:
    part = base64.urlsafe_b64encode(json.dumps({"exp": int(expires)}).encode()).rstrip(b"=").decode()
    return f"head.{part}.signature"


def test_each_kind_of_credential_reaches_the_server(server: Server, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("from-file\n")
    basic = "Basic " + base64.b64encode(b"jane:secret").decode()
    for user, flags, expected in (
        ({"token": "t"}, (), "Bearer t"),
        ({"tokenFile": "token"}, (), "Bearer from-file"),
        ({"username": "jane", "password": "secret"}, (), basic),
        ({"token": "t"}, ("--token=other",), "Bearer other"),
        ({"token": "t"}, ("--username=jane", "--password=secret"), basic),
        ({"username": "jane", "password": "secret"}, ("--token=other",), "Bearer other"),
    ):
        assert get(write(tmp_path / "config", server.url, user), *flags) == 0
        assert server.headers[-1]["authorization"] == expected


def test_impersonation_is_sent_as_headers(server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = write(tmp_path / "config", server.url, {"token": "t", "as": "from-config"})
    assert get(config) == 0
    assert server.headers[-1]["impersonate-user"] == "from-config"
    assert get(config, "--as=jane", "--as-group=devs", "--as-uid=7", "--as-user-extra=scopes=a") == 0
    sent = server.headers[-1]
    assert [sent[f"impersonate-{key}"] for key in ("user", "group", "uid", "extra-scopes")] == [
        "jane",
        "devs",
        "7",
        "a",
    ]
    assert get(config, "--as-group=devs") == 1
    assert "without impersonating a user" in capsys.readouterr().err


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
def test_an_exec_plugin_gives_a_token_and_learns_of_the_cluster(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    api = f"client.authentication.k8s.io/{version}"
    plugin = tmp_path / "plugin"
    plugin.write_text(
        '#!/bin/sh\necho "$KUBERNETES_EXEC_INFO" > seen\n'
        f'echo \'{{"apiVersion": "{api}", "kind": "ExecCredential", "status": {{"token": "made"}}}}\'\n'
    )
    plugin.chmod(0o755)
    spec = {"apiVersion": api, "command": "./plugin", "interactiveMode": "Never", "provideClusterInfo": True}
    config = write(tmp_path / "config", server.url, {"exec": spec})
    monkeypatch.chdir(tmp_path)
    assert get(config) == 0
    assert server.headers[-1]["authorization"] == "Bearer made"
    info = json.loads((tmp_path / "seen").read_text())
    assert (info["apiVersion"], info["spec"]["cluster"]["server"]) == (api, server.url)


def test_a_plugin_that_the_preferences_do_not_allow_is_not_run(
    server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "plugin").write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    (tmp_path / "plugin").chmod(0o755)
    spec = {"apiVersion": "client.authentication.k8s.io/v1", "command": "./plugin", "interactiveMode": "Never"}
    config = write(tmp_path / "config", server.url, {"exec": spec})
    rc = tmp_path / "rc"
    rc.write_text("apiVersion: kubectl.config.k8s.io/v1beta1\nkind: Preference\ncredentialPluginPolicy: DenyAll\n")
    assert get(config, f"--kuberc={rc}") == 1
    assert 'not allowed: policy set to "DenyAll"' in capsys.readouterr().err
    assert not (tmp_path / "ran").exists()


def test_an_expired_id_token_is_refreshed_once_and_written_back(server: Server, tmp_path: Path) -> None:
    server.token = jwt(time.time() + 3600)
    settings = {
        "idp-issuer-url": f"{server.url}/issuer",
        "client-id": "me",
        "id-token": jwt(time.time() - 60),
        "refresh-token": "old",
    }
    config = write(tmp_path / "config", server.url, {"auth-provider": {"name": "oidc", "config": settings}})
    assert get(config) == 0
    assert get(config) == 0
    assert [each["authorization"] for each in server.headers] == [f"Bearer {server.token}"] * 2
    assert len(server.forms) == 1
    assert "refresh_token=old" in server.forms[0]
    kept = yaml.safe_load(Path(config).read_text())["users"][0]["user"]["auth-provider"]["config"]
    assert (kept["id-token"], kept["refresh-token"]) == (server.token, "newer")


def test_the_first_file_that_names_an_entry_wins(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = write(tmp_path / "first", server.url, {"token": "first"})
    second = write(tmp_path / "second", "http://127.0.0.1:1", {"token": "second"})
    monkeypatch.setenv("KUBECONFIG", f"{tmp_path}/missing:{first}:{second}")
    assert kubectl.main(["get", "--raw", "/api/v1/namespaces/x"]) == 0
    assert server.headers[-1]["authorization"] == "Bearer first"


def test_a_changed_kubeconfig_is_read_again(server: Server, tmp_path: Path) -> None:
    for token in ("one", "two"):
        assert get(write(tmp_path / "config", server.url, {"token": token})) == 0
        assert server.headers[-1]["authorization"] == f"Bearer {token}"
