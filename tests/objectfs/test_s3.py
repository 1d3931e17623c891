"""A volume whose objects are in a real S3 server, and one that misbehaves."""

from __future__ import annotations

import http.server
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from pybernetes.objectfs.data.blocks import Blocks
from pybernetes.objectfs.objects.s3 import Credentials, Place, S3Store, signed_headers
from pybernetes.objectfs.objects.store import ObjectMissing, ObjectRefused, ObjectStoreError
from tools import free_port, wait_until

KEYS = Credentials("AKIDEXAMPLE", "secret/key+1")


@pytest.fixture(scope="module")
def s3(tmp_path_factory) -> Iterator[str]:
    """The address of a bucket on `rclone serve s3`."""
    rclone = shutil.which("rclone", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    assert rclone is not None
    folder, port = tmp_path_factory.mktemp("s3"), free_port()
    words = ["serve", "s3", str(folder), "--addr", f"127.0.0.1:{port}", "--config", str(folder / "none")]
    server = subprocess.Popen(
        [rclone, *words, "--auth-key", f"{KEYS.access_key},{KEYS.secret_key}"], stderr=subprocess.DEVNULL
    )
    store = S3Store(f"http://127.0.0.1:{port}/bucket", "", KEYS)

    def answers() -> bool:
        try:
            store.create()
        except ObjectStoreError:
            return False
        return True

    try:
        wait_until(answers, "the S3 server answers")
        yield f"http://127.0.0.1:{port}/bucket"
    finally:
        server.kill()
        server.wait()


def test_the_signature_is_the_one_of_the_published_example():
    """AWS documents this request: GET of /test.txt with a range, 24 May 2013."""
    credentials = Credentials("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")
    place = Place(True, "examplebucket.s3.amazonaws.com", "", "us-east-1")
    empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    headers = signed_headers(credentials, place, "GET", "/test.txt", "", {"range": "bytes=0-9"}, empty, 1369353600)
    assert headers["authorization"].endswith(
        "Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"
    )


def test_objects_on_a_real_server(s3):
    store = S3Store(s3, "volume/", KEYS)
    data = os.urandom(300_000)
    store.put("a b/ü+1", data)
    assert store.get("a b/ü+1") == data
    assert store.get("a b/ü+1", 1000, 10) == data[1000:1010]
    assert store.get("a b/ü+1", 299_990) == data[299_990:]
    for number in range(3):
        store.put(f"many/{number}", b"x" * number)
    assert [(each.key, each.size) for each in store.list("many/")] == [("many/0", 0), ("many/1", 1), ("many/2", 2)]
    store.delete("many/0")
    store.delete("many/0")
    with pytest.raises(ObjectMissing, match="many/0"):
        store.get("many/0")
    with pytest.raises(ObjectRefused, match="403"):
        S3Store(s3, "", Credentials("AKIDEXAMPLE", "wrong")).put("key", b"data")


def test_a_volume_on_s3(mounts, clean, s3, monkeypatch):
    monkeypatch.setenv("ACCESS_KEY", KEYS.access_key)
    monkeypatch.setenv("SECRET_KEY", KEYS.secret_key)
    done = mounts.pyb("format", mounts.meta, "on-s3", "--storage", "s3", "--bucket", s3)
    assert KEYS.secret_key not in done.stdout
    one = mounts.mount("one")
    data = os.urandom(10_000_000)
    (one / "file").write_bytes(data)
    mounts.umount(one)
    two = mounts.mount("two", "--cache-size", "0")
    assert (two / "file").read_bytes() == data
    with (two / "file").open("rb") as file:
        file.seek(5_000_000)
        assert file.read(10) == data[5_000_000:5_000_010]
    clean()
    (two / "file").unlink()
    store = S3Store(s3, "on-s3/", KEYS)
    wait_until(lambda: not list(store.list("chunks/")), "the objects are gone")


class Misbehaving(http.server.BaseHTTPRequestHandler):
    """Fails as the class says: a status, a closed connection, wrong bytes; then behaves."""

    protocol_version = "HTTP/1.1"
    faults: list[str] = []

    def do_GET(self) -> None:
        fault = self.faults.pop(0) if self.faults else ""
        if fault == "close":
            self.close_connection = True
            return
        self.send_response(int(fault) if fault.isdigit() else 200)
        self.send_header("content-length", "4")
        self.send_header("x-amz-meta-crc32", "adf3f363")
        self.end_headers()
        self.wfile.write(b"dat4" if fault == "wrong bytes" else b"data")

    def log_message(self, *_: object) -> None:
        pass


def test_a_refused_key_is_said_in_words_and_not_shown(mounts, s3):
    keys = ["--access-key", KEYS.access_key, "--secret-key", "another"]
    done = mounts.pyb("format", mounts.meta, "volume", "--storage", "minio", "--bucket", s3, *keys, check=False)
    where = s3.removeprefix("http://")
    assert done.returncode == 1
    assert done.stderr == (
        f"pyb objectfs format: HEAD {where}: 403: the object store refuses the access key, the secret key, "
        "or the right to do this\n"
    )


def test_faults_of_a_store_are_tried_again_and_wrong_bytes_never_reach_a_reader():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Misbehaving)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        store = S3Store(f"http://127.0.0.1:{server.server_port}/bucket", "", KEYS)
        blocks = Blocks(store, 4, None, sleep=lambda seconds: None)
        Misbehaving.faults = ["503", "500", "close", "close", "wrong bytes", "429"]
        assert blocks.read(1, 4, 0, 4) == b"data"
        assert Misbehaving.faults == []
        Misbehaving.faults = ["wrong bytes"] * 100
        with pytest.raises(OSError, match="wrong bytes"):
            blocks.read(2, 4, 0, 4)
        assert len(Misbehaving.faults) == 90
        blocks.close()
    finally:
        server.shutdown()
        server.server_close()
