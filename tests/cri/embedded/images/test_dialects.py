"""Registries that speak the protocol in their own way: no HEAD, no digest, tokens of OAuth, redirects of all kinds."""

from __future__ import annotations

import json
from typing import Any

import pytest
from cri.embedded.images.registries import FakeRegistry, basic, layer, send

from pybernetes.cri.embedded.images.pulling import PullError, pull
from pybernetes.cri.embedded.images.registry import Credentials
from pybernetes.cri.embedded.images.store import ImageStore

LOGIN = Credentials("alice", "s3cret")


@pytest.mark.parametrize("code", [400, 403, 405, 501])
@pytest.mark.parametrize("by", ["tag", "digest"])
def test_a_registry_that_knows_no_head_is_asked_for_the_bytes(
    registry: FakeRegistry, store: ImageStore, code: int, by: str
) -> None:
    digest = registry.add("1", layer(name="x"))
    registry.before = lambda handler: handler.command == "HEAD" and send(handler, code) is None
    named = f"{registry.host}/a/b:1" if by == "tag" else f"{registry.host}/a/b@{digest}"
    assert pull(store, [], named).digests == [f"{registry.host}/a/b@{digest}"]


def test_a_refusal_of_both_head_and_get_is_reported_in_the_words_of_the_body(
    registry: FakeRegistry, store: ImageStore
) -> None:
    body = b'{"errors":[{"code":"DENIED","message":"not for you"}]}'
    registry.before = lambda handler: send(handler, 403, body) is None
    with pytest.raises(PullError, match=r"GET request to http.*/manifests/1: 403 Forbidden: denied: not for you"):
        pull(store, [], f"{registry.host}/a/b:1")


@pytest.mark.parametrize("said", ["", "sha512:00", "nonsense"])
@pytest.mark.parametrize("by", ["tag", "digest"])
def test_a_registry_that_tells_no_digest_is_believed_by_its_bytes(
    registry: FakeRegistry, store: ImageStore, said: str, by: str
) -> None:
    digest = registry.add("1", layer(name="x"))

    def before(handler: Any) -> bool:
        if "/manifests/" not in handler.path:
            return False
        kind, body = registry.manifests["1"]
        send(handler, 200, body, {"Content-Type": kind, **({"Docker-Content-Digest": said} if said else {})})
        return True

    registry.before = before
    named = f"{registry.host}/a/b:1" if by == "tag" else f"{registry.host}/a/b@{digest}"
    assert pull(store, [], named).digests == [f"{registry.host}/a/b@{digest}"]


@pytest.mark.parametrize("location", ["/moved{path}", "..{last}", "//{host}/moved{path}", "?moved=1"])
def test_a_redirect_may_be_relative(registry: FakeRegistry, store: ImageStore, location: str) -> None:
    registry.add("1", layer(name="x"))

    def before(handler: Any) -> bool:
        path = handler.path.partition("?")[0]
        if "/blobs/sha256" not in path or "moved" in handler.path:
            return False
        digest = path.rpartition("/")[2]
        last = f"/blobs/moved/blobs/{digest}"
        send(handler, 302, b"", {"Location": location.format(path=path, last=last, host=registry.host)})
        return True

    registry.before = before
    assert pull(store, [], f"{registry.host}/a/b:1").names
    assert registry.asked("moved")


@pytest.mark.parametrize("key", ["token", "access_token"])
def test_a_token_is_taken_from_either_place_and_asked_for_with_each_scope(
    registry: FakeRegistry, store: ImageStore, key: str
) -> None:
    registry.add("1", layer(name="x"))

    def before(handler: Any) -> bool:
        if handler.path.startswith("/token"):
            send(handler, 200, json.dumps({key: "good", "expires_in": 300}).encode())
        elif handler.headers.get("Authorization") == "Bearer good":
            return False
        else:
            challenge = f'Bearer realm="http://{registry.host}/token?a=b",scope="repository:a/b:pull repository:c:pull"'
            send(handler, 401, b"", {"WWW-Authenticate": challenge})
        return True

    registry.before = before
    assert pull(store, [], f"{registry.host}/a/b:1").names
    ((_, path, _),) = registry.asked("/token")
    assert path == "/token?a=b&scope=repository%3Aa%2Fb%3Apull&scope=repository%3Ac%3Apull"


def test_a_token_is_fetched_before_a_password_is_shown(registry: FakeRegistry, store: ImageStore) -> None:
    registry.add("1", layer(name="x"))

    def before(handler: Any) -> bool:
        if handler.path.startswith("/token"):
            send(handler, 200, b'{"token": "good"}')
        elif handler.headers.get("Authorization") == "Bearer good":
            return False
        else:
            challenge = f'Basic realm="lab", Bearer realm="http://{registry.host}/token"'
            send(handler, 401, b"", {"WWW-Authenticate": challenge})
        return True

    registry.before = before
    assert pull(store, [], f"{registry.host}/a/b:1", LOGIN).names
    assert [path for _, path, headers in registry.requests if headers.get("Authorization") == basic()] == [
        "/token?scope=repository%3Aa%2Fb%3Apull"
    ]


@pytest.mark.parametrize("challenge", ['Basic realm="lab"', 'Bearer realm="http://{host}/token"'])
def test_the_target_of_a_redirect_gets_no_password_by_asking_for_it(
    registry: FakeRegistry, store: ImageStore, challenge: str
) -> None:
    registry.add("1", layer(name="x"))
    with FakeRegistry().serving() as elsewhere:
        asked = {"WWW-Authenticate": challenge.format(host=elsewhere.host)}
        elsewhere.before = lambda handler: send(handler, 401, b"", asked) is None

        def before(handler: Any) -> bool:
            if "/blobs/" in handler.path:
                send(handler, 307, b"", {"Location": f"http://{elsewhere.host}{handler.path}"})
                return True
            return False

        registry.before = before
        with pytest.raises(PullError, match=rf"{elsewhere.host}/v2/a/b/blobs/sha256:\w+: 401 Unauthorized"):
            pull(store, [], f"{registry.host}/a/b:1", LOGIN)
        assert not elsewhere.asked("/token")
        assert not any("Authorization" in headers for _, _, headers in elsewhere.requests)
