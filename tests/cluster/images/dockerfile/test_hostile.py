"""Contexts, Dockerfiles and commands that try to get at what is not theirs, or to break the builder."""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import signal
import subprocess
import tarfile
import time
from pathlib import Path

import pytest
from cluster.images.dockerfile.bench import Bench

from pybernetes.cluster.errors import ClusterError
from pybernetes.component.removal import remove_tree
from tools import PATIENCE, PYTHON, wait_until


def running(*command: str) -> bool:
    """Whether any process of this machine has this command line."""
    wanted = b"".join(word.encode() + b"\0" for word in command)
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if path.read_bytes() == wanted:
                return True
    return False


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """A file of this machine, beside the context."""
    path = tmp_path / "secret"
    path.write_text("of this machine")
    return path


@pytest.mark.parametrize(
    "line", ["COPY {link} /x", "COPY {up} /x", "ADD {link} /x", "COPY {folder}/secret /x", "COPY {outer} /x"]
)
def test_no_path_leads_out_of_the_context(bench: Bench, secret: Path, line: str) -> None:
    os.symlink(secret, bench.context / "link")
    os.symlink("../secret", bench.context / "up")
    os.symlink("..", bench.context / "folder")
    named = {"link": "link", "up": "up", "folder": "folder", "outer": f"../{secret.name}"}
    with pytest.raises(ClusterError, match="is not there"):
        bench.run("FROM scratch\n" + line.format(**named))


def test_links_out_of_the_context_are_copied_as_links(bench: Bench, secret: Path) -> None:
    (bench.context / "d").mkdir()
    os.symlink(secret, bench.context / "d" / "link")
    made = bench.build("FROM scratch\nCOPY d /d")
    assert made.layers[0]["d/link"].issym()
    assert "d/link" not in made.contents


@pytest.mark.parametrize(
    "line",
    [
        "COPY secret /x/",
        "COPY s?cret /x/",
        "COPY link /x/",
        "COPY dir/../secret /x/",
        "COPY loop/secret /x/",
        "COPY ./secret /x/",
        "ADD secret /x/",
    ],
)
def test_what_is_ignored_is_not_there_under_any_name(bench: Bench, line: str) -> None:
    bench.put("secret", "s")
    bench.put("dir/a", "a")
    bench.put(".dockerignore", "secret")
    os.symlink("secret", bench.context / "link")
    os.symlink(".", bench.context / "loop")
    try:
        made = bench.build(f"FROM busybox\n{line}\nCOPY dir /y")
    except ClusterError as error:
        assert "is not there" in str(error)  # noqa: PT017 - either is fine, as long as nothing is copied
    else:
        assert b"s" not in made.contents.values()


def test_what_is_brought_back_is_there_and_no_more(bench: Bench) -> None:
    for path in ("all/a", "all/keep/b", "all/c.txt", "top"):
        bench.put(path, path)
    bench.put(".dockerignore", "*\n!all/keep\n!*/c.txt")
    made = bench.build("FROM scratch\nCOPY . /x")
    assert sorted(made.contents) == ["x/all/c.txt", "x/all/keep/b"]
    with pytest.raises(ClusterError, match=r"see \.dockerignore"):
        bench.run("FROM scratch\nCOPY all/a /x")


@pytest.mark.parametrize("line", ["[", "a[b", "\\"])
def test_a_bad_ignore_file_is_reported(bench: Bench, line: str) -> None:
    bench.put(".dockerignore", line)
    with pytest.raises(ClusterError, match=r"^.dockerignore: "):
        bench.run("FROM busybox")


def test_links_of_a_stage_lead_nowhere_but_into_it(bench: Bench, secret: Path) -> None:
    text = f"FROM busybox AS one\nRUN ln -s {secret} /l && ln -s / /r && ln -s ../../../../../../ /u\n"
    with pytest.raises(ClusterError, match="is not there"):
        bench.run(text + "FROM scratch\nCOPY --from=one /l /x")
    with pytest.raises(ClusterError, match="is not there"):
        bench.run(text + f"FROM scratch\nCOPY --from=one /r{secret} /x")
    made = bench.build(text + "FROM scratch\nCOPY --from=one /u/etc/passwd /x")
    assert made.contents["x"].startswith(b"root:x:0:0:root:/root:/bin/sh")


def test_destinations_stay_in_the_image(bench: Bench, tmp_path: Path) -> None:
    bench.put("a", "1")
    target = tmp_path / "outside"
    target.mkdir()
    made = bench.build(
        f"FROM busybox\nRUN ln -s {target} /l && ln -s {target}/f /f\nRUN mkdir -p {target}\n"
        "COPY a /l/\nCOPY a /f\nCOPY a /../../../up\n"
    )
    assert list(target.iterdir()) == []
    assert "up" in made.layers[-1]
    assert f"{target}/a".lstrip("/") in made.contents


def test_device_nodes_pipes_and_sockets_of_a_context_are_refused_or_left_out(bench: Bench) -> None:
    (bench.context / "d").mkdir()
    os.mkfifo(bench.context / "d" / "pipe")
    os.mknod(bench.context / "d" / "null", 0o666 | 0o020000, os.makedev(1, 3))
    with pytest.raises(ClusterError, match="neither a file nor a folder"):
        bench.run("FROM scratch\nCOPY d/pipe /x")
    with pytest.raises(ClusterError, match="neither a file nor a folder"):
        bench.run("FROM scratch\nADD d/null /x")
    assert sorted(bench.build("FROM scratch\nCOPY d /d").layers[0]) == ["d", "d/pipe"]


