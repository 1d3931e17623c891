"""A watch: the changes of a collection as they happen, line by line."""

from __future__ import annotations

from collections.abc import AsyncIterator
from types import TracebackType
from typing import Generic, NamedTuple, TypeVar

import msgspec

from pybernetes.api import errors
from pybernetes.api.base import Kind

from . import codec
from .http import Headers, Stream
from .transport import Transport

K = TypeVar("K", bound=Kind)

ADDED, MODIFIED, DELETED, BOOKMARK = "ADDED", "MODIFIED", "DELETED", "BOOKMARK"
INITIAL_EVENTS_END = "k8s.io/initial-events-end"


class Event(NamedTuple, Generic[K]):
    """A change. A BOOKMARK's object has nothing but a resourceVersion, and annotations."""

    type: str
    object: K


class Watch(Generic[K]):
    """`async with client.watch(Pod, ...) as events: async for event in events: ...`

    Ends when the server ends it, which it does after some minutes: go on from the last resourceVersion. An ERROR event
    is raised as the exception it stands for (`errors.ResourceExpired`: list again).
    """

    def __init__(self, transport: Transport, kind: type[K], target: str, headers: Headers) -> None:
        self._transport = transport
        self._kind = kind
        self._target = target
        self._headers = headers
        self._stream: Stream | None = None

    async def __aenter__(self) -> Watch[K]:
        self._stream = await self._transport.stream("GET", self._target, headers=self._headers)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._stream:
            self._stream.close()

    async def __aiter__(self) -> AsyncIterator[Event[K]]:
        assert self._stream is not None, "use `async with`"
        rest = b""
        async for piece in self._stream:
            *lines, rest = (rest + piece if rest else piece).split(b"\n")
            for line in lines:
                if line:
                    yield self._event(line)
        if rest.strip():
            yield self._event(rest)

    def _event(self, line: bytes) -> Event[K]:
        raw = codec.decode_event(line)
        if raw.type == "ERROR":
            raise errors.from_status(msgspec.json.decode(raw.object))
        return Event(raw.type, codec.decode(self._kind, raw.object))
