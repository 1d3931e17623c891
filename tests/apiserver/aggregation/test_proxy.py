"""Requests for a group that an extension server serves: what it gets to see, and what comes back."""

from __future__ import annotations

import json
import socket
import ssl
import time
from typing import Any
from urllib.parse import urlsplit

import pytest
from apiserver.aggregation.conftest import Registered
from apiserver.aggregation.extension import HANGING, ROOT
from apiserver.client import Client

import tools


def test_objects_are_created_read_listed_and_deleted_by_the_extension_server(available: Registered) -> None:
    admin, path = available.admin, f"{ROOT}/namespaces/default/flunders"
    made = admin.post(path, {"metadata": {"name": "a"}})
    assert (made.status, made.json) == (201, {"metadata": {"name": "a"}})
    assert admin.get(f"{path}/a").json["metadata"]["name"] == "a"
    assert [each["metadata"]["name"] for each in admin.get(path).json["items"]] == ["a"]
    assert admin.get(f"{path}/b").status == 404


def test_the_extension_server_gets_the_user_but_no_credentials(available: Registered) -> None:
    answer = available.admin.get(
        f"{ROOT}/namespaces/default/flunders/echo?a=b%20c",
        Impersonate_User="jane",
        Impersonate_Uid="u-1",
        Impersonate_Group="developers",
        **{"Impersonate-Extra-Acme.Com%2fProject": "x", "X-Remote-User": "root", "X-Remote-Group": "system:masters"},
    )
    assert answer.status == 403  # jane may not; the administrator makes that she may
    assert answer.json["message"].startswith('flunders.wardle.example.com "echo" is forbidden: User "jane"')
    rules = [{"apiGroups": ["wardle.example.com"], "resources": ["*"], "verbs": ["*"]}]
    admin = available.admin
    admin.post("/apis/rbac.authorization.k8s.io/v1/clusterroles", {"metadata": {"name": "fl"}, "rules": rules})
    binding = {
        "metadata": {"name": "fl"},
        "subjects": [{"kind": "User", "name": "jane", "apiGroup": "rbac.authorization.k8s.io"}],
        "roleRef": {"kind": "ClusterRole", "name": "fl", "apiGroup": "rbac.authorization.k8s.io"},
    }
    assert admin.post("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", binding).status == 201
    answer = admin.get(
        f"{ROOT}/namespaces/default/flunders/echo?a=b%20c",
        Impersonate_User="jane",
        Impersonate_Uid="u-1",
        Impersonate_Group="developers",
        **{"Impersonate-Extra-Acme.Com%2fProject": "x", "X-Remote-User": "root", "X-Remote-Group": "system:masters"},
    )
    assert answer.status == 200, answer.body
    seen = answer.json["headers"]
    assert answer.json["path"] == f"{ROOT}/namespaces/default/flunders/echo?a=b%20c"
    assert seen["x-remote-user"] == ["jane"]
    assert seen["x-remote-uid"] == ["u-1"]
    assert seen["x-remote-group"] == ["developers", "system:authenticated"]
    assert seen["x-remote-extra-acme.com%2fproject"] == ["x"]
    assert not [name for name in seen if name.startswith("impersonate") or name == "authorization"]
    assert seen["x-forwarded-for"] == ["127.0.0.1"]
    assert seen["audit-id"] == [answer.headers["Audit-Id"]]
    assert answer.headers["X-Own"] == "yes"
    assert answer.warnings == ['299 - "be careful"']


def test_a_path_that_was_written_with_escapes_is_the_one_that_was_decided_about(available: Registered) -> None:
    answer = available.admin.get(f"{ROOT}/namespaces/default%2fflunders/echo")
    assert answer.json["path"] == f"{ROOT}/namespaces/default/flunders/echo"


def test_what_the_servers_tell_each_other_is_not_in_the_audit_log(available: Registered) -> None:
    admin, path = available.admin, f"{ROOT}/namespaces/default/flunders"
    file = admin.server.folder / "audit.log"

    def recorded(agent: str) -> dict[str, Any]:
        def found() -> dict[str, Any] | None:
            events = [json.loads(line) for line in file.read_text().splitlines()]
            return next((each for each in events if each.get("userAgent") == agent), None)

        return tools.wait_until(found, f"the event of {agent}")

    assert admin.post(path, {"metadata": {"name": "audited"}}, User_Agent="audit-create").status == 201
    assert admin.get(f"{path}/none", User_Agent="audit-get").status == 404
    for agent, code, name in (("audit-create", 201, {}), ("audit-get", 404, {"name": "none"})):
        event = recorded(agent)
        assert (event["level"], event["stage"]) == ("RequestResponse", "ResponseComplete")
        assert event["responseStatus"] == {"metadata": {}, "code": code}
        assert not event.keys() & {"requestObject", "responseObject"}
        place = {"resource": "flunders", "namespace": "default", **name}
        assert event["objectRef"] == {**place, "apiGroup": "wardle.example.com", "apiVersion": "v1alpha1"}


def test_a_watch_is_passed_on_event_by_event_and_ends_with_its_client(available: Registered) -> None:
    path = f"{ROOT}/namespaces/default/flunders?watch=true"
    with available.admin.watch(path) as watching:
        tools.wait_until(lambda: available.server.watchers, "the watch has arrived")
        for name in ("a", "b"):
            available.server.put(name)
            (event,) = watching.take(1)
            assert (event["type"], event["object"]["metadata"]["name"]) == ("ADDED", name)
        available.server.watchers[0].put(None)
        assert list(watching) == []


