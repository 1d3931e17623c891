"""A watch with a timeout ends with the timeout, however far the request got by then."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from pybernetes.kubectl.client import Client
from pybernetes.kubectl.errors import ConnectionFailed
from pybernetes.kubectl.restconfig import RestConfig
from pybernetes.kubectl.verbose import Log


@pytest.fixture
def silent() -> Iterator[Client]:
    """A client of a server that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        config = RestConfig()
        config.server = f"http://127.0.0.1:{listener.getsockname()[1]}"
        yield Client(config, Log(0), "test")


def test_a_server_that_does_not_answer_a_watch_in_time_is_a_timeout(silent: Client) -> None:
    with pytest.raises(TimeoutError):
        next(silent.watch("/api/v1/pods", {}, timeout=0.01))


def test_other_failures_of_a_watch_stay_what_they_are() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    config = RestConfig()
    config.server = f"http://127.0.0.1:{port}"
    with pytest.raises(ConnectionFailed):
        next(Client(config, Log(0), "test").watch("/api/v1/pods", {}, timeout=5))
