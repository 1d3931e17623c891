"""/logs/?query=: logs of the node's services, from its journal or from files.

A query is a service, or a file if it has a slash. A service that the journal knows is read with journalctl. Of any
other the file SERVICE, SERVICE.log or SERVICE/SERVICE.log in /var/log is served, and of the kubelet its standard error,
if that is a file.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import stat
import subprocess
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from pybernetes.api.times import parse_time
from pybernetes.component import offload

from .answers import Refused

OWNER: Final = "system logs"
WITHIN: Final = 30.0
"""Seconds for one query."""
MAX_TAIL: Final = 100_000
MAX_SERVICES: Final = 4
MAX_NAME: Final = 256
OWN_SERVICE: Final = "kubelet"
_PIECE: Final = 1 << 16
_UNSAFE: Final = re.compile(r"[^a-zA-Z\-_.:0-9@]")


@dataclass(frozen=True, slots=True)
class LogQuery:
    """The parameters of a query for the node's logs. The options are for the journal."""

    services: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    since: datetime | None = None
    until: datetime | None = None
    tail: int | None = None
    boot: int | None = None
    pattern: str = ""

    @property
    def has_options(self) -> bool:
        """Whether it is about more than names."""
        return replace(self, services=(), files=()) != LogQuery()


def parse_query(query: Mapping[str, Sequence[str]]) -> LogQuery | None:
    """The query of a URL; None if it has none. Raises Refused (400), in upstream's words."""
    problems: list[str] = []
    names = list(query.get("query", ()))
    files = tuple(each for each in names if "/" in each or "\\" in each)
    services = tuple(each for each in names if each not in files and each.strip())
    if "query" in query and not (files or services):
        problems.append(_invalid("query", names, "may not be empty"))

    def number(name: str) -> int | None:
        text = next(iter(query.get(name, ())), "")
        if re.fullmatch(r"[+-]?\d{1,18}", text):
            return int(text)
        if text:
            problems.append(_invalid(name, text, f'strconv.Atoi: parsing "{text}": invalid syntax'))
        return None

    def time(name: str) -> datetime | None:
        text = next(iter(query.get(name, ())), "")
        try:
            return datetime.fromtimestamp(parse_time(text), UTC) if text else None
        except (ValueError, OverflowError):
            problems.append(_invalid(name, text, "invalid time format"))
            return None

    found = LogQuery(
        services,
        files,
        time("sinceTime"),
        time("untilTime"),
        number("tailLines"),
        number("boot"),
        next(iter(query.get("pattern", ())), ""),
    )
    if problems:
        raise Refused(400, f"{_together(problems)}\n")
    return None if found == LogQuery() else found


def check_query(query: LogQuery, folder: Path) -> None:
    """Raise Refused (406), in upstream's words, if the query cannot be answered. Looks at the file of the query."""
    problems = []
    for each in query.services:
        if len(each) > MAX_NAME:
            problems.append(_invalid("query", each, f"length must be less than {MAX_NAME}"))
        elif _UNSAFE.search(each):
            problems.append(_invalid("query", each, "input contains unsupported characters"))
    if len(query.services) > MAX_SERVICES:
        problems.append(f"query: Too many: {len(query.services)}: must have at most {MAX_SERVICES} items")
    if not query.services and not query.files:
        problems.append("query: Required value: cannot be empty with options")
    elif query.services and query.files:
        both = f"[{' '.join(query.files)}], [{' '.join(query.services)}]"
        problems.append(_invalid("query", both, "cannot specify a file and service"))
    elif len(query.files) > 1:
        problems.append(_invalid("query", query.files, "cannot specify more than one file"))
    elif query.files and query.has_options:
        problems.append(_invalid("query", query.files, "cannot specify file with options"))
    elif query.files and not (folder / query.files[0].replace("\\", "/").lstrip("/")).exists():
        problems.append(_invalid("query", query.files, f"statat {query.files[0]}: no such file or directory"))
    if query.since and query.until and query.since > query.until:
        problems.append(_invalid("untilTime", _time(query.until), "must be after `sinceTime`"))
    if query.boot is not None and query.boot > 0:
        problems.append(_invalid("boot", query.boot, "must be less than 1"))
    if query.tail is not None and not 0 <= query.tail <= MAX_TAIL:
        problems.append(_invalid("tailLines", query.tail, f"must be between 0 and {MAX_TAIL}, inclusive"))
    if query.pattern and (why := _pattern_problem(query.pattern)):
        problems.append(_invalid("pattern", query.pattern, why))
    if problems:
        raise Refused(406, f"{_together(problems)}\n")


