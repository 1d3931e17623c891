"""The server's own view of its objects."""

from __future__ import annotations

from typing import Any

from pybernetes.api.times import SystemClock
from pybernetes.apiserver.admission.plugin import Chain
from pybernetes.apiserver.registry.lister import lister
from pybernetes.apiserver.registry.registry import Registry
from pybernetes.store import open_store
from pybernetes.store.cache import Cache


def _config_map(name: str, value: str) -> bytes:
    return b'{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"%b","namespace":"a"},"data":{"k":"%b"}}' % (
        name.encode(),
        value.encode(),
    )


async def test_objects_are_decoded_once_and_every_change_is_followed() -> None:
    store = open_store("memory://")
    await store.start()
    cache = Cache(store, ["/registry/configmaps/"])
    await cache.start()
    registry = Registry(cache, SystemClock(), Chain([]))
    maps = lister(registry, "", "v1", "configmaps")
    seen: list[tuple[str | None, str | None]] = []

    def follow(new: Any, old: Any) -> None:
        seen.append((new and new.data["k"], old and old.data["k"]))

    await cache.wait_for(await store.create("/registry/configmaps/a/x", _config_map("x", "1")))
    maps.subscribe(follow)
    first = maps.get("a", "x")
    assert first is maps.get("a", "x")
    assert maps.list("a") == [first] == maps.list()
    assert maps.list("b") == []
    stamp = maps.changed
    await cache.wait_for(await store.create("/registry/configmaps/a/y", _config_map("y", "2")))
    assert maps.changed > stamp
    assert [found.metadata.name for found in maps.list("a")] == ["x", "y"]
    assert seen == [("1", None), ("2", None)]
    assert await maps.find("a", "z") is None
    assert lister(registry, "", "v1", "configmaps") is maps
    await cache.close()
    await store.close()
