"""The supervisor: restarts what dies, gives up on nothing, stops everything; with real processes."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import tools
from pybernetes.cluster import pidfile, supervisor

RUN = """
import sys
from pybernetes.cluster import supervisor
supervisor.STOP_GRACE = {grace}
sys.exit(supervisor.main(sys.argv[1:]))
"""


class Supervised:
    def __init__(self, folder: Path, process: subprocess.Popen[bytes]) -> None:
        self.folder = folder
        self.process = process

    def child(self, name: str) -> pidfile.Process | None:
        found = pidfile.read(str(self.folder / f"{name}.pid"))
        return found if found is not None and found.alive else None

    def log(self, name: str) -> str:
        path = self.folder / f"{name}.log"
        return path.read_text() if path.exists() else ""

    def events(self) -> str:
        return self.log("supervisor")


@contextlib.contextmanager
def supervise(
    folder: Path, grace: float = 10, chore: dict[str, object] | None = None, **commands: list[str]
) -> Iterator[Supervised]:
    """`chore` is what makes a component named `chore` one."""
    specs: list[dict[str, object]] = [
        {"name": name, "argv": argv, "log": str(folder / f"{name}.log"), "pidFile": str(folder / f"{name}.pid")}
        for name, argv in commands.items()
    ]
    if chore is not None:
        specs[-1] |= chore
    (folder / "components.json").write_text(json.dumps(specs))
    command = [
        sys.executable,
        "-c",
        RUN.format(grace=grace),
        str(folder / "components.json"),
        str(folder / "s.pid"),
        "-1",
    ]
    with open(folder / "supervisor.log", "wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        yield Supervised(folder, process)
    finally:
        process.terminate()
        assert process.wait(20) == 0, (folder / "supervisor.log").read_text()


def signal_mask(pid: int, which: str) -> set[int]:
    line = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith(which))
    mask = int(line.split()[1], 16)
    return {number for number in range(1, 65) if mask >> (number - 1) & 1}


SLEEP = ["/bin/sleep", "1000"]


def test_a_killed_component_is_started_again(tmp_path: Path) -> None:
    with supervise(tmp_path, a=SLEEP, b=SLEEP) as cluster:
        first = tools.wait_until(lambda: cluster.child("a"), "a runs")
        other = tools.wait_until(lambda: cluster.child("b"), "b runs")
        os.kill(first.pid, signal.SIGKILL)

        def restarted() -> pidfile.Process | None:
            now = cluster.child("a")
            return now if now is not None and now.pid != first.pid else None

        second = tools.wait_until(restarted, "a runs again")
        assert second.restarts == 1
        assert other.alive
        assert "a exited signal SIGKILL" in cluster.events()
    assert not second.alive
    assert not other.alive
    assert not list(tmp_path.glob("*.pid"))


def test_a_chore_is_done_again_and_again_and_refreshes_others_when_it_changed_something(tmp_path: Path) -> None:
    command = ["/bin/sh", "-c", f"date +%s.%N; test -e {tmp_path}/changed || exit 0; rm {tmp_path}/changed; exit 10"]
    chore: dict[str, object] = {"every": 0.2, "refreshes": ["a"]}
    began = time.time()
    with supervise(tmp_path, chore=chore, a=SLEEP, b=SLEEP, chore_=command) as cluster:
        first = tools.wait_until(lambda: cluster.child("a"), "a runs")
        other = tools.wait_until(lambda: cluster.child("b"), "b runs")
        tools.wait_until(lambda: cluster.log("chore_").count("\n") >= 3, "three times")
        assert float(cluster.log("chore_").split()[0]) - began >= 0.2, "not at the start"
        assert first.alive
        (tmp_path / "changed").touch()

        def restarted() -> pidfile.Process | None:
            now = cluster.child("a")
            return now if now is not None and now.pid != first.pid else None

        tools.wait_until(restarted, "a is started again")
        assert other.alive


def test_a_component_that_keeps_dying_is_started_less_and_less_often(tmp_path: Path) -> None:
    with supervise(tmp_path, a=["/bin/sh", "-c", "date +%s.%N; exit 3"]) as cluster:
        tools.wait_until(lambda: cluster.log("a").count("\n") >= 4, "four starts")
        starts = [float(line) for line in cluster.log("a").split()]
        pauses = [later - earlier for earlier, later in itertools.pairwise(starts)]
        assert pauses[0] >= 0.2
        assert pauses[1] >= 0.4
        assert pauses[2] >= 0.8
        assert "a exited exit code 3" in cluster.events()


def test_a_program_that_does_not_exist_is_reported_and_the_others_run(tmp_path: Path) -> None:
    with supervise(tmp_path, a=["/nonexistent/program"], b=SLEEP) as cluster:
        tools.wait_until(lambda: cluster.child("b"), "b runs")
        assert "a exited could not be started" in cluster.events()


def test_what_does_not_heed_the_request_to_stop_is_killed_with_its_children(tmp_path: Path) -> None:
    stubborn = ["/bin/sh", "-c", "trap '' TERM; sleep 1000 & echo $!; while :; do sleep 1000; done"]
    with supervise(tmp_path, grace=0.3, a=stubborn) as cluster:
        child = tools.wait_until(lambda: cluster.child("a"), "a runs")
        grandchild = int(tools.wait_until(lambda: cluster.log("a").strip(), "a has forked"))
    assert not child.alive
    tools.wait_until(lambda: pidfile.start_time(grandchild) is None, "the grandchild is gone")


def test_components_have_no_input_a_group_of_their_own_and_default_signals(tmp_path: Path) -> None:
    probe = "import os, signal, time; print(os.read(0, 1), os.getpgid(0) == os.getpid(), flush=True); time.sleep(1000)"
    with supervise(tmp_path, a=[sys.executable, "-c", probe], b=SLEEP) as cluster:
        tools.wait_until(lambda: cluster.log("a") == "b'' True\n", "a has reported")
        child = tools.wait_until(lambda: cluster.child("b"), "b runs")
        ignored, blocked = (signal_mask(child.pid, which) for which in ("SigIgn", "SigBlk"))
        assert not {signal.SIGPIPE, signal.SIGXFSZ, signal.SIGTERM, signal.SIGINT, signal.SIGHUP} & (ignored | blocked)
        assert sorted(os.listdir(f"/proc/{child.pid}/fd")) == ["0", "1", "2"]


def test_an_idle_supervisor_is_small_and_sleeps(tmp_path: Path) -> None:
    with supervise(tmp_path, a=SLEEP) as cluster:
        tools.wait_until(lambda: cluster.child("a"), "a runs")
        state = Path(f"/proc/{cluster.process.pid}/status")
        tools.wait_until(lambda: "State:\tS" in state.read_text(), "the supervisor sleeps")
        resident = next(line for line in state.read_text().splitlines() if line.startswith("VmRSS"))
        assert int(resident.split()[1]) < 16 * 1024, resident

        def switches() -> str:
            return next(line for line in state.read_text().splitlines() if line.startswith("voluntary"))

        def idle() -> bool:
            before = switches()
            subprocess.run(["/bin/sleep", "0.5"], check=True)
            return switches() == before

        tools.wait_until(idle, "half a second in which it does nothing")


def test_a_large_log_is_kept_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor, "LOG_LIMIT", 10)
    log = tmp_path / "a.log"
    supervisor.rotate(str(log))
    log.write_text("short")
    supervisor.rotate(str(log))
    assert log.exists()
    log.write_text("longer than ten")
    supervisor.rotate(str(log))
    assert (tmp_path / "a.log.1").read_text() == "longer than ten"
    assert not log.exists()


def test_a_log_that_grows_too_large_while_it_is_written_is_kept_once_and_emptied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "LOG_LIMIT", 10)
    log = tmp_path / "x.log"
    with open(log, "ab", 0) as component:
        component.write(b"0123456789")
        supervisor.shorten(str(log))
        assert not (tmp_path / "x.log.1").exists()
        component.write(b"more")
        supervisor.shorten(str(log))
        component.write(b"new")
    assert (tmp_path / "x.log.1").read_bytes() == b"0123456789more"
    assert log.read_bytes() == b"new"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["x.log", "x.log.1"]


def change(supervised: Supervised, change: Callable[[list[dict[str, object]]], list[dict[str, object]]]) -> None:
    """Writes another components file and tells the supervisor."""
    path = supervised.folder / "components.json"
    path.write_text(json.dumps(change(json.loads(path.read_text()))))
    supervised.process.send_signal(signal.SIGUSR1)


def test_components_come_and_go_while_the_others_run(tmp_path: Path) -> None:
    with supervise(tmp_path, grace=0.3, stays=SLEEP, deaf=["/bin/sh", "-c", "trap '' TERM; sleep 1000 & wait"]) as it:
        stays = tools.wait_until(lambda: it.child("stays"), "it runs")
        deaf = tools.wait_until(lambda: it.child("deaf"), "it runs")
        new = {"name": "new", "argv": SLEEP, "log": str(tmp_path / "new.log"), "pidFile": str(tmp_path / "new.pid")}
        change(it, lambda specs: [specs[0], new])
        first = tools.wait_until(lambda: it.child("new"), "the new one runs")
        tools.wait_until(lambda: not (tmp_path / "deaf.pid").exists(), "the removed one is gone")
        assert not deaf.alive

        change(it, lambda specs: [specs[0], {**specs[1], "off": True}])
        tools.wait_until(lambda: not (tmp_path / "new.pid").exists(), "it is off")
        assert not first.alive
        change(it, lambda specs: [specs[0], {**specs[1], "off": False}])
        tools.wait_until(lambda: it.child("new"), "it is on again")

        (tmp_path / "components.json").write_text("{")
        it.process.send_signal(signal.SIGUSR1)
        tools.wait_until(lambda: "cannot read" in it.events(), "a damaged file is reported")
        assert stays.alive
        assert it.child("new")


def test_a_new_supervisor_takes_over_what_the_killed_one_left(tmp_path: Path) -> None:
    try:
        with contextlib.suppress(AssertionError), supervise(tmp_path, one=SLEEP, two=SLEEP) as first:
            one = tools.wait_until(lambda: first.child("one"), "it runs")
            two = tools.wait_until(lambda: first.child("two"), "it runs")
            first.process.kill()
            first.process.wait()
        with supervise(tmp_path, one=SLEEP, two=SLEEP) as second:
            tools.wait_until(lambda: second.events().count("adopted") == 2, "both are taken over")
            assert one.alive
            assert two.alive
            os.kill(one.pid, signal.SIGKILL)
            tools.wait_until(lambda: (second.child("one") or one).pid != one.pid, "an adopted one is started again")
            assert two.alive
        assert not two.alive
    finally:
        for process in (one, two):
            if process.alive:
                os.kill(process.pid, signal.SIGKILL)
