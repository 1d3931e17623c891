"""A client of the API server that all tests share."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest

import tools
from pybernetes.api.core.v1 import Namespace
from pybernetes.api.meta.v1 import ObjectMeta
from pybernetes.client import config
from pybernetes.client.client import Client

_numbers = itertools.count(1)


@pytest.fixture
def connect(cluster: tools.ApiServer) -> Callable[[], Client]:
    """`async with connect() as client:`"""
    return lambda: Client(config.load(cluster.kubeconfig), program="test-client")


@pytest.fixture
def namespace() -> str:
    return f"client-{next(_numbers)}"


async def make_namespace(client: Client, name: str) -> None:
    await client.create(Namespace(metadata=ObjectMeta(name=name)))
