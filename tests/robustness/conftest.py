"""A PKI for all servers of a run, and a real etcd for each test that wants one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from store.tools import Etcd

from pybernetes.cluster import certificates


@pytest.fixture(scope="session")
def pki(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("robustness") / "pki"
    folder.mkdir()
    certificates.ensure(folder, ["10.96.0.1"])
    return folder


@pytest.fixture
def etcd(tmp_path: Path) -> Iterator[Etcd]:
    folder = tmp_path / "etcd"
    folder.mkdir()
    server = Etcd(folder)
    server.start()
    server.wait()
    yield server
    server.kill()
