"""Container logs: lines as runtimes write them, and files of them that grow, are rotated, and end."""

from __future__ import annotations

import asyncio
from pathlib import Path
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pybernetes.kubelet.server.log_lines import Selection, moment, parse
from pybernetes.kubelet.server.log_reader import LogError, open_log, read_log, tail_start

LINES = [f"2026-01-01T00:00:0{n}.{n}Z stdout F line {n}\n".encode() for n in range(6)]


async def read(path: Path, **options: object) -> bytes:
    selection = Selection(
        options.pop("since", None), bool(options.pop("timestamps", False)), options.pop("limit", None)
    )  # type: ignore[arg-type]
    return b"".join([each async for each in read_log(open_log(str(path)), selection, **options)])  # type: ignore[arg-type]


def test_a_line_is_taken_apart() -> None:
    line = parse(b"2026-01-02T03:04:05.1Z stderr F some text\n")
    assert line is not None
    assert (line.stream, line.text, line.stamp) == ("stderr", b"some text\n", b"2026-01-02T03:04:05.100000000Z ")


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b"2026-01-02T03:04:05Z stdout P a part\n", b"a part"),
        (b"2026-01-02T03:04:05Z stdout P:x a part\n", b"a part"),
        (b"2026-01-02T03:04:05.123456789+02:00 stdout F \n", b"\n"),
        (b"2026-01-02T03:04:05Z stdout F no end", b"no end"),
        (b'{"log":"docker\\n","stream":"stdout","time":"2026-01-02T03:04:05.5Z"}\n', b"docker\n"),
    ],
)
def test_all_forms_of_lines(raw: bytes, text: bytes) -> None:
    line = parse(raw)
    assert line is not None
    assert line.text == text


@pytest.mark.parametrize(
    "raw",
    [b"", b"hello\n", b"2026-01-02 stdout F x\n", b"2026-01-02T03:04:05Z stdin F x\n", b"{}\n", b'{"log":1}\n'],
)
def test_what_is_no_line(raw: bytes) -> None:
    assert parse(raw) is None


async def test_all_of_a_log(tmp_path: Path) -> None:
    (tmp_path / "0.log").write_bytes(b"".join(LINES))
    assert await read(tmp_path / "0.log") == b"".join(b"line %d\n" % n for n in range(6))


@pytest.mark.parametrize(("tail", "lines"), [(0, 0), (1, 1), (3, 3), (6, 6), (100, 6)])
async def test_the_last_lines(tmp_path: Path, tail: int, lines: int) -> None:
    (tmp_path / "0.log").write_bytes(b"".join(LINES))
    found = await read(tmp_path / "0.log", tail=tail)
    assert found == b"".join(b"line %d\n" % n for n in range(6 - lines, 6))


@given(st.lists(st.binary(max_size=40).map(lambda each: each.replace(b"\n", b"")), max_size=30), st.integers(0, 35))
def test_where_the_last_lines_begin(tmp_path_factory: pytest.TempPathFactory, lines: list[bytes], tail: int) -> None:
    path = tmp_path_factory.mktemp("tail") / "file"
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    with path.open("rb") as file:
        start = tail_start(file, tail)
    assert path.read_bytes()[start:] == b"".join(line + b"\n" for line in lines[len(lines) - min(tail, len(lines)) :])


async def test_since_a_time_and_with_times(tmp_path: Path) -> None:
    (tmp_path / "0.log").write_bytes(b"".join(LINES))
    found = await read(tmp_path / "0.log", since=moment(1767225604.2), timestamps=True)
    assert found.splitlines() == [
        b"2026-01-01T00:00:04.400000000Z line 4",
        b"2026-01-01T00:00:05.500000000Z line 5",
    ]


async def test_a_line_in_parts_has_one_time(tmp_path: Path) -> None:
    parts = b"2026-01-01T00:00:01Z stdout P one \n2026-01-01T00:00:02Z stdout F two\n"
    (tmp_path / "0.log").write_bytes(parts)
    assert await read(tmp_path / "0.log", timestamps=True) == b"2026-01-01T00:00:01.000000000Z one two\n"


async def test_no_more_bytes_than_wanted(tmp_path: Path) -> None:
    (tmp_path / "0.log").write_bytes(b"".join(LINES))
    assert await read(tmp_path / "0.log", limit=10) == b"line 0\nlin"


