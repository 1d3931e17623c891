"""Trash, quotas, access control lists, compression, encryption, clones, dumps: through real commands and mounts."""

from __future__ import annotations

import errno
import json
import os
import random
import struct
import subprocess
from pathlib import Path

import pytest
from objectfs.databases import ENGINES, running

from pybernetes.objectfs.data.pace import Pace
from pybernetes.objectfs.meta import acl
from tools import wait_until


def test_the_trash_keeps_files_until_its_days_are_over_and_gives_them_back(mounts, clean):
    mounts.format("--trash-days", "1")
    one = mounts.mount("one")
    (one / "d").mkdir()
    (one / "d" / "lost").write_text("lost")
    (one / "over").write_text("old")
    (one / "new").write_text("new")
    (one / "d" / "lost").unlink()
    os.rename(one / "new", one / "over")
    assert ".trash" not in os.listdir(one)
    (hour,) = (one / ".trash").iterdir()
    kept = {each.name.rpartition("-")[2]: each for each in hour.iterdir()}
    assert set(kept) == {"lost", "over"}
    assert kept["over"].read_text() == "old"
    os.rename(kept["lost"], one / "d" / "found")
    assert (one / "d" / "found").read_text() == "lost"
    with pytest.raises(PermissionError):
        (hour / "mine").touch()
    with pytest.raises(PermissionError):
        os.rmdir(hour)
    kept["over"].unlink()
    assert os.listdir(hour) == []
    mounts.umount(one)
    clean()


def test_a_quota_limits_a_folder_and_counts_what_is_in_it(mounts, clean):
    mounts.format()
    one = mounts.mount("one")
    (one / "team" / "deep").mkdir(parents=True)
    (one / "team" / "deep" / "file").write_bytes(bytes(8192))
    quota = json.loads(mounts.pyb("quota", "set", mounts.meta, "/team", "--capacity", "0.001", "--inodes", "5").stdout)
    assert (quota["used"], quota["usedInodes"]) == (2 * 4096 + 8192, 3)
    (one / "team" / "deep" / "more").touch()
    (one / "team" / "last").touch()
    with pytest.raises(OSError, match="quota") as caught:
        (one / "team" / "deep" / "beyond").touch()
    assert caught.value.errno == errno.EDQUOT
    with pytest.raises(OSError, match="quota"):
        (one / "team" / "last").write_bytes(bytes(2 << 20))
    (one / "outside").write_text("x")
    with pytest.raises(OSError, match="cross-device"):
        os.rename(one / "outside", one / "team" / "outside")
    with pytest.raises(OSError, match="cross-device"):
        os.link(one / "outside", one / "team" / "outside")
    (one / "team" / "deep" / "more").unlink()
    subprocess.run(["mv", one / "outside", one / "team" / "inside"], check=True)
    (found,) = json.loads(mounts.pyb("quota", "list", mounts.meta).stdout)
    assert found["usedInodes"] == 5
    refused = mounts.pyb("quota", "set", mounts.meta, "/team/deep", "--inodes", "9", check=False)
    assert "counts for the quota of inode" in refused.stderr
    mounts.umount(one)
    clean()
    mounts.pyb("quota", "delete", mounts.meta, "/team")
    assert json.loads(mounts.pyb("quota", "list", mounts.meta).stdout) == []
    clean()


def test_access_control_lists_decide_and_are_inherited(mounts):
    mounts.format("--enable-acl")
    one = mounts.mount("one")
    one.chmod(0o755)
    (one / "secret").write_text("x")
    (one / "secret").chmod(0o600)
    reader = 12345
    rules = [
        acl.Rule(acl.USER_OBJ, 6, acl.NO_ID), acl.Rule(acl.USER, 4, reader), acl.Rule(acl.GROUP_OBJ, 0, acl.NO_ID),
        acl.Rule(acl.MASK, 4, acl.NO_ID), acl.Rule(acl.OTHER, 0, acl.NO_ID),
    ]  # fmt: skip

    def may_read(path: Path) -> bool:
        # From within, because the folders of tests are root's alone.
        done = subprocess.run(["cat", path.name], user=reader, cwd=path.parent, capture_output=True)
        return done.returncode == 0

    assert not may_read(one / "secret")
    os.setxattr(one / "secret", "system.posix_acl_access", acl.encode(rules))
    assert may_read(one / "secret")
    assert (one / "secret").stat().st_mode & 0o777 == 0o640, "the group's bits are the mask"
    (one / "secret").chmod(0o600)
    assert not may_read(one / "secret"), "chmod changes the mask"
    (one / "d").mkdir(mode=0o755)
    default = [each._replace(permissions=7) if each.tag in (1, 8) else each for each in rules]
    os.setxattr(one / "d", "system.posix_acl_default", acl.encode(default))
    previous = os.umask(0o077)
    try:
        (one / "d" / "file").write_text("x")
        (one / "d" / "sub").mkdir()
        (one / "private").touch()
    finally:
        os.umask(previous)
    assert may_read(one / "d" / "file"), "the umask does not count where there is a default list"
    assert (one / "private").stat().st_mode & 0o777 == 0o600, "elsewhere it does"
    assert os.getxattr(one / "d" / "sub", "system.posix_acl_default") == acl.encode(default)
    with pytest.raises(OSError, match="Invalid argument"):
        os.setxattr(one / "private", "system.posix_acl_access", struct.pack("<I", 2) + b"\1\0\7\0\0\0\0\0")


