"""A mounted volume through the kernel: files, directories, locks, several clients, and clients that die."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import json
import os
import random
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tools import wait_until

LARGEST = 6 << 20


def random_operations(path: Path, seed: int, count: int) -> None:
    """Reads, writes, cuts, holes, copies at random, compared with bytes in memory after each step."""
    draw, model = random.Random(seed), bytearray()
    libc = ctypes.CDLL(None, use_errno=True)
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
    for step in range(count):
        kind, at = draw.random(), draw.randrange(LARGEST)
        length = draw.choice([draw.randrange(1, 5000), draw.randrange(1, 300_000)])
        if kind < 0.4:
            data = draw.randbytes(length)
            assert os.pwrite(file, data, at) == length
            model.extend(bytes(max(0, at - len(model))))
            model[at : at + length] = data
        elif kind < 0.7:
            assert os.pread(file, length, at) == model[at : at + length], (seed, step)
        elif kind < 0.78:
            os.ftruncate(file, at)
            model[at:] = b""
            model.extend(bytes(at - len(model)))
        elif kind < 0.83:
            os.fsync(file)
        elif kind < 0.9:
            os.close(file)
            file = os.open(path, os.O_RDWR)
        elif kind < 0.95:
            assert libc.fallocate(file, 3, ctypes.c_long(at), ctypes.c_long(length)) == 0  # punch a hole
            end = min(at + length, len(model))
            model[at:end] = bytes(max(0, end - at))
        elif model:
            source = draw.randrange(len(model))
            if abs(source - at) > length:
                data = bytes(model[source : source + length])
                assert os.copy_file_range(file, file, length, source, at) == len(data)
                model.extend(bytes(max(0, at - len(model))))
                model[at : at + len(data)] = data
        assert os.fstat(file).st_size == len(model), (seed, step)
    os.close(file)
    assert path.read_bytes() == model


def test_random_operations_read_back_also_by_another_client(mounts, clean):
    mounts.format("--block-size", "64")
    one = mounts.mount("one")
    for seed in range(3):
        random_operations(one / f"file-{seed}", seed, 150)
    other = mounts.mount("two")
    for seed in range(3):
        assert (other / f"file-{seed}").read_bytes() == (one / f"file-{seed}").read_bytes()
    mounts.umount(one)
    mounts.umount(other)
    clean()


def test_posix_on_a_mount(mounts, clean):
    mounts.format()
    one = mounts.mount("one")
    (one / "d").mkdir()
    for number in range(300):
        (one / "d" / f"{number}-{'x' * 100}").touch()
    assert len(os.listdir(one / "d")) == 300
    with pytest.raises(OSError, match="not empty"):
        os.rmdir(one / "d")

    (one / "a").write_text("a")
    (one / "b").write_text("b")
    rename2 = ctypes.CDLL(None, use_errno=True).renameat2
    paths = os.fsencode(one / "a"), os.fsencode(one / "b")
    assert rename2(-100, paths[0], -100, paths[1], 1) == -1, "RENAME_NOREPLACE"
    assert ctypes.get_errno() == errno.EEXIST
    assert rename2(-100, paths[0], -100, paths[1], 2) == 0, "RENAME_EXCHANGE"
    assert ((one / "a").read_text(), (one / "b").read_text()) == ("b", "a")
    os.link(one / "a", one / "c")
    assert os.stat(one / "c").st_nlink == 2
    os.symlink("c" * 1000, one / "link")
    assert os.readlink(one / "link") == "c" * 1000

    os.setxattr(one / "a", "user.colour", b"blue")
    assert os.listxattr(one / "a") == ["user.colour"]
    assert os.getxattr(one / "c", "user.colour") == b"blue"
    with pytest.raises(OSError, match="No data"):
        os.getxattr(one / "b", "user.colour")

    os.utime(one / "a", ns=(1, -5_000_000_001))
    assert os.stat(one / "a").st_mtime_ns == -5_000_000_001
    with (one / "sparse").open("wb") as file:
        file.truncate(1 << 40)
        file.seek(200 << 20)
        file.write(b"data")
        file.flush()
        assert os.lseek(file.fileno(), 0, os.SEEK_DATA) <= 200 << 20
        assert os.lseek(file.fileno(), 0, os.SEEK_HOLE) == 0
    mounts.umount(one)
    clean()


def test_what_no_volume_can_hold_is_an_error_of_its_program_alone(mounts, clean):
    mounts.format()
    one = mounts.mount("one")
    with (one / "file").open("w+b", buffering=0) as file:
        number, largest = file.fileno(), 1 << 50
        for grow in (
            lambda: os.pwrite(number, b"x", largest),
            lambda: os.pwrite(number, b"x", (1 << 63) - 2),
            lambda: os.ftruncate(number, largest + 1),
            lambda: os.posix_fallocate(number, largest, 1),
        ):
            with pytest.raises(OSError, match="too large"):
                grow()
        os.pwrite(number, b"x", largest - 1)
        os.fsync(number)
        assert os.fstat(number).st_size == largest
        assert os.pread(number, 3, largest - 2) == b"\0x"
        assert os.lseek(number, 5, os.SEEK_DATA) == largest - (64 << 20)
        assert os.lseek(number, 5, os.SEEK_HOLE) == 5
        assert os.lseek(number, largest - 1, os.SEEK_HOLE) == largest
    os.utime(one / "file", (1 << 40, -(1 << 40)))
    assert os.stat(one / "file").st_atime_ns == (1 << 63) - 1
    with pytest.raises(OSError, match="not supported"):
        os.setxattr(one / "file", "colour", b"blue")
    mounts.umount(one)
    log = (mounts.folder / "one.log").read_text()
    assert "Traceback" not in log, log
    clean()


def test_access_times_follow_the_mounts_mode(mounts):
    mounts.format()
    times = {}
    for mode in ("noatime", "relatime", "strictatime"):
        one = mounts.mount(mode, "-o", mode, "--attr-cache", "0")
        for name, atime in (("older", 10**9), ("newer", 3 * 10**9)):
            (one / name).write_bytes(b"x")
            os.utime(one / name, ns=(atime, 2 * 10**9))
            os.close(os.open(one / name, os.O_RDONLY))
            (one / name).read_bytes()
            times[mode, name] = os.stat(one / name).st_atime_ns
        mounts.umount(one)
    assert times["noatime", "older"] == 10**9
    assert times["relatime", "older"] > 10**18
    assert times["strictatime", "newer"] > 10**18


def test_a_removed_file_lives_until_it_is_closed_and_then_its_objects_go(mounts, clean):
    mounts.format()
    one = mounts.mount("one")
    with (one / "file").open("w+b") as file:
        file.write(b"x" * 100_000)
        os.fsync(file.fileno())
        os.unlink(one / "file")
        os.sync()
        file.seek(0)
        assert file.read() == b"x" * 100_000
        clean_objects = list((mounts.folder / "bucket").rglob("*_*_*"))
        assert clean_objects
    wait_until(lambda: not list((mounts.folder / "bucket").rglob("*_*_*")), "the objects are gone")
    assert json.loads(mounts.pyb("status", mounts.meta).stdout)["inodes"] == 1
    clean()


def test_locks_hold_between_clients(mounts):
    mounts.format()
    one, other = mounts.mount("one"), mounts.mount("two")
    (one / "file").touch()
    with (one / "file").open("r+") as mine, (other / "file").open("r+") as theirs:
        fcntl.lockf(mine, fcntl.LOCK_EX, 10, 5)
        fcntl.lockf(theirs, fcntl.LOCK_EX | fcntl.LOCK_NB, 10, 15)
        with pytest.raises(BlockingIOError):
            fcntl.lockf(theirs, fcntl.LOCK_SH | fcntl.LOCK_NB, 10, 14)
        fcntl.flock(mine, fcntl.LOCK_EX)
        waiter = threading.Thread(target=fcntl.flock, args=(theirs, fcntl.LOCK_EX))
        waiter.start()
        waiter.join(0.1)
        assert waiter.is_alive()
        fcntl.flock(mine, fcntl.LOCK_UN)
        waiter.join(30)
        assert not waiter.is_alive()


def test_what_a_killed_client_had_fsynced_or_staged_is_there_after_it_comes_back(mounts, clean):
    mounts.format()
    one = mounts.mount("one")
    synced = os.open(one / "synced", os.O_WRONLY | os.O_CREAT)
    os.write(synced, b"s" * 5_000_000)
    os.fsync(synced)
    staged = os.open(one / "staged", os.O_WRONLY | os.O_CREAT)
    os.write(staged, b"t" * 5_000_000)
    mounts.kill(one)
    for file in (synced, staged):
        with pytest.raises(OSError, match=r"not connected|connection abort"):
            os.close(file)
    again = mounts.mount("one")
    assert (again / "synced").read_bytes() == b"s" * 5_000_000
    assert (again / "staged").read_bytes() == b"t" * 5_000_000
    mounts.umount(again)
    clean()


def test_a_reader_does_not_get_the_errors_of_a_writer_and_all_is_stored_when_the_store_is_back(
    mounts, clean, monkeypatch
):
    mounts.format()
    one = mounts.mount("one")
    bucket, away = mounts.folder / "bucket", mounts.folder / "away"
    (one / "before").write_bytes(b"b" * 100)
    bucket.rename(away)
    bucket.touch()  # in place of the folder of objects: nothing can be written
    with (one / "file").open("wb", buffering=0) as file:
        file.write(b"x" * 100_000)
        assert (one / "file").read_bytes() == b"x" * 100_000
        bucket.unlink()
        away.rename(bucket)
    assert (one / "file").read_bytes() == b"x" * 100_000
    mounts.umount(one)
    clean()


def test_a_full_cache_disk_makes_writes_wait_for_the_object_store(mounts, clean):
    mounts.format("--block-size", "256")
    disk = mounts.folder / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "none", disk], check=True)
    try:
        one = mounts.mount("one", "--cache-dir", str(disk))
        data = random.Random(1).randbytes(12 << 20)
        with (one / "large").open("wb") as large, (one / "other").open("wb") as other:
            for at in range(0, len(data), 1 << 20):
                large.write(data[at : at + (1 << 20)])
                other.write(data[at : at + 1000])
        assert (one / "large").read_bytes() == data
        assert (one / "other").stat().st_size == 12_000
        assert (mounts.folder / "one.log").read_text().count("is full: writes wait for the object store") == 1
        mounts.umount(one)
    finally:
        subprocess.run(["umount", "-l", disk], check=True)
    clean()


def test_capacity_and_inodes_are_limits(mounts):
    mounts.format("--capacity", "0.001", "--inodes", "4")
    one = mounts.mount("one")
    for name in "abc":
        (one / name).touch()
    with pytest.raises(OSError, match="No space left"):
        (one / "d").touch()
    file = os.open(one / "a", os.O_WRONLY)
    os.write(file, bytes(2 << 20))
    with pytest.raises(OSError, match="No space left"):
        os.fsync(file)
    with pytest.raises(OSError, match="No space left"):
        os.close(file)


def test_a_whole_tree_by_tar_is_the_same(mounts, clean):
    source = Path(sys.modules["email"].__file__ or "").parent
    mounts.format()
    one = mounts.mount("one")
    subprocess.run(f"tar -C {source} -cf - . | tar -C {one} -xf -", shell=True, check=True)
    subprocess.run(["diff", "-r", source, one], check=True)
    mounts.umount(one)
    again = mounts.mount("one")
    subprocess.run(["diff", "-r", source, again], check=True)
    clean()
