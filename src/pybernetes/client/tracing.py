"""Sends the spans of a component to the API server, half a second after something happened and never otherwise.

A server that refuses them (another implementation, no permission) ends the recording of this process: one line in the
log, and nothing is recorded or sent any more. While the server is away spans wait, as many as the recorder keeps.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import TYPE_CHECKING

from pybernetes.api import errors
from pybernetes.component.tasks import Tasks
from pybernetes.trace import recorder
from pybernetes.trace.configuration import Tracing
from pybernetes.trace.recorder import Recorder
from pybernetes.trace.span import Batch, Span, encoder
from pybernetes.trace.store import SPANS

from .client import Client

if TYPE_CHECKING:
    from .otlp import Exporter

GATHER = 0.5  # seconds
MOST = 1000  # spans of a batch
LATER = 5.0  # seconds until the next attempt after a failure
FAREWELL = 1.0  # seconds for the last batch of a process that ends
log = logging.getLogger(__name__)


class Sender:
    """Waits for spans of this process and sends them."""

    def __init__(
        self, client: Client, source: Recorder, exporter: Exporter | None = None, *, sends: bool = True
    ) -> None:
        self._client = client
        self._exporter = exporter
        self._sends = sends
        self._recorder = source
        self._news = asyncio.Event()
        source.notify = self._news.set

    async def run(self) -> None:
        """Send until cancelled, or refused."""
        while True:
            await self._news.wait()
            await asyncio.sleep(GATHER)
            self._news.clear()
            try:
                await self.flush()
            except (errors.NotFound, errors.PathNotFound, errors.Forbidden, errors.Unauthorized) as error:
                log.info("spans are not sent any more, the server does not take them: %s", error)
                if self._exporter is not None:
                    self._sends = False
                    continue
                if recorder.RECORDER is self._recorder:
                    recorder.stop()
                self._recorder.notify = _ignore
                return
            except (errors.APIError, OSError, TimeoutError) as error:
                log.debug("spans wait: %s", error)
                self._news.set()
                await asyncio.sleep(LATER)

    async def close(self) -> None:
        """Send what is left, if the server takes it at once."""
        with contextlib.suppress(errors.APIError, OSError, TimeoutError):
            async with asyncio.timeout(FAREWELL):
                await self.flush()

    async def flush(self) -> None:
        """Send what has finished. What cannot be sent now is kept."""
        spans = self._recorder.take()
        while spans:
            batch, spans = spans[:MOST], spans[MOST:]
            try:
                await self._send(batch)
            except BaseException:
                self._recorder.finished[:0] = [*batch, *spans]
                raise

    async def _send(self, batch: list[Span]) -> None:
        if self._exporter is not None:
            self._exporter.add(batch)
        if not self._sends:
            return
        await self._client.transport.request("POST", SPANS, body=encoder.encode(Batch(batch)))


def start(service: str, client: Client, tasks: Tasks, exported: Tracing | None = None) -> Sender | None:
    """Record what this process does and send it, if it was started to (`trace.VARIABLE`) or is to export it."""
    sends = recorder.wanted()
    if not sends and exported is None:
        return None
    exporter = None
    if exported is not None:
        from .otlp import Exporter

        exporter = Exporter(exported)
        tasks.start("span export", exporter.run)
    sender = Sender(client, recorder.start(service), exporter, sends=sends)
    tasks.start("spans", sender.run)
    return sender


def _ignore() -> None:
    pass
