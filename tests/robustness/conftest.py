"""A PKI for all servers of a run."""

from __future__ import annotations

from pathlib import Path

import pytest

from pybernetes.cluster import certificates


@pytest.fixture(scope="session")
def pki(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("robustness") / "pki"
    folder.mkdir()
    certificates.ensure(folder, ["10.96.0.1"])
    return folder