def test_a_large_answer_arrives_whole(available: Registered) -> None:
    assert len(available.admin.get(f"{ROOT}/namespaces/default/flunders/big").json["items"]) == 20000


def test_heads_are_passed_on(available: Registered) -> None:
    assert available.admin("HEAD", f"{ROOT}/namespaces/default/flunders").status == 200


def test_clients_are_not_sent_elsewhere(available: Registered) -> None:
    answer = available.admin.get(f"{ROOT}/namespaces/default/flunders/elsewhere")
    assert (answer.status, answer.headers["Content-Type"]) == (502, "text/plain; charset=utf-8")
    assert answer.body == b"the backend attempted to redirect this request, which is not permitted"
    assert "Location" not in answer.headers


def test_connections_are_used_again(available: Registered) -> None:
    path = f"{ROOT}/namespaces/default/flunders"
    available.admin.get(path)
    before = available.server.accepted
    for _ in range(20):
        assert available.admin.get(path).status == 200
    assert available.server.accepted - before < 5  # who looks whether it is available has some too


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("garbage", "error trying to reach service: net/http: HTTP/1.x transport connection broken"),
    ],
)
def test_an_answer_that_is_none_is_service_unavailable(available: Registered, name: str, words: str) -> None:
    answer = available.admin.get(f"{ROOT}/namespaces/default/flunders/{name}")
    assert answer.status == 503
    assert answer.body.decode().startswith(words)
    assert answer.headers["Content-Type"] == "text/plain; charset=utf-8"


def test_an_answer_that_ends_too_early_ends_too_early(available: Registered) -> None:
    with pytest.raises(Exception, match=r"IncompleteRead|Remote end closed|chunked|Connection"):
        available.admin.get(f"{ROOT}/namespaces/default/flunders/cut")
    assert available.admin.get(f"{ROOT}/namespaces/default/flunders").status == 200


def test_a_request_has_the_time_that_its_client_gives_it(available: Registered) -> None:
    started = time.monotonic()
    answer = available.admin.get(f"{ROOT}/namespaces/default/flunders/hang?timeout=500ms")
    assert time.monotonic() - started < HANGING
    assert answer.status == 504
    assert "request did not complete within the allotted timeout" in answer.message


def test_one_that_hangs_does_not_hold_up_its_users_other_requests(available: Registered) -> None:
    hanging = [available.admin.connect() for _ in range(20)]
    try:
        for connection in hanging:
            headers = available.admin._headers(None, {})
            connection.request("GET", f"{ROOT}/namespaces/default/flunders/hang", headers=headers)
        started = time.monotonic()
        for _ in range(5):
            assert available.admin.get("/api/v1/namespaces/default").status == 200
            assert available.admin.get("/api", Impersonate_User="other").status in (200, 403)
        assert time.monotonic() - started < HANGING / 2
    finally:
        for connection in hanging:
            connection.close()


def upgraded(client: Client, path: str, protocol: str) -> tuple[ssl.SSLSocket, bytes]:
    """A connection after it has asked for another protocol, and the head of the answer."""
    address = urlsplit(client.server.url)
    assert address.hostname
    context = ssl.create_default_context(cafile=str(client.server.ca_file))
    plain = socket.create_connection((address.hostname, address.port), timeout=30)
    tls = context.wrap_socket(plain, server_hostname=address.hostname)
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {client.token}\r\nConnection: Upgrade\r\n"
    tls.sendall(f"{head}Upgrade: {protocol}\r\nContent-Length: 0\r\n\r\n".encode())
    answer = b""
    while b"\r\n\r\n" not in answer:
        piece = tls.recv(65536)
        assert piece, answer
        answer += piece
    return tls, answer


def test_an_upgraded_connection_is_a_stream_in_both_directions(available: Registered) -> None:
    tls, head = upgraded(available.admin, f"{ROOT}/namespaces/default/flunders/a/exec", "shout")
    with tls:
        assert head.startswith(b"HTTP/1.1 101 Switching Protocols\r\n")
        tls.sendall(b"hello")
        assert tls.recv(100) == b"HELLO"
        large = b"a" * 3_000_000
        tls.settimeout(20)
        received = 0
        for start in range(0, len(large), 100_000):
            tls.sendall(large[start : start + 100_000])
            received += len(tls.recv(100_000))
        while received < len(large):
            received += len(tls.recv(100_000))
        assert received == len(large)
    (seen,) = [headers for _, path, headers, _ in available.server.requests if path.endswith("/exec")]
    assert seen["x-remote-user"] == ["kubernetes-admin"]
    assert "authorization" not in seen


def test_a_refused_upgrade_is_answered_with_the_refusal(available: Registered) -> None:
    tls, head = upgraded(available.admin, f"{ROOT}/namespaces/default/flunders/a/exec", "whisper")
    with tls:
        assert head.startswith(b"HTTP/1.1 403 ")
        assert json.loads(head.partition(b"\r\n\r\n")[2] or tls.recv(1000)) == {"message": "I only shout"}


def test_a_connection_that_was_closed_while_idle_is_replaced(available: Registered) -> None:
    def close_afterwards(handler: Any) -> bool:
        handler.close_connection = True
        return False

    available.server.custom = close_afterwards
    path = f"{ROOT}/namespaces/default/flunders"
    closed = available.server.closed
    assert available.admin.get(path).status == 200
    assert closed.acquire(timeout=30)
    while closed.acquire(blocking=False):
        pass
    for number in range(5):
        assert available.admin.get(path).status == 200
        assert closed.acquire(timeout=30), "the server has closed the connection of the get"
        assert available.admin.post(path, {"metadata": {"name": f"c{number}"}}).status == 201
        assert closed.acquire(timeout=30)