def test_archives_that_lead_out_are_refused(bench: Bench, tmp_path: Path) -> None:
    with tarfile.open(bench.context / "a.tar", "w") as tar:
        info = tarfile.TarInfo("../../../../out")
        info.size = 1
        tar.addfile(info, io.BytesIO(b"x"))
    with pytest.raises(ClusterError, match=r"ADD: a.tar: the path .* leads out"):
        bench.run("FROM scratch\nADD a.tar /x/")
    with tarfile.open(bench.context / "a.tar", "w") as tar:
        link = tarfile.TarInfo("l")
        link.type, link.linkname = tarfile.SYMTYPE, str(tmp_path)
        tar.addfile(link)
        info = tarfile.TarInfo("l/inside")
        info.size = 1
        tar.addfile(info, io.BytesIO(b"x"))
    assert "x/l/inside" in bench.build("FROM scratch\nADD a.tar /x/").contents
    assert not (tmp_path / "inside").exists()


def test_commands_do_not_see_this_machine(bench: Bench, secret: Path) -> None:
    made = bench.build(
        f"FROM busybox\nRUN cat {secret} > /a 2>/dev/null; ls /proc | grep -c '^[0-9]' > /b; mount > /c; "
        "mknod /d b 8 0 2>/dev/null || echo refused > /d; echo 1 2>/dev/null > /proc/sys/kernel/panic || echo no > /e; "
        "umount /proc 2>/dev/null || echo no > /f; kill -9 -1; true"
    )
    assert made.contents["a"] == b""
    assert int(made.contents["b"]) <= 6
    assert str(bench.data).encode() not in made.contents["c"].replace(b"upperdir=", b"").split(b" type overlay")[0]
    assert made.contents["d"] == b"refused\n"
    assert made.contents["e"] == b"no\n"
    assert made.contents["f"] == b"no\n"


def test_what_a_command_leaves_running_ends_with_it(bench: Bench) -> None:
    began = time.monotonic()
    bench.run("FROM busybox\nRUN sleep 1234.5 & (trap '' HUP TERM; sleep 1234.5) & true")
    assert time.monotonic() - began < 60
    assert not running("sleep", "1234.5")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_build_that_is_ended_takes_its_command_along(bench: Bench, tmp_path: Path, number: int) -> None:
    seconds = f"4321.{os.getpid()}{int(number)}"  # of no other run on this machine
    (bench.context / "Dockerfile").write_text(f"FROM busybox\nRUN sleep {seconds}")
    command = [*PYTHON, "image", "build", "--data-dir", str(bench.data), "-t", "x:1", str(bench.context)]
    with subprocess.Popen(
        command,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    ) as process:
        try:
            wait_until(lambda: running("sleep", seconds), "the command runs")
            process.send_signal(number)
            assert b"Traceback" not in process.communicate(timeout=PATIENCE)[1]
        finally:
            process.kill()
    wait_until(lambda: not running("sleep", seconds), "the command has ended")
    assert bench.build("FROM busybox\nRUN echo 1 > /x").contents["x"] == b"1\n"


def test_endless_folders_do_no_harm(bench: Bench) -> None:
    deep = "import os\nfor _ in range(2100):\n    os.mkdir('d'); os.chdir('d')\n"
    subprocess.run([shutil.which("python3") or "python3", "-c", deep], cwd=bench.context, check=True)
    with pytest.raises(ClusterError, match=r"Dockerfile:2: COPY: .*(long|File name)"):
        bench.run("FROM scratch\nCOPY d /d")
    remove_tree(bench.context / "d")  # deeper than pytest can remove


def test_odd_names_come_through(bench: Bench) -> None:
    folder = os.fsencode(bench.context / "d")
    os.mkdir(folder)
    for name in (b"\xff\xfe", "ü".encode(), b"new\nline", b"-f", b"x" * 255, b" "):
        with open(os.path.join(folder, name), "wb") as file:
            file.write(b"1")
    made = bench.build("FROM busybox\nCOPY d /d\nRUN ls /d | wc -l > /n\n")
    assert len([name for name in made.layers[1] if name.startswith("d/")]) == 6
    assert int(made.contents["n"]) == 6


def test_a_damaged_base_is_reported(bench: Bench) -> None:
    bench.run("FROM busybox\nRUN echo > /x", "-t", "second:1")
    path = next((bench.data / "images").glob("*made_1.tar"))
    content = bytearray(path.read_bytes())
    at = content.rfind(b"\x1f\x8b") + 40
    content[at : at + 4] = b"\0\0\0\0"
    path.write_bytes(content)
    shutil.rmtree(bench.data / "build")
    with pytest.raises(ClusterError, match=r"Dockerfile:1: FROM: .*(damaged|other content)"):
        bench.run("FROM made:1\nRUN true")


def test_folders_of_any_name_hold_data_and_contexts(bench: Bench, tmp_path: Path) -> None:
    odd = Bench(tmp_path / "da ta,x:y\\z", tmp_path / "con,te:xt", bench.capture)
    odd.context.mkdir()
    odd.put("a", "copied")
    made = odd.build("FROM busybox\nCOPY a /a\nRUN cat /a > /b\n")
    assert made.contents["b"] == b"copied"
