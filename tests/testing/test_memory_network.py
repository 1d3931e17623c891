"""Connections in memory behave as sockets do, as far as protocols can see."""

from __future__ import annotations

import asyncio
from contextvars import ContextVar

import pytest

from pybernetes.testing.memory_network import MemoryNetwork


class Peer(asyncio.Protocol):
    """Notes what it is called with."""

    def __init__(self) -> None:
        self.received = b""
        self.lost: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.paused = False
        self.transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.received += data

    def connection_lost(self, exc: Exception | None) -> None:
        assert not self.lost.done(), "connection_lost is called once"
        self.lost.set_result(None)

    def pause_writing(self) -> None:
        self.paused = True

    def resume_writing(self) -> None:
        self.paused = False


def connect() -> tuple[Peer, Peer]:
    """A client and the server that it is connected to."""
    served: list[Peer] = []

    def accept() -> Peer:
        served.append(Peer())
        return served[-1]

    network = MemoryNetwork()
    network.listen("127.0.0.1", 80, accept)
    found = network.connect(asyncio.get_running_loop(), Peer, "127.0.0.1", 80)
    assert found is not None
    client = found[1]
    assert isinstance(client, Peer)
    return client, served[0]


async def test_an_address_without_a_listener_is_not_of_this_network() -> None:
    network = MemoryNetwork()
    assert network.connect(asyncio.get_running_loop(), Peer, "127.0.0.1", 80) is None
    network.listen("127.0.0.1", 80, Peer)
    network.close("127.0.0.1", 80)
    with pytest.raises(ConnectionRefusedError):
        network.connect(asyncio.get_running_loop(), Peer, "127.0.0.1", 80)


async def test_bytes_arrive_in_order_and_not_within_the_write() -> None:
    client, server = connect()
    client.transport.write(b"one ")
    client.transport.write(memoryview(bytearray(b"two")))
    assert server.received == b""
    await asyncio.sleep(0)
    assert server.received == b"one two"
    server.transport.write(b"back")
    await asyncio.sleep(0)
    assert client.received == b"back"


async def test_what_was_written_before_the_close_arrives_before_the_end() -> None:
    client, server = connect()
    client.transport.write(b"last words")
    client.transport.close()
    await asyncio.wait_for(server.lost, 5)
    await asyncio.wait_for(client.lost, 5)
    assert server.received == b"last words"
    server.transport.write(b"too late")
    assert client.received == b""


async def test_a_reader_that_pauses_makes_the_writer_pause() -> None:
    client, server = connect()
    server.transport.pause_reading()
    client.transport.set_write_buffer_limits(high=10)
    client.transport.write(b"0123456789")
    assert not client.paused
    client.transport.write(b"0")
    assert client.paused
    assert client.transport.get_write_buffer_size() == 11
    await asyncio.sleep(0)
    assert server.received == b""
    server.transport.resume_reading()
    await asyncio.sleep(0)
    assert server.received == b"01234567890"
    assert not client.paused


async def test_a_paused_reader_gets_the_rest_before_the_end() -> None:
    client, server = connect()
    server.transport.pause_reading()
    client.transport.write(b"rest")
    client.transport.close()
    await asyncio.sleep(0)
    assert not server.lost.done()
    server.transport.resume_reading()
    await asyncio.wait_for(server.lost, 5)
    assert server.received == b"rest"


WHO: ContextVar[str] = ContextVar("who", default="nobody")


class Witness(Peer):
    """Notes in whose context it gets its bytes."""

    def __init__(self) -> None:
        super().__init__()
        self.seen = ""
        self.answered: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def data_received(self, data: bytes) -> None:
        self.seen = WHO.get()
        self.transport.write(b"answer" if data == b"request" else b"")
        self.answered.set_result(None)


async def test_a_server_knows_nothing_of_what_its_client_is_at() -> None:
    served: list[Witness] = []

    def accept() -> Witness:
        served.append(Witness())
        return served[-1]

    network = MemoryNetwork()
    network.listen("127.0.0.1", 80, accept)
    WHO.set("client")
    found = network.connect(asyncio.get_running_loop(), Witness, "127.0.0.1", 80)
    assert found is not None
    client = found[1]
    assert isinstance(client, Witness)
    WHO.set("somebody else")
    client.transport.write(b"request")
    await client.answered
    assert (served[0].seen, client.seen) == ("nobody", "client")
