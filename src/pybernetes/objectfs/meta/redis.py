"""Metadata in a Redis database: a hash of the values and a sorted set of the keys, changed by scripts.

A commit is one script, which Redis runs alone: it compares what was read and writes. How durable it is is a setting of
the server (`appendonly yes`), so a server without it, or one that may evict keys, is warned about.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable
from typing import Any

from pybernetes.objectfs.errors import ObjectFSError
from pybernetes.objectfs.meta.optimistic import Disconnected, Found, OptimisticEngine, Page, Pool, Range
from pybernetes.objectfs.meta.redis_client import Address, RedisConnection, RedisError

log = logging.getLogger(__name__)
# The braces keep both in one slot of a Redis cluster.
VALUES, KEYS = b"{objectfs}values", b"{objectfs}keys"
SYNC_MILLISECONDS = 10_000
# Errors of a server that is starting, full or changing its role: a later attempt may do better.
PASSING = ("LOADING", "BUSY", "MASTERDOWN", "TRYAGAIN", "READONLY", "CLUSTERDOWN")

COMMIT = b"""
local values, keys, at = KEYS[1], KEYS[2], 0
local function word() at = at + 1 return ARGV[at] end
for _ = 1, tonumber(word()) do
  local key, there, value = word(), word(), word()
  local now = redis.call('HGET', values, key)
  if there == '1' then
    if now ~= value then return 0 end
  elseif now then return 0 end
end
for _ = 1, tonumber(word()) do
  local first, last, count = word(), word(), tonumber(word())
  if redis.call('ZLEXCOUNT', keys, first, last) ~= count then return 0 end
end
for _ = 1, tonumber(word()) do
  local key, value = word(), word()
  if redis.call('HSET', values, key, value) == 1 then redis.call('ZADD', keys, 0, key) end
end
for _ = 1, tonumber(word()) do
  local key = word()
  if redis.call('HDEL', values, key) == 1 then redis.call('ZREM', keys, key) end
end
return 1
"""

SCAN = b"""
local found
if ARGV[3] == '0' then found = redis.call('ZRANGEBYLEX', KEYS[2], ARGV[1], ARGV[2])
else found = redis.call('ZRANGEBYLEX', KEYS[2], ARGV[1], ARGV[2], 'LIMIT', 0, ARGV[3]) end
local values = {}
for at = 1, #found do values[at] = redis.call('HGET', KEYS[1], found[at]) end
return {found, values}
"""


class RedisEngine(OptimisticEngine):
    """The engine of redis:// and rediss://."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self._address = Address.parse(url)
        self._pool = Pool(self._connect)
        self._scripts = {script: hashlib.sha1(script).hexdigest() for script in (COMMIT, SCAN)}
        self._waits = True
        self.patient(lambda: self._call("PING"))

    def name(self) -> str:
        return f"redis://{self._address.host}:{self._address.port}/{self._address.database}"

    def warnings(self) -> list[str]:
        """Settings of the server under which metadata may be lost."""
        found = []
        try:
            answer = self._call("CONFIG", "GET", "appendonly")
            if answer and answer[1] != b"yes":
                found.append("appendonly is off: a Redis that dies loses the newest metadata")
            answer = self._call("CONFIG", "GET", "maxmemory-policy")
            if answer and answer[1] != b"noeviction":
                found.append("maxmemory-policy is not noeviction: Redis may evict metadata")
        except (Disconnected, ObjectFSError):
            pass  # CONFIG may be forbidden
        return found

    def fetch(self, keys: list[bytes]) -> list[Found]:
        return [Found(value, value) for value in self._call("HMGET", VALUES, *keys)]

    def fetch_range(self, start: bytes, stop: bytes | None, limit: int) -> Page:
        keys, values = self._script(SCAN, *_bounds(start, stop), limit)
        return Page([(key, Found(value, value)) for key, value in zip(keys, values, strict=True)], 0)

    def commit(self, reads: dict[bytes, Found], ranges: list[Range], writes: dict[bytes, bytes | None]) -> bool:
        words: list[bytes | int] = [len(reads)]
        for key, found in reads.items():
            words += [key, int(found.value is not None), found.value or b""]
        words.append(len(ranges))
        for each in ranges:
            words += [*_bounds(each.start, each.stop), each.keys]
        puts = {key: value for key, value in writes.items() if value is not None}
        words.append(len(puts))
        for key, value in puts.items():
            words += [key, value]
        words.append(len(writes) - len(puts))
        words += [key for key, value in writes.items() if value is None]
        return bool(self._script(COMMIT, *words) == 1)

    def sync(self) -> None:
        """Waits for the append-only file, where the server knows how (7.2); before, its `appendfsync` decides."""
        if self._waits:
            try:
                self.patient(lambda: self._call("WAITAOF", 1, 0, SYNC_MILLISECONDS))
            except ObjectFSError:
                self._waits = False

    def close(self) -> None:
        for each in self._pool.drain():
            each.close()

    def _connect(self) -> RedisConnection:
        try:
            return RedisConnection(self._address)
        except RedisError as error:
            raise _failure(self.name(), error) from error

    def _script(self, script: bytes, *words: bytes | int) -> Any:
        try:
            return self._call("EVALSHA", self._scripts[script], 2, VALUES, KEYS, *words)
        except ObjectFSError as error:
            if "NOSCRIPT" not in str(error):
                raise
            return self._call("EVAL", script, 2, VALUES, KEYS, *words)

    def _call(self, *words: bytes | str | int) -> Any:
        return self._on_connection(lambda connection: connection.call(*words))

    def _on_connection(self, request: Callable[[RedisConnection], Any]) -> Any:
        try:
            connection = self._pool.take()
        except OSError as error:
            raise Disconnected(str(error)) from error
        try:
            answer = request(connection)
        except RedisError as error:
            self._pool.give(connection)
            raise _failure(self.name(), error) from error
        except OSError as error:
            connection.close()
            self.close()
            raise Disconnected(str(error) or type(error).__name__) from error
        self._pool.give(connection)
        return answer


def _failure(name: str, error: RedisError) -> Exception:
    if str(error).startswith(PASSING):
        return Disconnected(str(error))
    return ObjectFSError(f"metadata database {name}: {error}")


def _bounds(start: bytes, stop: bytes | None) -> tuple[bytes, bytes]:
    return b"[" + start, b"+" if stop is None else b"(" + stop
