"""The ports where clients come in: each of some addresses, in the clear and by TLS.

An address whose port is taken is tried again until it is free; the others serve meanwhile.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Sequence

from pybernetes.net import acceptor

from .certificates import Certificates
from .frontend import Server

log = logging.getLogger(__name__)
RETRY = 10.0


class Listeners:
    """The listening sockets."""

    def __init__(
        self,
        server: Server,
        certificates: Certificates,
        addresses: Sequence[str],
        http_port: int,
        https_port: int,
        made: Sequence[socket.socket] = (),
    ) -> None:
        """A port 0 is not served. `made`: sockets that listen already."""
        self._made, self._https_port = list(made), https_port
        self._server, self._certificates = server, certificates
        self._wanted = [
            (each, port, tls) for each in addresses for port, tls in ((http_port, 0), (https_port, 1)) if port
        ]
        self._open: dict[tuple[str, int, int], asyncio.Server] = {}
        self._told: set[tuple[str, int, int]] = set()

    async def run(self, changed: Callable[[], object]) -> None:
        """Listen until cancelled; `changed` is called when an address was added."""
        for each in self._made:
            tls = int(each.getsockname()[1] == self._https_port)
            where = (*each.getsockname()[:2], tls)
            self._open[where] = await asyncio.get_running_loop().create_server(self._protocol(tls), sock=each)
        self._wanted += [each for each in self._open if each not in self._wanted]
        self._made.clear()
        try:
            while True:
                before = len(self._open)
                for where in self._wanted:
                    if where not in self._open:
                        await self._listen(where)
                if len(self._open) > before or not before:
                    changed()
                if len(self._open) == len(self._wanted):
                    await asyncio.Event().wait()
                await asyncio.sleep(RETRY)
        finally:
            self.close()

    def close(self) -> None:
        """Take no new connections."""
        for each in self._open.values():
            each.close()
        self._open.clear()

    @property
    def addresses(self) -> list[str]:
        """Where clients are served."""
        return list(dict.fromkeys(address for address, _, _ in self._open))

    def ports(self) -> list[int]:
        """The ports in use, those in the clear first."""
        return list(dict.fromkeys(port for _, port, _ in sorted(self._open, key=lambda each: each[2])))

    def _protocol(self, tls: int) -> Callable[[], asyncio.Protocol]:
        return acceptor.securely(self._server, self._certificates) if tls else self._server

    async def _listen(self, where: tuple[str, int, int]) -> None:
        address, port, tls = where
        try:
            self._open[where] = await asyncio.get_running_loop().create_server(
                self._protocol(tls), address, port, backlog=1024, reuse_address=True
            )
        except OSError as error:
            if where not in self._told:
                self._told.add(where)
                log.warning(
                    "cannot listen at %s port %d, tried again every %.0f s: %s",
                    *(address, port, RETRY, error.strerror or error),
                )
        else:
            log.info("listening at %s port %d (%s)", address, port, "https" if tls else "http")
