"""`/debug/state` (`--enable-test-endpoints`): the whole store as JSON, and writes to it past every check.

For `pyb snapshot` and golden snapshots of tests. GET answers all entries as of one revision; POST writes and deletes
keys. The writes are ordinary changes of the store: revisions grow and watches see them. Values that are no JSON
(encrypted ones whose key is missing) are left out and counted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from pybernetes.api.errors import BadRequest, MethodNotAllowed
from pybernetes.net.http import Request, Response
from pybernetes.store.base import Store

PATH = "/debug/state"
PREFIX = "/registry/"
EVENTS = "/registry/events/"
PAGE = 500
MAX_TRIES = 100


class _Write(msgspec.Struct, forbid_unknown_fields=True):
    put: dict[str, Any] = {}
    delete: list[str] = []


class StateEndpoint:
    """The handler."""

    def __init__(self, store: Callable[[], Store], event_ttl: int) -> None:
        self._store = store
        self._event_ttl = event_ttl

    async def __call__(self, request: Request) -> Response:
        if request.method == "GET":
            return await self._read()
        if request.method == "POST":
            return await self._write(request.body)
        raise MethodNotAllowed

    async def _read(self) -> Response:
        store, entries, left_out = self._store(), [], 0
        revision = await store.revision()
        after = ""
        while True:
            page = await store.range(PREFIX, after=after, limit=PAGE, revision=revision)
            for each in page.entries:
                if each.value[:1] in (b"{", b"[", b'"') or each.value.isdigit():
                    entries.append({"key": each.key, "value": msgspec.Raw(each.value)})
                else:
                    left_out += 1
            if not page.remaining or not page.entries:
                break
            after = page.entries[-1].key
        return Response(msgspec.json.encode({"revision": revision, "leftOut": left_out, "entries": entries}))

    async def _write(self, body: bytes) -> Response:
        try:
            wanted = msgspec.json.decode(body, type=_Write)
        except msgspec.DecodeError as error:
            raise BadRequest(str(error)) from None
        for key in (*wanted.put, *wanted.delete):
            if not key.startswith(PREFIX) or key.endswith("/"):
                raise BadRequest(f"{key!r} is no key of an object")
        for key, value in wanted.put.items():
            await self._put(key, msgspec.json.encode(value))  # without blanks, as all that is stored
        for key in wanted.delete:
            await self._put(key, None)
        return Response(msgspec.json.encode({"revision": await self._store().revision()}))

    async def _put(self, key: str, value: bytes | None) -> None:
        """Write or delete, whatever is there."""
        from pybernetes.store.base import KeyExists, RevisionMismatch

        store = self._store()
        ttl = self._event_ttl if key.startswith(EVENTS) else None
        for _ in range(MAX_TRIES):
            entry = await store.get(key)
            try:
                if entry is None:
                    if value is not None:
                        await store.create(key, value, ttl=ttl)
                elif value is None:
                    await store.delete(key, revision=entry.revision)
                else:
                    await store.update(key, value, revision=entry.revision, ttl=ttl)
                return
            except (KeyExists, RevisionMismatch):
                continue  # somebody else has written it since
        raise BadRequest(f"{key}: it changes all the time; hold back other writers")
