"""What a client shows and hides: log lines, metrics, access log, statistics, secrets, mount(8)."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
import urllib.request
from pathlib import Path

from objectfs.databases import running

from pybernetes.objectfs.fuse import mount_point
from pybernetes.objectfs.secrets import secrets_in
from tools import free_port, wait_until


def test_log_lines_metrics_access_log_and_statistics(mounts):
    mounts.format()
    port, log = free_port(), mounts.folder / "access.log"
    one = mounts.mount("one", "--metrics", f"127.0.0.1:{port}", "--access-log", str(log), "-o", "allow_other,noatime")
    (one / "file").write_bytes(b"x" * 100_000)
    assert not (one / "none").exists()
    text = (mounts.folder / "one.log").read_text()
    uuid = mounts.status()["setting"]["uuid"]
    cache = mounts.folder / "cache" / uuid
    expected = [
        rf"Meta address: {mounts.meta}", rf"Data use file://{mounts.folder}/bucket/",
        rf"Disk cache \({cache}/\): capacity \(10240 MB\), free ratio \(10%\), max pending pages \(15\)",
        r"Create session \d+", rf"Prometheus metrics listening on 127.0.0.1:{port}",
        rf"OK, volume is ready at {one}",
    ]  # fmt: skip
    for line in expected:
        assert re.search(line, text), line
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
        found = answer.read().decode()
    assert 'objectfs_fuse_ops_durations_seconds_count{vol_name="volume",method="create"} 1\n' in found
    assert 'objectfs_fuse_written_bytes{vol_name="volume"} 100000\n' in found
    assert 'objectfs_fuse_ops_errors{vol_name="volume",method="lookup"}' in found
    assert 'objectfs_used_inodes{vol_name="volume"} 2\n' in found
    lines = log.read_text()
    assert re.search(rf"\[uid:0,gid:0,pid:{os.getpid()}\] create \(1\): OK <0\.\d+>", lines)
    assert re.search(r"lookup \(1\): No such file or directory <", lines)
    shown = mounts.pyb("stats", str(one), "--count", "1", "--interval", "0.05").stdout
    assert len(shown.splitlines()) == 2
    assert "files, 100000 bytes read" in mounts.pyb("warmup", str(one)).stdout
    assert "stat file" in mounts.pyb("bench", "--big-file-size", "1", str(one), "--small-file-count", "3").stdout
    with open("/proc/mounts") as file:
        assert f"OBJECTFS:volume {one} fuse.objectfs rw,nosuid,nodev,noatime" in file.read()


def test_secrets_are_in_no_process_list_and_no_log(mounts):
    """Everything that any process of ours shows in /proc while it works, and everything that was logged."""
    with running("postgres") as database:
        mounts.meta = database.fresh()
        seen: list[bytes] = []
        stop = threading.Event()

        def watch() -> None:
            while not stop.is_set():
                for path in Path("/proc").glob("[0-9]*/cmdline"):
                    try:
                        line = path.read_bytes()
                    except OSError:
                        continue
                    if b"objectfs" in line and path.parent.name != str(os.getpid()):
                        seen.append(line)
                stop.wait(0.02)

        password = "s3cr3t-pa55"
        with_password = ["format", mounts.meta, "volume", "--bucket", str(mounts.folder / "bucket")]
        os.environ["SECRET_KEY"] = password
        try:
            made = mounts.pyb(*with_password)
        finally:
            del os.environ["SECRET_KEY"]
        assert password not in made.stdout + made.stderr
        place = mounts.mount("one")
        watcher = threading.Thread(target=watch)
        watcher.start()
        (place / "file").write_text("x")
        wait_until(lambda: len(seen) > 10, "processes were seen")
        stop.set()
        watcher.join()
        assert any(b"mount" in each and b"****" in each for each in seen), "the mount's own arguments are masked"
        assert not any(b"secret@" in each for each in seen)
        text = (mounts.folder / "one.log").read_text()
        assert "postgres:****@" in text
        assert "secret@" not in text
        mounts.umount(place)


def test_where_secrets_are_in_a_command_line():
    words = [
        "format",
        "redis://u:pw@h",
        "--secret-key",
        "one",
        "--access-key=two",
        "sqlite://f",
        "--bucket",
        "http://h",
    ]
    assert secrets_in(words) == ["pw", "one", "two"]


def test_mount_8_calls_the_helper_with_its_words(mounts):
    mounts.format()
    place = mounts.folder / "fstab"
    place.mkdir()
    code = "import sys; from pybernetes.objectfs.command import mount_helper; sys.exit(mount_helper())"
    words = [sys.executable, "-P", "-c", code, mounts.meta, str(place), "-s", "-n"]
    options = f"rw,noatime,_netdev,enable-xattr,no-bgjob,cache-size=100,cache-dir={mounts.folder}/cache,metrics=none"
    environment = {**os.environ, "TMPDIR": str(mounts.folder)}
    log = f"log={mounts.folder}/fstab.log"
    done = subprocess.run(
        [*words, "-o", f"{options},{log}"], env=environment, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    try:
        assert mount_point.mounted(str(place)) == ("OBJECTFS:volume", "fuse.objectfs")
        os.setxattr(place, "user.x", b"y")
        assert "capacity (100 MB)" in (mounts.folder / "fstab.log").read_text()
        again = subprocess.run([*words, "-o", options], capture_output=True, text=True, timeout=60)
        assert again.returncode == 1
        assert "something is mounted" in again.stderr
    finally:
        mounts.pyb("umount", str(place))
    wait_until(lambda: "objectfs" not in Path("/proc/mounts").read_text().split(str(place))[0][-20:], "unmounted")
