"""Webhook servers that hang, lie, crash or send too much: the request ends as failurePolicy says, in time."""

from __future__ import annotations

import base64
import json
import os
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from apiserver.admission.webhooks.conftest import Register
from apiserver.admission.webhooks.server import WebhookServer, allow, hanging, patch
from apiserver.client import Client

from tools import wait_until


def create(api: Client, place: str, name: str = "a") -> Any:
    return api.post(f"/api/v1/namespaces/{place}/configmaps", {"metadata": {"name": name}})


def _encoded(text: bytes) -> str:
    return base64.b64encode(text).decode()


LIES: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "another-uid": (
        lambda _: {"uid": "nope", "allowed": True},
        'received invalid webhook response: expected response.uid="',
    ),
    "no-response": (
        lambda _: b'{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1"}',
        "received invalid webhook response: webhook response was absent",
    ),
    "no-json": (lambda _: b"<html>hello</html>", "json parse error"),
    "a-list": (lambda _: b"[]", "json parse error"),
    "deep": (lambda _: b'{"response":' + b"[" * 100_000, "json parse error"),
    "other-kind": (
        lambda request: json.dumps(
            {"kind": "Pod", "apiVersion": "v1", "response": {"uid": request["uid"], "allowed": True}}
        ).encode(),
        'failed to call webhook: no kind "Pod" is registered for version "v1"',
    ),
    "patch-without-type": (
        lambda _: {"allowed": True, "patch": _encoded(b"[]")},
        "webhook returned response.patch but not response.patchType",
    ),
    "no-base64": (lambda _: {"allowed": True, "patch": "%%%", "patchType": "JSONPatch"}, "illegal base64 data"),
    "patch-is-no-json": (
        lambda _: {"allowed": True, "patch": _encoded(b"{{{"), "patchType": "JSONPatch"},
        "received undecodable patch in webhook response",
    ),
    "500": (lambda _: 500, "has prevented the request from succeeding"),
    "404": (lambda _: 404, "the server could not find the requested resource"),
    "huge": (lambda _: b'{"a":"' + b"x" * (17 << 20) + b'"}', "too large"),
    "warnings-of-the-wrong-type": (lambda _: {"allowed": True, "warnings": 5}, "warnings"),
}


@pytest.mark.parametrize("lie", LIES)
def test_an_answer_that_cannot_be_used_follows_the_failure_policy(
    lie: str, api: Client, hooks: WebhookServer, place: str, register: Register
) -> None:
    answerer, words = LIES[lie]
    hooks.paths["/lie"] = answerer
    path = register("mutating", "/lie", failurePolicy="Fail")
    answer = create(api, place)
    assert answer.status == 500, answer.body
    assert answer.message.startswith('Internal error occurred: failed calling webhook "lie.example.com": ')
    assert words in answer.message
    ignore = [{"op": "replace", "path": "/webhooks/0/failurePolicy", "value": "Ignore"}]
    assert api.patch(path, ignore, "json").status == 200
    assert create(api, place).status == 201


def test_a_patch_that_does_not_fit_is_an_error_whatever_the_policy(
    api: Client, hooks: WebhookServer, place: str, register: Register
) -> None:
    hooks.paths["/misfit"] = lambda _: patch({"op": "remove", "path": "/data/nothing/here"})
    register("mutating", "/misfit", failurePolicy="Ignore")
    answer = create(api, place)
    assert answer.status == 500
    assert answer.message.startswith("Internal error occurred: remove operation does not apply")


@pytest.mark.parametrize(("policy", "status"), [("Fail", 500), ("Ignore", 201)])
@pytest.mark.parametrize("kind", ["mutating", "validating"])
def test_a_webhook_that_hangs_is_given_up_in_time(
    policy: str, status: int, kind: str, api: Client, hooks: WebhookServer, place: str, register: Register
) -> None:
    hooks.paths["/hang"] = hanging(hooks)
    register(kind, "/hang", failurePolicy=policy, timeoutSeconds=1)
    began = time.monotonic()
    answer = create(api, place)
    assert answer.status == status
    assert time.monotonic() - began < 10  # which it would have by default
    if policy == "Fail":
        assert "context deadline exceeded" in answer.message


def test_validating_webhooks_are_asked_at_the_same_time(
    api: Client, hooks: WebhookServer, place: str, register: Register
) -> None:
    together = threading.Barrier(3)

    def meet(review: dict[str, Any]) -> dict[str, Any]:
        together.wait(30)
        return allow(review)

    for path in ("/meet-1", "/meet-2", "/meet-3"):
        hooks.paths[path] = meet
        register("validating", path, timeoutSeconds=30)
    assert create(api, place).status == 201


def test_a_client_that_waits_no_longer_gets_a_timeout(
    api: Client, hooks: WebhookServer, register: Register, place: str
) -> None:
    maps = f"/api/v1/namespaces/{place}/configmaps"
    hooks.paths["/hang"] = hanging(hooks)
    register("validating", "/hang", timeoutSeconds=20)
    began = time.monotonic()
    answer = api.post(f"{maps}?timeout=300ms", {"metadata": {"name": "late"}})
    assert time.monotonic() - began < 10
    assert (answer.status, answer.json["reason"]) == (504, "Timeout")
    why = "request did not complete within requested timeout - context deadline exceeded"
    assert answer.message == f"Timeout: {why}"
    assert api.get(f"{maps}/late").status == 404


