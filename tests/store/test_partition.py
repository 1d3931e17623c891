"""The keys of a partition are those of its items, in order, whatever happened in between; its window is bounded."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pybernetes.store.base import Entry, Event
from pybernetes.store.cache import WINDOW, WINDOW_SIZE, Partition, change_of
from pybernetes.store.watchers import Change, Item, Watcher

NAMES = st.sampled_from([f"/registry/things/{namespace}/{name}" for namespace in "ab" for name in "stuvwx"])


@given(st.lists(st.tuples(NAMES, st.sampled_from(["put", "delete", "look"])), max_size=60))
def test_keys_follow_the_items(steps: list[tuple[str, str]]) -> None:
    partition = Partition("/registry/things/")
    for revision, (key, step) in enumerate(steps, 1):
        if step == "look":
            assert partition.keys == sorted(partition.items)
            continue
        item = Item(key, b'{"metadata":{"resourceVersion":"1","name":"x"}}', revision) if step == "put" else None
        partition.apply(Change(key, revision, item, partition.items.get(key), {}, len(item.raw) if item else 0))
    assert partition.keys == sorted(partition.items)
    scope = "/registry/things/a/"
    assert partition.scan(scope) == [key for key in sorted(partition.items) if key.startswith(scope)]
    after = "/registry/things/a/u"
    assert partition.scan(scope, after) == [key for key in partition.scan(scope) if key > after]


def test_what_watchers_were_sent_is_not_kept_with_the_change() -> None:
    partition = Partition("/registry/things/")
    made: list[bytes] = []

    def view(change: Change) -> bytes:
        assert change.frames is not None
        if "ADDED" not in change.frames:
            made.append(b"frame")
        return change.frames.setdefault("ADDED", b"frame") or b""

    for _ in range(3):
        partition.add(Watcher(partition.prefix, view, 0))
    key = "/registry/things/a/s"
    partition.apply(Change(key, 1, Item(key, b"{}", 1), None, {}, 2))
    assert made == [b"frame"], "three watchers share one"
    assert [change.frames for change in partition.since(0)] == [None]


def test_objects_that_were_deleted_count_in_the_window() -> None:
    partition = Partition("/registry/things/")
    value = b'{"metadata":{"name":"x","annotations":{"a":"%b"}}}' % (b"a" * (1 << 20))
    last = 3 * WINDOW_SIZE // len(value)
    for number in range(1, last + 1):
        gone = Entry(f"/registry/things/a/{number}", value, number)
        partition.apply(change_of(Event(gone.key, None, last + number, gone), None))
    kept = sum(len(change.previous.raw) for change in partition.window if change.previous is not None)
    assert WINDOW_SIZE // 2 < kept <= WINDOW_SIZE


def test_the_floor_rises_with_what_leaves_the_window() -> None:
    partition = Partition("/registry/things/")
    for revision in range(1, WINDOW + 11):
        partition.apply(Change("/registry/things/a", revision, None, None, {}, 0))
    assert partition.floor == 10
    assert [change.revision for change in partition.since(WINDOW + 8)] == [WINDOW + 9, WINDOW + 10]
    assert len(partition.since(partition.floor)) == WINDOW
    partition.forget_window(20)
    assert partition.floor == 20
    assert partition.since(20)[0].revision == 21
