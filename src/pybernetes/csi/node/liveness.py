"""Answers HTTP probes for a CSI driver: `/healthz` is 200 while the driver's Probe says that it is ready."""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from ..client import CSIClient
from ..errors import CSIError

READ_WITHIN: Final = 5.0
MAX_HEAD: Final = 8192
log = logging.getLogger(__name__)


class Liveness:
    """A server of one path, with one request for each connection."""

    def __init__(self, driver: CSIClient, within: float = 1.0) -> None:
        """`within`: seconds that the driver may take."""
        self._driver, self._within = driver, within

    async def serve(self, address: str, port: int) -> asyncio.Server:
        """Begin; the caller closes it."""
        return await asyncio.start_server(self._answer, address, port, limit=MAX_HEAD)

    async def problem(self) -> str:
        """Why the driver is not well; empty if it is."""
        try:
            response = await self._driver.call("Probe", within=self._within)
        except CSIError as error:
            return str(error)
        ready = not response.HasField("ready") or response.ready.value
        return "" if ready else "driver responded but is not ready"

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(READ_WITHIN):
                head = await reader.readuntil(b"\r\n\r\n")
            words = head.split(b"\r\n", 1)[0].split()
            if len(words) != 3 or words[1].split(b"?")[0] != b"/healthz":
                status, text = "404 Not Found", "not found"
            elif problem := await self.problem():
                log.warning("the driver is not well: %s", problem)
                status, text = "500 Internal Server Error", problem
            else:
                status, text = "200 OK", "ok"
            body = text.encode()
            writer.write(
                f"HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {len(body)}\r\n"
                "Connection: close\r\n\r\n".encode()
                + body
            )
            await writer.drain()
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # the client has gone, or does not speak HTTP
        finally:
            writer.close()
