"""Lists and watches of many objects with a selector let other requests have their turn."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from pybernetes.apiserver.pipeline.options import ListOptions
from pybernetes.apiserver.verbs import list as lists
from pybernetes.apiserver.verbs import watch as watches
from pybernetes.store.cache import Contents, Partition
from pybernetes.store.watchers import Change, Item

COUNT = 10_000


class Selection(ListOptions):
    """Selects every hundredth object; counts how many were looked at."""

    looked: int = 0

    @property
    def selects(self) -> bool:
        return True

    def matches(self, attributes: Any) -> bool:
        self.looked += 1
        return self.looked % 100 == 0


@pytest.fixture
def store() -> Any:
    partition = Partition("/registry/things/")
    items = [Item(f"/registry/things/{number:05}", b"{}", number + 1) for number in range(COUNT)]
    partition.load(Contents(items, {}, {}), COUNT)
    cache = SimpleNamespace(revision=COUNT)
    return SimpleNamespace(
        partition=partition, cache=cache, attributes=lambda item: item, asks_webhook=False, raw=lambda item: item.raw
    )


async def rounds_meanwhile(work: Any) -> tuple[Any, int]:
    """The result, and how many rounds of the event loop others had."""
    rounds = 0

    async def count() -> None:
        nonlocal rounds
        while True:
            rounds += 1
            await asyncio.sleep(0)

    counting = asyncio.create_task(count())
    result = await work
    counting.cancel()
    return result, rounds


async def test_a_list_shows_one_moment_though_others_have_their_turn(store: Any) -> None:
    async def change() -> None:
        key = f"/registry/things/{COUNT - 1:05}"
        gone = store.partition.items[key]
        store.partition.apply(Change(key, COUNT + 1, None, gone, {}, 2))
        store.cache.revision = COUNT + 1

    changing = asyncio.create_task(change())
    page, rounds = await rounds_meanwhile(lists._from_cache(store, "/registry/things/", "", Selection()))
    await changing
    assert rounds >= COUNT // lists.TURN
    assert (len(page.items), page.revision) == (COUNT // 100, COUNT)


async def test_the_state_at_the_beginning_of_a_watch_is_selected_by_turns(store: Any) -> None:
    async def begin() -> list[bytes]:
        watcher: Any = SimpleNamespace(revision=COUNT, scope="/registry/things/")
        select: Any = None
        past = watches._past(store, Selection(), watcher, select, lambda selected: b"", lambda raw: raw)
        return [piece async for piece in past]

    pieces, rounds = await rounds_meanwhile(begin())
    assert rounds >= COUNT // lists.TURN
    assert b"".join(pieces).count(b'"type":"ADDED"') == COUNT // 100


async def test_a_client_that_goes_away_is_no_fault_of_an_object(
    store: Any, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Gone:
        async def send(self, piece: bytes) -> None:
            raise ConnectionResetError("the client went away")

        def end(self) -> None:
            pass

    def selection(*_: Any, **__: Any) -> ListOptions:
        return Selection(resource_version=0)

    monkeypatch.setattr(watches, "_stream", lambda request: Gone())
    monkeypatch.setattr(watches, "list_options", selection)
    monkeypatch.setattr(watches, "event_encoder", lambda *_: lambda raw: raw)
    store.scope, store.resource, store.form = lambda namespace: "/registry/things/", None, ()
    info: Any = SimpleNamespace(query={}, namespace="", object_name="")
    request: Any = SimpleNamespace(info=info, headers={}, connection=None)
    assert await watches.watch(store, request) is None
    assert not store.partition.watchers
    assert caplog.text == ""
