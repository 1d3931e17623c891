"""Webhooks that answer reviews: what is asked again, how often, and which answers count (v1.36.4 was watched)."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from pybernetes.api.authorization.v1 import SubjectAccessReviewStatus
from pybernetes.apiserver.review_webhook import ReviewWebhook, WebhookFailed, status_of

V1, KIND = "authorization.k8s.io/v1", "SubjectAccessReview"


def answer(status: int, *headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status} Whatever", "Content-Length: 2", *headers]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n{}"


class Hook:
    """Answers every request with the same bytes; no bytes = the connection ends."""

    def __init__(self, reply: bytes | Callable[[], bytes], *, delay: float = 0.0, reset: bool = False) -> None:
        self.reply, self.delay, self.reset = reply, delay, reset
        self.asked: list[bytes] = []

    async def __aenter__(self) -> Hook:
        self.server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self.server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self.server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                await reader.readexactly(2)
                self.asked.append(head)
                await asyncio.sleep(self.delay)
                if self.reset:
                    linger = struct.pack("ii", 1, 0)
                    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                reply = self.reply() if callable(self.reply) else self.reply
                if not reply:
                    return
                writer.write(reply)
        except asyncio.IncompleteReadError:
            pass
        finally:
            writer.close()

    def client(self, folder: Path, timeout: float = 3.0) -> ReviewWebhook:
        file = folder / "kubeconfig"
        file.write_text(
            "{apiVersion: v1, kind: Config, current-context: a, contexts: [{name: a, context: {cluster: a, user: a}}],"
            f"users: [{{name: a, user: {{token: secret}}}}],"
            f"clusters: [{{name: a, cluster: {{server: 'http://127.0.0.1:{self.port}/hook'}}}}]}}"
        )
        return ReviewWebhook(file, timeout=timeout, first_delay=0.001)


@pytest.mark.parametrize(
    ("status", "times"),
    [
        (200, 1),
        (201, 1),
        (400, 1),
        (401, 1),
        (403, 1),
        (404, 1),
        (409, 1),
        (429, 5),
        (500, 5),
        (502, 5),
        (503, 1),
        (504, 5),
    ],
)
async def test_who_is_in_trouble_is_asked_again(tmp_path: Path, status: int, times: int) -> None:
    outcomes: list[str] = []
    async with Hook(answer(status)) as hook:
        client = hook.client(tmp_path)
        if status < 300:
            assert await client.post(b"{}", lambda outcome, _: outcomes.append(outcome)) == b"{}"
        else:
            with pytest.raises(WebhookFailed, match="the server "):
                await client.post(b"{}", lambda outcome, _: outcomes.append(outcome))
        await client.close()
    assert len(hook.asked) == times
    assert outcomes == ["success" if status < 300 else "timeout" if status == 504 else "error"] * times


@pytest.mark.parametrize(("reset", "times"), [(True, 5), (False, 1)])
async def test_a_connection_that_was_reset_is_tried_again_and_one_that_ended_is_not(
    tmp_path: Path, reset: bool, times: int
) -> None:
    async with Hook(b"", reset=reset) as hook:
        with pytest.raises(WebhookFailed):
            await hook.client(tmp_path).post(b"{}")
    assert len(hook.asked) == times


async def test_who_cannot_be_reached_is_not_asked_again(tmp_path: Path) -> None:
    async with Hook(b"") as hook:
        pass
    outcomes: list[str] = []
    with pytest.raises(WebhookFailed, match="cannot connect"):
        await hook.client(tmp_path).post(b"{}", lambda outcome, _: outcomes.append(outcome))
    assert outcomes == ["error"]


async def test_who_takes_too_long_is_not_asked_again(tmp_path: Path) -> None:
    outcomes: list[str] = []
    async with Hook(answer(200), delay=5) as hook:
        with pytest.raises(WebhookFailed, match="deadline exceeded"):
            await hook.client(tmp_path, 0.05).post(b"{}", lambda outcome, _: outcomes.append(outcome))
    assert (len(hook.asked), outcomes) == (1, ["timeout"])


async def test_a_time_to_come_back_is_kept_as_long_as_there_is_time(tmp_path: Path) -> None:
    replies = iter([answer(503, "Retry-After: 0"), answer(429, "Retry-After: 0"), answer(200)])
    async with Hook(lambda: next(replies)) as hook:
        client = hook.client(tmp_path)
        assert await client.post(b"{}") == b"{}"
        await client.close()
    async with Hook(answer(503, "Retry-After: 9")) as hook:
        with pytest.raises(WebhookFailed, match="deadline exceeded"):
            await hook.client(tmp_path, 0.05).post(b"{}")
    assert len(hook.asked) == 1


async def test_a_refused_request_gets_the_webhooks_message(tmp_path: Path) -> None:
    async with Hook(answer(500)) as hook:
        with pytest.raises(WebhookFailed, match=r'^an error on the server \("{}"\) has prevented the request from'):
            await hook.client(tmp_path).post(b"{}")


async def test_a_time_to_come_back_that_is_no_number_is_none(tmp_path: Path) -> None:
    async with Hook(answer(503, "Retry-After: \N{SUPERSCRIPT TWO}")) as hook:
        with pytest.raises(WebhookFailed, match="the server is currently unable to handle the request"):
            await hook.client(tmp_path).post(b"{}")
    assert len(hook.asked) == 1


async def test_the_timeout_is_sent_and_credentials_are_not_sent_in_the_clear(tmp_path: Path) -> None:
    async with Hook(answer(200)) as hook:
        client = hook.client(tmp_path)
        await client.post(b"{}")
        await client.close()
    assert hook.asked[0].startswith(b"POST /hook?timeout=3s HTTP/1.1\r\n")
    assert b"secret" not in hook.asked[0]


@pytest.mark.parametrize(
    "body",
    [
        b'{"status":{"allowed":true}}',
        b'{"kind":"SubjectAccessReview","apiVersion":"authorization.k8s.io/v1","status":{"allowed":true,"more":1},"x":2}',
    ],
)
def test_more_or_less_than_expected_is_read(body: bytes) -> None:
    assert status_of(body, SubjectAccessReviewStatus, V1, KIND).allowed is True


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b'{"kind":"Foo","status":{"allowed":true}}',
        b'{"apiVersion":"authorization.k8s.io/v1beta1","kind":"SubjectAccessReview","status":{"allowed":true}}',
        b'{"status":{"allowed":"true"}}',
        b'{"status":[]}',
    ],
)
def test_what_is_no_review_does_not_count(body: bytes) -> None:
    with pytest.raises(WebhookFailed):
        status_of(body, SubjectAccessReviewStatus, V1, KIND)
