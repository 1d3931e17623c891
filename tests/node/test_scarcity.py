"""A node whose kubelet has no descriptor or memory left, or whose disk is full, for some seconds.

Whatever fails meanwhile: at the end the node is Ready within 15 seconds, no container was replaced, pods that could not
start do start, and nothing is left.
"""

from __future__ import annotations

import os
import resource
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

import pytest
from node import leaks
from node.cluster import Cluster, settle
from node.runtimes import only
from node.test_pauses import SOON, wrong_with
from node.workloads import all_ready, container_ids, deployment, leaked, remove_all, rollout
from store.tools import small_disk

import tools
from pybernetes.cluster.node import plan

pytestmark = only("embedded")
LIMIT = "memory.limit_in_bytes"
DISK = 700
"""Megabytes for a cluster with the images of the tests."""


@pytest.fixture(scope="module")
def small_node(runtime_name: str) -> Iterator[Cluster]:
    """A cluster whose data is on a disk of its own."""
    if reason := plan.obstacle(runtime_name):
        pytest.skip(f"no node: {reason}")
    with (
        tempfile.TemporaryDirectory(prefix="pyb-") as folder,
        small_disk(Path(folder) / "d", DISK) as disk,
        Cluster(disk, f"s{os.getpid()}", runtime=runtime_name) as cluster,
    ):
        yield cluster


@contextmanager
def limited(cluster: Cluster, name: str, kind: int, limit: Callable[[int], int]) -> Iterator[None]:
    """One program of the node with a limit of the kernel's."""
    pid = cluster.find(name)
    assert pid is not None
    usual = resource.prlimit(pid, kind)
    resource.prlimit(pid, kind, (limit(pid), usual[1]))
    try:
        yield
    finally:
        with suppress(ProcessLookupError):  # it ended by it, and another took its place
            resource.prlimit(pid, kind, usual)


@contextmanager
def squeezed(cluster: Cluster, name: str) -> Iterator[None]:
    """One program of the node may take no page more than it has: the kernel kills it when it does."""
    pid = cluster.find(name)
    assert pid is not None
    node = next((each for each in leaks.cgroup_folders(cluster.machine().cgroup) if (each / LIMIT).exists()), None)
    if node is None:
        pytest.skip("no memory hierarchy of cgroup v1, where a group with groups below it may have processes")
    (made := node / "squeezed").mkdir()
    try:
        (made / LIMIT).write_text("4096")
        (made / "cgroup.procs").write_text(str(pid))
        yield
        assert int((made / "memory.failcnt").read_text()) > 0
    finally:
        for each in (made / "cgroup.procs").read_text().split():
            with suppress(ProcessLookupError):
                (node / "cgroup.procs").write_text(each)
        tools.wait_until(lambda: removed(made), "the cgroup is empty")


def removed(folder: Path) -> bool:
    with suppress(OSError):
        folder.rmdir()
    return not folder.exists()


@contextmanager
def full_disk(cluster: Cluster) -> Iterator[None]:
    """No free byte is left."""
    ballast = cluster.folder / "ballast"
    try:
        with open(ballast, "wb", buffering=0) as file, suppress(OSError):
            while file.write(bytes(1 << 20)):
                pass
        yield
    finally:
        ballast.unlink()


def descriptors(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))


def address_space(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[0]) * resource.getpagesize()


FAULTS: dict[str, Callable[[Cluster], AbstractContextManager[None]]] = {
    "kubelet: EMFILE": lambda cluster: limited(cluster, "kubelet", resource.RLIMIT_NOFILE, descriptors),
    "kubelet: ENOMEM": lambda cluster: limited(cluster, "kubelet", resource.RLIMIT_AS, address_space),
    "kubelet: out of memory": lambda cluster: squeezed(cluster, "kubelet"),
    "runtime: EMFILE": lambda cluster: limited(cluster, "runtime", resource.RLIMIT_NOFILE, descriptors),
    "runtime: out of memory": lambda cluster: squeezed(cluster, "runtime"),
    "disk full": full_disk,
}
LONG = ("disk full", "runtime: EMFILE", "runtime: out of memory")
"""Those of the soak only."""


@pytest.mark.parametrize("seconds", [4, pytest.param(90, marks=pytest.mark.soak)])
# A disk that is full when the kubelet looks (every 10 s) is under pressure for five minutes, as upstream has it.
@pytest.mark.parametrize(
    "fault", [pytest.param(each, marks=pytest.mark.soak) if each in LONG else each for each in FAULTS]
)
def test_what_is_scarce_for_a_while_costs_no_node_and_no_pod(small_node: Cluster, fault: str, seconds: int) -> None:
    cluster = small_node
    before = cluster.at_rest()
    cluster.apply(deployment("steady", 2))
    rollout(cluster, "steady")
    ids = container_ids(cluster)
    with FAULTS[fault](cluster):
        end = time.monotonic() + seconds
        with suppress(AssertionError):  # a full disk refuses it with 503
            cluster.kubectl("scale", "deployment/steady", "--replicas=3", "--timeout=5s")
        first = next(iter(ids)).partition("/")[0]
        while time.monotonic() < end:
            cluster.kubectl("exec", first, "--", "true", check=False)  # wants descriptors, memory and files
            time.sleep(0.1)
    tools.wait_until(lambda: not wrong_with(cluster), f"Ready after {fault}: {wrong_with(cluster)}", SOON, every=0.5)
    cluster.kubectl("scale", "deployment/steady", "--replicas=3")
    rollout(cluster, "steady")
    assert not settle(lambda: all_ready(cluster, 3))
    assert ids.items() <= container_ids(cluster).items()
    remove_all(cluster)
    assert not settle(lambda: leaked(cluster, before))
