"""Tokens of pods: at a real API server, and their renewal by a fake clock."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from kubelet.conftest import Connect

from pybernetes.api import errors
from pybernetes.api.authentication.v1 import TokenRequest, TokenRequestStatus
from pybernetes.api.core.v1 import Container, Pod, PodSpec, ServiceAccount
from pybernetes.api.meta.v1 import ObjectMeta
from pybernetes.api.times import rfc3339
from pybernetes.client.clock import FakeClock, SystemClock
from pybernetes.kubelet.service_account_tokens import TokenError, Tokens


def _pod(uid: str = "u1", namespace: str = "shop") -> Pod:
    spec = PodSpec(service_account_name="builder", containers=[Container(name="c", image="busybox")])
    return Pod(metadata=ObjectMeta(name="web", namespace=namespace, uid=uid), spec=spec)


class _Server:
    """Gives tokens that are good for as long as was asked for."""

    def __init__(self, clock: FakeClock) -> None:
        self.clock = clock
        self.asked = 0
        self.down = False

    async def subresource(
        self, method: str, kind: Any, name: str, namespace: str, part: str, body: TokenRequest
    ) -> Any:
        assert (method, kind, name, namespace, part) == ("POST", ServiceAccount, "builder", "shop", "token")
        if self.down:
            raise errors.ServiceUnavailable("away")
        self.asked += 1
        assert body.spec is not None
        seconds = body.spec.expiration_seconds or 3600
        body.spec.expiration_seconds = seconds
        expires = rfc3339(self.clock.now() + seconds)
        return TokenRequest(
            spec=body.spec, status=TokenRequestStatus(token=f"t{self.asked}", expiration_timestamp=expires)
        )


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def server(clock: FakeClock) -> _Server:
    return _Server(clock)


def _tokens(server: _Server, clock: FakeClock) -> Tokens:
    client: Any = server
    return Tokens(client, clock, jitter=lambda: 0.0)


async def test_a_token_is_kept_until_a_fifth_of_its_life_is_left(server: _Server, clock: FakeClock) -> None:
    tokens = _tokens(server, clock)
    assert await tokens.get(_pod(), "", 1000) == "t1"
    assert tokens.renew_at("u1") == clock.now() + 800
    clock.advance(799)
    assert await tokens.get(_pod(), "", 1000) == "t1"
    clock.advance(1)
    assert await tokens.get(_pod(), "", 1000) == "t2"


async def test_a_token_of_a_time_that_has_not_come_is_renewed(server: _Server, clock: FakeClock) -> None:
    tokens = _tokens(server, clock)
    assert await tokens.get(_pod(), "", 7200) == "t1"
    clock.set(clock.now() - 30)  # servers tolerate that
    assert await tokens.get(_pod(), "", 7200) == "t1"
    clock.set(clock.now() - 3600)
    assert await tokens.get(_pod(), "", 7200) == "t2"
    assert await tokens.get(_pod(), "", 7200) == "t2"


async def test_no_token_is_used_for_more_than_a_day(server: _Server, clock: FakeClock) -> None:
    tokens = _tokens(server, clock)
    await tokens.get(_pod(), "", 7 * 86400)
    clock.advance(86399)
    assert await tokens.get(_pod(), "", 7 * 86400) == "t1"
    clock.advance(1)
    assert await tokens.get(_pod(), "", 7 * 86400) == "t2"


async def test_audiences_lives_and_pods_have_tokens_of_their_own(server: _Server, clock: FakeClock) -> None:
    tokens = _tokens(server, clock)
    asked = [("u1", "", 600), ("u1", "vault", 600), ("u1", "", 700), ("u2", "", 600)]
    assert [await tokens.get(_pod(uid), audience, seconds) for uid, audience, seconds in asked] == [
        "t1",
        "t2",
        "t3",
        "t4",
    ]
    tokens.forget("u1")
    assert tokens.renew_at("u1") is None
    assert await tokens.get(_pod("u2"), "", 600) == "t4"
    assert await tokens.get(_pod("u1"), "", 600) == "t5"


async def test_while_the_server_is_away_the_old_token_is_used_as_long_as_it_is_valid(
    server: _Server, clock: FakeClock
) -> None:
    tokens = _tokens(server, clock)
    await tokens.get(_pod(), "", 1000)
    server.down = True
    clock.advance(999)
    assert await tokens.get(_pod(), "", 1000) == "t1"
    clock.advance(1)
    with pytest.raises(TokenError, match="expired and refresh failed: away"):
        await tokens.get(_pod(), "", 1000)
    with pytest.raises(TokenError, match=r"^failed to fetch token: away"):
        await tokens.get(_pod("u2"), "", 1000)


async def test_without_an_api_server_there_are_no_tokens(clock: FakeClock) -> None:
    with pytest.raises(
        TokenError, match="failed to fetch token: cannot use TokenManager when kubelet is in standalone"
    ):
        await Tokens(None, clock).get(_pod(), "", 600)


async def test_a_real_token_is_bound_to_the_pod(connect: Connect) -> None:
    async with connect() as (client, namespace):
        await client.create(ServiceAccount(metadata=ObjectMeta(name="builder", namespace=namespace)))
        pod = _pod(namespace=namespace)
        assert pod.metadata is not None
        pod.metadata.uid = None
        pod = await client.create(pod)
        token = await Tokens(client, SystemClock()).get(pod, "vault", 3607)
        claims = json.loads(base64.urlsafe_b64decode(token.split(".")[1] + "=="))
        assert claims["aud"] == ["vault"]
        assert pod.metadata is not None
        assert claims["kubernetes.io"]["pod"] == {"name": "web", "uid": pod.metadata.uid}
        pod.metadata.uid = "another"
        with pytest.raises(TokenError, match="failed to fetch token: "):
            await Tokens(client, SystemClock()).get(pod, "", 3600)
