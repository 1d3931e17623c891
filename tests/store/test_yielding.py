"""When our thread asks for longer slices of time, and when no more."""

from __future__ import annotations

import pytest

from pybernetes.store import yielding
from pybernetes.store.yielding import Slices


class Clocks:
    """The time of day, and what our thread has worked."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.time = self.worked = 0.0
        monkeypatch.setattr(yielding, "monotonic", lambda: self.time)
        monkeypatch.setattr(yielding, "thread_time", lambda: self.worked)

    def sync(self, slices: Slices, seconds: float, worked: float) -> bool:
        slices.asked()
        self.time += seconds
        self.worked += worked
        slices.done()
        return slices.long


def test_slices_are_long_while_a_busy_thread_keeps_the_worker_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    clocks, slices = Clocks(monkeypatch), Slices()
    assert not clocks.sync(slices, 0.0001, 0.0001)  # busy, but nobody waits
    assert not clocks.sync(slices, 0.02, 0.001)  # the disk is slow
    try:
        assert clocks.sync(slices, 0.002, 0.0019)
        assert clocks.sync(slices, 0.0002, 0.0002)  # which helps, so it stays
        assert clocks.sync(slices, 0.001, 0.0005)
    finally:
        assert not clocks.sync(slices, 0.001, 0.0001)  # idle again


def test_other_machines_keep_their_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "abacus")
    assert not Clocks(monkeypatch).sync(Slices(), 0.002, 0.002)
