"""Ends a test that hangs: it fails by name with the stacks of all threads and tasks, and the other tests go on.

Setup, call and teardown of a test may take LIMIT seconds each, or what `@pytest.mark.time_limit(seconds)` says; long
tests (`soak`) have an hour. An alarm interrupts the main thread, again and again while the test does not end. If it
does not end in C code that no alarm interrupts, faulthandler prints the stacks and ends the process: pytest-xdist then
names the test and starts another worker for the rest.
"""

from __future__ import annotations

import asyncio
import faulthandler
import gc
import io
import os
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import pytest

LIMIT = 300.0
SOAK_LIMIT = 3600.0
AGAIN = 10.0
"""Seconds between two alarms, for a test that survives the first one in a `finally`."""
GRACE = 60.0
"""Seconds after the limit until the process is ended."""

_stderr: int | None = None  # the real one: while a test runs, file descriptor 2 is captured


class TimeLimitExceeded(KeyboardInterrupt):
    """The only kind of exception that ends an event loop whichever task it hits, and that hypothesis does not retry."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--time-limit", type=float, default=LIMIT, help="seconds that a test may take (default: 300)")


def pytest_configure(config: pytest.Config) -> None:
    global _stderr
    config.addinivalue_line("markers", "time_limit(seconds): how long this test may take")
    _stderr = os.dup(2)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Iterator[None]:
    with limited(item, "setup"):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    with limited(item, "call"):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Iterator[None]:
    with limited(item, "teardown"):
        return (yield)


@contextmanager
def limited(item: pytest.Item, phase: str) -> Iterator[None]:
    """Fails the test if what is done inside takes longer than its limit."""
    limit = limit_of(item)
    stacks = ""

    def on_alarm(number: int, frame: FrameType | None) -> None:
        nonlocal stacks
        stacks = stacks or all_stacks()
        raise TimeLimitExceeded

    before = signal.signal(signal.SIGALRM, on_alarm)
    faulthandler.dump_traceback_later(limit + GRACE, exit=True, file=2 if _stderr is None else _stderr)
    signal.setitimer(signal.ITIMER_REAL, limit, AGAIN)
    try:
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            faulthandler.cancel_dump_traceback_later()
            signal.signal(signal.SIGALRM, before)
    except TimeLimitExceeded:
        pass
    if stacks:
        gc.collect()  # tasks that are destroyed while they wait report it: here, and not within an ast.parse
        pytest.fail(f"{item.nodeid}: {phase} took longer than {limit:g} s\n{stacks}", pytrace=False)


def limit_of(item: pytest.Item) -> float:
    """How long each phase of this test may take."""
    if marker := item.get_closest_marker("time_limit"):
        return float(marker.args[0])
    return SOAK_LIMIT if item.get_closest_marker("soak") else float(item.config.option.time_limit)


def all_stacks() -> str:
    """Where each thread and each unfinished task is."""
    text = io.StringIO()
    with tempfile.TemporaryFile("w+") as file:
        faulthandler.dump_traceback(file, all_threads=True)
        file.seek(0)
        text.write(file.read())
    for task in [each for each in gc.get_objects() if isinstance(each, asyncio.Task)]:
        if not task.done():
            task.print_stack(file=text)
    return text.getvalue()
