"""Flags for browsers, and for how long requests may take."""

from __future__ import annotations

import argparse
import asyncio
import json
import socket
import time
from collections.abc import Iterator

import pytest
from apiserver.client import Client

from pybernetes.apiserver.filters.browsers import directives, origins
from tools import ApiServer, api_server


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    flags = (
        r"--cors-allowed-origins=^https://ui\.example(:|$),//other\.example$",
        "--strict-transport-security-directives=max-age=31536000,includeSubDomains",
        "--request-timeout=3s",
        "--min-request-timeout=1",
    )
    with api_server(tmp_path_factory.mktemp("browsers"), *flags) as started:
        yield started


@pytest.mark.parametrize("origin", ["https://ui.example", "https://ui.example:8443", "http://other.example"])
def test_an_allowed_origin_gets_cors_headers(server: ApiServer, origin: str) -> None:
    answer = Client(server).get("/api/v1/namespaces", Origin=origin)
    assert answer.status == 200
    assert answer.headers["Access-Control-Allow-Origin"] == origin
    assert answer.headers["Access-Control-Allow-Credentials"] == "true"
    assert answer.headers["Access-Control-Expose-Headers"] == "Date"
    first = Client(server, "")("OPTIONS", "/api/v1/namespaces", Origin=origin)
    assert (first.status, first.body) == (204, b"")
    assert first.headers["Access-Control-Allow-Methods"] == "POST, GET, OPTIONS, PUT, DELETE, PATCH"
    assert "Authorization" in first.headers["Access-Control-Allow-Headers"]


@pytest.mark.parametrize(
    "origin", ["", "https://evil.example", "https://ui.example.evil", "https://notother.example.x"]
)
def test_other_pages_are_not(server: ApiServer, origin: str) -> None:
    answer = Client(server).get("/api/v1/namespaces", Origin=origin)
    assert answer.status == 200
    assert not [name for name in answer.headers if name.startswith("Access-Control")]
    assert Client(server, "")("OPTIONS", "/api/v1/namespaces", Origin=origin).status == 401


def test_every_answer_says_that_tls_is_a_must(server: ApiServer) -> None:
    for client, path in ((Client(server), "/version"), (Client(server), "/nope"), (Client(server, "x"), "/api")):
        assert client.get(path).headers["Strict-Transport-Security"] == "max-age=31536000; includeSubDomains"


@pytest.mark.parametrize("text", ["", "a", "^a", "a$", "^(a$", "^a$,"])
def test_patterns_that_would_let_in_others_are_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError):
        origins(text)


@pytest.mark.parametrize("text", ["", "max-age", "max-age=1=2", "preload,", "includesubdomains"])
def test_unknown_directives_are_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError):
        directives(text)


async def test_a_request_takes_no_longer_than_the_flag_says(server: ApiServer) -> None:
    """It waits for a webhook that never answers."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        hook = {
            "name": "a.example.com",
            "clientConfig": {"url": f"https://127.0.0.1:{silent.getsockname()[1]}/"},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["secrets"]}],
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        }
        body = {"metadata": {"name": "slow"}, "webhooks": [hook]}
        path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
        client = Client(server)
        assert client.post(path, body).status == 201
        started = time.monotonic()
        secret = {"metadata": {"name": "s"}}
        answer = await asyncio.to_thread(client.post, "/api/v1/namespaces/default/secrets", secret)
        assert answer.status == 504
        assert answer.message.endswith("request did not complete within requested timeout - context deadline exceeded")
        assert 2.9 < time.monotonic() - started < 30
        assert client.delete(f"{path}/slow").status == 200


def test_a_watch_lasts_once_to_twice_as_long_as_the_flag_says(server: ApiServer) -> None:
    started = time.monotonic()
    with Client(server).watch("/api/v1/namespaces?watch=1") as watching:
        assert all(json.dumps(each) for each in watching)
    assert 0.9 < time.monotonic() - started < 30
