"""`/debug/pyb/trace/spans`: what all components have done lately, behind RBAC like any path.

POST hands in a batch; components do so half a second after something has happened, and never otherwise. GET answers
one line of JSON with the number to go on `after`, then the batches, one a line, and what goes on now.
The server's own spans take the same way into the store, without a request. Without a folder the store is in memory
alone. With `--tracing-config-file` all of them are exported as well (`client.otlp`): components need no configuration
of their own.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from pybernetes.api.errors import BadRequest, MethodNotAllowed, RequestEntityTooLarge
from pybernetes.component.tasks import Tasks
from pybernetes.net.http import Request, Response
from pybernetes.trace import recorder
from pybernetes.trace.configuration import Tracing
from pybernetes.trace.recorder import Recorder
from pybernetes.trace.span import Batch, Span, decoder, encoder
from pybernetes.trace.store import SIZE, SPANS, SpanStore

if TYPE_CHECKING:
    from pybernetes.client.otlp import Exporter

__all__ = ["SPANS", "Traces"]

LARGEST = 1 << 20  # bytes of a batch that a component may hand in
GATHER = 0.5  # seconds from the first span to its batch
MOST = 1000  # spans of a batch


class EncodingRecorder(Recorder):
    """Encodes each span when it ends: later it would cost four times as much, and hold up the garbage collector."""

    def __init__(self, service: str) -> None:
        super().__init__(service)
        self.encoded: list[bytes] = []
        """At most `limit`; MOST of them become a batch."""

    def add(self, span: Span) -> None:
        """Keep a finished span until its batch is made."""
        if len(self.encoded) >= self.limit:
            self.dropped += 1
            return
        self.encoded.append(encoder.encode(span))
        self.notify()


class Traces:
    """The recorder of this process, and the store of all components' spans."""

    def __init__(self, folder: Path | None, tracing: Tracing | None = None, size: int = SIZE) -> None:
        self.recorder = recorder.install(EncodingRecorder("apiserver"))
        self.recorder.notify = self._notify
        self.store = SpanStore(folder, size)
        self._timer: asyncio.TimerHandle | None = None
        self._written = asyncio.Event()
        self._tasks = Tasks("traces")
        self._on_disk = folder is not None
        if self._on_disk:
            self._tasks.start("span-log", self._write)
        self._exporter: Exporter | None = None
        if tracing is not None:
            from pybernetes.client.otlp import Exporter

            self._exporter = Exporter(tracing)
            self._tasks.start("span-export", self._exporter.run)

    async def __call__(self, request: Request) -> Response:
        """GET `?after=<number>&since=<seconds since 1970>`, or POST."""
        if request.method == "POST":
            self._take(request)
            return Response(b"{}\n")
        if request.method != "GET":
            raise MethodNotAllowed
        self._gather()
        query = request.info.query
        try:
            after, since = int(query.get("after", "0")), float(query.get("since", "0"))
        except ValueError as error:
            raise BadRequest(f"after and since must be numbers: {error}") from None
        going_on = [span for span in self.recorder.open.values() if span.start]
        lines = [msgspec.json.encode({"next": self.store.next - 1, "dropped": self.recorder.dropped})]
        lines += self.store.after(after, since)
        lines.append(encoder.encode(Batch(going_on)))
        return Response(b"\n".join(lines) + b"\n", content_type="application/x-ndjson")

    def spans(self) -> list[Span]:
        """All that is kept, for who is in the same process."""
        self._gather()
        return [span for raw in self.store.after() for span in decoder.decode(raw).spans]

    async def close(self) -> None:
        """Write what is left, and record nothing more."""
        if self._timer is not None:
            self._timer.cancel()
        self._gather()
        await self._tasks.stop()
        await asyncio.to_thread(self.store.write)
        if recorder.RECORDER is self.recorder:
            recorder.stop()

    def _take(self, request: Request) -> None:
        """Keep a batch of a component. What is no batch is refused: a reader would fail on it. Raises APIError."""
        if len(request.body) > LARGEST:
            raise RequestEntityTooLarge(f"a batch of spans has {LARGEST} bytes at most")
        try:
            batch = decoder.decode(request.body)
        except msgspec.DecodeError as error:
            raise BadRequest(f"not a batch of spans: {error}") from None
        self._add(encoder.encode(batch))

    def _notify(self) -> None:
        # A store in memory is filled when it is read: no timer moves a test cluster's time.
        waits_for_nobody = not self._on_disk and self._exporter is None
        if self._timer is None and not waits_for_nobody:
            self._timer = asyncio.get_running_loop().call_later(GATHER, self._due)
        elif len(self.recorder.encoded) >= MOST:
            self._gather()

    def _due(self) -> None:
        self._timer = None
        self._gather()

    def _gather(self) -> None:
        spans, self.recorder.encoded = self.recorder.encoded, []
        for first in range(0, len(spans), MOST):
            self._add(b'{"spans":[%b]}' % b",".join(spans[first : first + MOST]))

    def _add(self, raw: bytes) -> None:
        self.store.add(raw)
        if self._exporter is not None:
            self._exporter.add(decoder.decode(raw).spans)
        self._written.set()

    async def _write(self) -> None:
        """Append to the log on disk, in a thread: a slow disk holds up nothing else."""
        while True:
            await self._written.wait()
            self._written.clear()
            await asyncio.to_thread(self.store.write)
