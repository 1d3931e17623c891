"""Fixtures for all tests: kubectl, a free port, an etcd, and an API server that lives as long as the test run."""

from __future__ import annotations

import asyncio
import inspect
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from store.tools import Etcd

import tools

# Set by the `./pyb` that may have started this run; the programs under test must not take it for their own.
os.environ.pop("PYB_COMMAND", None)

# A shell that starts the tests in the background, or nohup, has signals ignored, and all programs would inherit that.
for number, usual in (
    (signal.SIGINT, signal.default_int_handler),
    (signal.SIGQUIT, signal.SIG_DFL),
    (signal.SIGHUP, signal.SIG_DFL),
):
    if signal.getsignal(number) == signal.SIG_IGN:
        signal.signal(number, usual)

pytest_plugins = ["plugins.determinism", "plugins.order", "plugins.time_limit"]


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Runs coroutine tests, each in an event loop of its own."""
    if not inspect.iscoroutinefunction(pyfuncitem.function):
        return None
    arguments = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    asyncio.run(pyfuncitem.function(**arguments))
    return True


@pytest.fixture(scope="session")
def kubectl() -> str:
    return tools.kubectl()


@pytest.fixture
def free_port() -> int:
    return tools.free_port()


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tools.ApiServer]:
    """One API server with a memory store for the whole run (one for each worker): use namespaces of your own."""
    with tools.api_server(tmp_path_factory.mktemp("cluster")) as server:
        yield server


@pytest.fixture
def own_etcd(tmp_path: Path) -> Iterator[Etcd]:
    """A real etcd of the test's own, which it may kill."""
    folder = tmp_path / "etcd"
    folder.mkdir()
    server = Etcd(folder)
    server.start()
    server.wait()
    yield server
    server.kill()
