"""Garbage is collected by time, because Python would leave what is old and in cycles for hours."""

from __future__ import annotations

import gc
import weakref

import pytest

from pybernetes.apiserver import memory
from pybernetes.apiserver.large_objects import collecting_later


class Held:
    """Something that refers to itself."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, which stands still; a collection takes as long as the second item says."""
    time, collect = [1000.0, 0.0], gc.collect

    def collected() -> int:
        time[0] += time[1]
        return collect()

    monkeypatch.setattr(memory.time, "monotonic", lambda: time[0])
    monkeypatch.setattr(memory.gc, "collect", collected)
    return time


def test_old_garbage_is_collected_once_in_a_while(now: list[float]) -> None:
    collector = memory.Collector()
    old = Held()
    gc.collect()
    gone = weakref.ref(old)
    del old
    assert not collector.collect()
    assert gone() is not None
    now[0] += memory.COLLECT_EVERY
    assert collector.collect()
    assert gone() is None
    assert not collector.collect()


def test_collections_that_take_long_are_rare(now: list[float]) -> None:
    collector = memory.Collector()
    now[0], now[1] = now[0] + memory.COLLECT_EVERY, 0.5
    assert collector.collect()
    now[0] += 99.0
    assert not collector.collect()
    now[0] += 1.5
    assert collector.collect()


def test_nothing_is_collected_while_a_large_object_is_worked_on(now: list[float]) -> None:
    collector = memory.Collector()
    now[0] += memory.COLLECT_EVERY
    with collecting_later:
        assert not collector.collect()
    assert collector.collect()
