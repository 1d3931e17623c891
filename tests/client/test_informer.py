"""The cache follows the server: by scripted watches for what is rare, on a real server for what is real."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncIterator, Callable
from typing import Any
from urllib.parse import urlsplit

import pytest

import tools
from pybernetes.api import errors
from pybernetes.api.core.v1 import ConfigMap, Namespace
from pybernetes.api.meta.v1 import ListMeta, ObjectMeta, OwnerReference
from pybernetes.client import config
from pybernetes.client.client import Client
from pybernetes.client.clock import FakeClock
from pybernetes.client.codec import List
from pybernetes.client.http import ConnectionFailed
from pybernetes.client.informer import Informer
from pybernetes.client.informers import InformerFactory
from pybernetes.client.keys import Key, resource_of
from pybernetes.client.watch import INITIAL_EVENTS_END, Event

Connect = Callable[[], Client]


def one(name: str, version: int, namespace: str = "n", **more: Any) -> ConfigMap:
    metadata = ObjectMeta(name=name, namespace=namespace, resource_version=str(version), uid=f"uid-{name}", **more)
    return ConfigMap(metadata=metadata)


def added(name: str, version: int, **more: Any) -> Event[ConfigMap]:
    return Event("ADDED", one(name, version, **more))


def modified(name: str, version: int, **more: Any) -> Event[ConfigMap]:
    return Event("MODIFIED", one(name, version, **more))


def deleted(name: str, version: int) -> Event[ConfigMap]:
    return Event("DELETED", one(name, version))


def bookmark(version: int, *, end: bool = False) -> Event[ConfigMap]:
    annotations = {INITIAL_EVENTS_END: "true"} if end else None
    return Event("BOOKMARK", ConfigMap(metadata=ObjectMeta(resource_version=str(version), annotations=annotations)))


HANG = object()


class Script:
    """A source that plays watches one after another: events, exceptions to raise, HANG to wait for ever."""

    def __init__(self, *watches: list[Any], pages: list[List[ConfigMap]] | None = None) -> None:
        self.watches = list(watches)
        self.pages = pages or []
        self.asked: list[tuple[str, bool]] = []
        self.exhausted = asyncio.Event()

    async def list(self, *, limit: int, continue_token: str) -> List[ConfigMap]:
        self.asked.append((f"list {continue_token}", False))
        return self.pages.pop(0)

    def watch(self, *, resource_version: str, timeout_seconds: int, send_initial_events: bool) -> Any:
        assert 300 <= timeout_seconds <= 600
        self.asked.append((resource_version, send_initial_events))
        if not self.watches:
            self.exhausted.set()
        return _Played(self.watches.pop(0) if self.watches else [HANG], self)


class _Played:
    def __init__(self, steps: list[Any], script: Script) -> None:
        self.steps, self.script = steps, script

    async def __aenter__(self) -> _Played:
        if self.steps and isinstance(self.steps[0], Exception):
            raise self.steps[0]
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    async def __aiter__(self) -> AsyncIterator[Event[ConfigMap]]:
        for step in self.steps:
            if isinstance(step, Exception):
                raise step
            if step is HANG:
                self.script.exhausted.set()
                await asyncio.Event().wait()
            yield step


class Log:
    """What a handler heard."""

    def __init__(self, informer: Informer[ConfigMap]) -> None:
        self.heard: list[str] = []
        informer.add_handler(
            lambda obj: self.heard.append(f"+{name(obj)}"),
            lambda old, new: self.heard.append(f"{name(old)}>{name(new)}"),
            lambda obj: self.heard.append(f"-{name(obj)}"),
            on_vanished=lambda obj: self.heard.append(f"?{name(obj)}"),
        )


def name(obj: ConfigMap) -> str:
    assert obj.metadata is not None
    return f"{obj.metadata.name}{obj.metadata.resource_version}"


async def play(script: Script) -> tuple[Informer[ConfigMap], list[str]]:
    """Run an informer until its script hangs; a back-off is jumped over each time it waits."""
    clock = FakeClock()
    informer = Informer("configmaps", script, clock)
    log = Log(informer)
    task = asyncio.create_task(informer.run())
    for _ in range(2000):
        if script.exhausted.is_set():
            break
        await asyncio.sleep(0)
        if clock.timers:
            clock.advance(60)
    assert script.exhausted.is_set(), script.asked
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    return informer, log.heard


async def test_the_stream_of_a_list_fills_the_cache_and_goes_on_as_a_watch() -> None:
    script = Script([added("a", 1), added("b", 2), bookmark(5, end=True), modified("a", 6), deleted("b", 7), HANG])
    informer, heard = await play(script)
    assert heard == ["+a1", "+b2", "a1>a6", "-b7"]
    assert informer.has_synced
    assert informer.resource_version == "7"
    assert [name(obj) for obj in informer.items()] == ["a6"]
    assert script.asked == [("", True)]


async def test_nothing_is_delivered_and_nothing_synced_before_the_list_is_complete() -> None:
    informer, heard = await play(Script([added("a", 1), HANG]))
    assert heard == []
    assert not informer.has_synced


async def test_a_watch_that_ends_goes_on_from_the_last_revision_bookmarks_included() -> None:
    script = Script([added("a", 1), bookmark(5, end=True), bookmark(9)], [modified("a", 10)], [HANG])
    _, heard = await play(script)
    assert heard == ["+a1", "a1>a10"]
    assert script.asked == [("", True), ("9", False), ("10", False)]


async def test_a_lost_connection_is_no_reason_to_list_again() -> None:
    script = Script(
        [added("a", 1), bookmark(5, end=True), ConnectionFailed("gone")],
        [ConnectionFailed("refused")],
        [TimeoutError()],
        [errors.TooManyRequests("busy")],
        [HANG],
    )
    await play(script)
    assert script.asked == [("", True)] + [("5", False)] * 4


@pytest.mark.parametrize("error", [errors.ResourceExpired("too old"), errors.InternalError("oops")])
async def test_after_a_revision_is_gone_everything_is_listed_and_only_the_difference_is_delivered(
    error: Exception,
) -> None:
    script = Script(
        [added("a", 1), added("b", 2), added("c", 3), bookmark(5, end=True), error],
        [added("b", 2), added("c", 8), added("d", 9), bookmark(10, end=True), HANG],
    )
    informer, heard = await play(script)
    assert heard[3:] == ["?a1", "c3>c8", "+d9"]
    assert script.asked == [("", True), ("", True)]
    assert informer.resource_version == "10"


async def test_a_server_that_cannot_stream_lists_is_asked_for_pages() -> None:
    script = Script(
        [errors.BadRequest("sendInitialEvents is forbidden for watch")],
        [HANG],
        pages=[
            List(metadata=ListMeta(resource_version="5", continue_="more"), items=[one("a", 1)]),
            List(metadata=ListMeta(resource_version="5"), items=[one("b", 2)]),
        ],
    )
    informer, heard = await play(script)
    assert heard == ["+a1", "+b2"]
    assert script.asked == [("", True), ("list ", False), ("list more", False), ("5", False)]
    assert informer.has_synced


async def test_a_stream_that_ends_in_the_middle_of_the_list_changes_nothing() -> None:
    script = Script(
        [added("a", 1), bookmark(5, end=True), errors.ResourceExpired("old")],
        [added("b", 6)],
        [added("a", 1), bookmark(7, end=True), HANG],
    )
    _, heard = await play(script)
    assert heard == ["+a1"]


async def test_a_watch_that_ends_at_once_again_and_again_backs_off() -> None:
    clock = FakeClock()
    script = Script([bookmark(5, end=True)], [], [], [HANG])
    informer = Informer("configmaps", script, clock)
    task = asyncio.create_task(informer.run())
    for _ in range(50):
        await asyncio.sleep(0)
    assert len(script.asked) == 2, "the third waits"
    task.cancel()


async def test_a_deletion_tells_the_final_state_and_one_of_the_unknown_nothing() -> None:
    script = Script([added("a", 1), bookmark(5, end=True), deleted("a", 6), deleted("a", 7), HANG])
    _, heard = await play(script)
    assert heard == ["+a1", "-a6"]


async def test_a_late_handler_gets_present_objects_and_one_that_fails_or_leaves_affects_no_other() -> None:
    script = Script([added("a", 1), bookmark(5, end=True), HANG])
    informer, _ = await play(script)

    def fail(obj: ConfigMap) -> None:
        raise RuntimeError("a mistake")

    informer.add_handler(fail)
    log = Log(informer)
    assert log.heard == ["+a1"]
    gone = informer.add_handler(log.heard.append)
    log.heard.clear()
    gone.remove()
    informer._apply(added("b", 6))
    assert log.heard == ["+b6"]


async def test_a_resync_tells_everything_again() -> None:
    clock = FakeClock()
    informer: Informer[ConfigMap] = Informer("configmaps", Script(), clock)
    heard: list[str] = []
    informer._apply(added("a", 1))
    handler = informer.add_handler(on_update=lambda old, new: heard.append(name(new)), resync=60)
    clock.advance(59)
    assert heard == []
    clock.advance(121)
    assert heard == ["a1", "a1", "a1"]
    handler.remove()
    clock.advance(600)
    assert len(heard) == 3


async def test_indexes_are_in_step_with_the_cache() -> None:
    informer: Informer[ConfigMap] = Informer("configmaps", Script(), FakeClock())
    owner = one("owner", 1)
    reference = OwnerReference(kind="ConfigMap", api_version="v1", name="owner", uid="uid-owner", controller=True)
    informer._apply(added("a", 1, labels={"color": "red"}))
    informer.add_index("color", lambda obj: [(obj.metadata.labels or {}).get("color", "none")])
    informer._apply(added("b", 2, labels={"color": "blue"}, owner_references=[reference]))
    informer._apply(added("c", 3, labels={"color": "red"}, namespace="other"))
    assert [name(obj) for obj in informer.by_index("color", "red")] == ["a1", "c3"]
    assert [name(obj) for obj in informer.in_namespace("n")] == ["a1", "b2"]
    assert [name(obj) for obj in informer.controlled_by(owner)] == ["b2"]
    assert [name(obj) for obj in informer.orphans("n")] == ["a1"]
    informer._apply(modified("a", 4, labels={"color": "blue"}))
    informer._apply(Event("DELETED", one("c", 5, namespace="other")))
    assert informer.by_index("color", "red") == []
    assert sorted(informer.index_values("color")) == ["blue"]
    assert [name(obj) for obj in informer.by_index("color", "blue")] == ["b2", "a4"]
    assert informer.get(Key("n", "a")) is informer.named("a", "n")
    informer._replace({}, "9")
    assert informer.index_values("color") == []
    assert len(informer) == 0


async def test_who_changes_an_object_of_the_cache_is_found() -> None:
    informer: Informer[ConfigMap] = Informer("configmaps", Script(), FakeClock(), detect_mutations=True)
    informer._apply(added("a", 1))
    assert informer.mutations() == []
    informer.items()[0].data = {"x": "changed"}
    assert len(informer.mutations()) == 1
    assert "configmaps n/a" in informer.mutations()[0]


async def until(condition: Callable[[], object], what: str) -> None:
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def test_on_a_real_server_informers_are_shared_and_follow(connect: Connect, namespace: str) -> None:
    async with connect() as client:
        await client.create(Namespace(metadata=ObjectMeta(name=namespace)))
        await client.create(ConfigMap(metadata=ObjectMeta(name="a", namespace=namespace)))
        factory = InformerFactory(client, detect_mutations=True)
        maps = factory.informer(ConfigMap)
        assert factory.informer(ConfigMap) is maps
        factory.start()
        await factory.wait_synced()
        first = maps.named("a", namespace)
        assert first is not None
        assert (first.kind, first.api_version) == ("ConfigMap", "v1")
        assert first.metadata.managed_fields is None, "half of the memory"
        metadata = factory.metadata_informer(resource_of(ConfigMap))  # after the start
        await metadata.wait_synced()
        assert metadata.named("a", namespace) is not None
        await client.patch(ConfigMap, "a", {"data": {"x": "1"}}, namespace)
        await until(lambda: maps.named("a", namespace).data == {"x": "1"}, "the change is seen")
        await client.delete(ConfigMap, "a", namespace)
        await until(lambda: maps.named("a", namespace) is None, "the deletion is seen")
        await until(lambda: metadata.named("a", namespace) is None, "by its metadata too")
        await factory.release(resource_of(ConfigMap), metadata)
        chosen = factory.informer(ConfigMap, namespace=namespace, field_selector="metadata.name=b")
        for each in "ab":
            await client.create(ConfigMap(metadata=ObjectMeta(name=each, namespace=namespace)))
        await until(lambda: maps.named("a", namespace) and chosen.named("b", namespace), "both are seen")
        assert len(chosen) == 1
        await factory.stop()
        assert maps.mutations() == []


async def test_what_happens_while_the_server_is_unreachable_is_seen_afterwards(
    cluster: tools.ApiServer, connect: Connect, namespace: str
) -> None:
    settings = config.load(cluster.kubeconfig)
    wire = Wire(urlsplit(settings.server).port or 0)
    async with connect() as direct, Client(dataclasses.replace(settings, server=await wire.listen())) as client:
        await direct.create(Namespace(metadata=ObjectMeta(name=namespace)))
        for each in "ab":
            await direct.create(ConfigMap(metadata=ObjectMeta(name=each, namespace=namespace)))
        factory = InformerFactory(client)
        maps = factory.informer(ConfigMap, namespace=namespace)
        factory.start()
        await factory.wait_synced()
        wire.cut()
        await direct.delete(ConfigMap, "a", namespace)
        await direct.patch(ConfigMap, "b", {"data": {"x": "1"}}, namespace)
        await direct.create(ConfigMap(metadata=ObjectMeta(name="c", namespace=namespace)))
        assert {obj.metadata.name for obj in maps.items()} == {"a", "b"}
        await wire.listen()
        await until(lambda: {obj.metadata.name for obj in maps.items()} == {"b", "c"}, "the cache has caught up")
        assert maps.named("b", namespace).data == {"x": "1"}
        await factory.stop()
        wire.cut()


class Wire:
    """A wire to a server that can be cut."""

    def __init__(self, target: int) -> None:
        self.target = target
        self.port = 0
        self.server: asyncio.Server | None = None
        self.writers: set[asyncio.StreamWriter] = set()

    async def listen(self) -> str:
        self.server = await asyncio.start_server(self._forward, "127.0.0.1", self.port)
        self.port = self.server.sockets[0].getsockname()[1]
        return f"https://127.0.0.1:{self.port}"

    def cut(self) -> None:
        assert self.server is not None
        self.server.close()
        for writer in self.writers:
            writer.transport.abort()
        self.writers.clear()

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", self.target)
        self.writers |= {writer, back}
        await asyncio.gather(_pump(reader, back), _pump(there, writer))


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    except OSError:
        pass
    writer.close()


async def test_metadata_comes_from_who_follows_all_of_a_resource_anyway() -> None:
    async with Client(config.Config(server="https://127.0.0.1:1")) as client:
        factory = InformerFactory(client)
        whole = factory.informer(Namespace)
        part = factory.informer(ConfigMap, namespace="n")
        assert factory.least_informer(resource_of(Namespace)) is whole
        metadata = factory.least_informer(resource_of(ConfigMap))
        assert metadata is not part
        assert metadata is factory.metadata_informer(resource_of(ConfigMap))


async def test_a_metadata_informer_runs_until_its_last_user_releases_it() -> None:
    async with Client(config.Config(server="https://127.0.0.1:1")) as client:
        factory = InformerFactory(client)
        factory.start()
        resource = resource_of(ConfigMap)
        first, second = factory.metadata_informer(resource), factory.least_informer(resource)
        assert first is second
        await factory.release(resource, first)
        assert factory.metadata_informer(resource) is first
        await factory.release(resource, first)
        await factory.release(resource, first)
        assert factory.metadata_informer(resource) is not first
        kind = factory.informer(Namespace)
        await factory.release(resource_of(Namespace), factory.least_informer(resource_of(Namespace)))
        assert factory.informer(Namespace) is kind, "informers of kinds stay"
        await factory.stop()


class Failing:
    """A handler that fails on objects by name while configured to, and records the others."""

    def __init__(self, informer: Informer[ConfigMap], *bad: str) -> None:
        self.bad = set(bad)
        self.took: list[str] = []
        self.tries = 0
        self.handler = informer.add_handler(
            lambda new: self.take("+", new),
            lambda old, new: self.take(f"{name(old)}->", new),
            lambda old: self.take("-", old),
        )

    def take(self, what: str, obj: ConfigMap) -> None:
        self.tries += 1
        assert obj.metadata is not None
        if obj.metadata.name in self.bad:
            raise RuntimeError("a mistake")
        self.took.append(f"{what}{name(obj)}")


async def test_an_event_that_a_handler_failed_on_is_delivered_to_it_again_later() -> None:
    clock = FakeClock()
    informer: Informer[ConfigMap] = Informer("configmaps", Script(), clock)
    other = Log(informer)
    failing = Failing(informer, "a")
    informer._apply(added("a", 1))
    informer._apply(added("b", 2))
    assert failing.took == ["+b2"]
    assert other.heard == ["+a1", "+b2"], "the others are called once and at once"
    for _ in range(600):
        clock.advance(1)
    assert failing.tries < 15, "it is not tried at a high rate"
    failing.bad.clear()
    for _ in range(300):
        clock.advance(1)
    assert failing.took == ["+b2", "+a1"]
    assert other.heard == ["+a1", "+b2"]
    assert clock.timers == 0


async def test_a_later_event_of_the_same_object_brings_the_missed_one_along() -> None:
    clock = FakeClock()
    informer: Informer[ConfigMap] = Informer("configmaps", Script(), clock)
    failing = Failing(informer)
    informer._apply(added("a", 1))
    failing.bad = {"a"}
    informer._apply(modified("a", 2))
    informer._apply(modified("a", 3))
    failing.bad.clear()
    informer._apply(modified("a", 4))
    assert failing.took == ["+a1", "a1->a4"]
    failing.bad = {"a"}
    informer._apply(modified("a", 5))
    failing.bad.clear()
    informer._apply(deleted("a", 6))
    assert failing.took == ["+a1", "a1->a4", "-a6"]
    assert clock.timers == 0


async def test_an_object_that_went_while_it_could_not_be_delivered_is_reported_as_gone() -> None:
    clock = FakeClock()
    informer: Informer[ConfigMap] = Informer("configmaps", Script(), clock)
    failing = Failing(informer, "a")
    informer._apply(added("a", 1))
    informer._apply(deleted("a", 2))
    failing.bad.clear()
    clock.advance(10)
    assert failing.took == ["-a2"]
    failing.bad = {"b"}
    informer._apply(added("b", 3))
    failing.handler.remove()
    assert clock.timers == 0


async def test_an_object_that_an_index_cannot_read_keeps_no_other_from_the_cache() -> None:
    informer: Informer[ConfigMap] = Informer("configmaps", Script(), FakeClock())

    def color(obj: ConfigMap) -> list[str]:
        assert obj.metadata is not None
        return [(obj.metadata.labels or {})["color"]]

    informer.add_index("color", color)
    informer._apply(added("bad", 1))
    informer._apply(added("a", 2, labels={"color": "red"}))
    informer._apply(modified("bad", 3))
    informer._apply(deleted("bad", 4))
    assert [name(each) for each in informer.by_index("color", "red")] == ["a2"]
