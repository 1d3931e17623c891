"""The three stores, one of them also with a log that is always being folded, and a real etcd to put one of them on."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import os
import shutil
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest
from store.tools import Clock, Etcd

from pybernetes.store import sqlite
from pybernetes.store.base import Store
from pybernetes.store.memory import MemoryStore


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run coroutine tests of this folder in an event loop of their own, 60 s at most."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    arguments = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}

    async def limited() -> None:
        async with asyncio.timeout(60):
            await pyfuncitem.obj(**arguments)

    asyncio.run(limited())
    return True


@pytest.fixture(scope="session")
def etcd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Etcd]:
    if shutil.which("etcd") is None:
        pytest.fail("etcd is missing: install Debian's package etcd-server")
    server = Etcd(tmp_path_factory.mktemp("etcd"))
    server.start()
    server.wait()
    yield server
    server.kill()


@pytest.fixture(params=["memory", "sqlite", "sqlite folding", "etcd"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def path(tmp_path: Path) -> str:
    """Of a database that is not there yet."""
    return str(tmp_path / "store.db")


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def prefix() -> str:
    """Keys of a test, apart from those of all others that share an etcd."""
    return f"/registry/{os.urandom(6).hex()}/"


@pytest.fixture
def opened(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path, clock: Clock
) -> Callable[[], contextlib.AbstractAsyncContextManager[Store]]:
    """`async with opened() as store:`, again and again; the durable ones come back with what they held."""

    @contextlib.asynccontextmanager
    async def open_store() -> AsyncIterator[Store]:
        store: Store
        if kind == "memory":
            store = MemoryStore(clock=clock)
        elif kind.startswith("sqlite"):
            if kind == "sqlite folding":
                request.getfixturevalue("monkeypatch").setattr(sqlite, "FOLD_AFTER", 100)
            store = sqlite.SQLiteStore(str(tmp_path / "store.db"), clock=clock)
        else:
            from pybernetes.store.etcd import EtcdStore

            server = await asyncio.to_thread(request.getfixturevalue, "etcd")
            store = EtcdStore([server.url])
        await store.start()
        try:
            yield store
        finally:
            await store.close()

    return open_store
