"""SPDY/3.1: frames as bytes, and streams between two sessions."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from collections.abc import AsyncIterator, Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pybernetes.net.streams import spdy
from pybernetes.net.streams.duplex import UNREAD
from pybernetes.net.streams.spdy_session import Session, Stream, StreamReset

SHA1 = "d68ca9b208de9c3754703445a22cf668a5abebb3"


def test_the_dictionary_is_the_protocols() -> None:
    """What is packed with another cannot be unpacked; zlib's own sum of it stands in every first frame."""
    assert len(spdy.DICTIONARY) == 1423
    assert hashlib.sha1(spdy.DICTIONARY).hexdigest() == SHA1
    assert spdy.Headers().pack({})[2:6].hex() == "e3c6a7c2"  # its Adler-32, which browsers and servers sent for years


def test_frames_have_the_bytes_of_the_specification() -> None:
    assert spdy.data(1, b"ab", fin=True).hex() == "00000001010000026162"
    assert spdy.ping(1).hex() == "800300060000000400000001"
    assert spdy.rst_stream(3, spdy.CANCEL).hex() == "80030003000000080000000300000005"
    assert spdy.goaway(5).hex() == "80030007000000080000000500000000"


@given(st.lists(st.binary(max_size=3000), max_size=6), st.integers(1, 700))
def test_frames_arrive_however_they_are_cut(contents: list[bytes], cut: int) -> None:
    wire = b"".join(spdy.data(7, each) + spdy.ping(len(each)) for each in contents)
    decoder = spdy.Decoder()
    found = [each for start in range(0, len(wire), cut) for each in decoder.feed(wire[start : start + cut])]
    assert [each.payload for each in found if not each.kind] == contents
    assert [spdy.number(each) for each in found if each.kind] == [len(each) for each in contents]


NAMES = st.text("abcdefghijklmnopqrstuvwxyz-", min_size=1, max_size=12)


@given(st.lists(st.dictionaries(NAMES, st.text(max_size=20), max_size=4), max_size=4))
def test_headers_are_unpacked_in_the_order_in_which_they_were_packed(blocks: list[dict[str, str]]) -> None:
    one, other = spdy.Headers(), spdy.Headers()
    for block in blocks:
        assert other.unpack(one.pack(block)) == block


@pytest.mark.parametrize(
    "wire", [b"\x80\x02\x00\x06\x00\x00\x00\x04\x00\x00\x00\x01", b"\x80\x03\x00\x01\x00\xff\xff\xff"]
)
def test_other_versions_and_giants_are_refused(wire: bytes) -> None:
    with pytest.raises(spdy.SPDYError):
        spdy.Decoder().feed(wire)


def test_headers_that_unpack_to_too_much_are_refused() -> None:
    bomb = spdy.Headers().pack({"x": "a" * (2 << 20)})
    with pytest.raises(spdy.SPDYError):
        spdy.Headers().unpack(bomb)


# -- sessions


class Pipe:
    """One end of a connection in memory; what was written is read at the other."""

    def __init__(self) -> None:
        self.queue: asyncio.Queue[bytes] = asyncio.Queue()
        self.other: Pipe

    async def read(self) -> bytes:
        return await self.queue.get()

    def write(self, data: bytes) -> None:
        self.other.queue.put_nowait(data)

    async def drain(self) -> None: ...

    def close(self) -> None:
        self.other.queue.put_nowait(b"")


@contextlib.asynccontextmanager
async def sessions(accept: Callable[[Stream], bool]) -> AsyncIterator[tuple[Session, Session]]:
    near, far = Pipe(), Pipe()
    near.other, far.other = far, near
    client, server = Session(near, server=False), Session(far, server=True, accept=accept)
    tasks = [asyncio.create_task(each.run()) for each in (client, server)]
    try:
        yield client, server
    finally:
        for task in tasks:
            task.cancel()


async def test_streams_carry_headers_and_data_both_ways_and_end_apart() -> None:
    accepted: list[Stream] = []
    async with sessions(lambda stream: accepted.append(stream) is None) as (client, _):
        mine = await client.open({"streamType": "stdin"})
        [theirs] = accepted
        assert theirs.headers == {"streamtype": "stdin"}
        mine.write(b"x" * 200_000)
        mine.finish()
        assert await theirs.read_all() == b"x" * 200_000
        theirs.write(b"answer")
        theirs.finish()
        assert await mine.read_all() == b"answer"
        mine.write(b"too late")


async def test_streams_have_distinct_numbers_and_data() -> None:
    accepted: list[Stream] = []
    async with sessions(lambda stream: accepted.append(stream) is None) as (client, _):
        streams = [await client.open({"n": str(index)}) for index in range(3)]
        assert [each.number for each in streams] == [1, 3, 5]
        for each in reversed(streams):
            each.write(each.headers["n"].encode())
            each.finish()
        assert [await each.read_all() for each in accepted] == [b"0", b"1", b"2"]


async def test_a_stream_that_is_not_accepted_is_reset() -> None:
    async with sessions(lambda stream: False) as (client, _):
        with pytest.raises(StreamReset):
            await client.open({})


async def test_a_reset_ends_both_directions_at_once() -> None:
    accepted: list[Stream] = []
    async with sessions(lambda stream: accepted.append(stream) is None) as (client, _):
        mine = await client.open({})
        accepted[0].reset()
        assert await mine.read_all() == b""
        assert mine.was_reset
        with pytest.raises(StreamReset):
            await mine.drain()


async def test_the_end_of_the_connection_is_the_end_of_all_streams() -> None:
    accepted: list[Stream] = []
    async with sessions(lambda stream: accepted.append(stream) is None) as (client, server):
        mine = await client.open({})
        server.close()
        assert await mine.read() == b""
        with pytest.raises(StreamReset):
            await client.open({})


async def test_reading_ahead_for_an_unread_stream_is_limited() -> None:
    accepted: list[Stream] = []
    async with sessions(lambda stream: accepted.append(stream) is None) as (client, _):
        mine = await client.open({})
        for _ in range(64):
            mine.write(b"x" * 65_536)
        for _ in range(200):
            await asyncio.sleep(0)
        assert accepted[0].unread <= 2 * UNREAD
        mine.finish()
        assert len(await accepted[0].read_all(1 << 30)) == 64 * 65_536


async def test_garbage_ends_the_connection() -> None:
    near, far = Pipe(), Pipe()
    near.other, far.other = far, near
    session = Session(far, server=True)
    near.write(b"GET / HTTP/1.1\r\n\r\n\xff\xff\xff\xff\xff\xff\xff\xff")
    near.close()
    async with asyncio.timeout(30):
        await session.run()
