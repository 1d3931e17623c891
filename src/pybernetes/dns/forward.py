"""Asks other DNS servers.

Each query has a socket of its own, connected, with a random port and id, so that its response cannot be forged. Servers
are asked in order, those that did not answer last; a truncated answer is fetched over TCP. Equal queries at the same
time are one. A server that leads back to us is found by a query with a random name and not asked again.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import struct
import time
from collections.abc import Sequence

from .corefile import MAX_CONCURRENT
from .message import HINFO, FormatError, Reply, ask, read_reply

TIMEOUT = 2.0
"""Seconds for one server."""
DEADLINE = 5.0
"""Seconds for all of them: what CoreDNS takes."""
PENALTY = 10.0
"""Seconds for which a server that did not answer is asked last."""
log = logging.getLogger(__name__)

Address = tuple[str, int]


class Unanswered(Exception):
    """No server has answered."""


class Forwarder:
    """The upstream servers of a zone."""

    def __init__(self, servers: Sequence[Address], *, max_concurrent: int = MAX_CONCURRENT) -> None:
        self.servers = tuple(servers)
        self.loop_name = f"{secrets.token_hex(8)}.{secrets.token_hex(4)}"
        """A query for HINFO of this name comes from this server itself: a loop."""
        self.looping = False
        self.requests = self.failures = 0
        self._bad: dict[Address, float] = {}
        self._max_concurrent = max_concurrent
        self._asking: dict[tuple[str, int], asyncio.Task[Reply]] = {}

    async def ask(self, name: str, kind: int) -> Reply:
        """The answer of the first server that gives one. `Unanswered` if none does in time."""
        if self.looping:
            raise Unanswered("the upstream servers lead back to this one")
        key = (name, kind)
        task = self._asking.get(key)
        if task is None:
            if len(self._asking) >= self._max_concurrent:
                raise Unanswered(f"{self._max_concurrent} queries are being forwarded already")
            task = self._asking[key] = asyncio.ensure_future(self._ask(name, kind))
            task.add_done_callback(lambda done: self._forget(key, done))
        return await asyncio.shield(task)

    async def detect_loop(self) -> None:
        """Ask for the random name; the server that receives it calls `loops_back`."""
        if self.servers:
            try:
                await self._ask(self.loop_name, HINFO)
            except Unanswered:
                pass

    def loops_back(self, name: str, kind: int) -> bool:
        """Whether a query that was received is our own; then the upstream servers are not asked again."""
        if kind != HINFO or name != self.loop_name:
            return False
        self.looping = True
        log.error(
            "the upstream servers %s lead back to this server; names outside of the cluster do not resolve",
            ", ".join(f"{host}:{port}" for host, port in self.servers),
        )
        return True

    def _forget(self, key: tuple[str, int], task: asyncio.Task[Reply]) -> None:
        self._asking.pop(key, None)
        if not task.cancelled():
            task.exception()

    async def _ask(self, name: str, kind: int) -> Reply:
        now = time.monotonic()
        servers = sorted(self.servers, key=lambda each: self._bad.get(each, 0.0) > now)
        reason = "there are no upstream servers"
        try:
            async with asyncio.timeout(DEADLINE):
                for server in servers:
                    self.requests += 1
                    try:
                        reply = await _exchange(server, name, kind)
                    except (OSError, TimeoutError, FormatError) as error:
                        self.failures += 1
                        self._bad[server] = time.monotonic() + PENALTY
                        reason = f"{server[0]}:{server[1]}: {error or 'no answer'}"
                        continue
                    self._bad.pop(server, None)
                    return reply
        except TimeoutError:
            reason = f"no answer within {DEADLINE:g} s"
        raise Unanswered(reason)


async def _exchange(server: Address, name: str, kind: int) -> Reply:
    id_ = secrets.randbits(16)
    query = ask(id_, name, kind)
    async with asyncio.timeout(TIMEOUT):
        loop = asyncio.get_running_loop()
        transport, protocol = await loop.create_datagram_endpoint(
            lambda: _Datagrams(id_, name, kind), remote_addr=server
        )
        try:
            transport.sendto(query)
            reply = await protocol.reply
        finally:
            transport.close()
    if not reply.truncated:
        return reply
    async with asyncio.timeout(TIMEOUT):
        reader, writer = await asyncio.open_connection(*server)
        try:
            writer.write(struct.pack("!H", len(query)) + query)
            (length,) = struct.unpack("!H", await reader.readexactly(2))
            return read_reply(await reader.readexactly(length), id_, name, kind)
        except asyncio.IncompleteReadError:
            raise ConnectionResetError("the server closed the connection") from None
        finally:
            writer.close()


class _Datagrams(asyncio.DatagramProtocol):
    """Waits for the one datagram that answers; others are not ours."""

    def __init__(self, id_: int, name: str, kind: int) -> None:
        self._expected = (id_, name, kind)
        self.reply: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()

    def datagram_received(self, data: bytes, _addr: object) -> None:
        try:
            reply = read_reply(data, *self._expected)
        except FormatError:
            return
        if not self.reply.done():
            self.reply.set_result(reply)

    def error_received(self, error: Exception) -> None:
        if not self.reply.done():
            self.reply.set_exception(error)
