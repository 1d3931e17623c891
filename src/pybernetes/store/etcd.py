"""The store on an etcd cluster, for more than one machine: keys and values lie in etcd as they are given.

etcd keeps the promises; this module keeps them over lost connections. A watch notes the last revision it has handed on
and asks a new connection for what came after, so nothing is lost or repeated while etcd is away. What a write's failure
means is written in `etcd_client`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Any

import grpc  # type: ignore[import-untyped]
import grpc.aio  # type: ignore[import-untyped]

from pybernetes.store import etcd_messages as pb
from pybernetes.store.base import (
    Compacted,
    Entry,
    Event,
    FutureRevision,
    KeyExists,
    Page,
    Receive,
    RevisionMismatch,
    StoreUnavailable,
    Watch,
)
from pybernetes.store.etcd_client import PAUSE, EtcdClient, Refused

PAGE = 2000
"""Keys fetched by one call: with values of 5 KB, about 10 MB."""
LEASE_KEYS = 1000
LEASE_SHARE = 0.05
LEASE_SECONDS = 60
"""One lease serves at most so many keys, and keys whose ends lie within 5 % of the time to live, a minute at most, as
upstream has it: leases are expensive for etcd, and an event may live a little longer."""


class EtcdStore:
    """See `pybernetes.store.base.Store`."""

    exclusive = False

    def __init__(
        self,
        endpoints: Sequence[str],
        *,
        ca_file: str | None = None,
        cert_file: str | None = None,
        key_file: str | None = None,
        patience: float = 10.0,
    ) -> None:
        self._client = EtcdClient(endpoints, ca_file=ca_file, cert_file=cert_file, key_file=key_file, patience=patience)
        self._leases = Leases(self._client)
        self._watches: set[EtcdWatch] = set()

    async def start(self) -> None:
        await self._client.open()
        await self.revision()

    async def close(self) -> None:
        for watch in list(self._watches):
            await watch.close()
        await self._client.close()

    async def create(self, key: str, value: bytes, *, ttl: int | None = None) -> int:
        response = await self._put(key, value, 0, ttl)
        if not response.succeeded:
            raise KeyExists(key)
        return int(response.header.revision)

    async def update(self, key: str, value: bytes, *, revision: int, ttl: int | None = None) -> int:
        return self._replaced(key, await self._put(key, value, revision, ttl))

    async def delete(self, key: str, *, revision: int) -> int:
        deletion = pb.RequestOp(request_delete_range=pb.DeleteRangeRequest(key=key.encode()))
        return self._replaced(key, await self._txn(key, revision, deletion))

    async def get(self, key: str) -> Entry | None:
        response = await self._range(pb.RangeRequest(key=key.encode()))
        return _entry(response.kvs[0]) if response.kvs else None

    async def range(self, prefix: str, *, after: str = "", limit: int = 0, revision: int = 0) -> Page:
        while True:
            try:
                return await self._pages(prefix, after, limit, revision)
            except Compacted:
                if revision:
                    raise

    def watch(self, prefix: str, *, after: int, receive: Receive | None = None) -> Watch:
        watch = EtcdWatch(self._client, prefix, after, self._watches)
        self._watches.add(watch)
        return watch

    async def revision(self) -> int:
        response = await self._range(pb.RangeRequest(key=b"\0", count_only=True))
        return int(response.header.revision)

    async def compact(self, revision: int) -> None:
        try:
            await self._client.read("Compact", pb.CompactionRequest(revision=revision))
        except Refused as refused:
            if "future" in refused.details:
                raise FutureRevision(revision, await self.revision()) from refused
            if "compacted" not in refused.details:
                raise StoreUnavailable(f"etcd: {refused.details}") from refused

    async def check(self) -> None:
        try:
            # A read that needs the quorum, then the alarms: out of space, etcd still answers reads.
            await self.revision()
            status = await self._client.read("Status", pb.StatusRequest())
        except Refused as refused:
            raise StoreUnavailable(f"etcd: {refused.details}") from refused
        if status.errors:
            raise StoreUnavailable(f"etcd: {', '.join(status.errors)}")

    # -- helpers --

    async def _put(self, key: str, value: bytes, revision: int, ttl: int | None) -> Any:
        lease = await self._leases.take(ttl) if ttl else 0
        while True:
            put = pb.RequestOp(request_put=pb.PutRequest(key=key.encode(), value=value, lease=lease))
            try:
                return await self._txn(key, revision, put)
            except LeaseGone:
                lease = await self._leases.replace(ttl or 0, lease)

    async def _txn(self, key: str, revision: int, operation: Any) -> Any:
        name = key.encode()
        request = pb.TxnRequest(
            compare=[pb.Compare(result=pb.EQUAL, target=pb.MOD, key=name, mod_revision=revision)],
            success=[operation],
            # Who creates needs not to know what is there.
            failure=[pb.RequestOp(request_range=pb.RangeRequest(key=name))] if revision else [],
        )
        try:
            return await self._client.write("Txn", request)
        except Refused as refused:
            if "lease not found" in refused.details:
                raise LeaseGone from refused
            raise StoreUnavailable(f"etcd refuses to write {key}: {refused.details}") from refused

    def _replaced(self, key: str, response: Any) -> int:
        if not response.succeeded:
            found = response.responses[0].response_range.kvs
            raise RevisionMismatch(key, _entry(found[0]) if found else None)
        return int(response.header.revision)

    async def _pages(self, prefix: str, after: str, limit: int, revision: int) -> Page:
        entries: list[Entry] = []
        begin = max(prefix, after + "\0" if after else "").encode() or b"\0"
        end = _end_of(prefix)
        while True:
            wanted = min(PAGE, limit - len(entries)) if limit else PAGE
            response = await self._range(pb.RangeRequest(key=begin, range_end=end, limit=wanted, revision=revision))
            revision = revision or response.header.revision
            entries.extend(map(_entry, response.kvs))
            remaining = response.count - len(response.kvs)
            if not remaining or len(entries) == limit:
                return Page(entries, revision, remaining)
            begin = response.kvs[-1].key + b"\0"

    async def _range(self, request: Any) -> Any:
        try:
            return await self._client.read("Range", request)
        except Refused as refused:
            if "compacted" in refused.details:
                raise Compacted(request.revision, await self._compacted()) from refused
            if "future" in refused.details:
                raise FutureRevision(request.revision, await self.revision()) from refused
            raise StoreUnavailable(f"etcd: {refused.details}") from refused

    async def _compacted(self) -> int:
        """The compaction's revision, which etcd reports only to a watch from before it."""
        watch = EtcdWatch(self._client, "\0", 0, set())
        try:
            async for _ in watch:
                break
        except Compacted as error:
            return error.compacted
        finally:
            await watch.close()
        return 0


