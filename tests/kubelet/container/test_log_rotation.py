"""Logs that are cut into pieces."""

from __future__ import annotations

import asyncio
import gzip
from pathlib import Path

import pytest
from waiting import wait_for

from pybernetes.client.clock import FakeClock
from pybernetes.kubelet.container.log_rotation import LogRotator, all_logs


class Container:
    """Writes a log that a runtime opens anew when told."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "0.log"
        self.path.write_text("")
        self.reopened = 0
        self.broken = False

    async def reopen(self, id: str) -> None:
        if self.broken:
            raise OSError("the runtime is away")
        self.reopened += 1
        self.path.write_text("")


def _rotator(container: Container, clock: FakeClock, **more: object) -> LogRotator:
    return LogRotator(
        running=lambda: [("id", str(container.path))],
        reopen=container.reopen,
        clock=clock,
        **{"max_size": "10", "max_files": 4, **more},  # type: ignore[arg-type]
    )


def _names(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir())


async def test_a_small_log_stays_as_it_is(tmp_path: Path) -> None:
    container = Container(tmp_path)
    container.path.write_text("123456789")
    await _rotator(container, FakeClock()).rotate_all()
    assert (container.reopened, _names(tmp_path)) == (0, ["0.log"])


async def test_all_files_that_may_be_kept_are_kept(tmp_path: Path) -> None:
    container, clock = Container(tmp_path), FakeClock(1_700_000_000.0)
    rotator = _rotator(container, clock, max_files=5)
    for turn in range(1, 8):
        container.path.write_text(f"{turn}" * 10)
        await rotator.rotate_all()
        clock.advance(3600)
        assert len(_names(tmp_path)) == min(turn + 1, 5)


async def test_pieces_are_cut_compressed_and_removed_from_the_oldest_on(tmp_path: Path) -> None:
    container, clock = Container(tmp_path), FakeClock(1_700_000_000.0)
    rotator = _rotator(container, clock)
    for turn in range(6):
        container.path.write_text(f"{turn}" * 10)
        await rotator.rotate_all()
        clock.advance(3600)
    names = _names(tmp_path)
    assert names == [
        "0.log",
        "0.log.20231115-011320.gz",
        "0.log.20231115-021320.gz",
        "0.log.20231115-031320",
    ]
    assert gzip.decompress((tmp_path / names[1]).read_bytes()) == b"3" * 10
    assert (tmp_path / names[3]).read_text() == "5" * 10
    assert [Path(each).name for each in all_logs(str(container.path))] == [*names[1:], "0.log"]


async def test_what_a_broken_rotation_left_behind_is_removed(tmp_path: Path) -> None:
    container = Container(tmp_path)
    container.path.write_text("0123456789")
    for name in ("0.log.20230101-000000.tmp", "0.log.20230101-000000", "0.log.20230101-000000.gz", "1.log"):
        (tmp_path / name).write_text(name)
    await _rotator(container, FakeClock(1_700_000_000.0)).rotate_all()
    assert _names(tmp_path) == [
        "0.log",
        "0.log.20230101-000000.gz",
        "0.log.20231114-221320",
        "1.log",
    ]


async def test_a_log_is_put_back_while_the_runtime_cannot_open_another(tmp_path: Path) -> None:
    container = Container(tmp_path)
    container.path.write_text("0123456789")
    container.broken = True
    await _rotator(container, FakeClock()).rotate_all()
    assert _names(tmp_path) == ["0.log"]
    container.broken = False
    await _rotator(container, FakeClock()).rotate_all()
    assert container.reopened == 1


async def test_a_removed_log_is_reopened(tmp_path: Path) -> None:
    container = Container(tmp_path)
    container.path.unlink()
    await _rotator(container, FakeClock()).rotate_all()
    assert (container.reopened, container.path.exists()) == (1, True)


async def test_a_negative_size_switches_rotation_off(tmp_path: Path) -> None:
    await _rotator(Container(tmp_path), FakeClock(), max_size="-1").run()


async def test_one_file_is_too_few(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="invalid MaxFiles 1, must be > 1"):
        _rotator(Container(tmp_path), FakeClock(), max_files=1)


async def test_a_dead_containers_pieces_are_removed_with_its_log(tmp_path: Path) -> None:
    container = Container(tmp_path)
    for name in ("0.log.20230101-000000.gz", "1.log"):
        (tmp_path / name).write_text("")
    _rotator(container, FakeClock()).clean(str(container.path))
    assert _names(tmp_path) == ["1.log"]


async def test_a_flood_is_bounded_and_its_end_is_kept(tmp_path: Path) -> None:
    container, clock = Container(tmp_path), FakeClock(1_700_000_000.0)
    rotator = _rotator(container, clock, max_size="10Ki", max_files=3)
    flood = "".join(f"line {number}\n" for number in range(100_000))
    for _ in range(6):
        container.path.write_text(flood)
        await rotator.rotate_all()
        clock.advance(1)
        assert sum((tmp_path / each).stat().st_size for each in _names(tmp_path)) <= 3 * 10 * 1024
    newest = (tmp_path / _names(tmp_path)[-1]).read_text()
    assert newest.startswith("line ")
    assert newest.endswith(flood[-100:])


async def test_sizes_are_looked_at_every_second(tmp_path: Path) -> None:
    container, clock = Container(tmp_path), FakeClock(1_700_000_000.0)
    task = asyncio.create_task(_rotator(container, clock, interval=10.0).run())
    try:
        await wait_for(lambda: clock.timers, "it has looked once")
        container.path.write_text("0123456789")
        clock.advance(1)
        await wait_for(lambda: container.reopened, "it has looked again")
        assert container.reopened == 1
    finally:
        task.cancel()
