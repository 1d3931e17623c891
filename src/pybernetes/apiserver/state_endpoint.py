"""`/debug/state` (`--enable-test-endpoints`): the whole store as JSON, and writes to it past every check.

For `pyb snapshot` and golden snapshots of tests. GET answers all entries as of one revision, `?after=REVISION` what has
changed since then (`pyb record`); POST writes and deletes keys. The writes are ordinary changes of the store: revisions
grow and watches see them. Values that are no JSON (encrypted ones whose key is missing) are left out and counted.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import msgspec

from pybernetes.api.errors import BadRequest, MethodNotAllowed, ResourceExpired
from pybernetes.net.http import Request, Response
from pybernetes.store.base import Compacted, Store

PATH = "/debug/state"
PREFIX = "/registry/"
EVENTS = "/registry/events/"
PAGE = 500
MAX_TRIES = 100
LOOK = 1.0
"""Seconds at most for changes that have been made already."""


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
            after = request.info.query.get("after")
            return await (self._read() if after is None else self._changes(after))
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

    async def _changes(self, after: str) -> Response:
        """Each change after a revision, in order; the time of this server. APIError."""
        if not after.isascii() or not after.isdecimal() or len(after) > 18:
            raise BadRequest(f"after: {after!r} is no revision")
        store, found, left_out = self._store(), [], 0
        reached, until = int(after), await store.revision()
        watch = store.watch(PREFIX, after=reached)
        try:
            if reached < until:
                async with asyncio.timeout(LOOK):  # the last changes may be of other keys
                    async for events in watch:
                        for each in events:
                            reached = each.revision
                            if each.value is not None and each.value[:1] not in (b"{", b"["):
                                left_out += 1
                                continue
                            value = msgspec.Raw(each.value if each.value is not None else b"null")
                            found.append({"revision": each.revision, "key": each.key, "value": value})
                        if reached >= until:
                            break
        except TimeoutError:
            pass
        except Compacted as error:
            raise ResourceExpired(str(error)) from None
        finally:
            await watch.close()
        answer = {"revision": reached, "now": time.time(), "leftOut": left_out, "changes": found}
        return Response(msgspec.json.encode(answer))

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
                continue  # it was written again since
        raise BadRequest(f"{key}: it changes all the time; hold back other writers")
