"""API servers that can be killed and started again, and clients for what happens to them.

A `Server` keeps its port, token and folder over restarts; `Session` is one connection that stays open.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import signal
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pybernetes.cluster.readiness import Probe
from tools import PYTHON, free_port, wait_until

TOKEN = "robust"
LIMITED = "limited"
"""The token of a user whom limits apply to; administrators are exempt from some."""

# The command with other timeouts than upstream's, so that tests need not wait for minutes.
IMPATIENT = """
import sys
from pybernetes.apiserver import memory
from pybernetes.apiserver.command import main
from pybernetes.net.http import Timeouts
memory.INTERVAL = 1.0
sys.exit(main(sys.argv[2:], Timeouts(**eval(sys.argv[1]))))
"""


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Server:
    """One `pyb apiserver`, again and again."""

    def __init__(
        self, folder: Path, pki: Path, store: str, *flags: str, timeouts: dict[str, float] | None = None
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.pki = pki
        self.port = free_port()
        self.log = folder / "apiserver.log"
        self.log.touch()
        (folder / "tokens.csv").write_text(
            f"{TOKEN},kubernetes-admin,kubernetes-admin,system:masters\n{LIMITED},limited,limited\n"
        )
        command = [*PYTHON, "apiserver"]
        if timeouts:
            command = [sys.executable, "-P", "-c", IMPATIENT, repr(timeouts)]
        self.command = [
            *command,
            f"--secure-port={self.port}",
            "--bind-address=127.0.0.1",
            f"--tls-cert-file={pki}/apiserver.crt",
            f"--tls-private-key-file={pki}/apiserver.key",
            f"--client-ca-file={pki}/ca.crt",
            f"--token-auth-file={folder}/tokens.csv",
            f"--etcd-servers={store}",
            "--service-cluster-ip-range=10.96.0.0/16",
            "--disable-admission-plugins=ServiceAccount",  # there is no controller that makes the accounts
            *flags,
        ]
        self.process: subprocess.Popen[bytes] | None = None
        self._ready = Probe("127.0.0.1", self.port, pki)
        self.context = ssl.create_default_context(cafile=str(pki / "ca.crt"))

    def spawn(self, **more: Any) -> None:
        """Start the process and do not wait for it."""
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, **more)

    def start(self) -> None:
        self.spawn()
        self.wait()

    def wait(self) -> None:
        """Until it is ready."""

        def ready_or_dead() -> bool:
            assert self.process is not None
            assert self.process.poll() is None, f"it ended while starting:\n{self.log.read_text()}"
            return self._ready()

        wait_until(ready_or_dead, f"the API server is ready ({self.log})")

    def kill(self) -> None:
        """With SIGKILL."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def terminate(self, timeout: float = 30.0) -> int:
        """With SIGTERM; the exit code."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout)

    def run_to_end(self, timeout: float = 30.0, **more: Any) -> tuple[int, str]:
        """Start it where it cannot live: its exit code and what it said."""
        ran = subprocess.run(
            self.command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout, **more
        )
        return ran.returncode, ran.stdout + ran.stderr

    def check_log(self) -> None:
        """No trace of a fault in the log."""
        text = self.log.read_text()
        assert "Traceback" not in text, text
        assert "never retrieved" not in text, text

    def session(self, token: str = TOKEN, timeout: float = 30.0) -> Session:
        return Session(self, token, timeout)

    def connect(self, timeout: float = 30.0) -> ssl.SSLSocket:
        """A TLS connection without a client on it."""
        plain = socket.create_connection(("127.0.0.1", self.port), timeout)
        try:
            return self.context.wrap_socket(plain, server_hostname="127.0.0.1")
        except BaseException:
            plain.close()
            raise

    def request(self, method: str, path: str, body: Any = None, token: str = TOKEN, **headers: str) -> Answer:
        """One request on a connection of its own."""
        with self.session(token) as session:
            return session(method, path, body, **headers)

    def metric(self, name: str, **labels: str) -> float:
        """The sum of a metric's series with these labels; 0 if there are none."""
        total = 0.0
        for line in self.request("GET", "/metrics").body.decode().splitlines():
            if re.match(rf"{name}[ {{]", line) and all(f'{key}="{value}"' in line for key, value in labels.items()):
                total += float(line.rsplit(" ", 1)[1])
        return total

    def cpu_seconds(self) -> float:
        """What it has used of a processor's time."""
        assert self.process is not None
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(") ")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def memory(self) -> int:
        """Resident bytes."""
        assert self.process is not None
        return int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class Session:
    """One connection, requests one after another; a context manager."""

    def __init__(self, server: Server, token: str, timeout: float) -> None:
        self.connection = http.client.HTTPSConnection("127.0.0.1", server.port, context=server.context, timeout=timeout)
        self._token = token

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.close()

    def send(self, method: str, path: str, body: Any = None, **headers: str) -> http.client.HTTPResponse:
        """The answer with its body unread."""
        raw = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        fields = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"}
        fields |= {name.replace("_", "-"): value for name, value in headers.items()}
        self.connection.request(method, path, raw, fields)
        return self.connection.getresponse()

    def __call__(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        response = self.send(method, path, body, **headers)
        return Answer(response.status, dict(response.headers.items()), response.read())

    def events(self, path: str) -> Iterator[dict[str, Any]]:
        """Begin a watch; its events, until the server ends it. Raises when the stream is cut instead of ended."""
        response = self.send("GET", path)
        assert response.status == 200, response.read()

        def lines() -> Iterator[dict[str, Any]]:
            while line := response.readline():
                yield json.loads(line)
            # Reading lines hides a stream that stops before its last chunk.
            if response.chunk_left is not None or not response.isclosed():
                raise ConnectionResetError("the watch was cut")

        return lines()


CONFIGMAPS = "/api/v1/namespaces/default/configmaps"


@contextlib.contextmanager
def running(server: Server) -> Iterator[Server]:
    """Starts it, stops it at the end, and looks into its log."""
    server.start()
    try:
        yield server
        server.check_log()
    finally:
        server.kill()
