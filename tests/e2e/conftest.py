"""Real clients against a real API server."""

from __future__ import annotations

from pathlib import Path

import pytest
from e2e.kubectl import Kubectl

from tools import ApiServer


@pytest.fixture
def run(cluster: ApiServer, kubectl: str, tmp_path: Path) -> Kubectl:
    return Kubectl(kubectl, cluster.kubeconfig, tmp_path)


@pytest.fixture
def space(run: Kubectl, request: pytest.FixtureRequest) -> str:
    """A namespace for one test."""
    name = "e2e-" + request.node.name.partition("[")[0].removeprefix("test_").replace("_", "-")[:50].strip("-")
    run("create", "namespace", name)
    return name
