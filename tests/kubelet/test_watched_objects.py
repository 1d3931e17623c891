"""ConfigMaps and Secrets that pods name, followed at a real API server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from kubelet.conftest import Connect

from pybernetes.api import errors
from pybernetes.api.core.v1 import (
    ConfigMap,
    ConfigMapVolumeSource,
    Container,
    EnvFromSource,
    Pod,
    PodSpec,
    Secret,
    SecretEnvSource,
    SecretVolumeSource,
    Volume,
)
from pybernetes.api.meta.v1 import ObjectMeta
from pybernetes.client.client import Client
from pybernetes.client.clock import JumpingClock, SystemClock
from pybernetes.kubelet.watched_objects import LINGER_SECONDS, FetchedObjects, WatchedObjects, objects_for, references


def _pod(namespace: str, *maps: str, uid: str = "u1", secret: str | None = None) -> Pod:
    volumes = [Volume(name=name, config_map=ConfigMapVolumeSource(name=name)) for name in maps]
    if secret:
        volumes.append(Volume(name=secret, secret=SecretVolumeSource(secret_name=secret)))
    return Pod(metadata=ObjectMeta(name="web", namespace=namespace, uid=uid), spec=PodSpec(volumes=volumes))


async def _make(client: Client, namespace: str, name: str, value: str, **more: bool) -> None:
    await client.create(ConfigMap(metadata=ObjectMeta(name=name, namespace=namespace), data={"a": value}, **more))


async def _until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(30):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.005)


def test_what_a_pod_names() -> None:
    pod = _pod("shop", "m", secret="s")
    assert pod.spec is not None
    pod.spec.containers = [Container(name="c", env_from=[EnvFromSource(secret_ref=SecretEnvSource(name="e"))])]
    assert set(references(pod)) == {(ConfigMap, "shop", "m"), (Secret, "shop", "s"), (Secret, "shop", "e")}


async def test_a_change_wakes_all_pods_that_name_the_object_and_is_read_from_memory(connect: Connect) -> None:
    async with connect() as (client, namespace):
        changed: list[str] = []
        objects = WatchedObjects(client, SystemClock(), changed.append)
        await _make(client, namespace, "m", "1")
        await _make(client, namespace, "other", "1")
        for pod in (_pod(namespace, "m"), _pod(namespace, "m", "other", uid="u2"), _pod(namespace, "other", uid="u3")):
            objects.register(pod)
        assert (await objects.get(ConfigMap, namespace, "m")).data == {"a": "1"}
        await client.patch(ConfigMap, "m", {"data": {"a": "2"}}, namespace)
        await _until(lambda: {"u1", "u2"} <= set(changed))
        assert "u3" not in changed
        assert (await objects.get(ConfigMap, namespace, "m")).data == {"a": "2"}
        assert await objects.get(ConfigMap, namespace, "m") is await objects.get(ConfigMap, namespace, "m")
        await objects.close()


async def test_an_object_that_comes_later_is_reported_and_one_that_goes_too(connect: Connect) -> None:
    async with connect() as (client, namespace):
        changed: list[str] = []
        objects = WatchedObjects(client, SystemClock(), changed.append)
        objects.register(_pod(namespace, "m"))
        with pytest.raises(errors.NotFound, match=r'^configmap "m" not found$'):
            await objects.get(ConfigMap, namespace, "m")
        await _make(client, namespace, "m", "1")
        assert (await objects.get(ConfigMap, namespace, "m")).data == {"a": "1"}
        await _until(lambda: changed)
        changed.clear()
        await client.delete(ConfigMap, "m", namespace)
        await _until(lambda: changed)
        with pytest.raises(errors.NotFound):
            await objects.get(ConfigMap, namespace, "m")
        await objects.close()


async def test_immutable_objects_and_those_of_pods_that_are_gone_are_not_followed(connect: Connect) -> None:
    async with connect() as (client, namespace):
        clock = JumpingClock()
        objects = WatchedObjects(client, clock, lambda uid: None)
        await _make(client, namespace, "fixed", "1", immutable=True)
        await _make(client, namespace, "m", "1")
        objects.register(_pod(namespace, "fixed", "m"))
        for name in ("fixed", "m"):
            await objects.get(ConfigMap, namespace, name)
        assert [name for name in _tasks() if namespace in name] == [f"following ConfigMap {namespace}/m"]
        objects.register(_pod(namespace, "fixed"))
        clock.advance(LINGER_SECONDS)
        await _until(lambda: not [name for name in _tasks() if namespace in name])
        objects.unregister("u1")
        objects.unregister("u1")
        assert (await objects.get(ConfigMap, namespace, "m")).data == {"a": "1"}  # asked for, not followed
        assert not [name for name in _tasks() if namespace in name]
        await objects.close()


async def test_the_next_pod_that_names_an_object_finds_it_followed_and_up_to_date(connect: Connect) -> None:
    async with connect() as (client, namespace):
        clock = JumpingClock()
        changed: list[str] = []
        objects = WatchedObjects(client, clock, changed.append)
        await _make(client, namespace, "m", "1")
        objects.register(_pod(namespace, "m"))
        await objects.get(ConfigMap, namespace, "m")
        objects.unregister("u1")
        objects.register(_pod(namespace, "m", uid="u2"))
        clock.advance(LINGER_SECONDS)
        assert [name for name in _tasks() if namespace in name] == [f"following ConfigMap {namespace}/m"]
        await client.patch(ConfigMap, "m", {"data": {"a": "2"}}, namespace)
        await _until(lambda: changed == ["u2"])
        assert (await objects.get(ConfigMap, namespace, "m")).data == {"a": "2"}
        await objects.close()


async def test_without_watches_every_answer_is_the_servers(connect: Connect) -> None:
    async with connect() as (client, namespace):
        objects = objects_for("Get", client, SystemClock(), lambda uid: None)
        objects.register(_pod(namespace, "m"))
        await _make(client, namespace, "m", "1")
        assert (await objects.get(ConfigMap, namespace, "m")).data == {"a": "1"}
        await client.patch(ConfigMap, "m", {"data": {"a": "2"}}, namespace)
        assert (await objects.get(ConfigMap, namespace, "m")).data == {"a": "2"}


async def test_an_answer_is_kept_for_a_minute_but_not_for_a_new_pod(connect: Connect) -> None:
    async with connect() as (client, namespace):
        clock = JumpingClock()
        objects = objects_for("Cache", client, clock, lambda uid: None)

        async def change_and_read(value: str) -> dict[str, str] | None:
            await client.patch(ConfigMap, "m", {"data": {"a": value}}, namespace)
            return (await objects.get(ConfigMap, namespace, "m")).data

        await _make(client, namespace, "m", "1")
        objects.register(_pod(namespace, "m"))
        assert await change_and_read("1") == {"a": "1"}
        objects.register(_pod(namespace, "m"))
        assert await change_and_read("2") == {"a": "1"}
        clock.advance(60)
        assert await change_and_read("3") == {"a": "3"}
        objects.register(_pod(namespace, "m", uid="u2"))
        assert await change_and_read("4") == {"a": "4"}
        objects.unregister("u2")
        await objects.close()


def test_the_strategies_of_upstream_are_there() -> None:
    client: Any = None
    kinds = {name: type(objects_for(name, client, SystemClock(), print)) for name in ("Watch", "Cache", "Get")}
    assert kinds == {"Watch": WatchedObjects, "Cache": FetchedObjects, "Get": FetchedObjects}


def _tasks() -> list[str]:
    return [task.get_name() for task in asyncio.all_tasks()]