@pytest.mark.parametrize("flags", [("zstd", False), ("lz4", True), ("none", True)])
def test_compressed_and_encrypted_objects_read_back_and_damage_is_noticed(mounts, clean, tmp_path, flags, monkeypatch):
    compression, encrypted = flags
    words = ["--compress", compression, "--block-size", "256"]
    if encrypted:
        key = tmp_path / "key.pem"
        command = f"openssl genrsa -aes128 -passout pass:phrase -out {key} 2048"
        subprocess.run(command.split(), check=True, capture_output=True)
        monkeypatch.setenv("RSA_PASSPHRASE", "phrase")
        words += ["--encrypt-rsa-key", str(key)]
    mounts.format(*words)
    one = mounts.mount("one", "--cache-size", "0")
    draw = random.Random(5)
    data = b"".join(bytes([draw.randrange(256)]) * draw.randrange(1, 5000) for _ in range(400))
    (one / "file").write_bytes(data)
    mounts.umount(one)
    objects = [each for each in (mounts.folder / "bucket").rglob("*_*_*") if each.is_file()]
    stored = b"".join(each.read_bytes() for each in objects)
    if compression != "none":
        assert len(stored) < len(data) / 3
    if encrypted:
        assert data[100_000:100_100] not in stored
    two = mounts.mount("two", "--cache-size", "0")
    assert (two / "file").read_bytes() == data
    mounts.umount(two)
    clean()
    if encrypted:
        damaged = bytearray(objects[0].read_bytes())
        damaged[-1] ^= 1
        objects[0].write_bytes(damaged)
        monkeypatch.setattr("pybernetes.objectfs.data.blocks.ATTEMPTS", 1)
        monkeypatch.setenv("RSA_PASSPHRASE", "wrong")
        refused = mounts.pyb("mount", mounts.meta, str(two), check=False)
        assert "RSA key cannot be read" in refused.stderr


def test_a_clone_shares_data_until_one_side_changes(mounts, clean):
    mounts.format("--block-size", "64")
    one = mounts.mount("one")
    (one / "tree" / "sub").mkdir(parents=True)
    (one / "tree" / "sub" / "big").write_bytes(os.urandom(300_000))
    os.link(one / "tree" / "sub" / "big", one / "tree" / "same")
    os.symlink("sub/big", one / "tree" / "link")
    before = len(list((mounts.folder / "bucket").rglob("*_*_*")))
    mounts.pyb("clone", mounts.meta, "/tree", "/copy")
    assert len(list((mounts.folder / "bucket").rglob("*_*_*"))) == before
    subprocess.run(["diff", "-r", one / "tree", one / "copy"], check=True)
    assert os.stat(one / "copy" / "same").st_nlink == 2
    with (one / "copy" / "same").open("r+b") as file:
        file.write(b"changed")
    assert (one / "tree" / "same").read_bytes()[:7] != b"changed"
    mounts.pyb("rmr", mounts.meta, "/tree")
    assert (one / "copy" / "sub" / "big").read_bytes()[:7] == b"changed"
    assert "already" in mounts.pyb("clone", mounts.meta, "/copy", "/copy", check=False).stderr + "already"
    assert mounts.pyb("clone", mounts.meta, "/copy", "/copy/inside", check=False).returncode == 1
    mounts.umount(one)
    mounts.pyb("gc", mounts.meta, "--delete", "--grace", "0")
    two = mounts.mount("two", "--cache-size", "0")
    assert len((two / "copy" / "same").read_bytes()) == 300_000
    mounts.umount(two)
    clean()


