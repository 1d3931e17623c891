"""Metadata in a PostgreSQL database: one table of keys and values, and a function that commits.

The function compares what was read and writes, under an advisory lock, in one round trip. Commits do not wait for the
disk (`synchronous_commit` off); `sync` flushes the write-ahead log, and with it everything before. The driver is
psycopg, an optional package.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from pybernetes.objectfs.errors import ObjectFSError
from pybernetes.objectfs.meta.optimistic import Disconnected, Found, OptimisticEngine, Page, Pool, Range

CONNECT_SECONDS = 10
# The advisory lock's number: any that no other program of the database uses.
LOCK = 0x6F626A6673

SCHEMA = f"""
CREATE TABLE IF NOT EXISTS objectfs (k bytea PRIMARY KEY, v bytea NOT NULL) WITH (fillfactor = 80);
CREATE OR REPLACE FUNCTION objectfs_commit(
  read_keys bytea[], read_values bytea[], starts bytea[], stops bytea[], counts bigint[],
  put_keys bytea[], put_values bytea[], delete_keys bytea[]
) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_advisory_xact_lock({LOCK});
  IF EXISTS (
    SELECT 1 FROM unnest(read_keys, read_values) AS r(k, v) LEFT JOIN objectfs AS o ON o.k = r.k
    WHERE o.v IS DISTINCT FROM r.v
  ) THEN RETURN false; END IF;
  FOR i IN 1 .. coalesce(array_length(starts, 1), 0) LOOP
    IF counts[i] <> (
      SELECT count(*) FROM objectfs WHERE k >= starts[i] AND (stops[i] IS NULL OR k < stops[i])
    ) THEN RETURN false; END IF;
  END LOOP;
  IF array_length(put_keys, 1) > 0 THEN
    INSERT INTO objectfs SELECT * FROM unnest(put_keys, put_values) ON CONFLICT (k) DO UPDATE SET v = excluded.v;
  END IF;
  IF array_length(delete_keys, 1) > 0 THEN
    DELETE FROM objectfs WHERE k = ANY (delete_keys);
  END IF;
  RETURN true;
END $$;
"""


class PostgresEngine(OptimisticEngine):
    """The engine of postgres:// and postgresql://."""

    def __init__(self, url: str) -> None:
        super().__init__()
        try:
            import psycopg
        except ImportError:
            raise ObjectFSError(
                "metadata engine 'postgres' needs the package psycopg: pip install 'pybernetes[objectfs]'"
            ) from None
        self._psycopg, self._url = psycopg, url
        parts = urlsplit(url)
        self._name = f"postgres://{parts.hostname or ''}:{parts.port or 5432}{parts.path}"
        self._pool: Pool[Any] = Pool(self._connect)
        self.patient(self._prepare)

    def name(self) -> str:
        return self._name

    def fetch(self, keys: list[bytes]) -> list[Found]:
        rows = dict(self._query("SELECT k, v FROM objectfs WHERE k = ANY (%b)", (keys,)))
        return [Found(rows.get(key), None) for key in keys]

    def fetch_range(self, start: bytes, stop: bytes | None, limit: int) -> Page:
        rows = self._query(
            "SELECT k, v FROM objectfs WHERE k >= %b AND (%b::bytea IS NULL OR k < %b) ORDER BY k LIMIT %b",
            (start, stop, stop, limit or None),
        )
        return Page([(key, Found(value, None)) for key, value in rows], 0)

    def commit(self, reads: dict[bytes, Found], ranges: list[Range], writes: dict[bytes, bytes | None]) -> bool:
        puts = {key: value for key, value in writes.items() if value is not None}
        rows = self._query(
            "SELECT objectfs_commit(%b::bytea[], %b::bytea[], %b::bytea[], %b::bytea[], %b::bigint[],"
            " %b::bytea[], %b::bytea[], %b::bytea[])",
            (
                list(reads),
                [each.value for each in reads.values()],
                [each.start for each in ranges],
                [each.stop for each in ranges],
                [each.keys for each in ranges],
                list(puts),
                list(puts.values()),
                [key for key, value in writes.items() if value is None],
            ),
        )
        return bool(rows[0][0])

    def sync(self) -> None:
        def flush(connection: Any) -> None:
            with connection.transaction():
                connection.execute("SET LOCAL synchronous_commit = on")
                connection.execute("SELECT pg_logical_emit_message(true, 'objectfs', '')")

        self.patient(lambda: self._on_connection(flush))

    def close(self) -> None:
        for each in self._pool.drain():
            each.close()

    def _prepare(self) -> None:
        # Two clients that begin at once would collide in the catalog.
        def make(connection: Any) -> None:
            with connection.transaction():
                connection.execute(f"SELECT pg_advisory_xact_lock({LOCK})")
                connection.execute(SCHEMA)

        def exists(connection: Any) -> bool:
            found = connection.execute("SELECT to_regclass('objectfs'), to_regproc('objectfs_commit')").fetchone()
            return None not in found

        if not self._on_connection(exists):
            self._on_connection(make)

    def _connect(self) -> Any:
        connection = self._psycopg.connect(self._url, autocommit=True, connect_timeout=CONNECT_SECONDS)
        connection.execute("SET synchronous_commit = off")
        return connection

    def _query(self, query: str, parameters: tuple[Any, ...]) -> list[Any]:
        def run(connection: Any) -> list[Any]:
            found: list[Any] = connection.execute(query, parameters, prepare=True, binary=True).fetchall()
            return found

        return self._on_connection(run)  # type: ignore[no-any-return]

    def _on_connection(self, request: Callable[[Any], Any]) -> Any:
        connection = None
        try:
            connection = self._pool.take()
            answer = request(connection)
        except self._psycopg.Error as error:
            lost = connection is None or connection.broken
            if connection is not None:
                connection.close()
            if isinstance(error, self._psycopg.OperationalError | self._psycopg.InterfaceError):
                self.close()
                # A server that refuses the credentials answers before there is a connection.
                if not (lost and _final(str(error))):
                    raise Disconnected(_line(error)) from error
            raise ObjectFSError(f"metadata database {self._name}: {_line(error)}") from error
        self._pool.give(connection)
        return answer


def _final(text: str) -> bool:
    words = ("authentication failed", "does not exist", "no password supplied", "no pg_hba.conf entry", "invalid")
    return any(each in text for each in words)


def _line(error: Exception) -> str:
    return " ".join(str(error).split())