class LeaseGone(Exception):
    """The lease expired before its key was written."""


class Leases:
    """Leases shared by keys that end at about the same time."""

    def __init__(self, client: EtcdClient) -> None:
        self._client = client
        self._lock = asyncio.Lock()
        self._last: dict[int, tuple[int, float, int]] = {}
        """ttl -> lease, its end, keys attached"""

    async def take(self, ttl: int) -> int:
        """A lease that ends in `ttl` seconds or a little later."""
        async with self._lock:
            now = time.monotonic()
            lease, end, keys = self._last.get(ttl, (0, 0.0, 0))
            if end < now + ttl or keys >= LEASE_KEYS:
                spare = int(min(ttl * LEASE_SHARE, LEASE_SECONDS))
                try:
                    granted = await self._client.read("LeaseGrant", pb.LeaseGrantRequest(TTL=ttl + spare))
                except Refused as refused:
                    raise StoreUnavailable(f"etcd grants no lease: {refused.details}") from refused
                lease, end, keys = granted.ID, now + ttl + spare, 0
                # A time to live that is used no more leaves nothing behind.
                self._last = {other: entry for other, entry in self._last.items() if entry[1] > now}
            self._last[ttl] = lease, end, keys + 1
            return int(lease)

    async def replace(self, ttl: int, lease: int) -> int:
        """Another lease than this one, which etcd does not know any more."""
        if self._last.get(ttl, (0,))[0] == lease:
            del self._last[ttl]
        return await self.take(ttl)


class EtcdWatch:
    """See `pybernetes.store.base.Watch`. It waits for etcd to come back as long as it takes."""

    def __init__(self, client: EtcdClient, prefix: str, after: int, registry: set[EtcdWatch]) -> None:
        self._client = client
        self._create = pb.WatchCreateRequest(
            key=prefix.encode() or b"\0", range_end=_end_of(prefix), prev_kv=True, progress_notify=True
        )
        self._position = after
        """Everything up to here was handed on (or lies before the start)."""
        self._registry = registry
        self._call: Any = None
        self._reading: asyncio.Future[Any] | None = None
        """A task of its own, so that `close` can end it wherever it waits."""
        self._closed = False

    def __aiter__(self) -> EtcdWatch:
        return self

    async def __anext__(self) -> list[Event]:
        while not self._closed:
            try:
                self._reading = asyncio.ensure_future(self._read())
                response = await self._reading
            except StoreUnavailable:
                self._client.refuse_when_closed()
                continue
            except grpc.aio.AioRpcError:
                response = None
            except asyncio.CancelledError:
                task = asyncio.current_task()
                if task is not None and task.cancelling():
                    self._drop()
                    raise
                response = None
            if response is None or response is grpc.aio.EOF or response.canceled:
                self._drop()
                if response and response.compact_revision:
                    raise Compacted(self._position, response.compact_revision)
                if not self._closed:
                    self._client.leave(self._member)
                    await asyncio.sleep(PAUSE)
                continue
            events = [_event(event) for event in response.events if event.kv.mod_revision > self._position]
            if events:
                self._position = events[-1].revision
                return events
            if not response.created:
                # A progress report: nothing up to here is on its way, so a new connection need not look for it, and a
                # watch of a quiet prefix is not overtaken by compaction.
                self._position = max(self._position, response.header.revision)
        raise StopAsyncIteration

    async def close(self) -> None:
        self._closed = True
        self._registry.discard(self)
        if self._reading is not None:
            self._reading.cancel()
        self._drop()

    async def _read(self) -> Any:
        if self._call is None:
            member = await self._client.member(1.0)
            # A member that has lost its leader ends the watch instead of keeping quiet.
            call = self._call = member.watch(metadata=(("hasleader", "true"),))
            self._member = member
            self._create.start_revision = self._position + 1
            await call.write(pb.WatchRequest(create_request=self._create))
        return await self._call.read()

    def _drop(self) -> None:
        if self._call is not None:
            self._call.cancel()
            self._call = None


def _entry(kv: Any) -> Entry:
    return Entry(kv.key.decode(), kv.value, kv.mod_revision)


def _event(event: Any) -> Event:
    kv = event.kv
    value = None if event.type == pb.DELETE else kv.value
    return Event(kv.key.decode(), value, kv.mod_revision, _entry(event.prev_kv) if event.HasField("prev_kv") else None)


def _end_of(prefix: str) -> bytes:
    """The least key above all that start with `prefix`; etcd takes a zero byte for 'no end'."""
    stripped = prefix.encode().rstrip(b"\xff")
    return stripped[:-1] + bytes([stripped[-1] + 1]) if stripped else b"\0"
