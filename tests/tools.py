"""What tests of several packages need: the real kubectl, free ports, an API server of their own, waiting for things.

Plain functions and classes; `conftest.py` makes fixtures of them.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from pybernetes.cluster import addresses, certificates, kubeconfig
from pybernetes.cluster.readiness import Probe

T = TypeVar("T")

ROOT = Path(__file__).resolve().parents[1]
PYTHON = [sys.executable, "-P", "-m", "pybernetes"]
# A wait ends when its condition holds; this is for when it never will. A process starts with half a second of
# a processor's time, and beside a dozen others that want it too that takes long.
PATIENCE = 60.0


def kubectl() -> str:
    """Debian's kubectl: $PYB_TEST_KUBECTL, else the one `./pyb test` unpacked."""
    path = os.environ.get("PYB_TEST_KUBECTL") or str(ROOT / ".cache/kubectl-debian/usr/bin/kubectl")
    assert os.access(path, os.X_OK), f"no kubectl at {path}: `./pyb test` fetches it, or set PYB_TEST_KUBECTL"
    return path


def free_port(address: str = addresses.LOOPBACK) -> int:
    """A TCP port that was free a moment ago, and that no connection will have in the next."""
    return addresses.free_port(address)


def wait_until(condition: Callable[[], T | None], what: str, timeout: float = PATIENCE, every: float = 0.01) -> T:
    """Waits until the condition is true and answers its value."""
    deadline = time.monotonic() + timeout
    while not (value := condition()):
        assert time.monotonic() < deadline, f"{what}: not within {timeout} s"
        time.sleep(every)
    return value


@dataclass(frozen=True)
class ApiServer:
    """A running API server with an empty store; `token` and the kubeconfig's user may do everything."""

    url: str
    token: str
    ca_file: Path
    kubeconfig: Path
    pid: int
    folder: Path


@contextlib.contextmanager
def api_server(folder: Path, *flags: str, store: str = "memory://", accounts: bool = False) -> Iterator[ApiServer]:
    """Starts `pyb apiserver` on a free port with a PKI of its own in the folder, and stops it at the end.

    `store` is the value of --etcd-servers; more flags may follow. What it logs is in `folder/apiserver.log`.
    Pods need no service `accounts` unless requested, because no controller makes them.
    """
    pki = folder / "pki"
    pki.mkdir(parents=True, exist_ok=True)
    certificates.ensure(pki, ["10.96.0.1"])
    token = secrets.token_hex(16)
    (folder / "tokens.csv").write_text(f"{token},kubernetes-admin,kubernetes-admin,system:masters\n")
    port = free_port()
    url = f"https://127.0.0.1:{port}"
    kubeconfig.write(folder / "kubeconfig", kubeconfig.document("test", url, pki))
    command = [
        *PYTHON,
        "apiserver",
        f"--secure-port={port}",
        "--bind-address=127.0.0.1",
        f"--tls-cert-file={pki}/apiserver.crt",
        f"--tls-private-key-file={pki}/apiserver.key",
        f"--client-ca-file={pki}/ca.crt",
        f"--token-auth-file={folder}/tokens.csv",
        f"--etcd-servers={store}",
        "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
        f"--service-account-key-file={pki}/sa.pub",
        f"--service-account-signing-key-file={pki}/sa.key",
        "--service-cluster-ip-range=10.96.0.0/12",
        "--allow-privileged=true",
        *(() if accounts else ("--disable-admission-plugins=ServiceAccount",)),
        *flags,
    ]
    log = folder / "apiserver.log"
    with open(log, "ab") as output:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
    try:
        ready = Probe("127.0.0.1", port, pki)

        def ready_or_dead() -> bool:
            assert process.poll() is None, f"the API server ended while starting:\n{log.read_text()}"
            return ready()

        wait_until(ready_or_dead, f"the API server is ready ({log})")
        yield ApiServer(url, token, pki / "ca.crt", folder / "kubeconfig", process.pid, folder)
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
