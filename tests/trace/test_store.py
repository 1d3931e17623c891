"""The API server's store of spans is bounded, and outlives its process."""

from __future__ import annotations

from pathlib import Path

from pybernetes.trace.store import SEGMENTS, SpanStore


def raw(number: int) -> bytes:
    return b'{"n":%090d}' % number


def test_batches_come_in_order_and_from_a_number_on() -> None:
    store = SpanStore()
    for number in range(3):
        store.add(raw(number))
    assert list(store.after()) == [raw(0), raw(1), raw(2)]
    assert list(store.after(2)) == [raw(2)]
    assert store.next == 4


def test_the_oldest_go_first_by_size_and_age() -> None:
    now = [0.0]
    store = SpanStore(size=1000, age=50, now=lambda: now[0])
    for number in range(100):
        now[0] += 10
        store.add(raw(number))
    assert [*store.after()] == [raw(number) for number in range(94, 100)]
    for number in range(100):
        store.add(raw(number))
    assert store.size <= 1000
    assert [*store.after(since=now[0] + 1)] == []


def test_what_is_too_large_is_not_kept() -> None:
    store = SpanStore(size=400)
    store.add(b"x" * 101)
    assert list(store.after()) == []


def test_another_process_goes_on_where_the_first_was_killed(tmp_path: Path) -> None:
    first = SpanStore(tmp_path / "trace")
    first.add(raw(1))
    first.add(raw(2))
    first.write()
    with open(next((tmp_path / "trace").iterdir()), "ab") as file:
        file.write(b'17 {"n":')  # killed in the middle of a write
    second = SpanStore(tmp_path / "trace")
    second.add(raw(3))
    second.write()
    assert list(SpanStore(tmp_path / "trace").after()) == [raw(1), raw(2), raw(3)]


def test_the_log_on_disk_is_bounded(tmp_path: Path) -> None:
    store = SpanStore(tmp_path, size=4000)
    for number in range(200):
        store.add(raw(number))
        store.write()
    files = list(tmp_path.iterdir())
    assert {each.stat().st_mode & 0o777 for each in files} == {0o600}  # messages of refusals are for the owner
    assert len(files) <= SEGMENTS
    assert sum(each.stat().st_size for each in files) <= 4000
    assert [*SpanStore(tmp_path, size=4000).after()][-1] == raw(199)


def test_a_folder_that_cannot_be_written_costs_the_log_alone(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    store = SpanStore(tmp_path / "file" / "below")
    store.add(raw(1))
    store.write()
    assert list(store.after()) == [raw(1)]


def test_the_log_on_disk_is_its_owners_alone(tmp_path: Path) -> None:
    store = SpanStore(tmp_path / "trace")
    store.add(raw(1))
    store.write()
    (written,) = (tmp_path / "trace").iterdir()
    assert written.stat().st_mode & 0o077 == 0
