"""When to come again."""

from __future__ import annotations

from pybernetes.apiserver.flowcontrol.retrying import MOST, RetryAfter


def flood(retry: RetryAfter, begin: int, seconds: int, each_second: int) -> list[int]:
    """The `Retry-After` of refused requests, by second."""
    return [[retry.refused(now) for _ in range(each_second)][-1] for now in range(begin, begin + seconds)]


def test_a_few_refusals_change_nothing() -> None:
    assert flood(RetryAfter(100), 100, 20, 2) == [1] * 20


def test_many_refusals_make_it_longer_up_to_a_limit_and_few_shorter_again() -> None:
    retry = RetryAfter(100)
    told = flood(retry, 100, 120, 10)
    assert told[:4] == [1, 2, 2, 4]
    assert sorted(told) == told
    assert told[-1] == MOST
    assert set(told) == {1, 2, 4, 8, 16, 32}
    later = flood(retry, 400, 1, 1) + flood(retry, 500, 1, 1)
    assert later == [MOST - 1, MOST - 2]
