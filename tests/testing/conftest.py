"""Clusters for the tests of the test kit; the plugin itself is tested in runs of pytest of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pybernetes.testing.cluster import Cluster


@pytest.fixture
def test_cluster() -> Iterator[Cluster]:
    """A cluster of the test's own, with one simulated node."""
    with Cluster() as cluster:
        yield cluster
