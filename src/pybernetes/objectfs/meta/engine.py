"""The interface a metadata database must offer: ordered keys, and transactions that are serializable.

An engine has one hard method, `transact(function)`: it calls `function(transaction)` until a run commits without a
conflict, so the function must have no effect outside of its transaction. Everything the file system knows is in keys
and values (`records`), so an engine is some hundred lines, and a dump moves between engines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol, TypeVar

from pybernetes.objectfs.errors import Failure

Result = TypeVar("Result")


class Transaction(Protocol):
    """Reads see the transaction's own writes. Keys are ordered by their bytes."""

    #: Added to the keys of counters, so that clients that count at the same moment do not meet; short, or empty.
    stripe: bytes

    def get(self, key: bytes) -> bytes | None: ...

    def get_many(self, keys: Iterable[bytes]) -> list[bytes | None]:
        """The values of several keys by one request, where the database is across a network."""

    def put(self, key: bytes, value: bytes) -> None: ...

    def delete(self, key: bytes) -> None: ...

    def scan(self, prefix: bytes, limit: int = 0) -> list[tuple[bytes, bytes]]:
        """All keys that begin with `prefix`, in order; at most `limit` if it is not 0."""

    def glance(self, prefix: bytes) -> list[tuple[bytes, bytes]]:
        """As `scan`, but the transaction commits even if others change these keys meanwhile."""


class Engine(Protocol):
    """A metadata database."""

    #: True where a transaction needs no network, so that it may run on the thread that reads `/dev/fuse`.
    local: bool

    def transact(self, function: Callable[[Transaction], Result]) -> Result: ...

    def read(self, function: Callable[[Transaction], Result]) -> Result:
        """Calls a function that writes nothing; its reads may come from different moments."""

    def scan(self, prefix: bytes, after: bytes = b"", limit: int = 1000) -> Iterator[tuple[bytes, bytes]]:
        """Keys outside of a transaction, a page at a time; keys that change meanwhile may or may not be seen."""

    def sync(self) -> None:
        """Returns when everything committed so far survives a power failure."""

    def close(self) -> None: ...


class Unavailable(Failure):
    """The database does not answer: EIO for the program, one log line for the operator."""
