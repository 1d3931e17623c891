"""Random kills of containers, kubelet, runtime, and components of the control plane under a churn of pods.

Whatever happened, it ends in the right state: what should run runs, what should be done is done, nothing is left over.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import time
from typing import Any

import pytest
from node import leaks
from node.cluster import Cluster, settle
from node.workloads import deployment, leaked, pods

from pybernetes.cluster.node import containerd

VICTIMS = {
    "container": 8,
    "kubelet": 3,
    "runtime": 2,
    "apiserver": 2,
    "controller-manager": 1,
    "scheduler": 1,
}
"""How often each is chosen, relative to the others."""
PROCESSES = ("sh", "sleep", "pause", "containerd-shim-runc-v2", "launcher")
"""What `container` may mean; a launcher is killed with all that it launched."""
DEPLOYMENTS = 4
COMPLETIONS = 2
OTHER_RUNTIME = {"runc", "crun"} <= containerd.runtimes().keys()


def job(name: str) -> dict[str, Any]:
    container = {
        "name": "main",
        "image": "busybox",
        "imagePullPolicy": "IfNotPresent",
        "command": ["sh", "-c", "sleep 0.5"],
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {
            "completions": COMPLETIONS,
            "parallelism": COMPLETIONS,
            "backoffLimit": 100,
            "template": {"spec": {"restartPolicy": "OnFailure", "containers": [container]}},
        },
    }


def wanted(cluster: Cluster, name: str, replicas: int) -> dict[str, Any]:
    """The deployment of that name; some run with the other OCI runtime, where there is one."""
    other = OTHER_RUNTIME and cluster.runtime == "containerd"
    return deployment(name, replicas, "crun" if other and name > "d1" else "")


class Storm:
    """Makes, changes and removes what users do, and kills; `wanted` is how it should be in the end."""

    def __init__(self, cluster: Cluster, seed: int) -> None:
        self.cluster = cluster
        self.random = random.Random(seed)
        self.wanted: dict[str, int] = {}
        self.jobs = 0
        self.deleted: list[str] = []
        """Pods that a user has deleted."""
        self.kills: list[str] = []

    def churn(self) -> None:
        """One change of a user; the API server may be away."""
        name = f"d{self.random.randrange(DEPLOYMENTS)}"
        action = self.random.choice(["scale", "scale", "recreate", "job", "delete pod"])
        with contextlib.suppress(AssertionError):
            if action == "job":
                self.cluster.apply(job(f"j{self.jobs}"))
                self.jobs += 1
            elif action == "delete pod":
                names = sorted(pods(self.cluster))
                if names:
                    self.deleted.append(self.random.choice(names))
                    self.cluster.kubectl("delete", "pod", self.deleted[-1], "--wait=false")
            elif action == "recreate":
                self.cluster.kubectl("delete", "deployment", name, "--wait=false", "--ignore-not-found")
                self.wanted.pop(name, None)
            else:
                replicas = self.random.randrange(5)
                self.cluster.apply(wanted(self.cluster, name, replicas))
                self.wanted[name] = replicas

    def strike(self) -> None:
        """One kill."""
        victim = self.random.choices(list(VICTIMS), list(VICTIMS.values()))[0]
        if victim != "container" and self.cluster.find(victim) is None:
            return  # dead already; who dies often is started again later and later
        self.kills.append(victim)
        if victim == "container":
            members = leaks.processes(self.cluster.init())
            candidates = [pid for pid in members if leaks.command(pid) in PROCESSES]
            if candidates:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(self.random.choice(candidates), signal.SIGKILL)
        else:
            self.cluster.kill(victim)

    def wrong(self) -> list[str]:
        """How the cluster differs from what users asked for."""
        found = []
        deployments = {each["metadata"]["name"]: each for each in self.cluster.get("deployments")["items"]}
        if deployments.keys() != self.wanted.keys():
            found.append(f"deployments {sorted(deployments)}, not {sorted(self.wanted)}")
        for name, each in deployments.items():
            ready = each["status"].get("readyReplicas", 0)
            if (ready, each["status"].get("replicas", 0)) != (self.wanted.get(name), self.wanted.get(name)):
                found.append(f"{name}: {each['status']}, not {self.wanted.get(name)}")
        for each in self.cluster.get("jobs")["items"]:
            name = each["metadata"]["name"]
            # One that is deleted is replaced, and may end well nevertheless, within its grace.
            most = COMPLETIONS + sum(pod.startswith(f"{name}-") for pod in self.deleted)
            if not COMPLETIONS <= each["status"].get("succeeded", 0) <= most:
                found.append(f"{name}: {each['status']}")
        for name, pod in pods(self.cluster).items():
            if "deletionTimestamp" in pod["metadata"]:
                found.append(f"{name} does not end")
        return found


def make_right(storm: Storm) -> None:
    """A change that failed while the API server was away is made again, so that what is wanted is known."""
    existing = [each["metadata"]["name"] for each in storm.cluster.get("deployments")["items"]]
    for name in existing:
        if name not in storm.wanted:
            storm.cluster.kubectl("delete", "deployment", name, "--ignore-not-found")
    for name, replicas in storm.wanted.items():
        storm.cluster.apply(wanted(storm.cluster, name, replicas))


@pytest.mark.parametrize("seconds", [40, pytest.param(600, marks=pytest.mark.soak)])
def test_random_kills_end_in_the_right_state(own_node: Cluster, seconds: int, run_seed: int) -> None:
    cluster = own_node
    storm = Storm(cluster, run_seed)
    cluster.apply(
        {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "crun"}, "handler": "crun"}
    )
    before = cluster.at_rest()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        storm.churn()
        if storm.random.random() < 0.6:
            storm.strike()
        time.sleep(storm.random.random() * 0.5)  # not a wait for anything: the pace of the storm
    print(storm.kills, storm.deleted)
    cluster.wait_ready()
    make_right(storm)
    assert not settle(storm.wrong, 120), cluster.log("node-1-kubelet")
    cluster.kubectl("delete", "deployments,jobs", "--all", "--timeout=90s")
    assert not settle(lambda: list(pods(cluster)), 90), cluster.log("node-1-kubelet")
    assert not settle(lambda: leaked(cluster, before))  # the kubelet looks for what is left once a minute
