"""One cluster with simulated nodes for all tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from kubelet.simulated.cluster import Simulation, cluster


@pytest.fixture(scope="package")
def simulation() -> Iterator[Simulation]:
    with cluster() as made:
        yield made
