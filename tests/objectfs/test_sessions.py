"""Sessions of clients whose clocks differ, and of clients that died."""

from __future__ import annotations

import pytest

from pybernetes.objectfs.meta.locks import F_WRLCK, FLOCK, WHOLE_FILE, Locks
from pybernetes.objectfs.meta.sessions import MISSED, Sessions
from pybernetes.objectfs.meta.sqlite import SQLiteEngine

HOUR = 3600 * 10**9


class Client(Sessions):
    def __init__(self, engine, now):
        super().__init__(engine, lambda: self.time)
        self.time = now

    def beat(self, session):
        self.time += 1
        self.renew(session)
        return self.close_stale()


def test_a_session_ends_when_its_client_is_silent_whatever_the_clocks_say(tmp_path):
    engine = SQLiteEngine(tmp_path / "meta.db")
    ahead, behind = Client(engine, 2 * HOUR), Client(engine, 0)
    one, two, dead = ahead.open({}), behind.open({}), behind.open({})
    Locks(engine, dead).set(FLOCK, 7, 1, F_WRLCK, 0, WHOLE_FILE, 1)
    with pytest.raises(BlockingIOError):
        Locks(engine, two).set(FLOCK, 7, 2, F_WRLCK, 0, WHOLE_FILE, 1)
    ended = [session for _ in range(MISSED + 2) for session in (*behind.beat(two), *ahead.beat(one))]
    assert ended == [dead]
    Locks(engine, two).set(FLOCK, 7, 2, F_WRLCK, 0, WHOLE_FILE, 1)
    assert not behind.resume(dead)
    assert behind.resume(two)
    assert [session for _ in range(MISSED + 2) for session in behind.beat(two)] == [one]  # whose clock is ahead
    engine.close()
