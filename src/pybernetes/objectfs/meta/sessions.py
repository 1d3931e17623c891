"""The clients of a volume: each has a session that it renews; the locks and open files of a dead one are released.

A client that takes over from its predecessor on the same mount goes on with the predecessor's session.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from pybernetes.objectfs.meta import locks, records
from pybernetes.objectfs.meta.engine import Engine, Transaction
from pybernetes.objectfs.meta.namespace import forget

HEARTBEAT_SECONDS = 12
# A session that misses more heartbeats belongs to a dead client.
MISSED = 5


class Sessions:
    """The sessions of one volume."""

    def __init__(self, engine: Engine, now: Callable[[], int]) -> None:
        self._engine, self._now = engine, now
        # The heartbeat of each session, and how often it has been found unchanged.
        self._seen: dict[int, tuple[bytes, int]] = {}

    def open(self, information: dict[str, Any]) -> int:
        def make(tx: Transaction) -> int:
            session = records.take_numbers(tx, records.NEXT_SESSION, 1)
            tx.put(records.session_key(b"SI", session), json.dumps(information).encode())
            tx.put(records.session_key(b"SE", session), self._now().to_bytes(8, "little"))
            return session

        return self._engine.transact(make)

    def renew(self, session: int) -> None:
        self._engine.transact(lambda tx: tx.put(records.session_key(b"SE", session), self._now().to_bytes(8, "little")))

    def resume(self, session: int) -> bool:
        """Goes on with a predecessor's session; False if it was ended meanwhile."""

        def renew(tx: Transaction) -> bool:
            key = records.session_key(b"SE", session)
            if tx.get(key) is None:
                return False
            tx.put(key, self._now().to_bytes(8, "little"))
            return True

        return self._engine.transact(renew)

    def close(self, session: int) -> None:
        """Ends a session: its locks go, and the files that only it had open. Each a transaction of its own; the
        session itself goes last, so that what was left undone is found again."""
        locks.release_session(self._engine, session)
        for key, _ in list(self._engine.scan(b"SS" + session.to_bytes(8, "big"))):

            def drop(tx: Transaction, key: bytes = key) -> None:
                if tx.get(key) is None:
                    return
                tx.delete(key)
                value = tx.get(records.inode_key(records.number_at(key, 10)))
                if value is not None:
                    attributes = records.Attributes.decode(records.number_at(key, 10), value)
                    if attributes.nlink == 0:
                        forget(tx, attributes)

            self._engine.transact(drop)
        for key, _ in list(self._engine.scan(records.journal_prefix(session))):
            self._engine.transact(lambda tx, key=key: tx.delete(key))  # type: ignore[misc]

        def end(tx: Transaction) -> None:
            tx.delete(records.session_key(b"SI", session))
            tx.delete(records.session_key(b"SE", session))

        self._engine.transact(end)

    def all(self) -> list[dict[str, Any]]:
        """Each session's information with its number and the seconds since its last heartbeat."""
        now = self._now()

        def read(tx: Transaction) -> list[dict[str, Any]]:
            beats = {records.number_at(key, 2): int.from_bytes(value, "little") for key, value in tx.scan(b"SE")}
            return [
                {"session": number, "idle": (now - beats.get(number, 0)) / 1e9, **json.loads(value)}
                for key, value in tx.scan(b"SI")
                for number in [records.number_at(key, 2)]
            ]

        return self._engine.read(read)

    def close_stale(self) -> list[int]:
        """Ends the sessions whose clients died without a word. To be called at each heartbeat of one's own: who has
        none while this client has several is dead. Clocks are not compared, they may differ."""
        beats = self._engine.read(lambda tx: {records.number_at(key, 2): value for key, value in tx.scan(b"SE")})
        seen = self._seen
        self._seen = {
            session: (beat, seen[session][1] + 1) if session in seen and seen[session][0] == beat else (beat, 0)
            for session, beat in beats.items()
        }
        stale = [session for session, (_, count) in self._seen.items() if count > MISSED]
        for session in stale:
            self.close(session)
        return stale
