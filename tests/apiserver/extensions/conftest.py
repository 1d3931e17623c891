from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import pytest
from apiserver.client import Client
from apiserver.extensions.defining import Kind


class Define(Protocol):
    def __call__(self, *versions: dict[str, Any], namespaced: bool = True, **spec: Any) -> Kind: ...


@pytest.fixture
def define(client: Client) -> Iterator[Define]:
    """Defines kinds that are served, each in a group of its own."""
    made: list[Kind] = []

    def one(*versions: dict[str, Any], namespaced: bool = True, **spec: Any) -> Kind:
        kind = Kind(client, *versions, namespaced=namespaced, **spec)
        made.append(kind)
        return kind.established()

    yield one
    for kind in made:
        kind.delete()
