"""Syncing a file by the kernel or in a thread, for which the event loop waits a moment at most."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hung_mount import hung_mount
from store.test_sqlite import Disk, opened

from pybernetes.store import fsync
from pybernetes.store.fsync import KernelSyncer, ThreadSyncer, syncer_for
from pybernetes.store.uring import Uring

LONG = 20.0


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[tuple[Disk, int]]:
    file = os.open(tmp_path / "file", os.O_RDWR | os.O_CREAT)
    yield Disk(), file
    os.close(file)


synced_by_thread: list[str] = []


@pytest.fixture
def file(tmp_path: Path) -> Iterator[int]:
    file = os.open(tmp_path / "log", os.O_RDWR | os.O_CREAT)
    yield file
    os.close(file)


@contextlib.contextmanager
def by_kernel(file: int) -> Iterator[KernelSyncer]:
    synced_by_thread.clear()
    try:
        found = KernelSyncer(file, lambda: synced_by_thread.append("thread"))
    except OSError as error:
        pytest.skip(f"this kernel does not offer io_uring: {error}")
    yield found
    found.stop()


async def test_syncs_one_after_another_are_done_beside_the_loop(disk: tuple[Disk, int]) -> None:
    slow, file = disk
    syncer = ThreadSyncer(lambda: slow(file))
    for _ in range(20):
        slow.hold()
        done = syncer.sync()
        await asyncio.to_thread(slow.waiting.wait, LONG)
        assert not done.done()
        slow.go.set()
        await asyncio.wait_for(done, LONG)
    syncer.stop()


async def test_the_loop_waits_for_a_quick_disk(disk: tuple[Disk, int]) -> None:
    quick, file = disk
    syncer = ThreadSyncer(lambda: quick(file))
    for _ in range(50):
        assert syncer.sync(LONG).done()
    syncer.stop()


async def test_the_loop_does_not_wait_for_a_slow_disk(disk: tuple[Disk, int]) -> None:
    slow, file = disk
    syncer = ThreadSyncer(lambda: slow(file))
    slow.hold()
    done = syncer.sync(0.001)
    assert not done.done()
    await asyncio.sleep(0)  # the loop goes on
    slow.go.set()
    await asyncio.wait_for(done, LONG)
    syncer.stop()


@pytest.mark.parametrize("within", [0.0, LONG])
async def test_a_sync_that_fails_says_why(disk: tuple[Disk, int], within: float) -> None:
    broken, file = disk
    broken.error = OSError("Input/output error")
    syncer = ThreadSyncer(lambda: broken(file))
    with pytest.raises(OSError, match="Input/output error"):
        await asyncio.wait_for(syncer.sync(within), LONG)
    broken.error = None
    await asyncio.wait_for(syncer.sync(within), LONG)
    syncer.stop()


async def test_no_outcome_is_lost_whenever_the_loop_stops_waiting() -> None:
    syncer = ThreadSyncer(lambda: None)
    for number in range(3000):
        await asyncio.wait_for(syncer.sync(number % 30 * 1e-6 + 1e-9), LONG)
    syncer.stop()


async def test_the_kernel_syncs_one_after_another_beside_the_loop_or_while_it_waits(file: int) -> None:
    with by_kernel(file) as kernel:
        for number in range(50):  # the rings have fewer places
            done = kernel.sync(LONG if number % 2 else 0.0)
            assert done.done() is bool(number % 2)
            await asyncio.wait_for(done, LONG)


async def test_the_kernel_reports_a_failed_sync(file: int) -> None:
    with by_kernel(file) as kernel:
        read, write = os.pipe()
        os.dup2(read, file)  # which cannot be synced
        for within in (0.0, LONG):
            with pytest.raises(OSError, match="Invalid argument"):
                await asyncio.wait_for(kernel.sync(within), LONG)
        os.close(read)
        os.close(write)


async def test_the_loop_does_not_wait_for_a_kernel_whose_disk_does_not_answer(file: int, tmp_path: Path) -> None:
    with by_kernel(file) as kernel, hung_mount(tmp_path / "hung", hangs=False) as mount:
        folder = os.open(tmp_path / "hung", os.O_RDONLY)
        os.dup2(folder, file)
        mount.hang()
        done = kernel.sync(0.001)
        await asyncio.sleep(0)  # the loop goes on
        assert not done.done()
        mount.release()
        with pytest.raises(OSError, match=r"connect|abort"):
            await asyncio.wait_for(done, LONG)
        os.close(folder)


@pytest.mark.parametrize("within", [0.0, LONG])
async def test_a_request_that_io_uring_cannot_take_now_is_synced_by_a_thread(
    file: int, monkeypatch: pytest.MonkeyPatch, within: float
) -> None:
    with by_kernel(file) as kernel:

        def busy(_: Uring) -> None:
            raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))

        with monkeypatch.context() as patched:
            patched.setattr(Uring, "ask", busy)
            await asyncio.wait_for(kernel.sync(within), LONG)
        await asyncio.wait_for(kernel.sync(within), LONG)
        assert synced_by_thread == ["thread"]


async def test_a_kernel_without_io_uring_is_no_reason_to_fail(file: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(*_: object) -> None:
        raise PermissionError("io_uring_setup")

    monkeypatch.setattr(fsync, "Uring", forbidden)
    found = syncer_for(file, lambda: os.fdatasync(file))
    assert isinstance(found, ThreadSyncer)
    await asyncio.wait_for(found.sync(), LONG)
    found.stop()


async def test_nothing_is_left_open(file: int) -> None:
    with by_kernel(file):
        before = sorted(os.listdir("/proc/self/fd"))
        for _ in range(3):
            found = KernelSyncer(file, lambda: None)
            await found.sync()
            found.stop()
        with pytest.raises(OSError, match="Bad file descriptor"):
            KernelSyncer(1 << 20, lambda: None)
        assert sorted(os.listdir("/proc/self/fd")) == before


async def test_a_disk_that_needs_a_second_does_not_hold_up_the_loop(path: str) -> None:
    going, slow = threading.Event(), threading.Event()
    slow.set()

    def sync(descriptor: int) -> None:
        going.set()
        slow.wait(LONG)
        os.fdatasync(descriptor)

    async with opened(path, sync=sync) as store:
        await store.create("/quick", b"")
        slow.clear()
        going.clear()
        await asyncio.sleep(0.001)
        began = time.monotonic()
        writing = asyncio.ensure_future(store.create("/slow", b""))
        await asyncio.to_thread(going.wait, LONG)
        assert not writing.done()
        assert await store.get("/quick") is not None
        assert await store.get("/slow") is None, "it is not durable"
        more = [asyncio.ensure_future(store.create(f"/more/{number}", b"")) for number in range(10)]
        await asyncio.sleep(0)
        assert time.monotonic() - began < LONG / 2, "the loop went on"
        slow.set()
        await asyncio.wait_for(asyncio.gather(writing, *more), LONG)
        assert len((await store.range("/")).entries) == 12


async def test_what_an_earlier_process_wrote_and_did_not_sync_is_synced_before_it_is_shown(path: str) -> None:
    unsynced = Disk()
    async with opened(path, sync=unsynced) as store:
        await store.create("/a", b"1")
        unsynced.error = OSError("died before its sync")
        with pytest.raises(Exception, match="died before its sync"):
            await store.create("/b", b"2")
    synced: list[int] = []

    def sync(descriptor: int) -> None:
        synced.append(os.fstat(descriptor).st_ino)
        os.fdatasync(descriptor)

    logs = {file.stat().st_ino for file in Path(path).parent.glob("*-log?")}
    async with opened(path, sync=sync) as store:
        assert set(synced) & logs
        assert [entry.key for entry in (await store.range("/")).entries] == ["/a", "/b"]
