"""A driver at a socket with the controllers beside it, and a real API server."""

from __future__ import annotations

import asyncio
import itertools
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from csi.controllers import NAME, Cluster, Disk, clean

from pybernetes.api.core.v1 import Namespace
from pybernetes.api.meta.v1 import ObjectMeta
from pybernetes.client import config
from pybernetes.client.client import Client
from pybernetes.client.clock import SystemClock
from pybernetes.client.events import EventBroadcaster
from pybernetes.client.informers import InformerFactory
from pybernetes.csi.client import CSIClient
from pybernetes.csi.controller import loop
from pybernetes.csi.controller.attacher import Attacher
from pybernetes.csi.controller.loop import Context
from pybernetes.csi.controller.provisioner import Provisioner
from pybernetes.csi.controller.resizer import Resizer
from pybernetes.csi.driver import serving
from tools import ApiServer

_numbers = itertools.count(1)


@pytest.fixture
def start(cluster: ApiServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setattr(loop, "FIRST_RETRY", 0.05)
    with tempfile.TemporaryDirectory(prefix="pyb-") as folder:

        @asynccontextmanager
        async def started(
            driver: Disk | None = None, node: str = "", more: Callable[[Context], list[Any]] = lambda _: []
        ) -> AsyncIterator[Cluster]:
            driver = driver or Disk()
            space = f"provisioner-{next(_numbers)}"
            async with AsyncExitStack() as stack:
                client = await stack.enter_async_context(Client(config.load(cluster.kubeconfig)))
                await client.create(Namespace(metadata=ObjectMeta(name=space)))
                address = await stack.enter_async_context(serving(driver, Path(folder) / "csi.sock"))
                calls = await stack.enter_async_context(CSIClient(address))
                clock = SystemClock()
                informers = InformerFactory(client, clock=clock)
                events = EventBroadcaster(client, clock, "test")
                context = Context(client, informers, events, clock, calls, NAME, node)
                workers = (Provisioner(context), Resizer(context), Attacher(context), *more(context))
                runs = (events.run, *(each.run for each in workers))
                informers.start()
                stack.push_async_callback(informers.stop)
                tasks = [asyncio.create_task(each()) for each in runs]
                made = Cluster(client, space, driver)
                try:
                    yield made
                finally:
                    for task in tasks:
                        task.cancel()
                    await asyncio.gather(*tasks, return_exceptions=True)
                    await clean(client, made)

        yield started
