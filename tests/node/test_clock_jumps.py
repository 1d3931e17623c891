"""A clock that is set an hour ahead, then an hour behind, and right again: node and pods do not notice.

All processes of the cluster but the launcher have a clock that the test can set: a `sitecustomize` of the test's adds
what is in a file that they have mapped to what `time.time()` says. What waits goes by the monotonic clock, which is
the machine's. gRPC takes deadlines by the wall clock and compares them with the machine's: so the clock of the cluster
is always ahead of that, and deadlines of gRPC never come.
"""

from __future__ import annotations

import mmap
import os
import struct
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from node.cluster import Cluster, settle
from node.runtimes import only
from node.test_pauses import SOON, wrong_with
from node.workloads import all_ready, container_ids, deployment, leaked, remove_all, rollout

import tools
from pybernetes.cluster.node import plan

pytestmark = [only("embedded"), pytest.mark.soak]
SITE = """
import mmap, os, struct, time
with open(os.environ["TEST_CLOCK"], "r+b") as file:
    _ahead = mmap.mmap(file.fileno(), 8)
_time, _time_ns = time.time, time.time_ns
time.time = lambda: _time() + struct.unpack("d", _ahead)[0]
time.time_ns = lambda: _time_ns() + int(struct.unpack("d", _ahead)[0] * 1e9)
"""
HOUR = 3600.0
USUAL = 2 * HOUR
"""How far the clock is ahead of the machine's when it is right."""
HELD = 20.0
"""Seconds for which the node is looked at after each jump."""
RENEWED = 150.0
"""Seconds until a token that has expired is renewed: pods are looked at about once a minute."""


class Clock:
    """The clock of a cluster's processes."""

    def __init__(self, folder: Path) -> None:
        (folder / "sitecustomize.py").write_text(SITE)
        (folder / "clock").write_bytes(bytes(8))
        self.environment = {"PYTHONPATH": str(folder), "TEST_CLOCK": str(folder / "clock")}
        with open(folder / "clock", "r+b") as file:
            self._ahead = mmap.mmap(file.fileno(), 8)

    def set(self, ahead: float) -> None:
        """Let it be so many seconds ahead of the machine's."""
        self._ahead[:] = struct.pack("d", ahead)


@pytest.fixture
def clock_and_cluster(runtime_name: str) -> Iterator[tuple[Clock, Cluster]]:
    if reason := plan.obstacle(runtime_name):
        pytest.skip(f"no node: {reason}")
    with tempfile.TemporaryDirectory(prefix="pyb-") as folder:
        (site := Path(folder) / "site").mkdir()
        clock = Clock(site)
        cluster = Cluster(Path(folder), f"c{os.getpid()}", runtime=runtime_name)
        cluster.environment |= clock.environment
        clock.set(USUAL)
        with cluster:
            yield clock, cluster


def token_refused(cluster: Cluster, pod: str) -> str:
    """What the API server says of the token in a pod, if it is not good."""
    token = cluster.kubectl("exec", pod, "--", "cat", "/var/run/secrets/kubernetes.io/serviceaccount/token")
    said = cluster.kubectl(
        "--token", token, "get", "--raw", "/api/v1/pods", "--kubeconfig", _bare(cluster), check=False
    )
    return "" if "Forbidden" in said else said


def _bare(cluster: Cluster) -> str:
    """A kubeconfig with the server and no credentials."""
    path = cluster.folder / "bare"
    if not path.exists():
        lines = Path(cluster.environment["KUBECONFIG"]).read_text().splitlines()
        kept = [line for line in lines if "client-certificate-data" not in line and "client-key-data" not in line]
        path.write_text("\n".join(kept))
    return str(path)


def test_a_clock_that_jumps_costs_no_node_and_no_pod(clock_and_cluster: tuple[Clock, Cluster]) -> None:
    clock, cluster = clock_and_cluster
    before = cluster.at_rest()
    steady = deployment("steady", 2)
    (container,) = steady["spec"]["template"]["spec"]["containers"]
    container["livenessProbe"] = {"exec": {"command": ["true"]}, "periodSeconds": 1, "initialDelaySeconds": 1}
    cluster.apply(steady)
    rollout(cluster, "steady")
    ids = {name: id for name, id in container_ids(cluster).items() if name.startswith("steady")}
    assert not token_refused(cluster, min(ids))
    for number, ahead in enumerate((HOUR, -HOUR, 0.0), 3):
        clock.set(USUAL + ahead)
        jumped = time.monotonic()
        cluster.kubectl("scale", "deployment/steady", f"--replicas={number}")
        while time.monotonic() < jumped + HELD:
            assert time.monotonic() < jumped + SOON or not wrong_with(cluster), ahead
            time.sleep(0.5)  # not a wait for anything: how often the node is looked at
        rollout(cluster, "steady")
        found = container_ids(cluster)
        assert {name: found.get(name) for name in ids} == ids, ahead
        tools.wait_until(
            lambda: not token_refused(cluster, min(ids)), f"the token is good, {ahead} ahead", RENEWED, every=2.0
        )
    assert not cluster_tracebacks(cluster)
    assert not settle(lambda: all_ready(cluster, 5))
    remove_all(cluster)
    assert not settle(lambda: leaked(cluster, before))


def cluster_tracebacks(cluster: Cluster) -> list[str]:
    """The logs of the cluster's programs that have a traceback."""
    return [path.name for path in cluster.layout.logs.glob("*.log") if "Traceback" in path.read_text(errors="replace")]
