"""The queues of a level, and how seats are shared among levels."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pybernetes.apiserver.flowcontrol.borrowing import allocate, bounds, smoothed
from pybernetes.apiserver.flowcontrol.queueset import GUESS, QueueSet, deal


@given(st.text(), st.integers(1, 200), st.integers(1, 12))
def test_a_hand_holds_different_queues_and_is_always_the_same(flow: str, queues: int, hand: int) -> None:
    hand = min(hand, queues)
    cards = deal(flow, queues, hand)
    assert len(set(cards)) == hand
    assert all(0 <= card < queues for card in cards)
    assert cards == deal(flow, queues, hand)


def test_hands_are_spread_over_all_queues() -> None:
    counts = [0] * 64
    for number in range(2000):
        for card in deal(f"flow-{number}", 64, 6):
            counts[card] += 1
    assert min(counts) > 100  # 187 on average


def drain(queues: QueueSet[str], count: int) -> list[str]:
    order = []
    for _ in range(count):
        found = queues.peek()
        assert found is not None
        queue, item, seats = found
        queues.take(queue)
        queues.finished(queue, seats, GUESS)
        order.append(item)
    return order


def test_a_flood_does_not_hold_up_another_flow() -> None:
    queues: QueueSet[str] = QueueSet(128, 6, 50)
    for _ in range(200):
        assert queues.add("flood", "flood", 1)
    assert queues.add("quiet", "quiet", 1)
    assert "quiet" in drain(queues, 8)  # the hand of the flood has six queues


def test_flows_get_equal_work_not_equal_numbers() -> None:
    queues: QueueSet[str] = QueueSet(2, 1, 100)
    wide, narrow = "a", next(f"n{n}" for n in range(99) if deal(f"n{n}", 2, 1) != deal("a", 2, 1))
    for _ in range(60):
        queues.add(wide, "wide", 5)
        queues.add(narrow, "narrow", 1)
    order = drain(queues, 36)
    assert 28 <= order.count("narrow") <= 32  # five of them for each wide one


def test_who_was_away_has_no_claim_to_the_past() -> None:
    queues: QueueSet[str] = QueueSet(2, 1, 100)
    other = next(f"n{n}" for n in range(99) if deal(f"n{n}", 2, 1) != deal("a", 2, 1))
    for _ in range(50):
        queues.add("a", "a", 1)
    drain(queues, 40)
    for _ in range(20):
        queues.add(other, "late", 1)
    assert 4 <= drain(queues, 10).count("late") <= 6


def test_a_full_queue_takes_no_more_and_leaving_makes_room() -> None:
    queues: QueueSet[object] = QueueSet(1, 1, 2)
    first, second = object(), object()
    queue = queues.add("a", first, 1)
    assert queue is not None
    assert queues.add("a", second, 1)
    assert queues.add("a", object(), 1) is None
    queues.remove(queue, first)
    assert queues.waiting == 1
    assert queues.add("a", object(), 1)


def test_ten_million_queues_take_room_only_while_they_are_used() -> None:
    queues: QueueSet[str] = QueueSet(10_000_000, 2, 50)
    for number in range(100):
        assert queues.add(f"flow-{number}", "request", 1)
    assert len(queues.queues) == 100
    drain(queues, 99)
    assert len(queues.queues) <= 100
    drain(queues, 1)
    assert not queues.queues


def test_a_queue_that_ran_ahead_stays_behind_the_others_while_they_wait() -> None:
    queues: QueueSet[str] = QueueSet(2, 1, 100)
    busy, other = "a", next(f"n{n}" for n in range(99) if deal(f"n{n}", 2, 1) != deal("a", 2, 1))
    queues.add(busy, "busy", 1)
    found = queues.peek()
    assert found is not None
    queues.take(found[0])
    queues.add(other, "other", 1)
    queues.finished(found[0], 1, 60.0)  # it was a long request
    queues.add(busy, "busy", 1)
    assert drain(queues, 2) == ["other", "busy"]


def test_seats_by_shares() -> None:
    found = bounds(600, [(30, 33, None), (40, 25, None), (100, 90, 10), (5, 0, None), (0, 0, None)])
    assert [each.nominal for each in found] == [103, 138, 343, 18, 0]  # rounded up, as upstream
    assert [each.least for each in found] == [69, 104, 34, 18, 0]
    assert found[2].most == 343 + 34
    assert found[0].most == sum(each.nominal for each in found)


@given(
    st.lists(
        st.tuples(st.integers(0, 50), st.integers(0, 200), st.integers(0, 300)).map(
            lambda each: (float(each[0]), float(max(each[0], each[1])), float(each[0] + each[2]))
        ),
        min_size=1,
        max_size=8,
    )
)
def test_seats_are_given_within_bounds_and_all_of_them_where_possible(items: list[tuple[float, float, float]]) -> None:
    low, high = sum(each[0] for each in items), sum(each[2] for each in items)
    total = int((low + high) / 2)
    given_ = allocate(total, items)
    assert all(each[0] - 1 <= seats <= each[2] + 1 for seats, each in zip(given_, items, strict=True))
    assert sum(given_) == pytest.approx(total, abs=len(items))


def test_demand_grows_at_once_and_shrinks_slowly() -> None:
    assert smoothed(0.0, 10.0) == 10.0
    assert 9.0 < smoothed(10.0, 0.0) < 10.0
