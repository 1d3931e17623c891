"""How many seats a level is said to need."""

from __future__ import annotations

import pytest

from pybernetes.apiserver.flowcontrol.borrowing import Demand


def test_a_short_peak_is_the_most_but_not_what_is_usual() -> None:
    demand = Demand(0.0)
    demand.change(10, 4.0)
    demand.change(-10, 5.0)
    high, usual = demand.look(10.0)
    assert high == 10
    assert usual == pytest.approx(1 + 3)  # an average of 1, a deviation of 3


def test_what_is_steady_deviates_by_nothing() -> None:
    demand = Demand(0.0)
    demand.change(7, 0.0)
    assert demand.look(10.0) == (7, pytest.approx(7.0))
    demand.change(-3, 10.0)
    assert demand.look(20.0) == (7, pytest.approx(4.0))
    assert demand.look(30.0) == (4, pytest.approx(4.0))


def test_nothing_is_known_of_no_time() -> None:
    assert Demand(5.0).look(5.0) == (0, 0.0)
