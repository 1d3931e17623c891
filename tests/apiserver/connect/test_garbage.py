"""What is no WebSocket and no SPDY, from those who have agreed to speak it: ends their connection and nothing else."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest
from apiserver.connect.place import Place, place

from pybernetes.net.streams import spdy
from pybernetes.net.streams.websocket import Opcode, frame, new_key
from tools import ApiServer

SUBRESOURCES = (
    "exec?container=main&stdin=1&stdout=1&command=cat",
    "exec?container=main&stdin=1&stdout=1&tty=1&command=cat",
    "attach?container=main&stdin=1&stdout=1",
    "portforward?ports=80",
    "log?container=main",
)
WEBSOCKET = ("v5.channel.k8s.io", "v4.channel.k8s.io", "base64.channel.k8s.io", "SPDY/3.1+portforward.k8s.io")
MESSAGES = (b"", b"\xff", b"\xff\x00", b"\xff\x09", b"\x00hi", b"\x04{", b'\x04{"Width":-1}', b"\x09z", b"0aGk=", b"9")
FRAMES = (
    spdy.ping(0),
    spdy.ping(1),
    spdy.goaway(0),
    spdy.data(1, b"x"),
    spdy.data(77, b"x", fin=True),
    spdy.rst_stream(1, 1),
    spdy.syn_stream(1, spdy.Headers().pack({"streamType": "stdin"})),
    spdy.syn_stream(2, spdy.Headers().pack({"streamType": "error"})),
    spdy.syn_stream(3, b"garbage"),
    spdy.control(spdy.HEADERS, b""),
    spdy.control(spdy.SYN_REPLY, b"\0\0"),
    spdy.control(spdy.SYN_STREAM, b""),
    spdy.control(99, b"?"),
)


async def talk(here: Place, rnd: random.Random) -> None:
    """One client."""
    by_spdy = rnd.random() < 0.4
    headers = [("Connection", "Upgrade")]
    if by_spdy:
        protocol = rnd.choice(("v4.channel.k8s.io", "channel.k8s.io", "portforward.k8s.io"))
        headers += [("Upgrade", "SPDY/3.1"), ("X-Stream-Protocol-Version", protocol)]
    else:
        headers += [("Upgrade", "websocket"), ("Sec-WebSocket-Version", "13"), ("Sec-WebSocket-Key", new_key())]
        headers.append(("Sec-WebSocket-Protocol", rnd.choice(WEBSOCKET)))
    method = "POST" if by_spdy else "GET"
    try:
        connection, head = await here.upgrade(method, f"{here.pod}/{rnd.choice(SUBRESOURCES)}", headers)
        assert head.status in (101, 400, 403, 405), head.raw
        for _ in range(rnd.randrange(1, 6)):
            if rnd.random() < 0.3:
                connection.write(rnd.randbytes(rnd.randrange(1, 2000)))
            elif by_spdy:
                connection.write(rnd.choice(FRAMES))
            else:
                connection.write(frame(rnd.choice(list(Opcode)), rnd.choice(MESSAGES), mask=rnd.random() < 0.9))
            await connection.drain()
        connection.abort()
    except ConnectionError:
        pass


@pytest.mark.parametrize("features", [[], ["ExtendWebSocketsToKubelet"]], ids=["by the API server", "by the kubelet"])
async def test_garbage_ends_its_own_connection_only(connected: ApiServer, tmp_path: Path, features: list[str]) -> None:
    log = connected.folder / "apiserver.log"
    before = log.read_text().count("Traceback")
    async with place(connected, tmp_path, features=features) as here, asyncio.timeout(60):
        (here.runtime.logs / "main-1.log").write_text("2026-01-01T00:00:01Z stdout F one\n")
        faults: list[object] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: faults.append(context))
        rnd = random.Random(7)
        for _ in range(8):
            await asyncio.gather(*(talk(here, rnd) for _ in range(10)))
        await here.idle()
        assert (await here.ask("GET", here.pod)).status == 200
        assert not faults
    assert log.read_text().count("Traceback") == before
