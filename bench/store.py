"""`./pyb bench store`: how fast each store writes, reads and starts, without an API server in front.

Values of 5 KB, as a pod with its managed fields has; a watch of everything runs beside, as the watch cache does.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import uvloop
from _load import Report, etcd

from pybernetes.store import open_store
from pybernetes.store.base import Store

VALUE = os.urandom(5000)
OBJECTS = 10_000
KEY = "/registry/pods/default/load-{}-{:06}"


def main(argv: list[str]) -> int:
    """Measure the stores named (all)."""
    parser = argparse.ArgumentParser(prog="bench store", description=__doc__)
    parser.add_argument("stores", nargs="*", default=["sqlite", "memory", "etcd"], metavar="sqlite|memory|etcd")
    parser.add_argument("--seconds", type=float, default=2.0, help="how long each rate is measured")
    options = parser.parse_args(argv)
    report = Report("store")
    for name in options.stores:
        with url_of(name) as url:
            uvloop.run(measure(name, lambda url=url: open_store(url), options.seconds, report))  # type: ignore[misc]
    report.save()
    return 0


@contextlib.contextmanager
def url_of(name: str) -> Iterator[str]:
    with tempfile.TemporaryDirectory(prefix="pyb-bench-") as folder:
        if name == "etcd":
            with etcd(Path(folder)) as url:
                yield url
        else:
            yield "memory://" if name == "memory" else f"sqlite://{folder}/store.db"


async def measure(name: str, make: Callable[[], Store], seconds: float, report: Report) -> None:
    """All figures of one store."""
    store = make()
    await store.start()
    watch = store.watch("/registry/", after=await store.revision())

    async def read() -> None:
        async for _ in watch:
            pass

    reader = asyncio.create_task(read())
    for writers in (1, 32):
        per_second, times = await write(store, writers, seconds)
        report.row(f"{name}: create, {writers} writers", per_second, "/s")
        report.row(f"{name}: create, {writers} writers, p50", times[len(times) // 2] * 1000, "ms")
        report.row(f"{name}: create, {writers} writers, p99", times[len(times) * 99 // 100] * 1000, "ms")
    per_second, times = await update(store, seconds)
    report.row(f"{name}: update, 32 writers", per_second, "/s")
    await watch.close()
    await reader
    await fill(store)
    if name != "memory":
        await store.close()
        store = make()
        begin = time.perf_counter()
        await store.start()
        report.row(f"{name}: start with {OBJECTS:,} objects", (time.perf_counter() - begin) * 1000, "ms")
    begin = time.perf_counter()
    page = await store.range("/registry/")
    assert len(page.entries) == OBJECTS
    report.row(f"{name}: range of {OBJECTS:,}", (time.perf_counter() - begin) * 1000, "ms")
    begin = time.perf_counter()
    for entry in page.entries[::10]:
        await store.get(entry.key)
    report.row(f"{name}: get, one after the other", OBJECTS / 10 / (time.perf_counter() - begin), "/s")
    await store.close()


async def write(store: Store, writers: int, seconds: float) -> tuple[float, list[float]]:
    """Creates a second, and how long each took, sorted."""
    times: list[float] = []
    end = time.perf_counter() + seconds

    async def writer(number: int) -> None:
        count = 0
        now = time.perf_counter()
        while now < end:
            await store.create(KEY.format(f"{writers}-{number}", count), VALUE)
            now, before = time.perf_counter(), now
            times.append(now - before)
            count += 1

    await asyncio.gather(*(writer(number) for number in range(writers)))
    return len(times) / seconds, sorted(times)


async def update(store: Store, seconds: float) -> tuple[float, list[float]]:
    """Updates a second of 32 keys."""
    times: list[float] = []
    end = time.perf_counter() + seconds

    async def writer(number: int) -> None:
        key = KEY.format("update", number)
        revision = await store.create(key, VALUE)
        now = time.perf_counter()
        while now < end:
            revision = await store.update(key, VALUE, revision=revision)
            now, before = time.perf_counter(), now
            times.append(now - before)

    await asyncio.gather(*(writer(number) for number in range(32)))
    return len(times) / seconds, sorted(times)


async def fill(store: Store) -> None:
    """Leave exactly OBJECTS keys and no history."""
    entries = (await store.range("/registry/")).entries
    slots = asyncio.Semaphore(256)

    async def delete(key: str, revision: int) -> None:
        async with slots:
            await store.delete(key, revision=revision)

    async def create(number: int) -> None:
        async with slots:
            await store.create(KEY.format("fill", number), VALUE)

    await asyncio.gather(*(delete(entry.key, entry.revision) for entry in entries[OBJECTS:]))
    await asyncio.gather(*(create(number) for number in range(OBJECTS - len(entries))))
    await store.compact(await store.revision())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
