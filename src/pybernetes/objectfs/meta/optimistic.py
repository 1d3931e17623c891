"""Transactions over a network database: reads go there, writes are kept, and one commit checks what was read.

A commit succeeds only if every key that was read still has the value that was read, and every range that was scanned
still has as many keys; so a run that saw half of another's changes never counts, whether it wants to write or to
raise an error. An engine fills in four small methods (`fetch`, `fetch_range`, `commit`, `sync`) and needs no
transactions of its own that stay open between two requests.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from errno import EIO
from typing import Generic, NamedTuple, TypeVar

from pybernetes.objectfs.meta.engine import Result, Transaction, Unavailable

Answer = TypeVar("Answer")
Connection = TypeVar("Connection")
# How long an operation waits for a database that is away, or for its turn among conflicting transactions.
PATIENCE_SECONDS = 30.0
STRIPES = 64
FIRST_PAUSE, LONGEST_PAUSE = 0.0005, 0.5


class Disconnected(Exception):
    """The database did not answer; whether it did what it was asked for is unknown."""


class Found(NamedTuple):
    """A key's value (None: absent), and the version by which a commit knows it again."""

    value: bytes | None
    version: bytes | int | None


class Range(NamedTuple):
    """A scan had so many `keys` from `start` to before `stop` (None: to the end) at the database's `moment`."""

    start: bytes
    stop: bytes | None
    keys: int
    moment: int


class Page(NamedTuple):
    rows: list[tuple[bytes, Found]]
    moment: int


def prefix_end(prefix: bytes) -> bytes | None:
    """The first key after all keys with this prefix; None if there is none."""
    stripped = prefix.rstrip(b"\xff")
    return stripped[:-1] + bytes([stripped[-1] + 1]) if stripped else None


class OptimisticTransaction:
    """One run of a function: what it read, and what it will write."""

    def __init__(self, engine: OptimisticEngine) -> None:
        self._engine = engine
        self.stripe = engine.stripe()
        self.reads: dict[bytes, Found] = {}
        self.ranges: list[Range] = []
        self.writes: dict[bytes, bytes | None] = {}
        self.requests = 0

    def get(self, key: bytes) -> bytes | None:
        if key in self.writes:
            return self.writes[key]
        found = self.reads.get(key)
        if found is None:
            (found,) = self._fetch([key])
        return found.value

    def get_many(self, keys: Iterable[bytes]) -> list[bytes | None]:
        wanted = list(keys)
        missing = [key for key in dict.fromkeys(wanted) if key not in self.writes and key not in self.reads]
        if missing:
            self._fetch(missing)
        return [self.writes[key] if key in self.writes else self.reads[key].value for key in wanted]

    def put(self, key: bytes, value: bytes) -> None:
        self.writes[key] = value

    def delete(self, key: bytes) -> None:
        self.writes[key] = None

    def scan(self, prefix: bytes, limit: int = 0) -> list[tuple[bytes, bytes]]:
        own = {key: value for key, value in self.writes.items() if key.startswith(prefix)}
        stop = prefix_end(prefix)
        # Own deletions may hide as many of the first rows.
        page = self._engine.fetch_range(prefix, stop, limit + len(own) if limit else 0)
        self.requests += 1
        if limit and len(page.rows) == limit + len(own):
            stop = page.rows[-1][0] + b"\0"
        self.ranges.append(Range(prefix, stop, len(page.rows), page.moment))
        rows = {}
        for key, found in page.rows:
            known = self.reads.setdefault(key, found)
            if known.value is not None:
                rows[key] = known.value
        for key, value in own.items():
            if value is None:
                rows.pop(key, None)
            elif stop is None or key < stop:
                rows[key] = value
        result = sorted(rows.items())
        return result[:limit] if limit else result

    def glance(self, prefix: bytes) -> list[tuple[bytes, bytes]]:
        own = {key: value for key, value in self.writes.items() if key.startswith(prefix)}
        self.requests += 1
        rows = {key: found.value for key, found in self._engine.fetch_range(prefix, prefix_end(prefix), 0).rows}
        return sorted((key, value) for key, value in (rows | own).items() if value is not None)

    def _fetch(self, keys: list[bytes]) -> list[Found]:
        self.requests += 1
        found = self._engine.fetch(keys)
        self.reads.update(zip(keys, found, strict=True))
        return found


