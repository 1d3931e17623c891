"""Where a connection goes: to the address that was judged, whatever the name has by then (CVE-2020-8562)."""

from __future__ import annotations

from typing import Any

import pytest

from pybernetes.api.errors import BadRequest
from pybernetes.apiserver.connect import locations
from pybernetes.apiserver.connect.kubelets import Kubelet


class _Kubelets:
    def __init__(self, verifies: bool) -> None:
        self.verifies = verifies

    async def find(self, name: str) -> Kubelet:
        return Kubelet("node.example", 10250, frozenset())


def _node(monkeypatch: pytest.MonkeyPatch, addresses: list[str], *, verifies: bool = True) -> None:
    async def look_up(host: str) -> list[str]:
        assert host == "node.example"
        return addresses

    monkeypatch.setattr(locations, "_look_up", look_up)
    monkeypatch.setattr(locations, "kubelets", lambda registry: _Kubelets(verifies))


@pytest.mark.parametrize(
    ("id", "verifies", "address"),
    [
        ("node:8080", True, "192.0.2.7"),
        ("http:node:8080", True, "192.0.2.7"),
        ("node", False, "192.0.2.7"),
        ("node", True, "node.example"),
        ("node:10250", True, "node.example"),
    ],
)
async def test_what_was_judged_is_connected_to(
    monkeypatch: pytest.MonkeyPatch, id: str, verifies: bool, address: str
) -> None:
    _node(monkeypatch, ["192.0.2.7", "192.0.2.8"], verifies=verifies)
    registry: Any = None
    place = await locations.of_node(registry, id)
    assert (place.host, place.address) == ("node.example", address)


@pytest.mark.parametrize("addresses", [["127.0.0.1"], ["192.0.2.7", "::1"], []])
async def test_a_name_with_an_address_of_our_own_is_refused(
    monkeypatch: pytest.MonkeyPatch, addresses: list[str]
) -> None:
    _node(monkeypatch, addresses)
    registry: Any = None
    with pytest.raises(BadRequest, match="address not allowed"):
        await locations.of_node(registry, "node:8080")
