from __future__ import annotations

import pytest
from apiserver.client import Client

from tools import ApiServer


@pytest.fixture(scope="session")
def client(cluster: ApiServer) -> Client:
    return Client(cluster)


@pytest.fixture
def namespace(client: Client) -> str:
    return client.namespace()
