"""`pyb up` that fails or is broken off: what it says, and that it decides nothing for the next one."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from cluster.shell import Shell

import tools
from pybernetes.cluster.layout import Layout, Record


def layout(pyb: Shell) -> Layout:
    return Layout("pybernetes", pyb.home / ".pybernetes" / "pybernetes")


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()} if folder.exists() else set()


@contextlib.contextmanager
def starting(pyb: Shell) -> Iterator[subprocess.Popen[str]]:
    """`up` in a process group of its own, as a shell starts it, that waits for a store that does not answer."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        store = ["--store=etcd", f"--etcd-endpoints=http://127.0.0.1:{silent.getsockname()[1]}"]
        command = [*tools.PYTHON, "up", "--nodes=0", "--port=0", *store]
        with subprocess.Popen(
            command, env=pyb.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, process_group=0
        ) as process:
            tools.wait_until(layout(pyb).pid_file("apiserver").exists, "components are being started", every=0.002)
            yield process


def test_a_port_in_use_is_one_line_and_nothing_is_left(pyb: Shell) -> None:
    data = pyb.home / "data"
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        result = pyb.up(f"--port={port}", "--name=first", f"--data-dir={data}", code=1)
    assert result.stderr.count("\n") == 1
    assert f"port {port} of 127.0.0.1 is in use" in result.stderr
    assert not data.exists()


def test_what_was_there_before_a_start_that_fails_is_there_after_it(pyb: Shell) -> None:
    place = layout(pyb)
    place.claim()
    place.prepare()  # as `image` commands do
    for folder in (place.images, place.registries):
        folder.mkdir()
        (folder / "mine").touch()
    before, record = names(place.data), place.read_record()
    place.run.rmdir()
    pyb.kubeconfig.mkdir(parents=True)
    told = pyb.up(code=1).stderr
    assert (
        told == f"pyb: cannot read the kubeconfig {pyb.kubeconfig}: Is a directory; $KUBECONFIG may name another file\n"
    )
    assert names(place.data) == before - {"run"} | {"lock"}
    assert names(place.images) == names(place.registries) == {"mine"}
    assert place.read_record() == record


def test_rules_that_are_wrong_are_reported_before_anything_is_made(pyb: Shell) -> None:
    rules = pyb.home / "rules.yaml"
    rules.write_text("rules:\n- settings: {run-forr: 1s}\n")
    told = pyb("up", "--simulated-nodes=1", f"--simulation-rules={rules}", code=1).stderr
    assert told == f"pyb: --simulation-rules: {rules}: rules[0].settings: there is no setting 'run-forr'\n"
    assert names(pyb.home) == {"rules.yaml"}


@pytest.mark.parametrize("where", ["below a file", "a file", "/proc/pyb"])
def test_a_folder_that_cannot_be_written_is_one_line(pyb: Shell, where: str) -> None:
    if where != "/proc/pyb":
        (pyb.home / "file").touch()
        where = str(pyb.home / "file" / "data") if where == "below a file" else str(pyb.home / "file")
    result = pyb.up(f"--data-dir={where}", code=1)
    assert result.stderr.count("\n") == 1
    assert f"cannot write to {where}" in result.stderr


@pytest.mark.parametrize(("size", "told"), [("40k", "No space left on device"), ("320k", "its disk has room for")])
def test_a_full_disk_is_reported(pyb: Shell, size: str, told: str) -> None:
    small = pyb.home / "small"
    small.mkdir()
    if os.geteuid() or subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "x", small]).returncode:
        pytest.skip("no tmpfs can be mounted")
    try:
        assert told in pyb.up(f"--data-dir={small / 'data'}", "--store=sqlite", code=1).stderr
        assert names(small / "data") <= {"cluster.json", "lock", "logs"}
    finally:
        subprocess.run(["umount", "-l", small], check=True)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_start_that_is_broken_off_leaves_no_process_and_decides_nothing(pyb: Shell, number: int) -> None:
    place = layout(pyb)
    with starting(pyb) as process:
        os.killpg(process.pid, number)
        os.killpg(process.pid, number)  # who is impatient
        process.wait(60)
    assert process.returncode == 128 + number
    assert not place.processes()
    assert names(place.data) <= {"cluster.json", "lock", "logs"}


def test_after_a_start_that_was_killed_up_just_starts(pyb: Shell) -> None:
    with starting(pyb) as process:
        process.kill()
    assert "The last start of cluster 'pybernetes' was broken off: supervisor ended." in pyb.up().stdout
    pyb("down")
    assert not layout(pyb).processes()


def test_a_record_of_a_later_version_is_understood(tmp_path: Path) -> None:
    place = Layout("c", tmp_path)
    place.write_record(Record("c", server="https://203.0.113.1", nodes=2))
    content = json.loads(place.record_file.read_bytes())
    place.record_file.write_text(json.dumps({**content, "moons": 3}))
    found = place.read_record()
    assert found is not None
    assert (found.name, found.server, found.nodes) == ("c", "https://203.0.113.1", 2)
    for content in ([], {"nodes": 1}, 3):
        place.record_file.write_text(json.dumps(content))
        assert place.read_record() is None
