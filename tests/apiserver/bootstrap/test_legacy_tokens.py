"""The day since which the use of legacy tokens is noted is written once, and again if it was changed."""

from __future__ import annotations

import json

import msgspec
import pytest
from apiserver.registry.allocators.servers import Server, server

from pybernetes.api.core.v1 import ConfigMap
from pybernetes.api.meta.v1 import ObjectMeta
from pybernetes.apiserver.bootstrap.legacy_tokens import NAME, ensure_tracking
from pybernetes.apiserver.bootstrap.objects import create


def data(api: Server) -> dict[str, str]:
    item = api.registry.store("", "v1", "configmaps").peek("kube-system", NAME)
    assert item is not None
    return dict(json.loads(item.raw)["data"])


def at(api: Server, seconds: float) -> None:
    api.registry.clock = type("Fixed", (), {"now": staticmethod(lambda: seconds)})()


async def test_the_first_day_stays() -> None:
    async with server() as api:
        at(api, 1e9)
        await ensure_tracking(api.registry)
        assert data(api) == {"since": "2001-09-09"}
        at(api, 2e9)
        await ensure_tracking(api.registry)
        assert data(api) == {"since": "2001-09-09"}


@pytest.mark.parametrize("spoilt", [None, {}, {"since": "yesterday"}, {"since": "20010909", "more": "x"}])
async def test_what_is_no_date_is_put_right(spoilt: dict[str, str] | None) -> None:
    async with server() as api:
        at(api, 1e9)
        store = api.registry.store("", "v1", "configmaps")
        meta = ObjectMeta(name=NAME, namespace="kube-system")
        await create(
            api.registry, store, ConfigMap(metadata=meta, data=msgspec.json.decode(msgspec.json.encode(spoilt)))
        )
        await ensure_tracking(api.registry)
        assert data(api) == {**(spoilt or {}), "since": "2001-09-09"}
