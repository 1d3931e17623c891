"""An API server that the kubelets of these tests know; the `place` of each test is made in its own event loop."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from apiserver.connect.place import flags

import tools


@pytest.fixture(scope="session")
def connected(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tools.ApiServer]:
    folder = tmp_path_factory.mktemp("connected")
    with tools.api_server(folder, *flags(folder / "pki")) as server:
        yield server
