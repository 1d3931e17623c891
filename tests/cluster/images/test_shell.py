"""The image `shell`, made of this machine's own programs where there is no static busybox."""

from __future__ import annotations

import http.server
import json
import os
import subprocess
import tarfile
import threading
from pathlib import Path

import pytest

from pybernetes.cluster.images import builtin, oci, shell, store
from pybernetes.cluster.layout import Layout
from pybernetes.cluster.node import programs
from pybernetes.cri.embedded.images.archive import NAME


def names(archive: Path) -> list[str]:
    with tarfile.open(archive) as tar:
        file = tar.extractfile("index.json")
        assert file is not None
        return [each["annotations"][NAME] for each in json.load(file)["manifests"]]


def test_there_is_always_a_shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(builtin, "busybox_program", lambda: None)
    layout = Layout("c", tmp_path)
    store.ensure_builtin(layout)
    made = [name for path in layout.images.glob("*.tar") for name in names(path)]
    assert sorted(made) == [shell.NAME, builtin.PAUSE]


@pytest.mark.skipif(builtin.busybox_program() is None, reason="no static busybox")
def test_busybox_is_the_shell_where_it_is(tmp_path: Path) -> None:
    layout = Layout("c", tmp_path)
    store.ensure_builtin(layout)
    assert shell.NAME in names(store.archive_path(layout, builtin.BUSYBOX))
    assert not store.archive_path(layout, shell.NAME).exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="chroot needs root")
def test_its_programs_find_their_libraries(tmp_path: Path) -> None:
    made = shell.image()
    assert made is not None
    with open(tmp_path / "layer.tar", "wb") as file:
        oci.write_layer(file, made.entries)
    root = tmp_path / "root"
    subprocess.run(["tar", "-C", tmp_path, "-xf", tmp_path / "layer.tar", "--one-top-level=root"], check=True)
    command = ["chroot", root, "sh", "-c", "echo one two | sed s/one/1/; ls -d /tmp; id -u; sleep 0"]
    done = subprocess.run(command, capture_output=True, text=True, env={"PATH": programs.PATH})
    assert (done.stdout, done.stderr) == ("1 two\n/tmp\n0\n", "")


def test_a_machine_without_a_shell_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "PATH", "/nowhere")
    assert shell.image() is None


@pytest.mark.skipif(os.geteuid() != 0 or builtin.busybox_program() is None, reason="needs root and a static busybox")
def test_where_busybox_dies_in_its_wget_a_script_does_its_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = builtin.busybox_program()
    assert program is not None
    monkeypatch.setattr(builtin, "wget_dies", lambda program: True)
    with open(tmp_path / "layer.tar", "wb") as file:
        oci.write_layer(file, builtin.busybox_entries(program))
    root = tmp_path / "root"
    subprocess.run(["tar", "-C", tmp_path, "-xf", tmp_path / "layer.tar", "--one-top-level=root"], check=True)
    (root / "etc/hosts").write_text("127.0.0.1 localhost\n")
    content = bytes(range(256)) * 40

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if self.path == "/data" else 404)
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever).start()
        try:

            def wget(*words: str) -> subprocess.CompletedProcess[bytes]:
                command = ["chroot", str(root), "/bin/wget", *words]
                return subprocess.run(command, capture_output=True, env={"PATH": programs.PATH}, timeout=30)

            port = server.server_port
            got = wget("-T", "5", "-qO-", f"http://localhost:{port}/data")
            assert (got.returncode, got.stdout) == (0, content), got.stderr
            assert wget("-O", "/tmp/file", f"127.0.0.1:{port}/data").returncode == 0
            assert (root / "tmp/file").read_bytes() == content
            shell = ["chroot", str(root), "/bin/sh", "-c", f"wget -qO- http://127.0.0.1:{port}/data | wc -c"]
            inside = subprocess.run(shell, capture_output=True, env={"PATH": programs.PATH}, timeout=30)
            assert inside.stdout.split() == [b"%d" % len(content)], "its shell prefers commands of its own"
            missing = wget("-q", "-O-", f"http://127.0.0.1:{port}/")
            assert (missing.returncode, missing.stdout) == (1, b"")
            assert b"server returned error: HTTP/1.0 404" in missing.stderr
            assert wget("-T", "2", "-qO-", "http://127.0.0.1:9/").returncode == 1
            assert wget("-qO-", "http://no.such.name.invalid/").returncode == 1
        finally:
            server.shutdown()


@pytest.mark.skipif(os.geteuid() != 0 or builtin.busybox_program() is None, reason="needs root and a static busybox")
def test_what_asks_the_network_ends_by_no_signal(tmp_path: Path) -> None:
    program = builtin.busybox_program()
    assert program is not None
    with open(tmp_path / "layer.tar", "wb") as file:
        oci.write_layer(file, builtin.busybox_entries(program))
    subprocess.run(["tar", "-C", tmp_path, "-xf", tmp_path / "layer.tar", "--one-top-level=root"], check=True)
    for command in (
        "ping -c 1 -W 2 127.0.0.1",
        "nc 127.0.0.1 9",
        "nslookup a 127.0.0.1",
        "wget -T 1 -q http://127.0.0.1:9/",
    ):
        for words in (command.split(), ["sh", "-c", command]):
            done = subprocess.run(["chroot", str(tmp_path / "root"), *words], capture_output=True, timeout=60)
            assert done.returncode in (0, 1), (words, done)


def test_a_busybox_that_dies_is_noticed(tmp_path: Path) -> None:
    program = tmp_path / "busybox"
    program.write_text("#!/bin/sh\nkill -SEGV $$\n")
    program.chmod(0o755)
    assert builtin.wget_dies(program)
    program.write_text("#!/bin/sh\nexit 1\n")
    assert not builtin.wget_dies(program)
