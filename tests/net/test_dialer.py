"""Who is cancelled while it connects, in whatever moment, leaves no connection and no word in the log."""

from __future__ import annotations

import asyncio
import logging
import ssl
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest
import uvloop

from pybernetes.client.http import HTTPClient
from pybernetes.cluster import certificates
from pybernetes.net.dialer import open_streams

HANDSHAKE = 0.05
"""Seconds in which the server has surely answered the beginning of a handshake; if not, nothing is tried."""


@pytest.fixture(scope="module")
def pki(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pki")
    certificates.ensure(folder, ["10.96.0.1"])
    return folder


class Server:
    """Does handshakes in a thread of its own: while the client's loop is busy, it goes on."""

    def __init__(self, pki: Path) -> None:
        self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._tls.load_cert_chain(pki / "apiserver.crt", pki / "apiserver.key")
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self._ready = threading.Event()
        self.open = 0
        self.port = 0
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=(self._serve(),))
        self._thread.start()
        self._ready.wait()

    async def _serve(self) -> None:
        server = await asyncio.start_server(self._take, "127.0.0.1", 0, ssl=self._tls)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stop.wait()
        server.close()

    async def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.open += 1
        try:
            await reader.read()
        except OSError:
            pass
        finally:
            self.open -= 1
            writer.transport.abort()

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()
        self._loop.close()


@pytest.fixture
def server(pki: Path) -> Iterator[Server]:
    serving = Server(pki)
    yield serving
    serving.close()


class BusyTLS(ssl.SSLContext):
    """Keeps the loop busy when a handshake begins; in its next round the tasks are cancelled, before anything else."""

    tasks: list[asyncio.Task[Any]]

    def wrap_bio(self, *arguments: Any, **more: Any) -> ssl.SSLObject:
        time.sleep(HANDSHAKE)  # by now those who began before this one have an answer to be read
        asyncio.get_running_loop().call_soon(self._cancel)
        return super().wrap_bio(*arguments, **more)

    def _cancel(self) -> None:
        for task in self.tasks:
            task.cancel()


def busy_tls(pki: Path) -> BusyTLS:
    context = BusyTLS(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(pki / "ca.crt")
    context.tasks = []
    return context


async def cancelled(tls: BusyTLS, connect: Callable[[], Coroutine[Any, Any, Any]]) -> None:
    """Connects several times at once, and is cancelled."""
    tls.tasks = [asyncio.create_task(connect()) for _ in range(4)]
    results = await asyncio.gather(*tls.tasks, return_exceptions=True)
    assert all(isinstance(each, asyncio.CancelledError) for each in results), results


async def nobody_is_left(server: Server) -> None:
    async with asyncio.timeout(30):
        while server.open:  # noqa: ASYNC110  (which another thread counts)
            await asyncio.sleep(0.01)


def on_uvloop(scenario: Coroutine[Any, Any, None]) -> None:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(scenario)


def test_a_client_that_is_cancelled_right_after_the_handshake_knows_no_connection_and_says_nothing(
    pki: Path, server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        tls = busy_tls(pki)
        client = HTTPClient(f"https://127.0.0.1:{server.port}", tls)
        await cancelled(tls, lambda: client.stream("GET", "/", {}))
        await nobody_is_left(server)
        assert not client._open
        await client.close()

    with caplog.at_level(logging.WARNING):
        on_uvloop(scenario())
    assert not caplog.text


def test_streams_that_are_cancelled_right_after_the_handshake_say_nothing(
    pki: Path, server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        tls = busy_tls(pki)
        where = {"host": "127.0.0.1", "port": server.port}
        await cancelled(tls, lambda: open_streams(tls=tls, server_name="127.0.0.1", **where))
        await nobody_is_left(server)

    with caplog.at_level(logging.WARNING):
        on_uvloop(scenario())
    assert not caplog.text
