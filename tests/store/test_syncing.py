"""The kernel's two ways to sync a file beside the event loop."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from pybernetes.store import syncing
from pybernetes.store.aio import Aio
from pybernetes.store.syncing import KernelSyncer, kernel_syncer
from pybernetes.store.uring import Uring

ways = pytest.mark.parametrize("way", [Uring, Aio])


def syncer(file: int, way: type[Uring | Aio]) -> KernelSyncer:
    try:
        return KernelSyncer(file, way)
    except OSError as error:
        pytest.skip(f"this kernel does not offer {way.__name__}: {error}")


@ways
async def test_syncs_one_after_another_are_done_beside_the_loop(tmp_path: Path, way: type[Uring | Aio]) -> None:
    file = os.open(tmp_path / "log", os.O_RDWR | os.O_CREAT)
    found = syncer(file, way)
    for number in range(50):  # the rings have fewer places
        os.pwrite(file, b"x" * 1000, number * 1000)
        done = found.sync()
        assert not done.done()
        await asyncio.wait_for(done, 20)
    found.stop()
    os.close(file)


@ways
async def test_a_sync_that_fails_says_why(tmp_path: Path, way: type[Uring | Aio]) -> None:
    read, write = os.pipe()
    file = os.open(tmp_path / "log", os.O_RDWR | os.O_CREAT)
    found = syncer(file, way)
    os.dup2(read, file)  # which cannot be synced
    with pytest.raises(OSError, match="Invalid argument"):
        await asyncio.wait_for(found.sync(), 20)
    found.stop()
    for each in (read, write, file):
        os.close(each)


@ways
async def test_nothing_is_left_open(tmp_path: Path, way: type[Uring | Aio]) -> None:
    file = os.open(tmp_path / "log", os.O_RDWR | os.O_CREAT)
    syncer(file, way).stop()
    before = sorted(os.listdir("/proc/self/fd"))
    for _ in range(3):
        found = syncer(file, way)
        await found.sync()
        found.stop()
    with pytest.raises(OSError, match="Bad file descriptor"):
        KernelSyncer(1 << 20, way)
    assert sorted(os.listdir("/proc/self/fd")) == before
    os.close(file)


async def test_a_kernel_without_io_uring_is_asked_by_aio_and_one_without_both_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Forbidden:
        def __init__(self, file: int, told: int) -> None:
            raise PermissionError("io_uring_setup")

    file = os.open(tmp_path / "log", os.O_RDWR | os.O_CREAT)
    syncer(file, Aio).stop()
    monkeypatch.setattr(syncing, "Uring", Forbidden)
    found = kernel_syncer(file)
    assert found is not None
    await asyncio.wait_for(found.sync(), 20)
    found.stop()
    monkeypatch.setattr(syncing, "Aio", Forbidden)
    assert kernel_syncer(file) is None
    os.close(file)
