"""The keys of a partition are those of its items, in order, whatever happened in between."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pybernetes.store.cache import Change, Item, Partition

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