def test_the_server_serves_others_while_webhooks_hang(
    api: Client, hooks: WebhookServer, place: str, register: Register
) -> None:
    released = threading.Event()

    def held(review: dict[str, Any]) -> dict[str, Any]:
        released.wait(30)
        return allow(review)

    hooks.paths["/held"] = held
    register("validating", "/held", timeoutSeconds=30)
    waiting = [threading.Thread(target=create, args=(api, place, f"w{index}")) for index in range(20)]
    for thread in waiting:
        thread.start()
    wait_until(lambda: len(hooks.asked("/held")) == 20, "all of them hang")
    assert api.get(f"/api/v1/namespaces/{place}/configmaps").status == 200
    assert all(thread.is_alive() for thread in waiting)
    released.set()
    for thread in waiting:
        thread.join()


@pytest.fixture
def rude() -> Iterator[Callable[[bytes | None], int]]:
    """Servers that accept a TLS connection and then do something else than HTTP."""
    open_sockets: list[socket.socket] = []
    server = WebhookServer()

    def start(answer: bytes | None) -> int:
        listener = socket.create_server(("127.0.0.1", 0))
        open_sockets.append(listener)

        def serve() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                    secured = server.tls.wrap_socket(connection, server_side=True)
                    secured.recv(65536)
                    if answer is not None:
                        secured.sendall(answer)
                    secured.close()
                except (OSError, ssl.SSLError):
                    if listener.fileno() < 0:
                        return

        threading.Thread(target=serve, daemon=True).start()
        return int(listener.getsockname()[1])

    start.bundle = server.bundle  # type: ignore[attr-defined]
    yield start
    for each in open_sockets:
        each.close()
    server.close()


@pytest.mark.parametrize(
    "answer",
    [None, b"\x00\x01\x02garbage\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nshort"],
    ids=["closes", "garbage", "short"],
)
def test_a_server_that_breaks_off_is_a_failed_call(
    answer: bytes | None, rude: Any, api: Client, place: str, register: Register
) -> None:
    config = {"url": f"https://127.0.0.1:{rude(answer)}/x", "caBundle": rude.bundle}
    register("validating", "/rude", clientConfig=config)
    found = create(api, place)
    assert found.status == 500
    assert (
        'failed calling webhook "rude.example.com": failed to call webhook: Post "https://127.0.0.1:' in found.message
    )


def test_a_webhook_without_a_listener(api: Client, place: str, register: Register, hooks: WebhookServer) -> None:
    register("validating", "/gone", clientConfig={"url": "https://127.0.0.1:1/x", "caBundle": hooks.bundle})
    answer = create(api, place)
    assert answer.message == (
        'Internal error occurred: failed calling webhook "gone.example.com": failed to call webhook: '
        'Post "https://127.0.0.1:1/x?timeout=5s": dial tcp 127.0.0.1:1: connect: connection refused'
    )


def test_a_certificate_of_an_unknown_authority_is_not_trusted(
    api: Client, hooks: WebhookServer, place: str, register: Register
) -> None:
    hooks.paths["/tls"] = allow
    other = WebhookServer()
    register("validating", "/tls", clientConfig={"url": hooks.url("/tls"), "caBundle": other.bundle})
    other.close()
    answer = create(api, place)
    assert answer.status == 500
    assert "tls: failed to verify certificate: x509: certificate signed by unknown authority" in answer.message
    assert hooks.asked("/tls") == []


def _own_address() -> str:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("192.0.2.1", 9))
        return str(probe.getsockname()[0])


def test_a_webhook_is_reached_by_its_service(api: Client, place: str, register: Register) -> None:
    try:
        address = _own_address()
    except OSError:
        address = subprocess.run(["hostname", "-I"], capture_output=True, text=True).stdout.split()[0]
    server = WebhookServer(address, (f"hook.{place}.svc",))
    server.paths["/by-service"] = lambda _: {"allowed": False, "status": {"message": "by service"}}
    reference = {"namespace": place, "name": "hook", "path": "/by-service", "port": 8443}
    register("validating", "/by-service", clientConfig={"service": reference, "caBundle": server.bundle})
    missing = create(api, place)
    assert 'service "hook" not found' in missing.message
    ports = [{"name": "https", "port": 8443}]
    service = {"metadata": {"name": "hook"}, "spec": {"ports": ports, "clusterIP": "None"}}
    assert api.post(f"/api/v1/namespaces/{place}/services", service).status == 201
    assert 'no endpoints available for service "hook"' in create(api, place).message
    slice = {
        "metadata": {"name": "hook-1", "labels": {"kubernetes.io/service-name": "hook"}},
        "addressType": "IPv4",
        "endpoints": [{"addresses": [address]}],
        "ports": [{"name": "https", "port": server.port}],
    }
    made = api.post(f"/apis/discovery.k8s.io/v1/namespaces/{place}/endpointslices", slice)
    assert made.status == 201, made.body
    answer = create(api, place)
    assert answer.message == 'admission webhook "by-service.example.com" denied the request: by service'
    server.close()


def test_connections_are_used_again_and_closed_ones_replaced(
    api: Client, hooks: WebhookServer, place: str, register: Register
) -> None:
    hooks.paths["/again"] = allow
    register("validating", "/again")
    for index in range(20):
        assert create(api, place, f"c{index}").status == 201
    assert len(os.listdir(f"/proc/{api.server.pid}/fd")) < 200


def test_a_patch_that_nests_without_end_is_an_error(
    api: Client, hooks: WebhookServer, place: str, register: Register
) -> None:
    deep = b'[{"op":"add","path":"/data","value":' + b"[" * 900 + b"]" * 900 + b"}]"
    hooks.paths["/deep"] = lambda _: {"allowed": True, "patchType": "JSONPatch", "patch": _encoded(deep)}
    register("mutating", "/deep")
    answer = create(api, place)
    assert answer.status == 500
    assert answer.message.startswith("Internal error occurred: ")
    assert "Traceback" not in answer.message