async def read_query(query: LogQuery, folder: Path) -> AsyncGenerator[bytes, None]:
    """The logs of the services, in pieces, for half a minute at most. What fails is a line in the answer."""
    deadline = asyncio.get_running_loop().time() + WITHIN
    known = await _journal_units(deadline)
    in_journal = [each for each in query.services if f"{each}.service" in known]
    in_files = [each for each in query.services if each not in in_journal]
    if in_journal:
        async with aclosing(_run(["journalctl", *journal_flags(query, in_journal)], deadline)) as pieces:
            async for piece in pieces:
                yield piece
    if in_files and query.has_options:
        what = f"options present and query resolved to log files for [{' '.join(in_files)}]"
        yield f"\n{what}\ntry without specifying options\n".encode()
        return
    for each in in_files:
        try:
            path = await offload.run(OWNER, WITHIN, find_log, folder, each)
            if path is None:
                yield f"\nlog not found for {each}\n".encode()
                continue
            with await offload.run(OWNER, WITHIN, path.open, "rb") as file:
                while piece := await offload.run(OWNER, WITHIN, file.read, _PIECE):
                    yield piece
        except OSError as error:
            yield f"\nerror getting log for {each}: {error.strerror or error}\n".encode()


def journal_flags(query: LogQuery, services: Sequence[str]) -> list[str]:
    """journalctl's flags for a query."""
    flags = ["--utc", "--no-pager", "--output=short-precise"]
    if query.since:
        flags.append(f"--since={_time(query.since)}")
    if query.until:
        flags.append(f"--until={_time(query.until)}")
    if query.tail is not None:
        flags += ["--pager-end", f"--lines={query.tail}"]
    flags += [f"--unit={each}" for each in services]
    if query.pattern:
        flags.append(f"--grep={query.pattern}")
    if query.boot is not None:
        flags += ["--boot", str(query.boot)]
    return flags


def find_log(folder: Path, service: str) -> Path | None:
    """The file with a service's log; a link that leads out of the folder is not followed."""
    top = folder.resolve()
    for name in (service, f"{service}.log", f"{service}/{service}.log"):
        path = (folder / name).resolve()
        if path.is_relative_to(top) and path.is_file():
            return path
    return _own_log() if service == OWN_SERVICE else None


def _own_log() -> Path | None:
    """The file that this process logs to, if stderr is a file."""
    return Path("/proc/self/fd/2") if stat.S_ISREG(os.fstat(2).st_mode) else None


async def _journal_units(deadline: float) -> set[str]:
    lines = b""
    async with aclosing(_run(["journalctl", "--field", "_SYSTEMD_UNIT"], deadline, quiet=True)) as pieces:
        async for piece in pieces:
            lines += piece
    return set(lines.decode(errors="replace").split("\n"))


async def _run(command: Sequence[str], deadline: float, *, quiet: bool = False) -> AsyncGenerator[bytes, None]:
    """Stream a command's output; nothing if there is no such program. It is killed at the deadline."""
    errors = subprocess.DEVNULL if quiet else subprocess.STDOUT
    loop = asyncio.get_running_loop()
    try:  # in threads: forks beside gRPC's threads are for `subprocess` alone, which runs nothing in the child
        process = await offload.run(
            OWNER,
            deadline - loop.time(),
            lambda: subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors),
        )
    except OSError:
        return
    assert process.stdout is not None
    try:
        while piece := await offload.run(OWNER, deadline - loop.time(), os.read, process.stdout.fileno(), _PIECE):
            yield piece
    except TimeoutError:
        return
    finally:
        process.kill()  # a read that was left behind ends with it
        await offload.run(OWNER, WITHIN, process.wait)
        process.stdout.close()


def _pattern_problem(pattern: str) -> str:
    import re2  # type: ignore[import-untyped]

    options = re2.Options()
    options.log_errors = False
    try:
        re2.compile(pattern, options)
    except re2.error as error:
        said = error.args[0] if error.args else b""
        return f"error parsing regexp: {said.decode() if isinstance(said, bytes) else said}"
    return ""


def _time(when: datetime) -> str:
    return when.strftime("%Y-%m-%d %H:%M:%S")


def _invalid(field: str, value: object, why: str) -> str:
    return f"{field}: Invalid value: {json.dumps(value, ensure_ascii=False, separators=(',', ':'))}: {why}"


def _together(problems: Sequence[str]) -> str:
    found = list(dict.fromkeys(problems))
    return found[0] if len(found) == 1 else f"[{', '.join(found)}]"
