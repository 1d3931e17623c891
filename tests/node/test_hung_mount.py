"""Pods with volumes on a file system that never answers: they alone pay for it, and nothing is left of them."""

from __future__ import annotations

import json
import os
import signal
from contextlib import ExitStack
from typing import Any

import pytest
from hung_mount import hung_mount
from node import leaks
from node.cluster import Cluster, settle
from node.pods import Namespace, pod
from node.runtimes import only
from node.workloads import leaked

import tools

pytestmark = only("embedded")  # the kubelet does the same with both, and each test takes most of a minute
HUNG = "/mnt/hung-volume"
KUBELET = "/var/lib/kubelet"


def mounted(name: str, path: str = HUNG, type: str = "", **mount: str) -> Any:
    volume = {"name": "v", "hostPath": {"path": path, **({"type": type} if type else {})}}
    return pod(name, "sleep 3000", main={"volumeMounts": [{"name": "v", "mountPath": "/v", **mount}]}, volumes=[volume])


class Watched:
    """A node, and what others see of it while something hangs."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        self.cluster = cluster
        self.space = Namespace(cluster, name)
        self.space.apply(pod("steady", "sleep 3000"))
        self.space.running("steady")

    def events(self, name: str) -> set[str]:
        found = json.loads(self.space.kubectl("get", "events", "-o", "json"))["items"]
        return {each["reason"] for each in found if each["involvedObject"]["name"] == name}

    def reported(self, name: str, reason: str) -> None:
        tools.wait_until(lambda: reason in self.events(name), f"{reason} of {name} is reported", 60.0, every=0.2)

    def ready(self) -> str:
        path = "jsonpath={.status.conditions[?(@.type=='Ready')].status}"
        return self.cluster.kubectl("get", "node", "node-1", "-o", path)

    def goes_on(self) -> None:
        """Everything else works: commands, new pods, health, lease."""
        cluster, space = self.cluster, self.space

        def renewed() -> str:
            path = "jsonpath={.spec.renewTime}"
            return cluster.kubectl("get", "-n", "kube-node-lease", "lease", "node-1", "-o", path)

        lease = renewed()
        assert space.kubectl("exec", "steady", "--", "echo", "alive") == "alive\n"
        space.apply(pod("new", "sleep 3000"))
        space.running("new")
        assert cluster.inside("wget", "-qO-", "http://127.0.0.1:10248/healthz") == "ok"
        tools.wait_until(lambda: renewed() > lease, "the lease is renewed", 60.0, every=0.5)
        assert self.ready() == "True"

    def others_can_be_deleted(self) -> None:
        self.space.kubectl("delete", "pod", "steady", "new", "--timeout=60s")

    def nothing_is_left(self, before: leaks.Count) -> None:
        assert not settle(lambda: self.space.kubectl("get", "pods", "-o", "name")), self.cluster.log("node-1-kubelet")
        assert self.ready() == "True"
        self.cluster.kubectl("delete", "namespace", self.space.name)
        assert not settle(lambda: leaked(self.cluster, before))


def test_a_hung_mount_costs_the_pods_that_mount_it_and_no_others(own_node: Cluster) -> None:
    before = own_node.at_rest()
    node = Watched(own_node, "hung")
    with hung_mount(HUNG, own_node.enter) as mount:
        node.space.apply(
            mounted("checked", type="Directory"), mounted("whole"), mounted("part", "/mnt", subPath="hung-volume/a")
        )
        node.reported("checked", "FailedMount")
        node.reported("part", "Failed")
        node.reported("whole", "Failed")
        node.goes_on()
        node.space.kubectl("delete", "pod", "checked", "--grace-period=1", "--timeout=60s")
        node.space.kubectl("delete", "pod", "whole", "part", "--wait=false")
        node.others_can_be_deleted()
        mount.release()
    node.nothing_is_left(before)


def test_a_mount_that_hangs_under_a_running_pod_costs_that_pod_alone(own_node: Cluster) -> None:
    before = own_node.at_rest()
    node = Watched(own_node, "hangs")
    with hung_mount(HUNG, own_node.enter, hangs=False) as mount:
        user = mounted("user")
        user["spec"]["containers"][0]["command"] = ["sh", "-c", "while ls /v; do sleep 0.1; done"]
        node.space.apply(user)
        node.space.running("user")
        mount.hang()
        node.goes_on()
        node.space.kubectl("delete", "pod", "user", "--grace-period=1", "--wait=false")
        node.others_can_be_deleted()
        assert node.space.get("user")["metadata"]["deletionTimestamp"]  # its process cannot be killed
        mount.release()
    node.nothing_is_left(before)


@pytest.mark.soak
def test_what_hangs_over_the_kubelets_own_folders_costs_no_other_pod(own_node: Cluster) -> None:
    before = own_node.at_rest()
    node = Watched(own_node, "folders")
    node.space.apply(pod("victim", "sleep 3000"))
    uid = node.space.running("victim")["metadata"]["uid"]
    folders = [
        f"{KUBELET}/device-plugins/hung",
        f"{KUBELET}/plugins_registry/hung",
        "/etc/kubernetes/manifests/hung",
    ]
    kubelet = own_node.find("kubelet")
    assert kubelet is not None
    with ExitStack() as mounts:
        os.kill(kubelet, signal.SIGSTOP)  # a thread of its that looks at one of them could not be killed
        for each in (f"/var/log/pods/{node.space.name}_victim_{uid}", f"{KUBELET}/pods/{uid}", *folders):
            mounts.enter_context(hung_mount(each, own_node.enter))
        own_node.kill("kubelet")  # the next one finds them when it starts
        own_node.wait_ready()
        node.goes_on()
        assert "cross-device" in node.space.kubectl("logs", "victim", check=False)
        assert node.space.kubectl("exec", "victim", "--", "echo", "alive") == "alive\n"
        node.space.kubectl("delete", "pod", "victim", "--wait=false")
        node.others_can_be_deleted()
    own_node.inside("rmdir", *folders)
    node.nothing_is_left(before)
