"""One lease of one pod's link: DISCOVER and REQUEST, then renewed until the pod goes.

The exchange runs in a thread inside the pod's network namespace; between exchanges nothing runs but a timer. Answers
are asked for by broadcast, since the link has no address before.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import socket
import struct
import time
from collections.abc import Callable

from pybernetes.cni.errors import TRY_AGAIN_LATER, CNIError, NamespaceNotFound
from pybernetes.cni.netlink.namespace import Namespace
from pybernetes.cni.netlink.rtnl import LinkNotFound, Netlink, mac_bytes
from pybernetes.component import offload

from . import message
from .message import ACK, NAK, OFFER, Answer, IPv4, MessageError

SERVER_PORT, CLIENT_PORT = 67, 68
TRIES = (1.0, 2.0, 4.0)
"""Seconds that each try waits for an answer."""
EXCHANGE_WITHIN = 2 * sum(TRIES) + 10.0
"""Seconds that an exchange takes at most; that is longer than its tries."""
LEAST_WAIT = 1.0
_SO_BINDTODEVICE = 25
log = logging.getLogger(__name__)


class Lease:
    """A lease; `obtain` first, then `maintain` until cancelled, `release` at the end."""

    def __init__(self, client_id: str, netns: str, ifname: str, *, server_port: int = SERVER_PORT) -> None:
        self.client_id, self.netns, self.ifname = client_id, netns, ifname
        self._server_port = server_port
        self.answer: Answer | None = None
        self.failures = 0

    async def obtain(self) -> Answer:
        """Asks for an address; `CNIError` if no server gives one."""
        self.answer = await self._offload(self._obtain)
        return self.answer

    async def maintain(self, *, at_once: bool = False) -> None:
        """Renews the lease in time, or `at_once` where its age is unknown.

        When it has expired the link goes down, because the address may no longer be used.
        """
        while self.answer is not None and (times := self.answer.times()) is not None:
            renewal, rebinding, end = times
            began = time.monotonic()
            await asyncio.sleep(0 if at_once else renewal)
            at_once = False
            while (now := time.monotonic() - began) < end:
                try:
                    server = self.answer.server if now < rebinding else None
                    self.answer = await self._offload(self._renew, server)
                    break
                except (NamespaceNotFound, LinkNotFound):
                    return
                except (CNIError, OSError, ValueError, offload.Overdue) as error:
                    self.failures += 1
                    log.warning("lease of %s: not renewed: %s", self.client_id, error)
                next_end = rebinding if now < rebinding else end
                await asyncio.sleep(max(LEAST_WAIT, min((next_end - now) / 2, 60.0)))
            else:
                log.error("lease of %s: it is over, %s goes down", self.client_id, self.ifname)
                with contextlib.suppress(CNIError, OSError, offload.Overdue):
                    await self._offload(self._down)
                return

    async def release(self) -> None:
        """Gives the address back; a pod that is gone has lost it."""
        if self.answer is not None:
            with contextlib.suppress(CNIError, OSError, ValueError, offload.Overdue):
                await self._offload(self._release)

    # In the pod's namespace

    async def _offload(self, function: Callable[..., Answer | None], *args: object) -> Answer:
        return await offload.run(f"DHCP of {self.client_id}", EXCHANGE_WITHIN, self._inside, function, *args)

    def _inside(self, function: Callable[..., Answer | None], *args: object) -> Answer:
        with Namespace(self.netns) as netns:
            return netns.run(function, *args)  # type: ignore[return-value]

    def _mac(self) -> bytes:
        with Netlink() as links:
            link = links.link(self.ifname)
            if not link.up:
                links.set_link(link.index, up=True)
            return mac_bytes(link.mac)

    def _options(self) -> dict[int, bytes]:
        return {
            message.CLIENT_ID: b"\0" + self.client_id.encode()[:250],
            message.MAX_SIZE: struct.pack("!H", 1472),
            message.PARAMETERS: bytes(message.WANTED),
        }

    def _obtain(self) -> Answer:
        mac = self._mac()
        with self._socket() as sock:
            offer = self._exchange(sock, mac, message.DISCOVER, self._options(), (OFFER,))
            chosen = {message.REQUESTED: offer.address.packed, message.SERVER: offer.server.packed}
            return self._granted(self._exchange(sock, mac, message.REQUEST, {**self._options(), **chosen}, (ACK, NAK)))

    def _renew(self, server: IPv4 | None) -> Answer:
        """Asks the server, or any (None), to let us keep the address."""
        assert self.answer is not None
        own, mac = self.answer.address, self._mac()
        with self._socket("" if server is None else str(own)) as sock:
            to = "255.255.255.255" if server is None else str(server)
            found = self._exchange(sock, mac, message.REQUEST, self._options(), (ACK, NAK), own=own, to=to)
        return self._granted(found)

    def _granted(self, answer: Answer) -> Answer:
        if answer.kind == NAK:
            raise CNIError("the DHCP server refuses the address", TRY_AGAIN_LATER)
        return answer

    def _release(self) -> None:
        assert self.answer is not None
        options = {message.CLIENT_ID: self._options()[message.CLIENT_ID], message.SERVER: self.answer.server.packed}
        data = message.pack(
            message.RELEASE, random.getrandbits(32), self._mac(), options, address=self.answer.address, broadcast=False
        )
        with self._socket(str(self.answer.address)) as sock:
            sock.sendto(data, (str(self.answer.server), self._server_port))

    def _down(self) -> None:
        with Netlink() as links:
            links.set_link(links.link(self.ifname).index, up=False)

    def _socket(self, address: str = "") -> socket.socket:
        sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
            sock.setsockopt(socket.SOL_SOCKET, _SO_BINDTODEVICE, self.ifname.encode())
            sock.bind((address, CLIENT_PORT))
        except BaseException:
            sock.close()
            raise
        return sock

    def _exchange(
        self,
        sock: socket.socket,
        mac: bytes,
        kind: int,
        options: dict[int, bytes],
        expected: tuple[int, ...],
        *,
        own: IPv4 = message.NO_ADDRESS,
        to: str = "255.255.255.255",
    ) -> Answer:
        """Sends a message until an answer of an expected type comes."""
        transaction = random.getrandbits(32)
        data = message.pack(kind, transaction, mac, options, address=own, broadcast=not int(own))
        for wait in TRIES:
            sock.sendto(data, (to, self._server_port))
            deadline = time.monotonic() + wait
            while (left := deadline - time.monotonic()) > 0:
                sock.settimeout(left)
                try:
                    found = message.read(sock.recv(4096))
                    if found.transaction == transaction and found.mac == mac and found.kind in expected:
                        if found.kind != NAK:
                            found.interface, found.server, found.routes()  # refuse what cannot be used
                        return found
                except TimeoutError:
                    break
                except MessageError as error:
                    log.debug("DHCP on %s: %s", self.ifname, error)
        raise CNIError("no DHCP server answers", TRY_AGAIN_LATER)
