"""The server dies and another goes on: programs wait a moment, and nothing they did is lost or done twice."""

from __future__ import annotations

import fcntl
import os
import random
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tools import wait_until


class Killer:
    """Kills the server of a mount again and again, as soon as its successor is at work."""

    def __init__(self, mounts, place: Path) -> None:
        self.mounts, self.place, self.kills = mounts, place, 0

    def kill(self) -> None:
        server = self.mounts.server(self.place)
        os.kill(server, signal.SIGKILL)
        self.kills += 1
        log = self.mounts.folder / f"{self.place.name}.log"
        wait_until(lambda: log.read_text().count("is ready at") > self.kills, "the successor is ready")


Program = Callable[[Callable[[], bool]], None]


def together(killer: Killer, kills: int, *programs: Program) -> None:
    """Runs programs until the server was killed so many times; what they raise is raised here."""
    errors: list[BaseException] = []
    over = threading.Event()
    steps = [0] * len(programs)

    def run(place: int) -> None:
        def is_over() -> bool:
            steps[place] += 1
            return over.is_set()

        try:
            programs[place](is_over)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(each,)) for each in range(len(programs))]
    for thread in threads:
        thread.start()
    try:
        for _ in range(kills):
            before = list(steps)

            def moved(before: list[int] = before) -> bool:
                return bool(errors) or all(a + 2 < b for a, b in zip(before, steps, strict=True))

            wait_until(moved, "all programs go on")
            if errors:
                break
            killer.kill()
    finally:
        over.set()
        for thread in threads:
            thread.join(60)
    for error in errors:
        raise error
    assert not any(thread.is_alive() for thread in threads)


def renamer(folder: Path) -> Program:
    """Creates exclusively, links, renames and removes; each must happen once."""

    def run(over: Callable[[], bool]) -> None:
        folder.mkdir()
        count = 0
        while not over():
            count += 1
            a, b, c = (folder / f"{count}-{letter}" for letter in "abc")
            os.close(os.open(a, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
            os.link(a, b)
            os.rename(b, c)
            assert os.stat(c).st_nlink == 2
            os.mkdir(b)
            os.symlink("target", folder / "link")
            os.unlink(folder / "link")
            os.rmdir(b)
            os.unlink(a)
            os.unlink(c)
        assert os.listdir(folder) == []
        assert count > 1

    return run


def writer(path: Path, seed: int) -> Program:
    """Writes and reads back through one descriptor that stays open, of a file that has lost its name."""

    def run(over: Callable[[], bool]) -> None:
        draw, model = random.Random(seed), bytearray(2 << 20)
        file = os.open(path, os.O_RDWR | os.O_CREAT)
        os.unlink(path)
        while not over():
            at, data = draw.randrange(len(model) - 70_000), draw.randbytes(draw.randrange(1, 70_000))
            assert os.pwrite(file, data, at) == len(data)
            model[at : at + len(data)] = data
            if draw.random() < 0.2:
                os.fsync(file)
            start = draw.randrange(len(model) - 70_000)
            found = os.pread(file, 70_000, start)
            assert found == bytes(model[start : start + len(found)])
        size = os.fstat(file).st_size
        assert os.pread(file, size, 0) == model[:size]
        os.close(file)

    return run


def test_programs_do_not_notice_that_the_server_is_killed(mounts, clean):
    mounts.format("--block-size", "64")
    one = mounts.mount("one")
    killer = Killer(mounts, one)
    with (one / "locked").open("w") as mine:
        fcntl.flock(mine, fcntl.LOCK_EX)
        together(killer, 4, renamer(one / "names"), writer(one / "data", 1))
        with (one / "locked").open("w") as other, pytest.raises(BlockingIOError):
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    with (one / "locked").open("w") as other:
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    mounts.umount(one)
    clean()
    assert mounts.status()["inodes"] == 3
    assert mounts.status()["sessions"] == []


def test_a_hangup_starts_a_new_server_in_place_of_the_old(mounts, clean):
    mounts.format()
    one = mounts.mount("one")
    before = mounts.server(one)
    file = os.open(one / "file", os.O_RDWR | os.O_CREAT)
    os.write(file, b"before")
    mounts.clients[one].send_signal(signal.SIGHUP)
    os.write(file, b" and after")
    wait_until(lambda: mounts.server(one) != before, "another server")
    assert os.pread(file, 100, 0) == b"before and after"
    os.close(file)
    mounts.umount(one)
    clean()


@pytest.mark.soak
@pytest.mark.time_limit(4000)
def test_an_hour_of_kills(mounts, clean):
    mounts.format("--block-size", "64")
    one = mounts.mount("one")
    killer, end, rounds = Killer(mounts, one), time.monotonic() + 3600, 0
    while time.monotonic() < end:
        rounds += 1
        programs = [renamer(one / f"names-{rounds}-{each}") for each in range(2)]
        together(killer, 20, *programs, *(writer(one / f"data-{each}", rounds + each) for each in range(2)))
    mounts.umount(one)
    clean()
