"""Pods with volumes on a file system that never answers: they alone pay for it, and nothing is left of them."""

from __future__ import annotations

import json
from typing import Any

from hung_mount import hung_mount
from node.cluster import Cluster, settle
from node.pods import Namespace, pod
from node.workloads import leaked

import tools

HUNG = "/mnt/hung-volume"


def mounted(name: str, path: str = HUNG, type: str = "", **mount: str) -> Any:
    volume = {"name": "v", "hostPath": {"path": path, **({"type": type} if type else {})}}
    return pod(name, "sleep 3000", main={"volumeMounts": [{"name": "v", "mountPath": "/v", **mount}]}, volumes=[volume])


def test_a_hung_mount_costs_the_pods_that_mount_it_and_no_others(own_node: Cluster) -> None:
    cluster = own_node
    before = cluster.at_rest()
    space = Namespace(cluster, "hung")
    space.apply(pod("steady", "sleep 3000"))
    space.running("steady")

    def events(name: str) -> set[str]:
        found = json.loads(space.kubectl("get", "events", "-o", "json"))["items"]
        return {each["reason"] for each in found if each["involvedObject"]["name"] == name}

    def renewed() -> str:
        return cluster.kubectl("get", "-n", "kube-node-lease", "lease", "node-1", "-o", "jsonpath={.spec.renewTime}")

    def ready() -> str:
        path = "jsonpath={.status.conditions[?(@.type=='Ready')].status}"
        return cluster.kubectl("get", "node", "node-1", "-o", path)

    with hung_mount(HUNG, cluster.enter) as release:
        space.apply(
            mounted("checked", type="Directory"), mounted("whole"), mounted("part", "/mnt", subPath="hung-volume/a")
        )
        tools.wait_until(lambda: "FailedMount" in events("checked"), "the hung volume is reported", 60.0, every=0.2)
        tools.wait_until(lambda: "Failed" in events("part"), "the hung subPath is reported", 60.0, every=0.2)
        if cluster.runtime == "embedded":  # containerd waits until its caller has had enough
            tools.wait_until(lambda: "Failed" in events("whole"), "the hung mount is reported", 60.0, every=0.2)
        lease = renewed()
        assert space.kubectl("exec", "steady", "--", "echo", "alive") == "alive\n"
        space.apply(pod("new", "sleep 3000"))
        space.running("new")
        assert cluster.inside("wget", "-qO-", "http://127.0.0.1:10248/healthz") == "ok"
        tools.wait_until(lambda: renewed() > lease, "the lease is renewed", 60.0, every=0.5)
        assert ready() == "True"
        space.kubectl("delete", "pod", "checked", "--grace-period=1", "--timeout=60s")
        space.kubectl("delete", "pod", "whole", "part", "steady", "new", "--wait=false")
        assert not settle(lambda: {"steady", "new"} & set(space.kubectl("get", "pods", "-o", "name").split()))
        release()
    assert not settle(lambda: space.kubectl("get", "pods", "-o", "name")), cluster.log("node-1-kubelet")
    assert ready() == "True"
    cluster.kubectl("delete", "namespace", "hung")
    assert not settle(lambda: leaked(cluster, before))