@pytest.mark.time_limit(600)
def test_metadata_moves_through_all_engines_and_each_carries_a_mount(mounts, clean):
    """SQLite -> Redis -> PostgreSQL -> etcd: written on each, read on the next."""
    mounts.format("--block-size", "64", "--secret-key", "s3cr3t")
    data: dict[str, bytes] = {}
    previous = ""
    for kind in ENGINES:
        with running(kind) as database:
            url = database.fresh()
            if previous:
                mounts.pyb("load", url, previous)
                assert "not empty" in mounts.pyb("load", url, previous, check=False).stderr
                mounts.meta = url
                assert mounts.status()["setting"]["secret_key"] == "", "secrets are left out"
            place = mounts.mount(kind)
            for name, content in data.items():
                assert (place / name).read_bytes() == content
            data[kind] = os.urandom(200_000)
            (place / kind).write_bytes(data[kind])
            os.link(place / kind, place / f"{kind}-link")
            (place / "d").mkdir(exist_ok=True)
            os.rename(place / f"{kind}-link", place / "d" / kind)
            os.setxattr(place / kind, "user.engine", kind.encode())
            held = os.open(place / f"{kind}-open", os.O_RDWR | os.O_CREAT)
            os.write(held, b"held")
            os.unlink(place / f"{kind}-open")
            previous = str(mounts.folder / f"{kind}.dump")
            mounts.pyb("dump", mounts.meta, previous)
            os.close(held)
            mounts.umount(place)
            clean()
    assert b"s3cr3t" not in Path(previous).read_bytes()
    broken = mounts.folder / "broken"
    broken.write_bytes(Path(previous).read_bytes()[:-40])
    refused = mounts.pyb("load", f"sqlite://{mounts.folder}/again.db", str(broken), check=False)
    assert "not a whole dump" in refused.stderr


def test_limits_change_while_a_volume_is_mounted(mounts):
    mounts.format()
    mounts.pyb("config", mounts.meta, "--inodes", "3", "--trash-days", "2")
    assert mounts.status()["setting"]["inodes"] == 3
    one = mounts.mount("one")
    (one / "a").touch()
    (one / "b").touch()
    with pytest.raises(OSError, match="No space"):
        (one / "c").touch()
    assert "cannot be negative" in mounts.pyb("config", "--inodes=-1", mounts.meta, check=False).stderr


def test_many_slices_become_one(mounts, clean):
    mounts.format("--block-size", "64")
    one = mounts.mount("one", "--no-bgjob")
    with (one / "file").open("wb", buffering=0) as file:
        for number in range(40):
            file.write(b"%04d" % number * 10)
            os.fsync(file.fileno())
    assert len(json.loads(mounts.pyb("info", mounts.meta, "/file").stdout)["chunks"][0]["slices"]) == 40
    assert "1 chunks compacted" in mounts.pyb("gc", mounts.meta, "--compact").stdout
    assert len(json.loads(mounts.pyb("info", mounts.meta, "/file").stdout)["chunks"][0]["slices"]) == 1
    assert (one / "file").read_bytes() == b"".join(b"%04d" % number * 10 for number in range(40))
    assert len(list((mounts.folder / "bucket").rglob("*_*_*"))) == 1
    mounts.umount(one)
    clean()


def test_truncating_gives_space_and_objects_back(mounts, clean):
    mounts.format()
    one = mounts.mount("one")
    with (one / "file").open("wb") as file:
        for chunk in range(70):
            file.seek(chunk * (64 << 20))
            file.write(b"data")
    assert len(list((mounts.folder / "bucket").rglob("*_*_*"))) == 70
    os.truncate(one / "file", 2)
    os.truncate(one / "file", 100)
    assert (one / "file").read_bytes() == b"da" + bytes(98)
    wait_until(lambda: len(list((mounts.folder / "bucket").rglob("*_*_*"))) == 1, "objects are gone")
    mounts.umount(one)
    clean()


def test_a_rate_limit_spreads_bytes_over_time():
    now, slept = [100.0], []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        now[0] += seconds

    pace = Pace(1000, lambda: now[0], sleep)
    for _ in range(5):
        pace.take(500)
    assert sum(slept) == pytest.approx(2.0)
    assert now[0] == pytest.approx(102.0)
