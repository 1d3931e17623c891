"""Frames of WebSocket: what is sent is what arrives, however it is cut; what breaks the rules ends the connection."""

from __future__ import annotations

import asyncio
import struct
from collections import deque

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pybernetes.net.streams.websocket import Decoder, Opcode, ProtocolError, WebSocket, accept_key, frame, masked


class Wire:
    """A `Duplex` whose two ends are lists."""

    def __init__(self, *arriving: bytes) -> None:
        self.arriving = deque(arriving)
        self.sent = b""
        self.closed = False

    async def read(self) -> bytes:
        return self.arriving.popleft() if self.arriving else b""

    def write(self, data: bytes) -> None:
        self.sent += data

    async def drain(self) -> None: ...

    def close(self) -> None:
        self.closed = True


def test_the_answer_to_a_key_is_the_one_of_the_rfc() -> None:
    assert accept_key("dGhlIHNhbXBsZSBub25jZQ==") == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="


@pytest.mark.parametrize(("size", "head"), [(0, b"\x82\x00"), (125, b"\x82\x7d"), (126, b"\x82\x7e\x00\x7e")])
def test_lengths_have_the_forms_of_the_rfc(size: int, head: bytes) -> None:
    assert frame(Opcode.BINARY, b"x" * size) == head + b"x" * size


def test_a_mask_is_taken_off_by_putting_it_on_again() -> None:
    assert masked(b"Hello", bytes.fromhex("37fa213d")) == bytes.fromhex("7f9f4d5158")


@given(st.lists(st.binary(max_size=70_000), max_size=4), st.integers(1, 5000), st.booleans())
def test_messages_arrive_as_they_were_sent_however_they_are_cut(messages: list[bytes], cut: int, server: bool) -> None:
    wire = b"".join(frame(Opcode.BINARY, each, mask=server) for each in messages)
    decoder = Decoder(server=server)
    found = [each for start in range(0, len(wire), cut) for each in decoder.feed(wire[start : start + cut])]
    assert found == [(Opcode.BINARY, each) for each in messages]


def _part(opcode: int, data: bytes, *, final: bool) -> bytes:
    return struct.pack("!BB", (0x80 if final else 0) | opcode, len(data)) + data


def test_a_message_in_parts_is_put_together_with_pings_between() -> None:
    wire = _part(1, b"Hel", final=False) + frame(Opcode.PING, b"?") + _part(0, b"lo", final=True)
    assert Decoder(server=False).feed(wire) == [(Opcode.PING, b"?"), (Opcode.TEXT, b"Hello")]


@pytest.mark.parametrize(
    "wire",
    [
        frame(Opcode.BINARY, b"x"),  # not masked
        b"\xc2\x80\0\0\0\0",  # a reserved bit
        b"\x83\x80\0\0\0\0",  # an unknown opcode
        b"\x09\x80\0\0\0\0",  # a ping in parts
        b"\x89\xfe\x00\x7e",  # a ping that is too long
        b"\x80\x80\0\0\0\0",  # a part of nothing
        b"\x02\x80\0\0\0\0\x82\x80\0\0\0\0",  # a message within a message
    ],
)
def test_what_breaks_the_rules_is_refused(wire: bytes) -> None:
    with pytest.raises(ProtocolError):
        Decoder(server=True).feed(wire)


def test_a_message_that_is_too_large_is_refused_before_it_arrives() -> None:
    with pytest.raises(ProtocolError) as caught:
        Decoder(server=False, most=1000).feed(b"\x82\x7e" + (1001).to_bytes(2, "big"))
    assert caught.value.code == 1009
    parts = Decoder(server=False, most=1000)
    parts.feed(b"\x02\x7e" + (600).to_bytes(2, "big") + b"x" * 600)
    with pytest.raises(ProtocolError):
        parts.feed(b"\x80\x7e" + (600).to_bytes(2, "big"))


async def test_pings_are_answered_and_a_goodbye_is_said_back() -> None:
    wire = Wire(frame(Opcode.PING, b"hi", mask=True), frame(Opcode.CLOSE, b"\x03\xe8", mask=True))
    websocket = WebSocket(wire)
    assert await websocket.receive() is None
    assert Decoder(server=False).feed(wire.sent) == [(Opcode.PONG, b"hi"), (Opcode.CLOSE, b"\x03\xe8")]
    assert wire.closed
    websocket.send(b"late")
    assert wire.sent.endswith(b"\x03\xe8")


async def test_protocol_errors_close_with_their_code() -> None:
    wire = Wire(b"\x83\x80\0\0\0\0")
    with pytest.raises(ProtocolError):
        await WebSocket(wire).receive()
    assert Decoder(server=False).feed(wire.sent) == [(Opcode.CLOSE, struct.pack("!H", 1002))]


async def test_a_client_masks_what_it_sends() -> None:
    wire = Wire()
    WebSocket(wire, server=False).send(b"secret", text=True)
    assert b"secret" not in wire.sent
    assert Decoder(server=True).feed(wire.sent) == [(Opcode.TEXT, b"secret")]
    await asyncio.sleep(0)
