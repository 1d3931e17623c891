"""What requests are taken to cost."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pybernetes.api.errors import PathNotFound
from pybernetes.apiserver.flowcontrol.borrowing import Bounds
from pybernetes.apiserver.flowcontrol.estimating import Estimate, estimate
from pybernetes.apiserver.requestinfo import request_info
from pybernetes.store.watchers import Item, Watcher

MAPS = "/api/v1/namespaces/ns/configmaps"


class Registry:
    """One resource, with objects of a size and watchers."""

    def __init__(self, objects: int = 0, size: int = 1000, watchers: list[Watcher] | None = None) -> None:
        items = {str(number): Item(str(number), b"x" * size, 1) for number in range(objects)}
        self.partition = SimpleNamespace(items=items, watchers=set(watchers or ()))

    def store(self, group: str, version: str, plural: str) -> Any:
        if plural != "configmaps":
            raise PathNotFound
        return SimpleNamespace(partition=self.partition, scope=lambda namespace: f"/c/{namespace}")


def watchers(scope: str, many: int, *, narrow: bool = False) -> list[Watcher]:
    made = [Watcher(scope, lambda change: None, 1) for _ in range(many)]
    for each in made:
        each.narrow = narrow
    return made


def cost(registry: Registry, method: str, url: str, nominal: int = 100, hand: int = 6) -> Estimate:
    path, _, query = url.partition("?")
    level: Any = SimpleNamespace(bounds=Bounds(nominal, 0, nominal), hand=hand)
    return estimate(registry, level, request_info(method, path, query))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("objects", "url", "nominal", "seats"),
    [
        (0, MAPS, 100, 1),
        (99, MAPS, 100, 1),
        (101, MAPS, 100, 2),
        (100_00, MAPS, 100, 10),
        (100_00, MAPS, 20, 3),  # three of twenty: 15 %
        (100_00, MAPS, 2, 1),
        (100_00, f"{MAPS}?limit=200", 100, 2),
        (100_00, f"{MAPS}?fieldSelector=metadata.name%3Da", 100, 1),
        (100_00, f"{MAPS}?watch=1", 100, 10),
        (100_00, f"{MAPS}?watch=1&resourceVersion=7", 100, 1),
        (100_00, f"{MAPS}?watch=1&resourceVersion=7&sendInitialEvents=true", 100, 10),
        (100_00, f"{MAPS}/a", 100, 1),
        (100_00, "/api/v1/namespaces/ns/unknown", 100, 1),
    ],
)
def test_a_list_by_its_size(objects: int, url: str, nominal: int, seats: int) -> None:
    assert cost(Registry(objects), "GET", url, nominal) == Estimate(seats)


@pytest.mark.parametrize(
    ("watching", "expected"),
    [
        (watchers("/c/", 9), Estimate()),
        (watchers("/c/", 10), Estimate(1, 1, 0.005)),
        (watchers("/c/", 6) + watchers("/c/ns", 6), Estimate(1, 2, 0.005)),
        (watchers("/c/other", 60), Estimate()),
        (watchers("/c/ns", 60, narrow=True), Estimate()),
        (watchers("/c/ns", 200), Estimate(1, 10, 0.01)),  # what does not fit lasts longer
    ],
)
@pytest.mark.parametrize(
    ("method", "url"), [("POST", MAPS), ("PUT", f"{MAPS}/a"), ("PATCH", f"{MAPS}/a"), ("DELETE", MAPS)]
)
def test_a_write_costs_by_its_watchers(watching: list[Watcher], expected: Estimate, method: str, url: str) -> None:
    assert cost(Registry(watchers=watching), method, url) == expected


def test_reading_an_object_or_making_a_token_costs_no_watch_event() -> None:
    registry = Registry(watchers=watchers("/c/", 50))
    assert cost(registry, "GET", f"{MAPS}/a") == Estimate()
    assert cost(registry, "POST", f"{MAPS}/a/token") == Estimate()
