"""The sockets of the DNS server: UDP and TCP on the same addresses.

A datagram that was answered before is answered with the same bytes; everything else goes to the resolver, at most
`MAX_PENDING` questions at a time. Whatever a datagram holds, only its sender gets an error, and one client can have no
more than a part of the questions and connections: a pod that asks without end does not take others' answers.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import struct
import time
from collections import Counter
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

from .cache import Answer, Cache, Packets
from .message import (
    BADVERS,
    IN,
    NOTIMP,
    REFUSED,
    SERVFAIL,
    FormatError,
    Query,
    parse,
    reject,
    respond,
)
from .resolver import Resolver

BATCH = 64
"""Datagrams that are read before other work on the event loop has its turn."""
MAX_PENDING = 2000
MAX_CONNECTIONS = 1000
CLIENT_PENDING, CLIENT_CONNECTIONS = 250, 100
"""Of one address."""
IDLE = 10.0
"""Seconds after which a TCP connection without a query is closed: CoreDNS's idle timeout."""
ANY_CLASS = 255
ATTEMPTS = 20
log = logging.getLogger(__name__)


class DNSServer:
    """Serves one resolver on any number of addresses; `resolver` may be replaced while it runs."""

    def __init__(self, resolver: Resolver) -> None:
        self._resolver = resolver
        self._cache = Cache()
        self._packets = Packets()
        self._sockets: list[socket.socket] = []
        self._servers: list[asyncio.Server] = []
        self._pending: set[asyncio.Task[None]] = set()
        self._pending_of: Counter[str] = Counter()
        self._connections: Counter[str] = Counter()
        self.responses: Counter[int] = Counter()
        """Responses by code."""
        self.requests: Counter[str] = Counter()
        """Requests by transport."""
        self.from_packets = 0
        """Responses over UDP that were kept whole."""

    @property
    def resolver(self) -> Resolver:
        """The resolver for queries that are not in the cache."""
        return self._resolver

    @resolver.setter
    def resolver(self, new: Resolver) -> None:
        self._resolver, self._cache, self._packets = new, Cache(), Packets()

    @property
    def cache(self) -> Cache:
        """The answers that are kept."""
        return self._cache

    async def start(self, address: str, port: int) -> int:
        """Serve UDP and TCP on an address; the port. OSError if it is taken."""
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        # Any port (0) is free for UDP, and may be taken for TCP.
        for attempt in range(1 if port else ATTEMPTS):
            udp = socket.socket(family, socket.SOCK_DGRAM)
            try:
                udp.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
                udp.setblocking(False)
                udp.bind((address, port))
                found: int = udp.getsockname()[1]
                server = await asyncio.start_server(self._serve_connection, address, found, family=family, backlog=256)
                break
            except BaseException as error:
                udp.close()
                if port or attempt == ATTEMPTS - 1 or not isinstance(error, OSError):
                    raise
        asyncio.get_running_loop().add_reader(udp, self._read, udp)
        self._sockets.append(udp)
        self._servers.append(server)
        return found

    async def stop(self) -> None:
        """Close the sockets and drop what is pending."""
        loop = asyncio.get_running_loop()
        for each in self._sockets:
            loop.remove_reader(each)
            each.close()
        for server in self._servers:
            server.close()
        pending = list(self._pending)
        for task in pending:
            task.cancel()
        await asyncio.gather(*pending, return_exceptions=True)

    def _read(self, sock: socket.socket) -> None:
        receive, send, find, requests = sock.recvfrom, sock.sendto, self._packets.get, self.requests
        now, generation = time.monotonic(), self._resolver.generation
        for _ in range(BATCH):
            try:
                data, peer = receive(4096)
                requests["udp"] += 1
                packet = find(data[2:], generation, now)
                if packet is not None:
                    self.from_packets += 1
                    send(data[:2] + packet, peer)
                    continue
            except (BlockingIOError, InterruptedError):
                return
            except OSError as error:  # an ICMP error for a response of ours
                log.debug("UDP: %s", error)
                continue
            try:
                self._datagram(sock, data, peer)
            except Exception:  # one datagram must not stop the others
                log.exception("a datagram from %s could not be answered", peer[0])

    def _datagram(self, sock: socket.socket, data: bytes, peer: tuple[str, int]) -> None:
        try:
            query = parse(data)
        except FormatError:
            if refusal := reject(data):
                _send(sock, refusal, peer)
            return
        response = self._at_once(query, peer[0], query.size)
        if response is not None:
            _send(sock, response, peer)
            self._keep_packet(data, query)
        elif not self._start(peer[0], self._answer_datagram, sock, query, peer):
            _send(sock, self._respond(query, Answer(SERVFAIL, False, query.name, ()), query.size), peer)

    def _start(self, client: str, work: Callable[..., Coroutine[Any, Any, None]], *arguments: Any) -> bool:
        """Begins what takes longer, unless the client or all together have enough under way; whether it was begun."""
        if len(self._pending) >= MAX_PENDING or self._pending_of[client] >= CLIENT_PENDING:
            return False
        self._pending_of[client] += 1
        task = asyncio.get_running_loop().create_task(work(*arguments))
        self._pending.add(task)
        task.add_done_callback(partial(self._done, client))
        return True

    def _done(self, client: str, task: asyncio.Task[None]) -> None:
        self._pending.discard(task)
        _count_down(self._pending_of, client)

    def _keep_packet(self, data: bytes, query: Query) -> None:
        """Answer the same query by the same bytes from now on, if the answer does not depend on who asks."""
        now = time.monotonic()
        found = self._cache.get((query.question, ""), self._resolver.generation, now)
        if found is not None and found.answers and not found.is_due(now):
            found.body(now)
            answers = [
                respond(query, found.rcode, body, authoritative=found.authoritative, limit=query.size)[2:]
                for body in found.bodies
            ]
            self._packets.put(data[2:], found, answers, now)

    async def _answer_datagram(self, sock: socket.socket, query: Query, peer: tuple[str, int]) -> None:
        _send(sock, await self._later(query, peer[0], query.size), peer)

    async def _serve_connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        source = (writer.get_extra_info("peername") or ("",))[0]
        if self._connections.total() >= MAX_CONNECTIONS or self._connections[source] >= CLIENT_CONNECTIONS:
            writer.close()
            return
        self._connections[source] += 1
        try:
            while True:
                async with asyncio.timeout(IDLE):
                    (length,) = struct.unpack("!H", await reader.readexactly(2))
                    data = await reader.readexactly(length)
                self.requests["tcp"] += 1
                try:
                    query = parse(data)
                except FormatError:
                    return
                response = self._at_once(query, source, 0xFFFF) or await self._later(query, source, 0xFFFF)
                writer.write(struct.pack("!H", len(response)) + response)
                async with asyncio.timeout(IDLE):
                    await writer.drain()
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass
        finally:
            _count_down(self._connections, source)
            writer.close()

    def _at_once(self, query: Query, source: str, limit: int) -> bytes | None:
        """The response, if no other server has to be asked for it."""
        if query.opcode or query.cls not in (IN, ANY_CLASS) or query.edns > 0:
            rcode = NOTIMP if query.opcode else BADVERS if query.edns > 0 else REFUSED
            self.responses[rcode] += 1
            return respond(query, rcode)
        resolver = self._resolver
        applies = resolver.autopath_base(query, source)
        key = (query.question, applies[1] if applies else "")
        now = time.monotonic()
        generation = resolver.generation
        found = self._cache.get(key, generation, now)
        if found is not None:
            if found.is_due(now):
                self._prefetch(found, query, source)
            return self._respond(query, found, limit)
        if applies:
            return None
        found = resolver.now(query.name, query.type)
        if found is None:
            return None
        self._cache.put(key, found, generation)
        return self._respond(query, found, limit)

    async def _later(self, query: Query, source: str, limit: int) -> bytes:
        """The response, by asking other servers. A failure of ours is SERVFAIL, and logged."""
        try:
            found = await self._fetch(query, source)
        except Exception:
            log.exception("%s type %d could not be resolved", query.name, query.type)
            found = Answer(SERVFAIL, False, query.name, ())
        return self._respond(query, found, limit)

    async def _fetch(self, query: Query, source: str, *, only_found: bool = False) -> Answer:
        resolver, generation = self._resolver, self._resolver.generation
        applies = resolver.autopath_base(query, source)
        found = await resolver.along_search_path(query, source) if applies else None
        if found is None:
            found = await resolver.find(query.name, query.type)
        if resolver is self._resolver and not (only_found and found.rcode == SERVFAIL):
            self._cache.put((query.question, applies[1] if applies else ""), found, generation)
        return found

    def _prefetch(self, answer: Answer, query: Query, source: str) -> None:
        """Fetch an answer anew before it ends, once. If that fails it is given until it ends."""
        answer.renewing = self._start(source, self._renew, query, source)

    async def _renew(self, query: Query, source: str) -> None:
        try:
            await self._fetch(query, source, only_found=True)
        except Exception:
            log.exception("%s type %d could not be fetched anew", query.name, query.type)

    def _respond(self, query: Query, answer: Answer, limit: int) -> bytes:
        self.responses[answer.rcode] += 1
        body = answer.body(time.monotonic())
        return respond(query, answer.rcode, body, authoritative=answer.authoritative, limit=limit)


def _count_down(counter: Counter[str], key: str) -> None:
    counter[key] -= 1
    if not counter[key]:
        del counter[key]


def _send(sock: socket.socket, data: bytes, peer: tuple[str, int]) -> None:
    try:
        sock.sendto(data, peer)
    except OSError as error:  # the peer is gone, or the buffer is full: it asks again
        log.debug("UDP to %s: %s", peer[0], error)
