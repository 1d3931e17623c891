"""Which requests the console's server takes: its own name, its own origin, a session; and what it passes on."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from console.running import Console, console

from tools import ApiServer


@pytest.fixture(scope="module")
def running(cluster: ApiServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Console]:
    with console(cluster.kubeconfig, tmp_path_factory.mktemp("home")) as made:
        yield made


@pytest.fixture(scope="module")
def token(running: Console) -> str:
    return running.session()


def message(content: bytes) -> str:
    return str(json.loads(content)["message"])


def test_the_page_is_served_with_a_strict_policy(running: Console) -> None:
    code, headers, content = running.ask("GET", "/")
    assert code == 200
    assert headers["content-type"] == "text/html; charset=utf-8"
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self';" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cache-control"] == "no-store"
    assert b'<script type="module" src="main.js">' in content


def test_all_files_of_the_page_are_below_200_kb_and_name_no_other_origin(running: Console) -> None:
    folder = Path(__file__).parents[2] / "src/pybernetes/console/static"
    names = sorted(each.name for each in folder.iterdir())
    sizes = 0
    for name in names:
        code, _, content = running.ask("GET", f"/{name}")
        assert code == 200, name
        sizes += len(content)
        assert b"https://" not in content, name
    assert sizes < 200_000


def test_the_api_needs_a_session(running: Console, token: str) -> None:
    for headers in ({}, {"Authorization": "Bearer x"}, {"Cookie": f"X-Pyb-Session={token}"}):
        code, _, content = running.ask("GET", "/api/v1/namespaces", **headers)
        assert code == 401
        assert message(content) == "the session is over: run `pyb console` for a new one"
    assert running.ask("GET", "/api/v1/namespaces", token=token + "x")[0] == 401
    code, _, content = running.ask("GET", "/api/v1/namespaces", token=token)
    assert code == 200
    assert "default" in [each["metadata"]["name"] for each in json.loads(content)["items"]]


def test_a_used_key_opens_no_second_session(running: Console, token: str) -> None:
    code, _, content = running.ask("POST", "/session", running.key)
    assert code == 401
    assert "used before or is too old" in message(content)


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1", "evil.example:{port}", "127.0.0.1:{port}@evil.example", ""]
)
def test_another_name_of_the_server_is_refused(running: Console, token: str, host: str) -> None:
    code, headers, content = running.ask("GET", "/api/v1/namespaces", token=token, Host=host.format(port=running.port))
    assert code == 403
    assert message(content) == "this server is not known by that name"
    assert "ws:" not in headers["content-security-policy"]


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:1", "https://127.0.0.1:{port}"])
def test_requests_of_other_origins_are_refused(running: Console, token: str, origin: str) -> None:
    code, _, content = running.ask("POST", "/api/v1/namespaces", "{}", token, Origin=origin.format(port=running.port))
    assert code == 403
    assert message(content) == "requests of other origins are not served"


def test_what_the_server_refuses_is_passed_on_as_it_is(running: Console, token: str) -> None:
    origin = f"http://127.0.0.1:{running.port}"
    code, _, content = running.ask(
        "POST",
        "/api/v1/namespaces",
        '{"metadata": {"name": "A"}}',
        token,
        Origin=origin,
        Content_Type="application/json",
    )
    assert code == 422
    assert json.loads(content)["reason"] == "Invalid"


@pytest.mark.parametrize(
    "path",
    ["/../handler.py", "/static/main.js", "/%2e%2e/handler.py", "/handler.py", "/metrics", "/openapi/v2", "/main.js/"],
)
def test_nothing_but_the_files_of_the_page_is_static(running: Console, token: str, path: str) -> None:
    code, _, content = running.ask("GET", path, token=token)
    assert code == (200 if path == "/main.js/" else 404)
    assert b"def " not in content


def test_a_body_that_is_too_large_is_refused_before_it_is_read(running: Console, token: str) -> None:
    with socket.create_connection(("127.0.0.1", running.port), timeout=60) as connection:
        head = f"POST /api/v1/namespaces HTTP/1.1\r\nHost: 127.0.0.1:{running.port}\r\nX-Pyb-Session: {token}\r\n"
        connection.sendall(f"{head}Content-Length: 999999999\r\n\r\n".encode())
        assert connection.recv(4096).startswith(b"HTTP/1.1 413 ")


@pytest.mark.parametrize("length", ["-5", "x", "1e3"])
def test_a_length_that_is_no_number_is_refused(running: Console, token: str, length: str) -> None:
    with socket.create_connection(("127.0.0.1", running.port), timeout=60) as connection:
        head = f"POST /session HTTP/1.1\r\nHost: 127.0.0.1:{running.port}\r\n"
        connection.sendall(f"{head}Content-Length: {length}\r\n\r\n".encode())
        assert connection.recv(4096).startswith(b"HTTP/1.1 400 ")


def test_why_answers_and_refuses_in_one_sentence(running: Console, token: str) -> None:
    code, _, content = running.ask("GET", "/-/why?resource=namespaces&name=default", token=token)
    assert code == 200
    assert json.loads(content)["sentence"]
    code, _, content = running.ask("GET", "/-/why?resource=pods&namespace=default&name=none", token=token)
    assert code == 422
    assert 'pods "none" not found' in message(content)
    assert running.ask("GET", "/-/why", token=token)[0] == 422
    assert running.ask("GET", "/-/nothing", token=token)[0] == 404
    assert running.ask("POST", "/-/why", token=token)[0] == 405


def test_the_metrics_of_the_server_are_read_as_the_user(running: Console, token: str) -> None:
    code, _, content = running.ask("GET", "/-/metrics", token=token)
    assert code == 200
    assert b"apiserver_request_total{" in content


def test_components_of_other_machines_cannot_be_asked_and_nothing_else_is(running: Console, token: str) -> None:
    code, _, content = running.ask("GET", "/-/components?name=scheduler", token=token)
    assert code == 200
    assert "only for clusters of this machine" in message(content)
    code, _, content = running.ask("GET", "/-/scheduling?namespace=default&name=web", token=token)
    assert code == 422
    assert "only for clusters of this machine" in message(content)
    for path in ("/-/components?name=etcd", "/-/components", "/-/scheduling?name=web", "/-/trace?since=x", "/-/trace"):
        assert running.ask("GET", path, token=token)[0] == 422
    for path in ("/-/components?name=scheduler", "/-/scheduling?namespace=default&name=web", "/-/trace?since=9"):
        assert running.ask("GET", path)[0] == 401


def test_only_this_machine_reaches_the_server(running: Console) -> None:
    listening = Path(f"/proc/{os.getpid()}/net/tcp").read_text().splitlines()[1:]
    local = [line.split()[1] for line in listening if line.split()[3] == "0A"]
    assert f"0100007F:{running.port:04X}" in local
    assert f"00000000:{running.port:04X}" not in local
