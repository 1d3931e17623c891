"""A client of the API server, and a namespace of the test's own."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import pytest

import tools
from pybernetes.api.core.v1 import Namespace
from pybernetes.api.meta.v1 import ObjectMeta
from pybernetes.client import config
from pybernetes.client.client import Client

_numbers = itertools.count(1)

Connect = Callable[[], AbstractAsyncContextManager[tuple[Client, str]]]


@pytest.fixture
def connect(cluster: tools.ApiServer) -> Connect:
    """`async with connect() as (client, namespace):`"""

    @asynccontextmanager
    async def connected() -> AsyncIterator[tuple[Client, str]]:
        name = f"kubelet-{next(_numbers)}"
        async with Client(config.load(cluster.kubeconfig), program="kubelet") as client:
            await client.create(Namespace(metadata=ObjectMeta(name=name)))
            yield client, name

    return connected
