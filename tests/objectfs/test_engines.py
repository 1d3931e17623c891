"""What every metadata engine promises, on the real servers: ordered keys, serializable transactions, durability."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator

import pytest
from objectfs.databases import ENGINES, Database, running

from pybernetes.objectfs.errors import ObjectFSError
from pybernetes.objectfs.meta.engine import Engine, Unavailable
from pybernetes.objectfs.meta.numbers import NumberPool
from pybernetes.objectfs.meta.optimistic import Disconnected
from pybernetes.objectfs.meta.urls import connect, masked, with_password


@pytest.fixture(scope="module", params=ENGINES)
def database(request: pytest.FixtureRequest) -> Iterator[Database]:
    with running(request.param) as made:
        yield made


@pytest.fixture
def url(database: Database) -> str:
    return database.fresh()


@pytest.fixture
def engine(url: str) -> Iterator[Engine]:
    made = connect(url)
    yield made
    made.close()


def fill(engine: Engine, rows: dict[bytes, bytes]) -> None:
    engine.transact(lambda tx: [tx.put(key, value) for key, value in rows.items()])


def test_keys_and_values_are_any_bytes_in_the_order_of_their_bytes(engine):
    draw = random.Random(1)
    rows = {draw.randbytes(draw.randrange(1, 20)): draw.randbytes(draw.randrange(50)) for _ in range(100)}
    rows |= {b"\xff": b"", b"\xff\xff": b"\0", b"a\0b": b"x", b"a": b"\r\n"}
    fill(engine, rows)
    assert list(engine.scan(b"", limit=7)) == sorted(rows.items())
    assert engine.read(lambda tx: tx.scan(b"\xff")) == [(k, v) for k, v in sorted(rows.items()) if k[:1] == b"\xff"]
    assert engine.read(lambda tx: tx.get_many([b"a", b"none", b"a\0b", b"a"])) == [b"\r\n", None, b"x", b"\r\n"]
    assert [key for key, _ in engine.scan(b"a", after=b"a")] == [key for key in sorted(rows) if key[:1] == b"a"][1:]


def test_a_transaction_sees_what_it_wrote_and_leaves_nothing_when_it_fails(engine):
    fill(engine, {b"p1": b"1", b"p2": b"2", b"p4": b"4", b"q": b"q"})

    def change(tx):
        tx.delete(b"p1")
        tx.put(b"p3", b"3")
        tx.put(b"p2", b"two")
        assert tx.get(b"p1") is None
        assert tx.scan(b"p") == [(b"p2", b"two"), (b"p3", b"3"), (b"p4", b"4")]
        assert tx.scan(b"p", limit=2) == [(b"p2", b"two"), (b"p3", b"3")]
        assert tx.glance(b"p") == tx.scan(b"p")

    def fail(tx):
        change(tx)
        raise FileExistsError

    with pytest.raises(FileExistsError):
        engine.transact(fail)
    assert engine.read(lambda tx: tx.scan(b"p")) == [(b"p1", b"1"), (b"p2", b"2"), (b"p4", b"4")]
    engine.transact(change)
    assert engine.read(lambda tx: tx.scan(b"p")) == [(b"p2", b"two"), (b"p3", b"3"), (b"p4", b"4")]


def test_counters_of_many_threads_and_clients_lose_nothing(engine, url):
    other = connect(url)
    taken: list[int] = []

    def count(engine: Engine) -> None:
        numbers = NumberPool(engine, b"CI")
        for _ in range(10):
            taken.append(numbers.take())
            engine.transact(lambda tx: tx.put(b"n", b"%d" % (int(tx.get(b"n") or b"0") + 1)))

    threads = [threading.Thread(target=count, args=(each,)) for each in (engine, other) * 3]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert engine.read(lambda tx: tx.get(b"n")) == b"60"
    assert len(set(taken)) == 60
    other.close()


def test_what_was_read_is_still_so_when_a_transaction_commits(engine, url):
    """The three ways to be overtaken: a value changes, a key comes into a range that was read, a key leaves it."""
    other = connect(url)
    for change in (
        lambda tx: tx.put(b"value", b"new"),
        lambda tx: tx.put(b"range/b", b"came"),
        lambda tx: tx.delete(b"range/a"),
    ):
        fill(engine, {b"value": b"old", b"range/a": b"a"})
        engine.transact(lambda tx: tx.delete(b"range/b"))
        runs: list[tuple[bytes | None, int]] = []

        def slow(tx, change=change, runs=runs):
            runs.append((tx.get(b"value"), len(tx.scan(b"range/"))))
            if len(runs) == 1 and not engine.local:
                other.transact(change)
            tx.put(b"result", b"%b %d" % runs[-1])

        if engine.local:
            engine.transact(change)
        engine.transact(slow)
        assert len(runs) == (1 if engine.local else 2)
        assert engine.read(lambda tx: tx.get(b"result")) == b"%b %d" % runs[-1]
        assert (runs[-1][0], runs[-1][1]) != (b"old", 1)
    other.close()


def test_an_error_raised_from_two_moments_does_not_count(engine, url):
    """A name is replaced between two looks at it: 'no such file' would be wrong, it existed all the time."""
    if engine.local:
        pytest.skip("one process sees one moment")
    other = connect(url)
    fill(engine, {b"name": b"1", b"inode1": b"x"})
    looks = []

    def lookup(tx):
        number = tx.get(b"name")
        looks.append(number)
        if len(looks) == 1:
            other.transact(lambda tx: [tx.put(b"name", b"2"), tx.put(b"inode2", b"y"), tx.delete(b"inode1")])
        if tx.get(b"inode" + number) is None:
            raise FileNotFoundError
        return number

    assert engine.read(lookup) == b"2"
    other.close()


def test_a_commit_whose_answer_is_lost_is_not_made_twice(engine, monkeypatch):
    if engine.local:
        pytest.skip("no network, no lost answers")
    commit, lost = engine.commit, []

    def lossy(reads, ranges, writes):
        done = commit(reads, ranges, writes)
        if not lost:
            lost.append(done)
            raise Disconnected("the answer was lost")
        return done

    monkeypatch.setattr(engine, "commit", lossy)
    engine.transact(lambda tx: tx.put(b"n", b"%d" % (int(tx.get(b"n") or b"0") + 1)))
    assert lost == [True]
    assert engine.read(lambda tx: tx.get(b"n")) == b"1"


def test_what_was_synced_is_there_after_the_database_was_killed(database, engine):
    if database.kind == "sqlite":
        pytest.skip("no server to kill")
    fill(engine, {b"kept": b"yes"})
    engine.sync()
    database.kill()
    waiter = threading.Thread(target=fill, args=(engine, {b"later": b"too"}))
    waiter.start()
    database.start()
    waiter.join(30)
    assert engine.read(lambda tx: tx.get_many([b"kept", b"later"])) == [b"yes", b"too"]


def test_a_database_that_stays_away_is_an_input_output_error(database, engine, monkeypatch):
    if database.kind == "sqlite":
        pytest.skip("no server to kill")
    monkeypatch.setattr("pybernetes.objectfs.meta.optimistic.PATIENCE_SECONDS", 0.3)
    database.kill()
    try:
        with pytest.raises(Unavailable, match="metadata database") as caught:
            engine.read(lambda tx: tx.get(b"x"))
        assert caught.value.errno == 5
        assert "secret" not in str(caught.value)
    finally:
        database.start()


def test_addresses():
    assert masked("postgres://u:pw@h/d") == "postgres://u:****@h/d"
    assert masked("redis://:pw@h") == "redis://:****@h"
    assert with_password("postgres://u@h/d", "p/w") == "postgres://u:p%2Fw@h/d"
    assert with_password("redis://h:1/2", "x") == "redis://:x@h:1/2"
    assert with_password("redis://:a@h", "x") == "redis://:a@h"
    for url, said in (
        ("mysql://h", "MySQL"),
        ("redis://", "no host"),
        ("redis://h/x", "redis://"),
        ("etcd:///p", "etcd"),
    ):
        with pytest.raises(ObjectFSError, match=said):
            connect(url)
