"""What benchmarks share: servers to measure, wrk, results as a table and as JSON."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "bench" / "results"
TOKEN = "bench-token"
OURS = (sys.executable, "-m", "pybernetes", "apiserver")


class Rate(NamedTuple):
    per_second: float
    p50: str
    p99: str
    failed: int


def wrk(url: str, *, seconds: int = 4, connections: int = 32, script: str = "") -> Rate:
    """Load on one URL, from one thread of wrk."""
    if not shutil.which("wrk"):
        raise SystemExit("this benchmark needs wrk: `apt-get install wrk`")
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as file:
        file.write(f'wrk.headers["Authorization"]="Bearer {TOKEN}"\n{script}\n')
        file.flush()
        command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "-s", file.name, "--latency", url]
        text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    bad = re.search(r"Non-2xx or 3xx responses: (\d+)", text)

    def find(pattern: str) -> str:
        found = re.search(pattern, text)
        assert found, text
        return found.group(1)

    return Rate(
        float(find(r"Requests/sec:\s+([\d.]+)")),
        find(r"50%\s+([\d.]+\w+)"),
        find(r"99%\s+([\d.]+\w+)"),
        int(bad.group(1)) if bad else 0,
    )


def sending(method: str, body: Any, content_type: str = "application/json") -> str:
    """A wrk script that sends a body."""
    text = json.dumps(json.dumps(body))
    return f'wrk.method="{method}"; wrk.headers["Content-Type"]="{content_type}"; wrk.body={text}'


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def make_certificate(folder: Path) -> None:
    from pybernetes.apiserver.selfsigned import self_signed

    self_signed(folder, "127.0.0.1")


def make_signing_key(folder: Path) -> None:
    """A key for the tokens of service accounts."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    key = rsa.generate_private_key(65537, 2048)
    form, kind = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    (folder / "sa.key").write_bytes(key.private_bytes(form, kind, serialization.NoEncryption()))


def wait_for_port(port: int, seconds: float = 10.0) -> None:
    deadline = time.monotonic() + seconds
    while True:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 0.2):
            return
        if time.monotonic() > deadline:
            raise SystemExit(f"nothing listens on port {port}")
        time.sleep(0.005)


class Server:
    """An API server that runs for a benchmark: ours, or another `program` that takes the same flags."""

    def __init__(self, folder: Path, store: str, *flags: str, program: Sequence[str] = OURS) -> None:
        self.port = free_port()
        self.url = f"https://127.0.0.1:{self.port}"
        (folder / "tokens.csv").write_text(f"{TOKEN},admin,admin,system:masters\n")
        make_certificate(folder)
        self._tls = ssl._create_unverified_context()
        self.flags = [
            *(f"--secure-port={self.port}", "--bind-address=127.0.0.1"),
            *(f"--tls-cert-file={folder}/apiserver.crt", f"--tls-private-key-file={folder}/apiserver.key"),
            *(f"--token-auth-file={folder}/tokens.csv", f"--etcd-servers={store}", *flags),
        ]
        started = time.perf_counter()
        log = (folder / "apiserver.log").open("ab") if program is not OURS else None
        self.process = subprocess.Popen([*program, *self.flags], stdout=log, stderr=log)
        self.ready_after = self._wait(started)

    def _wait(self, started: float) -> float:
        while True:
            if self.process.poll() is not None:
                raise SystemExit("the API server ended while it started")
            with contextlib.suppress(OSError):  # HTTPError is one: not ready yet
                if self.call("GET", "/readyz") == b"ok":
                    return time.perf_counter() - started
            time.sleep(0.002)

    def call(self, method: str, path: str, body: Any = None) -> bytes:
        headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
        data = json.dumps(body).encode() if body is not None else None
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        with urllib.request.urlopen(request, context=self._tls) as response:
            answer: bytes = response.read()
            return answer

    def resident_mib(self) -> float:
        return resident_mib(self.process.pid)

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(30)


def resident_mib(pid: int) -> float:
    """The memory of a process, in MiB as all memory here."""
    found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    assert found
    return int(found.group(1)) / 1024


@contextlib.contextmanager
def etcd(folder: Path, program: str = "etcd") -> Iterator[str]:
    """A real etcd on the loopback; its URL."""
    if not shutil.which(program):
        raise SystemExit(f"this benchmark needs {program}: `apt-get install etcd-server`")
    client, peer = free_port(), free_port()
    url = f"http://127.0.0.1:{client}"
    command = [
        *(program, "--data-dir", str(folder / "etcd"), "--log-level", "error"),
        *("--listen-client-urls", url, "--advertise-client-urls", url),
        *("--listen-peer-urls", f"http://127.0.0.1:{peer}"),
        *("--initial-advertise-peer-urls", f"http://127.0.0.1:{peer}"),
        *("--initial-cluster", f"default=http://127.0.0.1:{peer}"),
    ]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_for_port(client)
        yield url
    finally:
        process.terminate()
        process.wait(20)


def shown(value: float) -> str:
    """A figure with the digits that matter."""
    return f"{value:,.0f}" if value >= 100 else f"{value:,.3f}" if value < 10 else f"{value:,.1f}"


class Report:
    """Rows that are printed as they come and appended to results/NAME.jsonl at the end."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.rows: dict[str, Any] = {}

    def row(self, title: str, value: float, unit: str, note: str = "") -> None:
        self.rows[title] = value
        print(f"{title:44} {shown(value):>10} {unit:6} {note}".rstrip(), flush=True)

    def save(self) -> None:
        RESULTS.mkdir(parents=True, exist_ok=True)
        commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True).stdout.strip()
        line = {"time": time.strftime("%FT%TZ", time.gmtime()), "commit": commit, "cpus": os.cpu_count(), **self.rows}
        with (RESULTS / f"{self.name}.jsonl").open("a") as file:
            file.write(json.dumps(line) + "\n")
