"""A pod of a few kilobytes must not fill its node with copies of one object: all that it is shown is bounded."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pybernetes.api.core.v1 import (
    ConfigMap,
    ConfigMapProjection,
    ConfigMapVolumeSource,
    DownwardAPIVolumeFile,
    DownwardAPIVolumeSource,
    KeyToPath,
    ObjectFieldSelector,
    Pod,
    ProjectedVolumeSource,
    Volume,
    VolumeProjection,
)
from pybernetes.api.meta.v1 import ObjectMeta
from pybernetes.client.clock import FakeClock
from pybernetes.kubelet.container import downward_api as fields
from pybernetes.kubelet.node.facts import NodeFacts
from pybernetes.kubelet.service_account_tokens import Tokens
from pybernetes.kubelet.volumes import config_map, contents, downward_api, projected
from pybernetes.kubelet.volumes.host import Host

BOUND = "in a pod's volumes have more than 134217728 bytes"
MANY = 300


class _Objects:
    """A server with one large ConfigMap, and one of many keys."""

    async def get(self, kind: Any, namespace: str, name: str) -> Any:
        if name == "keys":
            return ConfigMap(data={f"k{number}": "" for number in range(20)})
        return ConfigMap(data={"large": "x" * (1 << 19)})


@pytest.fixture
def host(tmp_path: Path) -> Host:
    facts = NodeFacts("node-1", [], {}, {})
    return Host(tmp_path, facts, None, _Objects(), Tokens(None, FakeClock()), lambda *_: None)  # type: ignore[arg-type]


POD = Pod(metadata=ObjectMeta(name="web", namespace="shop", uid="u1", annotations={"a": "x" * 200_000}))


def _items(count: int) -> list[KeyToPath]:
    return [KeyToPath(key="large", path=f"f{number}") for number in range(count)]


def _config_map(name: str, source: str = "map", items: list[KeyToPath] | None = None) -> Volume:
    return Volume(name=name, config_map=ConfigMapVolumeSource(name=source, items=items, default_mode=0o644))


def _downward() -> Volume:
    field = ObjectFieldSelector(field_path="metadata.annotations['a']")
    items = [DownwardAPIVolumeFile(path=f"f{number}", field_ref=field) for number in range(MANY * 3)]
    return Volume(name="v", downward_api=DownwardAPIVolumeSource(items=items, default_mode=0o644))


def _projected() -> Volume:
    sources = [
        VolumeProjection(config_map=ConfigMapProjection(name="map", items=[KeyToPath(key="large", path=f"f{number}")]))
        for number in range(MANY)
    ]
    return Volume(name="v", projected=ProjectedVolumeSource(sources=sources, default_mode=0o644))


@pytest.mark.parametrize(
    ("set_up", "volume"),
    [
        (config_map.set_up, _config_map("v", items=_items(MANY))),
        (downward_api.set_up, _downward()),
        (projected.set_up, _projected()),
    ],
    ids=["one key as many files", "all annotations as many files", "one object as many sources"],
)
async def test_a_volume_is_bounded(host: Host, set_up: Callable[..., Any], volume: Volume) -> None:
    with pytest.raises(ValueError, match=BOUND):
        await set_up(host, POD, volume)
    assert not (host.pod_folder("u1") / "volumes").exists(), "nothing was written"


async def test_all_volumes_of_a_pod_are_bounded_and_small_files_count_as_pages(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(contents, "MOST_SHOWN", 3 * 20 * 4096)
    for name in ("v1", "v2", "v3", "v1"):
        await config_map.set_up(host, POD, _config_map(name, "keys"))
    with pytest.raises(ValueError, match="in a pod's volumes have more than 245760 bytes"):
        await config_map.set_up(host, POD, _config_map("v4", "keys"))
    other = Pod(metadata=ObjectMeta(name="other", namespace="shop", uid="u2"))
    await config_map.set_up(host, other, _config_map("v4", "keys"))


def test_one_small_key_of_a_large_object_costs_that_key() -> None:
    large = {"large": "eA==" * 1000, "small": "eA=="}
    assert config_map.selected(large, [KeyToPath(key="small", path="a")] * 3) == [("small", "eA==")]
    assert config_map.selected(large, []) == list(large.items())


def test_a_map_that_many_items_show_is_formatted_once(monkeypatch: pytest.MonkeyPatch, host: Host) -> None:
    formatted: list[int] = []

    def format_map(values: dict[str, str]) -> str:
        formatted.append(len(values))
        return "text"

    monkeypatch.setattr(fields, "format_map", format_map)
    field = ObjectFieldSelector(field_path="metadata.annotations")
    items = [DownwardAPIVolumeFile(path=f"f{number}", field_ref=field) for number in range(50)]
    pod = Pod(metadata=ObjectMeta(name="web", annotations={"a": "1"}))
    assert len(downward_api.collect(host, pod, items, 0o644)) == 50
    assert formatted == [1]
