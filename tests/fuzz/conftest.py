"""A server to throw things at, of which no other test knows, and a look at what it logged."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from fuzz.target import Target

import tools


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tools.ApiServer]:
    """One server for all these tests."""
    with tools.api_server(tmp_path_factory.mktemp("fuzzed")) as server:
        yield server


@pytest.fixture
def target(server: tools.ApiServer) -> Iterator[Target]:
    """The server, which must be alive and have nothing to complain about when the test is over."""
    target = Target(server)
    target.namespace("fuzz")
    log = server.folder / "apiserver.log"
    before = len(log.read_text())
    yield target
    assert target.send("GET", "/livez").status == 200
    target.close()
    assert "Traceback" not in log.read_text()[before:]
