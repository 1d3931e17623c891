"""Reports of unschedulable pods, and their rate."""

from __future__ import annotations

import asyncio
from functools import partial

from pybernetes.client.clock import FakeClock
from pybernetes.scheduler.failures import BURST, QPS, Failures


class Told:
    """Failures, and what was said of whom."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.said: list[str] = []
        self.placed: set[str] = set()
        self.failures = Failures(self.clock, self.placed.__contains__)

    def tell(self, uid: str, word: str = "", *, at_once: bool = False) -> None:
        self.failures.tell(uid, partial(self.said.append, word or uid), at_once=at_once)

    async def after(self, seconds: float) -> list[str]:
        """What was said within so many seconds, which must be a whole number of turns."""
        before = len(self.said)
        for _ in range(round(seconds * QPS)):
            await _settle()
            self.clock.advance(1 / QPS)
        await _settle()
        return self.said[before:]


async def _settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_the_first_are_reported_at_once_and_others_at_upstreams_rate() -> None:
    told = Told()
    for number in range(BURST + 75):
        told.tell(f"{number}")
    assert told.said == [f"{number}" for number in range(BURST)]
    assert await told.after(1) == [f"{number}" for number in range(BURST, BURST + 50)]
    assert await told.after(1) == [f"{number}" for number in range(BURST + 50, BURST + 75)]
    assert told.failures._task is None
    told.tell("again")
    assert told.said[-1] == "again"
    await told.failures.close()


async def test_of_a_pod_that_fails_again_the_last_word_counts_in_the_turn_of_the_first() -> None:
    told = Told()
    for number in range(BURST):
        told.tell(f"{number}")
    for word in ("a", "b", "a, again", "c"):
        told.tell(word[0], word)
    assert await told.after(0.1) == ["a, again", "b", "c"]
    await told.failures.close()


async def test_a_pod_that_got_a_node_is_not_reported_and_a_nomination_does_not_wait() -> None:
    told = Told()
    for number in range(BURST):
        told.tell(f"{number}")
    for uid in ("a", "b", "c"):
        told.tell(uid)
    told.placed.add("a")
    told.tell("b", "nominated", at_once=True)
    assert told.said[BURST:] == ["nominated"]
    assert await told.after(0.1) == ["c"]
    await told.failures.close()


async def test_who_closes_says_no_more() -> None:
    told = Told()
    for number in range(BURST + 1):
        told.tell(f"{number}")
    await told.failures.close()
    assert await told.after(0.1) == []
