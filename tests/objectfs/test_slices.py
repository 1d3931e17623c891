"""Which bytes of which slice a read consists of, and the locks of a file, against models of single bytes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pybernetes.objectfs.meta.locks import F_RDLCK, F_UNLCK, F_WRLCK, Lock, conflict, place
from pybernetes.objectfs.meta.records import CHUNK_SIZE, Slice
from pybernetes.objectfs.meta.slices import chunks, resolve

RANGES = st.tuples(st.integers(0, 60), st.integers(1, 30))


@given(st.lists(st.tuples(RANGES, st.booleans()), max_size=12), RANGES)
def test_each_byte_comes_from_the_newest_slice_that_has_it(writes, wanted):
    slices = [
        Slice(position, 0 if zeros else number, length + 5, 0 if zeros else 5, length)
        for number, ((position, length), zeros) in enumerate(writes, 1)
    ]
    model: dict[int, tuple[int, int]] = {}
    for each in slices:
        for at in range(each.length):
            model[each.position + at] = (each.id, each.offset + at if each.id else 0)
    start, length = wanted
    found = []
    for piece in resolve(slices, start, start + length):
        found += [(piece.id, piece.offset + at if piece.id else 0) for at in range(piece.length)]
    assert found == [model.get(start + at, (0, 0)) for at in range(length)]


def test_a_range_is_cut_at_the_ends_of_chunks():
    assert list(chunks(CHUNK_SIZE - 2, 2 * CHUNK_SIZE + 1)) == [
        (0, CHUNK_SIZE - 2, CHUNK_SIZE),
        (1, 0, CHUNK_SIZE),
        (2, 0, 1),
    ]
    assert list(chunks(5, 5)) == []


LOCKS = st.builds(
    lambda owner, kind, start, length: Lock(1, owner, kind, start, start + length, owner),
    st.integers(1, 3),
    st.sampled_from([F_RDLCK, F_WRLCK, F_UNLCK]),
    st.integers(0, 20),
    st.integers(0, 8),
)


@given(st.lists(LOCKS, max_size=20))
def test_record_locks_hold_as_if_each_byte_had_its_own(wanted):
    locks: list[Lock] = []
    model: dict[tuple[int, int], int] = {}
    for each in wanted:
        span = range(each.start, each.end + 1)
        refused = each.type != F_UNLCK and any(
            owner != each.owner and at in span and F_WRLCK in (kind, each.type) for (owner, at), kind in model.items()
        )
        if each.type != F_UNLCK:
            assert (conflict(locks, each) is not None) == refused
        if refused:
            continue
        locks = place(locks, each)
        for at in span:
            model.pop((each.owner, at), None)
            if each.type != F_UNLCK:
                model[each.owner, at] = each.type
        held = {(lock.owner, at): lock.type for lock in locks for at in range(lock.start, lock.end + 1)}
        assert held == model
        assert sum(lock.end - lock.start + 1 for lock in locks) == len(model), "locks of an owner do not overlap"
