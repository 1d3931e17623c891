"""A node whose kubelet, runtime or API server stands still for a while: Ready again at once, and nothing is lost."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from node.cluster import Cluster, settle
from node.runtimes import only
from node.workloads import all_ready, container_ids, deployment, leaked, remove_all, rollout

import tools

pytestmark = only("embedded")
SOON = 15.0
"""Seconds from the end of a pause until the node is Ready and has no taint."""


@contextmanager
def paused(cluster: Cluster, *names: str) -> Iterator[None]:
    """Processes that stand still."""
    pids = [pid for name in names if (pid := cluster.find(name)) is not None]
    assert len(pids) == len(names)
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


def wrong_with(cluster: Cluster) -> str:
    """What keeps pods away from the node: its Ready condition, or a taint."""
    found = cluster.kubectl("get", "node", "node-1", "-o", "json", check=False)
    try:
        node = json.loads(found)
    except ValueError:
        return found
    ready = next(each for each in node["status"]["conditions"] if each["type"] == "Ready")
    taints = node["spec"].get("taints") or []
    return "" if ready["status"] == "True" and not taints else f"{ready} {taints}"


def turned(cluster: Cluster) -> str:
    path = "jsonpath={.status.conditions[?(@.type=='Ready')].lastTransitionTime}"
    return cluster.kubectl("get", "node", "node-1", "-o", path)


@pytest.mark.soak
@pytest.mark.parametrize(
    ("names", "seconds"),
    [
        (("kubelet",), 60.0),
        (("kubelet",), 90.0),
        (("apiserver",), 75.0),
        (("runtime",), 90.0),
        (("scheduler",), 90.0),
        (("controller-manager",), 90.0),
        (("apiserver",), 300.0),
    ],
    ids=lambda value: "+".join(value) if isinstance(value, tuple) else str(value),
)
def test_a_node_is_ready_soon_after_a_pause(own_node: Cluster, names: tuple[str, ...], seconds: float) -> None:
    cluster = own_node
    before = cluster.at_rest()
    cluster.apply(deployment("steady", 3))
    rollout(cluster, "steady")
    ids, began = container_ids(cluster), turned(cluster)
    with paused(cluster, *names):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if names == ("kubelet",) and end - time.monotonic() < 5.0:
                assert wrong_with(cluster)
            time.sleep(1.0)  # not a wait for anything: the pause itself
    tools.wait_until(
        lambda: not wrong_with(cluster), f"Ready and without taints: {wrong_with(cluster)}", SOON, every=0.5
    )
    if names == ("kubelet",):
        assert turned(cluster) > began
    assert not settle(lambda: all_ready(cluster, 3))
    assert container_ids(cluster) == ids
    cluster.kubectl("scale", "deployment/steady", "--replicas=4")  # it works again
    rollout(cluster, "steady")
    remove_all(cluster)
    assert not settle(lambda: leaked(cluster, before))


def test_a_stopped_kubelet_goes_on_where_it_was(own_node: Cluster) -> None:
    cluster = own_node
    before = cluster.at_rest()
    cluster.apply(deployment("steady", 2))
    rollout(cluster, "steady")
    ids = container_ids(cluster)
    with paused(cluster, "kubelet"):
        cluster.kubectl("scale", "deployment/steady", "--replicas=3")
        tools.wait_until(lambda: len(cluster.get("pods")["items"]) == 3, "the third pod is made", 60.0, every=0.2)
    rollout(cluster, "steady")
    assert ids.items() <= container_ids(cluster).items()
    assert not wrong_with(cluster)
    remove_all(cluster)
    assert not settle(lambda: leaked(cluster, before))