async def test_lines_that_are_none_are_passed_over_but_not_a_whole_file_of_them(tmp_path: Path) -> None:
    (tmp_path / "0.log").write_bytes(LINES[0] + b"garbage\n" + LINES[1])
    assert await read(tmp_path / "0.log") == b"line 0\nline 1\n"
    (tmp_path / "1.log").write_bytes(b"garbage\n")
    with pytest.raises(LogError, match="unsupported log format"):
        await read(tmp_path / "1.log")


def test_a_log_that_is_not_there() -> None:
    with pytest.raises(LogError, match="failed to try resolving symlinks"):
        open_log("/no/such/0.log")


class Follower:
    """Follows a file in the background."""

    def __init__(self, path: Path, **options: object) -> None:
        self.running = True
        self.found = b""
        self._more = asyncio.Event()
        self._task = asyncio.create_task(self._run(path, options))

    async def _run(self, path: Path, options: dict[str, object]) -> None:
        async def running() -> bool:
            return self.running

        async for each in read_log(open_log(str(path)), Selection(), follow=True, running=running, **options):  # type: ignore[arg-type]
            self.found += each
            self._more.set()

    async def until(self, end: bytes) -> None:
        async with asyncio.timeout(30):
            while not self.found.endswith(end):
                await self._more.wait()
                self._more.clear()

    async def ended(self) -> bytes:
        self.running = False
        async with asyncio.timeout(30):
            await self._task
        return self.found


async def test_a_log_is_followed_as_it_grows_until_the_container_ends(tmp_path: Path) -> None:
    path = tmp_path / "0.log"
    path.write_bytes(LINES[0])
    follower = Follower(path)
    await follower.until(b"line 0\n")
    with path.open("ab") as file:
        file.write(LINES[1][:10])
        file.flush()
        await asyncio.sleep(0.05)
        file.write(LINES[1][10:])
        file.flush()
        await follower.until(b"line 1\n")
        file.write(LINES[2])
    assert await follower.ended() == b"line 0\nline 1\nline 2\n"


async def test_what_grows_is_seen_at_once(tmp_path: Path) -> None:
    path = tmp_path / "0.log"
    path.write_bytes(LINES[0])
    follower = Follower(path)
    await follower.until(b"line 0\n")
    loop = asyncio.get_running_loop()
    delays = []
    for n in range(9):
        began = loop.time()
        with path.open("ab") as file:
            file.write(b"2026-01-01T00:00:01Z stdout F more %d\n" % n)
        await follower.until(b"more %d\n" % n)
        delays.append(loop.time() - began)
    assert median(delays) < 0.5  # once a second it would be seen anyway
    await follower.ended()


async def test_rotation_loses_nothing_and_repeats_nothing(tmp_path: Path) -> None:
    path = tmp_path / "0.log"
    path.write_bytes(LINES[0])
    follower = Follower(path)
    await follower.until(b"line 0\n")
    with path.open("ab") as old:
        path.rename(tmp_path / "0.log.20260101-000000")
        old.write(LINES[1])  # the runtime writes to the old file until ReopenContainerLog
        old.flush()
        path.write_bytes(LINES[2])
    await follower.until(b"line 2\n")
    with path.open("ab") as new:
        new.write(LINES[3])
    assert await follower.ended() == b"line 0\nline 1\nline 2\nline 3\n"


async def test_following_from_the_last_line_on(tmp_path: Path) -> None:
    path = tmp_path / "0.log"
    path.write_bytes(b"".join(LINES[:3]))
    follower = Follower(path, tail=1)
    await follower.until(b"line 2\n")
    with path.open("ab") as file:
        file.write(LINES[3])
    assert await follower.ended() == b"line 2\nline 3\n"


@given(st.lists(st.sampled_from("abcPFG"), max_size=40), st.booleans())
def test_lines_at_a_glance_become_what_they_become_one_by_one(kinds: str, fresh: bool) -> None:
    forms = {
        "P": b"2026-01-01T00:00:01Z stdout P part\n",
        "G": b"garbage\n",
        "F": b"2026-01-01T00:00:01.5Z stderr F \n",
    }
    lines = [forms.get(each, b"2026-01-01T00:00:01.123+01:00 stdout F %c\n" % ord(each)) for each in kinds]
    quick, slow = Selection(), Selection()
    quick._fresh = slow._fresh = fresh
    found = quick.take_all(lines)
    if found is not None:
        assert found == b"".join(map(slow.take, lines))
        assert slow._fresh
