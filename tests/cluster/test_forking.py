"""Components as forks: to others, and to themselves, they are as if they had been started anew."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import tools
from pybernetes.cluster import forking, warm

PROBE = """
import json, os, signal, sys, time
def main(argv):
    descriptors = {int(each): os.path.realpath(f"/proc/self/fd/{each}") for each in os.listdir("/proc/self/fd")}
    signals = (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD, signal.SIGHUP)
    said = {
        "argv": sys.argv[1:],
        "orig": sys.orig_argv,
        "group": os.getpgid(0) == os.getpid(),
        "listen": os.environ.get("LISTEN_FDS"),
        "handlers": [getattr(signal.getsignal(each), "name", "a function") for each in signals],
        "blocked": len(signal.pthread_sigmask(signal.SIG_BLOCK, ())),
        "descriptors": {key: path for key, path in descriptors.items() if os.path.exists(path)},
    }
    print(json.dumps(said))
    if argv[0] == "exit":
        sys.exit(7)
    if argv[0] == "say":
        sys.exit("no such thing")
    if argv[0] == "fail":
        raise ValueError("what went wrong")
    if argv[0] == "wait":
        sys.stdout.flush()
        time.sleep(1000)
    return 3
"""
PARENT = """
import json, os, signal, sys
from pybernetes.cluster import cli, forking
cli.COMMANDS["probe"] = ("probe_of_forks", "")
kept = os.open("/dev/zero", os.O_RDONLY)
listener = [os.open("/dev/full", os.O_RDWR)] if sys.argv[2] == "listen" else []
signal.signal(signal.SIGTERM, lambda *_: None)
signal.signal(signal.SIGHUP, signal.SIG_IGN)
pid = forking.start([*forking.PYTHON, "probe", *sys.argv[3:]], sys.argv[1], listener)
print(pid, flush=True)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""


def parent(folder: Path, *words: str, listen: bool = False) -> subprocess.Popen[str]:
    (folder / "probe_of_forks.py").write_text(PROBE)
    command = [sys.executable, "-c", PARENT, str(folder / "log"), "listen" if listen else "", *words]
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)


def outcome(folder: Path, *words: str, listen: bool = False) -> tuple[int, str]:
    with parent(folder, *words, listen=listen) as process:
        assert process.stdout is not None
        return int(process.stdout.read().split()[1]), (folder / "log").read_text()


def test_a_fork_has_default_signals_its_own_group_and_no_descriptors_of_its_parent(tmp_path: Path) -> None:
    code, log = outcome(tmp_path, "return")
    said = json.loads(log)
    assert code == 3
    assert said["argv"] == ["probe", "return"]
    assert said["orig"] == [*forking.PYTHON, "probe", "return"]
    assert said["group"]
    assert said["blocked"] == 0
    assert said["handlers"] == ["SIG_DFL", "a function", "SIG_DFL", "SIG_DFL"]  # SIGINT: KeyboardInterrupt
    assert said["descriptors"] == {"0": "/dev/null", "1": f"{tmp_path}/log", "2": f"{tmp_path}/log"}
    assert said["listen"] is None


def test_a_fork_finds_the_socket_that_it_is_given(tmp_path: Path) -> None:
    _, log = outcome(tmp_path, "return", listen=True)
    said = json.loads(log)
    assert said["descriptors"]["3"] == "/dev/full"
    assert len(said["descriptors"]) == 4
    assert said["listen"] == "1"


@pytest.mark.parametrize(
    ("how", "code", "words"), [("exit", 7, ""), ("say", 1, "no such thing"), ("fail", 1, "ValueError: what went wrong")]
)
def test_a_fork_ends_as_a_program_does(tmp_path: Path, how: str, code: int, words: str) -> None:
    got, log = outcome(tmp_path, how)
    assert got == code
    assert words in log


def test_a_fork_shows_its_own_command_line_and_ends_on_sigterm(tmp_path: Path) -> None:
    flag = f"--flag={'x' * 5000}"
    with parent(tmp_path, "wait", flag) as process:
        assert process.stdout is not None
        pid = int(process.stdout.readline())
        tools.wait_until(lambda: (tmp_path / "log").read_text() or None, "the fork to say something")
        shown = Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")
        assert shown == [*forking.PYTHON, "probe", "wait", flag, ""]
        os.kill(pid, signal.SIGTERM)
        assert process.stdout.read() == f"-{signal.SIGTERM.value}\n"


def test_other_programs_are_started_as_ever(tmp_path: Path) -> None:
    pid = forking.start(["/bin/sh", "-c", "echo here; exit 4"], str(tmp_path / "log"))
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 4
    assert (tmp_path / "log").read_text() == "here\n"
    with pytest.raises(FileNotFoundError):
        forking.start(["/nonexistent/program"], str(tmp_path / "log"))


def test_what_is_warmed_up_leaves_one_thread_and_no_descriptor() -> None:
    look = "import os; from pybernetes.cluster import warm; warm.load(); " + (
        "print(len(os.listdir('/proc/self/task')), sorted(map(int, os.listdir('/proc/self/fd')))[:-1])"
    )
    done = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert done.stdout == "1 [0, 1, 2]\n", done.stderr


def test_a_warm_process_without_an_order_ends(capfd: pytest.CaptureFixture[str]) -> None:
    done = subprocess.run([*forking.PYTHON, "warm"], stdin=subprocess.DEVNULL)
    assert done.returncode == 0
    assert capfd.readouterr() == ("", "")


def test_a_warm_process_becomes_the_command_it_reads() -> None:
    done = subprocess.run([*forking.PYTHON, "warm"], input='["version"]', capture_output=True, text=True)
    plain = subprocess.run([*forking.PYTHON, "version"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, plain.stdout)
    assert "pybernetes.client.component" in warm.MODULES
