"""Calls to an etcd cluster: which member, how long, what a failure means.

One member is used until it fails, then the next. What a failed call means depends on what it was:
- A read is repeated, on another member if there is one, for `patience` seconds.
- A write is sent only over a connection that is up. If it then fails, it is unknown whether etcd applied it, so it is
  not repeated (a repetition could, for instance, create anew what someone has deleted meanwhile) but reported as
  `StoreUnavailable`. While no connection is up, a write waits for one, `patience` seconds at most.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

import grpc  # type: ignore[import-untyped]
import grpc.aio  # type: ignore[import-untyped]

from pybernetes.store import etcd_messages as pb
from pybernetes.store.base import StoreUnavailable

CALL_TIMEOUT = 10.0
"""Seconds for one call; an election takes one or two."""
PAUSE = 0.05
"""Seconds between two attempts to find a member."""

OPTIONS = [
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
    ("grpc.enable_http_proxy", 0),
    # A dead connection is noticed after 40 s at most, as upstream does it.
    ("grpc.keepalive_time_ms", 30_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 1_000),
    ("grpc.max_reconnect_backoff_ms", 1_000),
    ("grpc.use_local_subchannel_pool", 1),
]

METHODS = {
    "DeleteRange": ("KV/DeleteRange", "DeleteRangeRequest", "DeleteRangeResponse"),
    "Range": ("KV/Range", "RangeRequest", "RangeResponse"),
    "Txn": ("KV/Txn", "TxnRequest", "TxnResponse"),
    "Compact": ("KV/Compact", "CompactionRequest", "CompactionResponse"),
    "LeaseGrant": ("Lease/LeaseGrant", "LeaseGrantRequest", "LeaseGrantResponse"),
    "Status": ("Maintenance/Status", "StatusRequest", "StatusResponse"),
}

RETRIED = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED)


class Refused(Exception):
    """etcd answered with an error of its own, which is no matter of connections."""

    def __init__(self, error: grpc.aio.AioRpcError) -> None:
        super().__init__(error.details())
        self.details: str = error.details() or ""


class Member:
    """One endpoint and its connection."""

    def __init__(self, endpoint: str, credentials: grpc.ChannelCredentials | None) -> None:
        url = urlsplit(endpoint)
        if url.scheme not in ("http", "https") or not url.hostname:
            raise ValueError(f"not an endpoint of etcd: {endpoint!r}; expected http(s)://host:port")
        self.endpoint = endpoint
        host = f"[{url.hostname}]" if ":" in url.hostname else url.hostname
        target = f"{host}:{url.port or 2379}"
        if url.scheme == "https":
            credentials = credentials or grpc.ssl_channel_credentials()
            self.channel = grpc.aio.secure_channel(target, credentials, OPTIONS)
        else:
            self.channel = grpc.aio.insecure_channel(target, OPTIONS)
        self.calls = {
            name: self.channel.unary_unary(
                f"/etcdserverpb.{path}",
                request_serializer=getattr(pb, request).SerializeToString,
                response_deserializer=getattr(pb, response).FromString,
            )
            for name, (path, request, response) in METHODS.items()
        }
        self.watch = self.channel.stream_stream(
            "/etcdserverpb.Watch/Watch",
            request_serializer=pb.WatchRequest.SerializeToString,
            response_deserializer=pb.WatchResponse.FromString,
        )

    def up(self) -> bool:
        """Whether the connection is there; if not, it is being made."""
        return bool(self.channel.get_state(try_to_connect=True) == grpc.ChannelConnectivity.READY)

    async def come_up(self, seconds: float) -> bool:
        """Wait until the connection is there or has failed."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while True:
                    state = self.channel.get_state(try_to_connect=True)
                    if state == grpc.ChannelConnectivity.READY:
                        return True
                    if state == grpc.ChannelConnectivity.TRANSIENT_FAILURE:
                        return False
                    await self.channel.wait_for_state_change(state)
        return False


class EtcdClient:
    """An etcd cluster."""

    def __init__(
        self,
        endpoints: Sequence[str],
        *,
        ca_file: str | None = None,
        cert_file: str | None = None,
        key_file: str | None = None,
        patience: float = 10.0,
    ) -> None:
        if not endpoints:
            raise ValueError("no endpoint of etcd")
        self.endpoints = list(endpoints)
        self._files = ca_file, key_file, cert_file
        self._patience = patience
        self._members: list[Member] = []
        self._current = 0
        self.closed = True

    async def open(self) -> None:
        """Connect to a member."""
        credentials = None
        if any(self._files):
            try:
                credentials = grpc.ssl_channel_credentials(*map(_read, self._files))
            except OSError as error:
                raise StoreUnavailable(f"etcd's TLS file {error.filename}: {error.strerror}") from error
        self._members = [Member(endpoint, credentials) for endpoint in self.endpoints]
        self.closed = False
        await self.member(self._patience)

    async def close(self) -> None:
        """Let calls under way end, a second at most, and disconnect."""
        self.closed = True
        await asyncio.gather(*(member.channel.close(1.0) for member in self._members))

    async def member(self, patience: float) -> Member:
        """A member that is connected."""
        deadline = time.monotonic() + patience
        while True:
            self.refuse_when_closed()
            for _ in self._members:
                member = self._members[self._current]
                if member.up() or await member.come_up(max(0.01, min(1.0, deadline - time.monotonic()))):
                    return member
                self.leave(member)
            if time.monotonic() >= deadline:
                raise StoreUnavailable(f"etcd does not answer at {', '.join(self.endpoints)}")
            await asyncio.sleep(PAUSE)

    def leave(self, member: Member) -> None:
        """Use another member, after this one failed."""
        if self._members[self._current] is member:
            self._current = (self._current + 1) % len(self._members)

    def refuse_when_closed(self) -> None:
        if self.closed:
            raise StoreUnavailable("the store is closed")

    async def read(self, method: str, request: Any) -> Any:
        """Call something that may be repeated without harm."""
        deadline = time.monotonic() + self._patience
        while True:
            member = await self.member(deadline - time.monotonic())
            try:
                return await self._call(member, method, request)
            except grpc.aio.AioRpcError as error:
                if error.code() not in RETRIED:
                    raise Refused(error) from error
                self.leave(member)
                if time.monotonic() >= deadline:
                    raise StoreUnavailable(f"etcd at {member.endpoint}: {error.details()}") from error
                await asyncio.sleep(PAUSE)

    async def write(self, method: str, request: Any) -> Any:
        """Call something that must not happen twice."""
        member = await self.member(self._patience)
        try:
            return await self._call(member, method, request)
        except grpc.aio.AioRpcError as error:
            if error.code() not in (*RETRIED, grpc.StatusCode.CANCELLED, grpc.StatusCode.INTERNAL):
                raise Refused(error) from error
            self.leave(member)
            raise StoreUnavailable(
                f"the outcome of a write is unknown, etcd at {member.endpoint}: {error.details()}"
            ) from error

    async def _call(self, member: Member, method: str, request: Any) -> Any:
        try:
            return await member.calls[method](request, timeout=CALL_TIMEOUT)
        except asyncio.CancelledError:
            # Closing the channel cancels its calls; a task that is itself being cancelled is another matter.
            task = asyncio.current_task()
            if self.closed and not (task is not None and task.cancelling()):
                raise StoreUnavailable("the store was closed before etcd answered") from None
            raise
        except grpc.aio.UsageError:
            raise StoreUnavailable("the store is closed") from None


def _read(path: str | None) -> bytes | None:
    if path is None:
        return None
    with open(path, "rb") as file:
        return file.read()
