"""Metadata in etcd: keys below a prefix; a commit is one etcd transaction that compares revisions and writes.

etcd limits a transaction to 128 comparisons or operations (`--max-txn-ops`); the file system's transactions are
smaller. Every commit of etcd is on the disks of a majority, so `sync` has nothing to do.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from pybernetes.objectfs.errors import ObjectFSError
from pybernetes.objectfs.meta.optimistic import Disconnected, Found, OptimisticEngine, Page, Range

TIMEOUT_SECONDS = 10.0
MAX_OPERATIONS = 128
PORT = 2379
EQUAL, LESS = 0, 2
REVISION = 2


class EtcdEngine(OptimisticEngine):
    """The engine of etcd://[USER:PASSWORD@]HOST[:PORT][,HOST...][/PREFIX]."""

    def __init__(self, url: str) -> None:
        super().__init__()
        import grpc  # type: ignore[import-untyped]

        from pybernetes import protofile

        parts = urlsplit(url)
        login, _, hosts = parts.netloc.rpartition("@")
        if not hosts:
            raise ObjectFSError("metadata address: etcd://HOST[:PORT][,HOST[:PORT]...][/PREFIX] is wanted")
        self._user, _, self._password = (unquote(each) for each in login.partition(":"))
        self._hosts = [each if ":" in each else f"{each}:{PORT}" for each in hosts.split(",")]
        self._prefix = (parts.path.strip("/") or "objectfs").encode() + b"/"
        self._grpc = grpc
        self._proto = protofile.read(Path(__file__).with_name("etcd.proto"))
        # Small requests that wait for their answers: no threads of polling in between.
        self._channel = grpc.insecure_channel(
            f"ipv4:{','.join(self._hosts)}" if len(self._hosts) > 1 else self._hosts[0],
            options=[
                ("grpc.max_receive_message_length", -1),
                ("grpc.initial_reconnect_backoff_ms", 100),
                ("grpc.min_reconnect_backoff_ms", 100),
                ("grpc.max_reconnect_backoff_ms", 1000),
            ],
        )
        self._calls: dict[str, Callable[..., Any]] = {
            method.name: self._channel.unary_unary(
                method.path,
                request_serializer=method.request.SerializeToString,
                response_deserializer=method.response.FromString,
            )
            for method in self._proto.methods
        }
        self._metadata: list[tuple[str, str]] | None = None
        self.patient(lambda: self.fetch([b"setting"]))

    def name(self) -> str:
        return f"etcd://{','.join(self._hosts)}/{self._prefix.decode().rstrip('/')}"

    def fetch(self, keys: list[bytes]) -> list[Found]:
        names, found = self._proto.names, []
        for at in range(0, len(keys), MAX_OPERATIONS):
            operations = [
                names["RequestOp"](request_range=names["RangeRequest"](key=self._prefix + key))
                for key in keys[at : at + MAX_OPERATIONS]
            ]
            answer = self._call("Txn", names["TxnRequest"](success=operations))
            for each in answer.responses:
                kvs = each.response_range.kvs
                found.append(Found(kvs[0].value, kvs[0].mod_revision) if kvs else Found(None, 0))
        return found

    def fetch_range(self, start: bytes, stop: bytes | None, limit: int) -> Page:
        request = self._proto.names["RangeRequest"](key=self._prefix + start, range_end=self._end(stop), limit=limit)
        answer = self._call("Range", request)
        cut = len(self._prefix)
        return Page([(kv.key[cut:], Found(kv.value, kv.mod_revision)) for kv in answer.kvs], answer.header.revision)

    def commit(self, reads: dict[bytes, Found], ranges: list[Range], writes: dict[bytes, bytes | None]) -> bool:
        names = self._proto.names
        compare = [
            names["Compare"](result=EQUAL, target=REVISION, key=self._prefix + key, mod_revision=found.version)
            for key, found in reads.items()
        ]
        # Keys that were found are compared one by one; those that came since have a later revision.
        compare += [
            names["Compare"](
                result=LESS, target=REVISION, key=self._prefix + each.start,
                mod_revision=each.moment + 1, range_end=self._end(each.stop),
            )
            for each in ranges
        ]  # fmt: skip
        operations = [
            names["RequestOp"](request_delete_range=names["DeleteRangeRequest"](key=self._prefix + key))
            if value is None
            else names["RequestOp"](request_put=names["PutRequest"](key=self._prefix + key, value=value))
            for key, value in writes.items()
        ]
        if max(len(compare), len(operations)) > MAX_OPERATIONS:
            raise ObjectFSError(f"a transaction of {len(compare)} reads and {len(operations)} writes is too large")
        return bool(self._call("Txn", names["TxnRequest"](compare=compare, success=operations)).succeeded)

    def sync(self) -> None:
        """Every commit is on the disks already."""

    def close(self) -> None:
        self._channel.close()

    def _end(self, stop: bytes | None) -> bytes:
        return self._prefix + stop if stop is not None else self._prefix[:-1] + bytes([self._prefix[-1] + 1])

    def _call(self, name: str, request: Any) -> Any:
        grpc = self._grpc
        try:
            if self._user and self._metadata is None and name != "Authenticate":
                login = self._proto.names["AuthenticateRequest"](name=self._user, password=self._password)
                self._metadata = [("token", self._call("Authenticate", login).token)]
            return self._calls[name](request, timeout=TIMEOUT_SECONDS, metadata=self._metadata)
        except grpc.RpcError as error:
            code, words = error.code(), error.details()
            if code in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.CANCELLED):
                raise Disconnected(words) from error
            if code == grpc.StatusCode.UNAUTHENTICATED and self._metadata is not None:
                self._metadata = None
                raise Disconnected(words) from error
            raise ObjectFSError(f"metadata database {self.name()}: {words}") from error
