"""Test clusters as Python objects: `with Cluster(nodes=3) as cluster: ...`.

A `Host` is one process that has the control plane imported; it forks a template for each set of options, and the
template a cluster for each test (`process.py`). Clusters with containers are those of `pyb up` (`real.py`).
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from pybernetes.testing import channel
from pybernetes.testing.options import ClusterOptions, parse

if TYPE_CHECKING:
    from pybernetes.testing.client import Client
    from pybernetes.testing.faults import Faults
    from pybernetes.testing.real import RealCluster

ANSWER_WITHIN = 90.0
"""Seconds for a cluster to start; most of it for a machine that is busy."""
ADVANCE_COST = 0.05
"""Seconds that a second of a cluster's time may take: a hundred times what a quiet one needs."""
LOG_LINES = 15
STATE = "/debug/state"
"""Where the API server has all that is stored."""


class ClusterFailed(Exception):
    """The cluster did not get ready, or ended; the message ends with what it logged last."""


class Host:
    """The process that all simulated clusters of this process are forks of. Started when the first one is needed."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="pyb-test-"))
        """For the files of all clusters."""
        self.owner = os.getpid()
        self._process: subprocess.Popen[bytes] | None = None
        self._channel: socket.socket
        self._templates: dict[bytes, Frozen] = {}
        self._count = 0
        atexit.register(self.close)

    def cluster(self, options: ClusterOptions) -> Running:
        """A new cluster, ready. ClusterFailed."""
        return self._template(options).thaw(self._log(), autojump=options.autojump)

    def close(self) -> None:
        """End all clusters, and remove their files."""
        if os.getpid() != self.owner:  # a fork of the process that owns it
            return
        atexit.unregister(self.close)
        for template in self._templates.values():
            template.close()
        self._templates.clear()
        if self._process:
            self._channel.close()
            self._process.wait()
            self._process = None
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def pki(self) -> Path:
        """Where the keys and certificates of all clusters are."""
        return self.folder / "pki"

    def _log(self) -> Path:
        self._count += 1
        return self.folder / f"cluster-{self._count}.log"

    def _template(self, options: ClusterOptions) -> Frozen:
        key = msgspec.json.encode(msgspec.structs.replace(options, manifests=(), snapshot="", autojump=False))
        if key not in self._templates:
            self._start()
            ours, theirs = channel.pair()
            self._count += 1  # one that did not start leaves its log behind
            folder = self.folder / f"template-{self._count}"
            folder.mkdir()
            log = folder / "log"
            message = {"options": msgspec.json.decode(key), "folder": str(folder), "log": str(log)}
            with theirs:
                channel.send(self._channel, message, [theirs.fileno()])
            _answer(ours, log)
            self._templates[key] = Frozen(self, ours)
        return self._templates[key]

    def _start(self) -> None:
        if self._process and self._process.poll() is None:
            return
        from pybernetes.cluster import certificates

        self.pki.mkdir(exist_ok=True)
        certificates.ensure(self.pki, ["10.96.0.1"])
        ours, theirs = channel.pair()
        with theirs, open(self.folder / "host.log", "ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "pybernetes.testing.process", str(theirs.fileno()), str(self.pki)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        self._channel = ours


class Frozen:
    """A cluster that stands still, and from which any number of running ones can be made."""

    def __init__(self, host: Host, end: socket.socket) -> None:
        self._host = host
        self._channel = end

    def thaw(self, log: Path, *, autojump: bool = False) -> Running:
        """A running copy. ClusterFailed."""
        ours, theirs = channel.pair()
        with theirs:
            try:
                message = {"verb": "thaw", "log": str(log), "autojump": autojump}
                channel.send(self._channel, message, [theirs.fileno()])
            except OSError as error:
                raise ClusterFailed(f"the process of the cluster has ended: {error}") from None
        answer = _answer(ours, log)
        return Running(self._host, ours, log, answer["port"], answer["pid"])

    def close(self) -> None:
        """Give it up."""
        self._channel.close()


class Running:
    """A running cluster with simulated nodes, in a process of its own."""

    def __init__(self, host: Host, end: socket.socket, log: Path, port: int, pid: int) -> None:
        self._host = host
        self._channel = end
        self.log = log
        self.pid = pid
        self.server = f"https://127.0.0.1:{port}"

    def ask(self, verb: str, descriptor: int | None = None, **arguments: Any) -> dict[str, Any]:
        """Ask the process for something; its answer. ClusterFailed."""
        try:
            channel.send(self._channel, {"verb": verb, **arguments}, [] if descriptor is None else [descriptor])
        except OSError:
            raise ClusterFailed(f"the cluster has ended{_tail(self.log)}") from None
        within = ANSWER_WITHIN + float(arguments.get("seconds", 0.0)) * ADVANCE_COST
        return _answer(self._channel, self.log, within)

    def snapshot(self) -> Frozen:
        """The cluster as it is now."""
        ours, theirs = channel.pair()
        with theirs:
            self.ask("snapshot", theirs.fileno())
        return Frozen(self._host, ours)

    def stop(self) -> None:
        """End it at once; what it had is gone."""
        with contextlib.suppress(OSError):
            self._channel.settimeout(ANSWER_WITHIN)
            self._channel.shutdown(socket.SHUT_WR)
            self._channel.recv(1)  # until its process is gone
        self._channel.close()


_host: Host | None = None


def host() -> Host:
    """The host of this process."""
    global _host
    if _host is None or _host.owner != os.getpid():
        _host = Host()
    return _host


def _answer(end: socket.socket, log: Path, within: float = ANSWER_WITHIN) -> dict[str, Any]:
    end.settimeout(within)
    try:
        answer, _ = channel.receive(end)
    except TimeoutError:
        raise ClusterFailed(f"the cluster has not answered for {within:.0f} s{_tail(log)}") from None
    except OSError:
        answer = None
    if answer is None:
        raise ClusterFailed(f"the process of the cluster has ended{_tail(log)}")
    if "error" in answer:
        raise ClusterFailed(f"{answer['error']}{_tail(log)}")
    return answer


def _tail(log: Path) -> str:
    try:
        lines = log.read_text(errors="replace").splitlines()
    except OSError:
        lines = []
    lines = [each for each in lines if not each.startswith(("usage: ", " " * 8))]  # of argparse
    return "".join(f"\n    {line}" for line in lines[-LOG_LINES:])


class Cluster:
    """A Kubernetes cluster for a test. Use it as a context manager, or call `start` and `stop`."""

    def __init__(self, **options: Any) -> None:
        """`options`: those of `ClusterOptions`. OptionError if one is wrong."""
        self.options: ClusterOptions = parse(options)
        self._running: Running | None = None
        self._real: RealCluster | None = None
        self._client: Client | None = None
        self._folder: Path

    def start(self) -> Cluster:
        """Start it; returns when it is ready and has the manifests of its options. ClusterFailed."""
        self._folder = Path(tempfile.mkdtemp(prefix="cluster-", dir=host().folder))
        try:
            if self.options.runtime == "simulated":
                self._running = host().cluster(self.options)
                self._write_kubeconfig()
            else:
                self._real = real_cluster(self.options, self._folder)
            if self.options.snapshot:
                self.load(self.options.snapshot)
            for path in self.options.manifests:
                self._apply(path)
        except BaseException:
            self.stop()
            raise
        return self

    def _apply(self, path: str) -> None:
        import yaml

        from pybernetes.api import errors

        try:
            self.client.apply(Path(path))
        except (errors.APIError, ValueError, yaml.YAMLError, OSError) as error:
            raise ClusterFailed(f"manifests: {path}: {error}") from error

    def stop(self) -> None:
        """End it, and remove all of it."""
        running, self._running = self._running, None
        real, self._real = self._real, None
        self._client = None
        if running:
            running.stop()
        if real:
            real.stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self) -> Cluster:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    # -- reaching it

    @property
    def kubeconfig(self) -> Path:
        """A kubeconfig file whose user may do everything."""
        return self._folder / "kubeconfig"

    @property
    def server(self) -> str:
        """The URL of the API server."""
        from pybernetes.client import config

        return self._running.server if self._running else config.load(self.kubeconfig).server

    @property
    def client(self) -> Client:
        """A client that may do everything."""
        if self._client is None:
            from pybernetes.testing.client import Client, tls_of

            self._client = Client(self.server, tls_of(self._real.pki if self._real else host().pki, "admin"))
        return self._client

    def environment(self) -> dict[str, str]:
        """The variables of a process that shall use this cluster."""
        return {**os.environ, "KUBECONFIG": str(self.kubeconfig)}

    @property
    def log(self) -> str:
        """The log of the components."""
        return self._real.logs() if self._real else self.running.log.read_text(errors="replace")

    def trace(self) -> str:
        """The trees of spans that this test's requests have caused (docs/trace.md)."""
        from pybernetes.testing.state import trace

        return trace(self.client)

    # -- time and state of a cluster with simulated nodes

    @property
    def running(self) -> Running:
        """The process of the cluster. ClusterFailed if it is not running, or has containers."""
        if self._running is None:
            raise ClusterFailed("this needs a running cluster with runtime='simulated'")
        return self._running

    @property
    def faults(self) -> Faults:
        """Requests that fail by rule; of any cluster, also one with containers."""
        from pybernetes.testing.faults import Faults

        return Faults(self.client)

    @property
    def components(self) -> dict[str, bool]:
        """The components beside the API server by name, and whether each runs."""
        found: dict[str, bool] = self.running.ask("components")["components"]
        return found

    def stop_component(self, name: str) -> None:
        """Let a component crash wherever it is; it stays away until it is started."""
        self.running.ask("stop", component=name)

    def start_component(self, name: str) -> None:
        """Start a component that was stopped, with nothing but what is in the API server; returns when it works."""
        self.running.ask("start", component=name)

    def restart_api_server(self, down: float = 0.0) -> None:
        """Let the API server crash, and start another one on the same store after so many of the cluster's seconds.

        All connections end, and rules of faults with them.
        """
        self.running.ask("restart-server", down=down)
        self.client.close()

    @property
    def clock(self) -> ClusterClock:
        """The time of the cluster."""
        return ClusterClock(self.running)

    def settle(self) -> None:
        """Return when everything has happened that can happen without time passing."""
        self.running.ask("settle")

    def snapshot(self) -> Snapshot:
        """All of the cluster as it is now: objects, queues, caches, timers."""
        return Snapshot(self.running.snapshot())

    def restore(self, snapshot: Snapshot) -> None:
        """Make the cluster what it was, at the same address. Connections of clients end."""
        before, self._running = self.running, None
        before.stop()
        self._running = snapshot.frozen.thaw(before.log, autojump=self.options.autojump)
        self._write_kubeconfig()
        self._client = None

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a golden snapshot: all that is stored, as a file (`.gz`: compressed) for the option `snapshot`."""
        from pybernetes.cluster import snapshots

        snapshots.save(snapshots.of_answer(self.client.request("GET", STATE)), Path(path))

    def load(self, path: str | os.PathLike[str]) -> None:
        """Make what is stored what a golden snapshot has; nodes, leases and certificates stay. ClusterFailed."""
        from pybernetes.cluster import snapshots

        try:
            wanted = snapshots.load(Path(path))
        except (snapshots.SnapshotError, OSError) as error:
            raise ClusterFailed(str(error)) from None
        with self.faults.hold(name="golden-snapshot"):
            now = snapshots.of_answer(self.client.request("GET", STATE))
            for batch in snapshots.changes(now, wanted):
                self.client.request("POST", STATE, json.loads(batch.body()))

    def _write_kubeconfig(self) -> None:
        from pybernetes.cluster import kubeconfig

        kubeconfig.write(self.kubeconfig, kubeconfig.document("pyb-test", self.running.server, host().pki))


class Snapshot:
    """A cluster at one moment, which can be restored any number of times."""

    def __init__(self, frozen: Frozen) -> None:
        self.frozen = frozen

    def close(self) -> None:
        """Give it up."""
        self.frozen.close()


class ClusterClock:
    """The time of a cluster: the machine's, plus what it was moved ahead."""

    def __init__(self, running: Running) -> None:
        self._running = running

    def advance(self, seconds: float = 0.0, *, minutes: float = 0.0, hours: float = 0.0, days: float = 0.0) -> None:
        """Move time ahead. All timers on the way fire in their order, with all that follows from them."""
        total = seconds + 60 * minutes + 3600 * hours + 86400 * days
        if total < 0:
            raise ValueError("time does not go back; restore a snapshot instead")
        self._running.ask("advance", seconds=total)

    def autojump(self, on: bool = True) -> None:
        """Let time jump to the next timer whenever the cluster has nothing to do."""
        self._running.ask("autojump", on=on)

    def now(self) -> float:
        """Seconds since 1970, in the cluster."""
        ahead: float = self._running.ask("advance", seconds=0.0)["ahead"]
        return time.time() + ahead


def real_cluster(options: ClusterOptions, folder: Path) -> RealCluster:
    """A running cluster with containers. ClusterFailed."""
    from pybernetes.testing.real import RealCluster

    cluster = RealCluster(options, folder)
    try:
        cluster.start()
    except RuntimeError as error:
        raise ClusterFailed(str(error)) from None
    return cluster