class OptimisticEngine:
    """The base of engines for network databases."""

    local = False

    def __init__(self, sleep: Callable[[float], object] = time.sleep) -> None:
        self._sleep = sleep
        self._draw = random.Random()
        self._local = threading.local()

    def stripe(self) -> bytes:
        """One of a few for each thread: two that have the same only meet in conflicts."""
        found: bytes | None = getattr(self._local, "stripe", None)
        if found is None:
            found = self._local.stripe = bytes([self._draw.randrange(STRIPES)])
        return found

    # An engine's part. All may raise Disconnected.

    def fetch(self, keys: list[bytes]) -> list[Found]:
        raise NotImplementedError

    def fetch_range(self, start: bytes, stop: bytes | None, limit: int) -> Page:
        raise NotImplementedError

    def commit(self, reads: dict[bytes, Found], ranges: list[Range], writes: dict[bytes, bytes | None]) -> bool:
        """Writes if what was read is unchanged; False if it is not."""
        raise NotImplementedError

    def name(self) -> str:
        """The address without secrets, for errors."""
        raise NotImplementedError

    # For the file system.

    def transact(self, function: Callable[[Transaction], Result]) -> Result:
        deadline, pause = time.monotonic() + PATIENCE_SECONDS, FIRST_PAUSE
        while True:
            transaction = OptimisticTransaction(self)
            failure: OSError | None = None
            result: Result | None = None
            try:
                result = function(transaction)
            except Unavailable:
                raise
            except OSError as error:
                failure, transaction.writes = error, {}
            except Disconnected as error:
                self._wait(deadline, pause, error)
                pause = min(pause * 2, LONGEST_PAUSE)
                continue
            if self._committed(transaction, deadline):
                if failure is not None:
                    raise failure
                return result  # type: ignore[return-value]
            self._wait(deadline, pause, None)
            pause = min(pause * 2, LONGEST_PAUSE)

    def read(self, function: Callable[[Transaction], Result]) -> Result:
        deadline, pause = time.monotonic() + PATIENCE_SECONDS, FIRST_PAUSE
        while True:
            transaction = OptimisticTransaction(self)
            try:
                return function(transaction)
            except Unavailable:
                raise
            except OSError:
                # 'No such file' may come from two looks at different moments: it counts if they still hold together.
                if self._committed(transaction, deadline):
                    raise
            except Disconnected as error:
                self._wait(deadline, pause, error)
                pause = min(pause * 2, LONGEST_PAUSE)

    def scan(self, prefix: bytes, after: bytes = b"", limit: int = 1000) -> Iterator[tuple[bytes, bytes]]:
        start, stop = max(prefix, after + b"\0" if after else b""), prefix_end(prefix)
        while True:
            page = self.patient(lambda start=start: self.fetch_range(start, stop, limit))  # type: ignore[misc]
            for key, found in page.rows:
                if found.value is not None:
                    yield key, found.value
            if len(page.rows) < limit:
                return
            start = page.rows[-1][0] + b"\0"

    def patient(self, request: Callable[[], Answer]) -> Answer:
        """Repeats a request that may be repeated until the database answers."""
        deadline, pause = time.monotonic() + PATIENCE_SECONDS, FIRST_PAUSE
        while True:
            try:
                return request()
            except Disconnected as error:
                self._wait(deadline, pause, error)
                pause = min(pause * 2, LONGEST_PAUSE)

    def _committed(self, transaction: OptimisticTransaction, deadline: float) -> bool:
        """True when the run counts."""
        if not transaction.writes and transaction.requests <= 1:
            return True  # what one request returned is of one moment
        try:
            return self.commit(transaction.reads, transaction.ranges, transaction.writes)
        except Disconnected:
            # The answer was lost. A key that now has the value we gave it, and had another, says that it was done.
            writes = transaction.writes
            now = self.patient(lambda: self.fetch(list(writes)))
            for (key, value), found in zip(writes.items(), now, strict=True):
                before = transaction.reads.get(key)
                if found.value == value and (before is None or before.value != value):
                    return True
            return False

    def _wait(self, deadline: float, pause: float, error: Disconnected | None) -> None:
        if time.monotonic() > deadline:
            reason = str(error) if error is not None else "transactions conflict without end"
            raise Unavailable(EIO, f"metadata database {self.name()}: {reason}") from error
        self._sleep(pause * (0.5 + self._draw.random()))


class Pool(Generic[Connection]):
    """Connections that are not in use; each thread takes one for a request."""

    def __init__(self, connect: Callable[[], Connection]) -> None:
        self._connect = connect
        self._lock = threading.Lock()
        self._idle: list[Connection] = []

    def take(self) -> Connection:
        with self._lock:
            if self._idle:
                return self._idle.pop()
        return self._connect()

    def give(self, connection: Connection) -> None:
        with self._lock:
            self._idle.append(connection)

    def drain(self) -> list[Connection]:
        """All idle connections, to be closed: after a failure they are all suspect."""
        with self._lock:
            idle, self._idle = self._idle, []
        return idle
