"""All controllers, the scheduler and the nodes under seeds: whatever crashes, the end is what the specs ask for."""

from __future__ import annotations

import pytest
from simulation.churn import NODES, churn

from pybernetes.simulation.faults import Faults
from pybernetes.simulation.runner import Runner
from pybernetes.testing.options import ClusterOptions

FAULTS = Faults(crashes=4, resets=10, within=240)


@pytest.mark.soak
@pytest.mark.parametrize("first", range(0, 1000, 50))
@pytest.mark.time_limit(900)
def test_the_end_is_what_the_specs_ask_for(first: int) -> None:
    with Runner(churn, ClusterOptions(nodes=NODES), FAULTS) as runner:
        runner.search(list(range(first, first + 50)), jobs=2)
