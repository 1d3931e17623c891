"""A test that hangs fails by name, with the stacks of threads and tasks, and the others go on."""

from __future__ import annotations

import functools
from pathlib import Path

import pytest
from plugins import inner_pytest

run = functools.partial(inner_pytest.run, plugin="time_limit")

HANGING = {
    "a future that is never set": """
import asyncio
async def lost_wake_up(): await asyncio.get_running_loop().create_future()
async def main():
    task = asyncio.create_task(lost_wake_up())
    await task
def test_hangs(): asyncio.run(main())
""",
    "a task that is busy": """
import asyncio
async def lost_wake_up():
    while True: pass
async def main():
    task = asyncio.create_task(lost_wake_up())
    await asyncio.get_running_loop().create_future()
def test_hangs(): asyncio.run(main())
""",
    "a thread that is waited for": """
import threading
def lost_wake_up(): threading.Event().wait()
def test_hangs():
    thread = threading.Thread(target=lost_wake_up, daemon=True)
    thread.start()
    thread.join()
""",
    "an example of hypothesis": """
import threading
from hypothesis import given, strategies as st
def lost_wake_up(): threading.Event().wait()
@given(st.integers())
def test_hangs(number): lost_wake_up()
""",
    "a fixture": """
import pytest, threading
def lost_wake_up(): threading.Event().wait()
@pytest.fixture
def fixture(): lost_wake_up()
def test_hangs(fixture): pass
""",
    "a test that swallows every exception": """
import threading
def lost_wake_up():
    try: threading.Event().wait()
    except BaseException: pass
def test_hangs(): lost_wake_up()
""",
}


@pytest.mark.parametrize("content", list(HANGING.values()), ids=list(HANGING))
def test_what_hangs_fails_with_its_name_and_stacks_and_the_others_pass(tmp_path: Path, content: str) -> None:
    (tmp_path / "test_it.py").write_text(content + "\ndef test_other(): pass\n")
    output = run(tmp_path, "--time-limit", "0.3")
    assert "test_it.py::test_hangs: " in output
    assert "took longer than 0.3 s" in output
    assert "lost_wake_up" in output
    assert "1 passed" in output


def test_code_that_no_alarm_interrupts_ends_the_worker_and_the_others_pass(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text("import plugins.time_limit\nplugins.time_limit.GRACE = 0.3\n")
    (tmp_path / "test_it.py").write_text(
        "import signal\n"
        "def lost_wake_up():\n"
        "    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])\n"
        "    signal.sigwait([signal.SIGUSR1])\n"
        "def test_hangs(): lost_wake_up()\n"
        "def test_other(): pass\n"
    )
    output = run(tmp_path, "--time-limit", "0.3", "-n", "1")
    assert "crashed while running 'test_it.py::test_hangs'" in output
    assert "in lost_wake_up" in output
    assert "1 failed, 1 passed" in output


def test_a_test_may_have_a_limit_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        "import pytest, threading\n"
        "@pytest.mark.time_limit(0.1)\n"
        "def test_short(): threading.Event().wait()\n"
        "@pytest.mark.time_limit(60)\n"
        "def test_long(): threading.Event().wait(0.3)\n"
    )
    output = run(tmp_path, "--time-limit", "0.2")
    assert "test_short: call took longer than 0.1 s" in output
    assert "1 failed, 1 passed" in output
